# SPDX-License-Identifier: Apache-2.0
"""A source with event triggers on the temporary PostgreSQL server."""

from __future__ import annotations

from typing import Any

import psycopg

from airflow_provider_cdc.sources.ddl_triggers import install_sql, qualified
from tests.services.postgres import sql

Connection = psycopg.Connection[Any]
LOG = qualified("ctl.ddl_log")


def install(database: Connection) -> None:
    """Install the triggers as the command does."""
    for statement in install_sql(LOG):
        database.execute(sql(statement))
