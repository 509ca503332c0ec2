# SPDX-License-Identifier: Apache-2.0
"""A database of its own on the temporary PostgreSQL server, and Airflow's connection to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psycopg
import pytest

from tests.postgres.database import Connection

if TYPE_CHECKING:
    from tests.services.postgres import Postgres


@pytest.fixture
def database(postgres: Postgres, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    from tests.services.postgres import PASSWORD, USER

    conninfo = postgres.new_database()
    document = {"conn_type": "postgres", "host": "127.0.0.1", "port": postgres.port, "login": USER}
    monkeypatch.setenv(
        "AIRFLOW_CONN_SHOP_DB", json.dumps({**document, "password": PASSWORD, "schema": conninfo.rpartition("/")[2]})
    )
    with psycopg.connect(conninfo, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA app")
        yield connection
