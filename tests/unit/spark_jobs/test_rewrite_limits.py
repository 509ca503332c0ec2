# SPDX-License-Identifier: Apache-2.0
"""A table that is written again for its new layout obeys the limits of any other commit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.unit.spark_jobs.debezium_batches import carry_out, change, statement


@pytest.mark.parametrize("apply_bytes", [1, 1 << 27], ids=["in pieces", "at once"])
def test_rows_that_do_not_fit_park_a_table_whose_layout_changes(
    apply_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {"t": [change(10, {"id": 1, "n": 1})]}
    altered = {
        "schema": [statement(20, "ALTER TABLE shop.t ADD COLUMN m INT DEFAULT 5")],
        "t": [change(30, {"id": 2, "n": 2, "m": 2}), change(40, {"id": 3, "n": "no number", "m": 3})],
    }
    _, result = carry_out(tmp_path, [first, altered], RunPolicy(apply_bytes=apply_bytes), monkeypatch)
    (table,) = result.tables
    assert (table.status, "apply.quarantine_exceeded" in table.reason) == ("parked", True), table
    assert DeltaLocation(f"{tmp_path}/shop/t", {}).rows().to_pylist() == [{"id": 1, "n": 1}]


def test_rows_that_may_be_left_out_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"t": [change(10, {"id": 1, "n": 1})]}
    altered = {
        "schema": [statement(20, "ALTER TABLE shop.t ADD COLUMN m INT DEFAULT 5")],
        "t": [change(30, {"id": 2, "n": 2, "m": 2}), change(40, {"id": 3, "n": "no number", "m": 3})],
    }
    policy = RunPolicy(apply_bytes=1, quarantine_limit=1)
    _, result = carry_out(tmp_path, [first, altered], policy, monkeypatch)
    assert [table.status for table in result.tables] == ["committed"]
    table = DeltaLocation(f"{tmp_path}/shop/t", {})
    assert table.rows().sort_by("id").to_pylist() == [{"id": 1, "n": 1, "m": 5}, {"id": 2, "n": 2, "m": 2}]
    facts = json.loads(table.table.history(1)[0]["cdc"])
    assert (facts["upserts"], [failure["column"] for failure in facts["failures"]]) == (1, ["n"])
