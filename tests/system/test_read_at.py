# SPDX-License-Identifier: Apache-2.0
"""The lines with which the page reads all tables at the time of the last batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.plugins.equality_rows import equality
from tests.airflow.shop import demand_data
from tests.system.recorded_files import FilesSite

pytestmark = pytest.mark.system


class IcebergSite(FilesSite):
    """A pipeline into Iceberg tables of a catalog in their warehouse."""

    def document(self) -> dict[str, Any]:
        """Return the pipeline as plain data."""
        return {**super().document(), "sink": {"type": "iceberg", "warehouse": str(self.lake)}}


def test_lines_of_iceberg_tables_read_the_versions_of_their_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    demand_data()
    site = IcebergSite(tmp_path, {})
    site.feed(0)
    assert site.sync().code == 0
    url = f"sqlite:///{site.ledger}"
    with Database(url, read_only=True).reading() as connection:
        lines = equality(connection, "shop")["equality"]["reads"]
    # what "the settings of the catalog" are for pyiceberg, which looks when it is imported
    monkeypatch.setenv("PYICEBERG_CATALOG__CDC__TYPE", "sql")
    monkeypatch.setenv("PYICEBERG_CATALOG__CDC__URI", f"sqlite:///{site.lake / 'catalog.db'}")
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    customers = load_catalog("cdc").load_table("shop.customers")
    customers.delete("id > 0")
    assert customers.scan().count() == 0
    names: dict[str, Any] = {}
    reads = [line for line in lines if line.startswith("read(")]
    exec("\n".join(line for line in lines if line not in reads), names)
    counts = {line: eval(line, names).num_rows for line in reads}
    assert (len(reads), sum(counts.values())) == (8, 491), counts
