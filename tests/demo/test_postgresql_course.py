# SPDX-License-Identifier: Apache-2.0
"""The course about PostgreSQL is followed word by word, with a server, a broker and a connector of the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.sources.ddl_triggers import DEFAULT_BEAT, heartbeat_sql, qualified
from tests.demo.followed_page import differences, follow, parts_of
from tests.services.connect import Connect
from tests.services.postgres import Postgres, sql
from tests.services.process import NotAvailable

if TYPE_CHECKING:
    from tests.services.broker import Broker

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "postgresql.md").read_text(encoding="utf-8")
pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    try:
        running = Postgres({"wal_level": "logical"})
    except NotAvailable as reason:
        pytest.skip(str(reason))
    with running, psycopg.connect(running.conninfo, autocommit=True) as connection:
        connection.execute("CREATE ROLE postgres LOGIN SUPERUSER PASSWORD 'secret-1'")
        connection.execute("CREATE DATABASE shop")
        yield running


def rows_of(server: Postgres, table: str) -> list[dict[str, Any]]:
    with psycopg.connect(server.conninfo, dbname="shop") as connection:
        cursor = connection.execute(sql(f"SELECT * FROM app.{table} ORDER BY id"))
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor]


def test_every_command_of_the_course_does_what_the_page_says(
    broker: Broker, server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the programs of the server have a psql, where the machine has none
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{server.programs}")
    with Connect(broker.bootstrap) as connect:
        own = {
            "broker:9092": broker.bootstrap,
            "@db:5432": f"@127.0.0.1:{server.port}",
            '"database.hostname": "db"': '"database.hostname": "127.0.0.1"',
            '"database.port": "5432"': f'"database.port": "{server.port}"',
            '"heartbeat.interval.ms": "10000"': '"heartbeat.interval.ms": "1000"',  # so that nobody waits for it
            "http://connect:8083": connect.url,
            "/data/": f"{tmp_path}/data/",
        }
        page = PAGE
        for name, value in own.items():
            assert name in page
            page = page.replace(name, value)
        parts, folder = parts_of(page), tmp_path / "reader"
        assert page.count("```") == 2 * len(parts)
        folder.mkdir()
        printed = follow(parts, folder, {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}, timeout=500)
    assert len(printed) == sum(part.language == "bash" for part in parts) > 10
    assert sum(part.language == "text" for part in parts) >= 6
    assert "\n\n".join(differences(parts, printed)) == ""
    for table in ("orders", "returns"):
        content = DeltaTable(str(tmp_path / "data" / "lake" / "app" / table)).to_pyarrow_table()
        assert content.sort_by("id").to_pylist() == rows_of(server, table)


def test_the_connector_writes_the_beat_that_the_command_prints() -> None:
    (stated,) = [line for line in PAGE.splitlines() if "heartbeat.action.query" in line]
    query = heartbeat_sql(qualified(DEFAULT_BEAT))[1].replace('"', "")
    assert stated.strip() == f'"heartbeat.action.query": "{query}",'
