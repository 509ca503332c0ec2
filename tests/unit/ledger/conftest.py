# SPDX-License-Identifier: Apache-2.0
"""Every test of the ledger runs on both databases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_provider_cdc.ledger import Ledger


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return a database of the test's own."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'ledger.db'}"
    return new_database(request)


def new_database(request: pytest.FixtureRequest) -> str:
    """Return a new database of the PostgreSQL server."""
    pytest.importorskip("psycopg", reason="the PostgreSQL driver psycopg is not installed")
    conninfo: str = request.getfixturevalue("postgres").new_database()
    return conninfo.replace("postgresql://", "postgresql+psycopg://")


@pytest.fixture
def ledger(url: str) -> Ledger:
    return Ledger(url)


@pytest.fixture
def another(url: str) -> Callable[[], Ledger]:
    """Return a second user of the same database."""
    return lambda: Ledger(url)
