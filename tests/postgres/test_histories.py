# SPDX-License-Identifier: Apache-2.0
"""Random DDL and rows on a real server with a DDL log: each table of the lake is its own, or needs a rebuild."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.sinks.delta.table import DeltaLocation
from tests.histories.log import Log
from tests.histories.scripted import Script
from tests.locations import table_location
from tests.postgres.database import Connection, install
from tests.postgres.recorder import Recorder
from tests.sample import TIMES
from tests.services.postgres import sql

TYPES = ("int", "bigint", "text", "varchar(9)", "numeric(9,2)", "numeric(12,4)", "numeric(10,1)", "bool", "date")
DEFAULTS = {"int": "7", "bigint": "8", "text": "'x y'", "bool": "true", "date": "'2026-02-03'", "numeric(9,2)": "1.25"}
LOG_TOPIC = "db.ctl.ddl_log"


def literal(chance: random.Random, kind: str) -> str:
    number = chance.randint(-9999, 9999)
    values = {"int": str(number), "bigint": str(number * 7), "bool": chance.choice(("true", "false"))}
    values |= {"date": f"'2026-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}'"}
    return chance.choice(("NULL", values.get(kind, f"'{number / 4}'")))


def columns_of(database: Connection) -> dict[str, list[tuple[str, str]]]:
    query = """
    SELECT n.nspname || '.' || c.relname, array_agg(a.attname::text || ' ' || format_type(a.atttypid, a.atttypmod)
      ORDER BY a.attnum)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'r' AND n.nspname IN ('app', 'other') AND a.attnum > 0 AND NOT a.attisdropped GROUP BY 1
    """
    rows = database.execute(sql(query)).fetchall()
    return {name: [(one.split(" ", 1)[0], one.split(" ", 1)[1]) for one in columns] for name, columns in rows}


def ddl(chance: random.Random, tables: dict[str, list[tuple[str, str]]]) -> str:
    """Return a statement that the server may refuse."""
    new, kind = f"{chance.choice(('app', 'other'))}.t{chance.randint(0, 4)}", chance.choice(TYPES)
    if not tables or chance.random() < 0.12:
        return f"CREATE TABLE {new} (id int PRIMARY KEY, c0 {kind})"
    name, column = chance.choice(sorted(tables)), f"c{chance.randint(0, 4)}"
    present = chance.choice(tables[name])[0]
    default = f" DEFAULT {DEFAULTS[kind]}" if kind in DEFAULTS and chance.random() < 0.7 else ""
    return chance.choice(
        (
            f"ALTER TABLE {name} ADD COLUMN {column} {kind}{default}",
            f"ALTER TABLE {name} ADD COLUMN {column} {kind}{default}",
            f"ALTER TABLE {name} DROP COLUMN {present}, ADD COLUMN {present} {kind}{default}",
            f"ALTER TABLE {name} RENAME COLUMN {present} TO {column}",
            f"ALTER TABLE {name} RENAME COLUMN {present} TO {column}",
            f"ALTER TABLE {name} ALTER COLUMN {present} TYPE {kind}",
            f"ALTER TABLE {name} RENAME TO t{chance.randint(0, 4)}",
            f"ALTER TABLE {name} SET SCHEMA {chance.choice(('app', 'other'))}",
            f"CREATE TABLE {new} AS SELECT * FROM {name}",
            f"DROP TABLE {name}",
        )
    )


def dml(chance: random.Random, tables: dict[str, list[tuple[str, str]]]) -> str:
    name = chance.choice(sorted(tables))
    columns = tables[name]
    values = [str(chance.randint(1, 9)) if column == "id" else literal(chance, kind) for column, kind in columns]
    if chance.random() < 0.6:
        return f"INSERT INTO {name} VALUES ({', '.join(values)})"
    where = f"id = {chance.randint(1, 9)}"
    settings = [f"{column} = {value}" for (column, _), value in zip(columns, values, strict=True) if column != "id"]
    if chance.random() < 0.7 and settings:
        return f"UPDATE {name} SET {', '.join(settings)} WHERE {where}"
    return f"DELETE FROM {name} WHERE {where}"


def text(value: Any) -> str | None:
    return None if value is None else str(value)


def compared(database: Connection, script: Script) -> tuple[int, list[str]]:
    """Return how many tables are equal, and what is wrong in words."""
    equal, wrong = 0, []
    for name, columns in columns_of(database).items():
        states = [s for s in script.states_of(*name.split(".")) if s != "dropped"]
        if states != ["ok"]:
            wrong += [] if states == ["parked"] else [f"{name} is {states}"]
            continue
        content = DeltaLocation(table_location(str(script.root), *name.split(".")), {}).rows()
        if content.column_names != [column for column, _ in columns]:
            wrong.append(f"{name} has {content.column_names}")
            continue
        selected = database.execute(sql(f"SELECT * FROM {name}")).fetchall()
        expected = sorted(repr(list(map(text, row))) for row in selected)
        actual = sorted(repr(list(map(text, row.values()))) for row in content.to_pylist())
        wrong += [] if actual == expected else [f"{name}: {actual} instead of {expected}"]
        equal += actual == expected
    return equal, wrong


@pytest.mark.parametrize("seed", range(1, 1 + 3 * TIMES))
def test_each_table_is_the_servers_or_needs_a_rebuild(
    database: Connection, seed: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chance, log = random.Random(seed), Log()
    log.install(monkeypatch)
    options = {"connector": "postgresql", "decimal.handling.mode": "string"}
    script = Script(log, tmp_path, schema_topic=LOG_TOPIC, options=options, tables={"exclude": ["ctl.*"]})
    database.execute("CREATE SCHEMA other; CREATE TABLE app.t0 (id int PRIMARY KEY, c0 text)")
    install(database)
    recorder = Recorder(database, log)
    recorder.send(rows=False)
    for _ in range(90):
        tables = columns_of(database)
        keyed = {name: columns for name, columns in tables.items() if ("id", "integer") in columns}
        statement = ddl(chance, tables) if not keyed or chance.random() < 0.3 else dml(chance, keyed)
        recorder.run(statement)
        if chance.random() < 0.06:  # any part of each topic, the DDL log's too
            ends = {w: chance.randint(script.ends.get(w, 0), len(part)) for w, part in log.partitions.items()}
            script.sync(ends)
    script.sync()
    equal, wrong = compared(database, script)
    assert wrong == []
    assert equal > 0
