# SPDX-License-Identifier: Apache-2.0
"""Ask a ledger for lines of the page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy.engine import Connection

from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.plugins import (
    pipeline_rows,
)
from tests.airflow.page_ledger import DAG

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
DAGS = {DAG, "bank_hourly"}


def names(page: dict[str, Any]) -> list[str]:
    return [line["name"] for line in page["pipelines"]]


def page_of(connection: Connection, dags: set[str], **more: Any) -> dict[str, Any]:
    return pipeline_rows.pipeline_page(connection, dags, **more)


def overview(url: str, name: str) -> dict[str, Any]:
    with Database(url, read_only=True).reading() as connection:
        return pipeline_rows.pipeline(connection, name, DAGS)
