# SPDX-License-Identifier: Apache-2.0
"""Ledgers of both databases, and a filled one for tests that only read."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.ledger.database import Database
from tests.airflow.page_ledger import fill
from tests.unit.ledger.conftest import new_database, url  # noqa: F401
from tests.unit.plugins.page_rows import NOW


@pytest.fixture(scope="session", params=["sqlite", "postgresql"])
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Database:
    """Return one ledger for all tests that only read it."""
    folder = tmp_path_factory.mktemp("ledger")
    address = f"sqlite:///{folder / 'ledger.db'}" if request.param == "sqlite" else new_database(request)
    fill(address, NOW)
    return Database(address, read_only=True)
