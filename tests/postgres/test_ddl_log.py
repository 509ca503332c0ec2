# SPDX-License-Identifier: Apache-2.0
"""Compare what each DDL's rows in the log say of stored rows, columns and keys with what a real server did."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.batch.coming_ddl import kind_of_relation
from airflow_provider_cdc.core.formats.connect.connectors.postgresql_types import column_type
from airflow_provider_cdc.core.timeline.builder import build_timeline
from tests.postgres.database import Connection, install
from tests.postgres.ddl_log import changes, columns, fills, reason, run, table


def test_stored_rows_get_the_constant_that_the_server_stored(database: Connection) -> None:
    install(database)
    known = table(
        run(
            database,
            "CREATE TABLE app.t (id int)",
            "ALTER TABLE app.t ADD i int DEFAULT 7, ADD n numeric(6,2) DEFAULT 1.5, ADD e text DEFAULT '',"
            " ADD s text DEFAULT 'a \"b\" \\ {c}', ADD o bool DEFAULT true, ADD d date DEFAULT '2026-01-02',"
            " ADD x text, ADD z timestamptz DEFAULT '2026-07-01 10:00+02', ADD w text DEFAULT NULL",
            "ALTER TABLE app.t ALTER i SET DEFAULT 8, ALTER x SET DEFAULT 'later'",
        ),
        "app.t",
    )
    assert reason(known) == ""
    assert fills(known) == {
        "i": "7",
        "n": "1.50",
        "s": 'a "b" \\ {c}',
        "e": "",
        "o": "1",
        "d": "2026-01-02",
        "x": None,
        "z": "2026-07-01 08:00:00.000000",
        "w": None,
    }


def test_now_is_the_time_that_the_server_stored(database: Connection) -> None:
    install(database)
    timeline = run(database, "CREATE TABLE app.t (id int)", "INSERT INTO app.t VALUES (1)",
                   "ALTER TABLE app.t ADD at timestamptz DEFAULT now()")  # fmt: skip
    ((stored,),) = database.execute("SELECT (at AT TIME ZONE 'UTC')::text FROM app.t").fetchall()
    filled = fills(table(timeline, "app.t"))["at"]
    assert filled is not None and filled.rstrip("0").rstrip(".") == stored.rstrip("0").rstrip(".")


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("ALTER TABLE app.t ADD r float8 DEFAULT random()", "a value of its own in r"),
        ("ALTER TABLE app.t ADD r serial", "a value of its own in r"),
        ("ALTER TABLE app.t ADD r int GENERATED ALWAYS AS IDENTITY", "a value of its own in r"),
        ("ALTER TABLE app.t ALTER v TYPE int USING length(v)", "v from longtext to int"),
        ("ALTER TABLE app.t ALTER n TYPE numeric(6,2) USING n * 2", "a column was converted"),
        ("ALTER TABLE app.t ALTER i TYPE char(9)", "i from int to longtext"),
        ("ALTER TABLE app.t ALTER v TYPE char(9)", "a column was converted"),
        ("ALTER TABLE app.t ALTER d TYPE timestamp", "d from date to datetime(6)"),
        ("ALTER TABLE app.t SET UNLOGGED", "SET LOGGED or SET UNLOGGED"),
        ("ALTER TABLE app.t ADD b bytea DEFAULT '\\x00'", "an expression, or a literal"),
        ("DO $$ BEGIN ALTER TABLE app.t ALTER i TYPE bigint; END $$", "i from int to bigint"),
        ("ALTER TYPE app.mood RENAME VALUE 'a' TO 'z'", "may have renamed a label"),
    ],
)
def test_what_the_log_does_not_have_needs_a_rebuild(database: Connection, statement: str, said: str) -> None:
    install(database)
    timeline = run(
        database,
        "CREATE TYPE app.mood AS ENUM ('a', 'b')",
        "CREATE TABLE app.t (id int, i int, n numeric(6,2), v text, d date, m app.mood)",
        "CREATE TABLE app.other (id int)",
        statement,
    )
    assert said in reason(table(timeline, "app.t"))
    assert reason(table(timeline, "app.other")) == ""


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE app.t ALTER i TYPE bigint",
        "ALTER TABLE app.t ALTER i TYPE bigint, ADD x int DEFAULT 3",
        "ALTER TABLE app.t ALTER n TYPE numeric(8,1)",
        "ALTER TABLE app.t ALTER n TYPE numeric",
        "ALTER TABLE app.t ALTER n TYPE text",
        "ALTER TABLE app.t ALTER i TYPE varchar(20)",
        "ALTER TABLE app.t ALTER v TYPE text",
        "ALTER TABLE app.t ADD g int GENERATED ALWAYS AS (i * 2) STORED",
        "ALTER TABLE app.t REPLICA IDENTITY FULL",
        "ALTER TABLE app.t SET (fillfactor = 50)",
        "ALTER TABLE app.t ADD PRIMARY KEY (id)",
        "ALTER TABLE app.t ADD CHECK (id > 0)",
        "CREATE INDEX ON app.t (i)",
        "ALTER TYPE app.mood ADD VALUE 'c'",
        "ALTER TYPE app.mood RENAME TO temper",
        "COMMENT ON TABLE app.t IS 'x'",
    ],
)
def test_what_can_be_computed_needs_none(database: Connection, statement: str) -> None:
    install(database)
    timeline = run(
        database,
        "CREATE TYPE app.mood AS ENUM ('a', 'b')",
        "CREATE TABLE app.t (id int, i int, n numeric(6,2), v varchar(8), m app.mood)",
        statement,
    )
    assert reason(table(timeline, "app.t")) == ""


def test_columns_that_no_row_has_are_left_out_and_noted(database: Connection) -> None:
    install(database)
    known = table(
        run(
            database,
            "CREATE TYPE app.pair AS (a int, b int)",
            "CREATE TABLE app.t (id int, b box, p app.pair, g int GENERATED ALWAYS AS (id + 1) STORED)",
        ),
        "app.t",
    )
    assert columns(known) == ["id"]
    assert all(known.leaves_out(name) for name in ("b", "p", "g"))
    assert any("b, p, g" in note for note in known.notes)
    shown = table(run(database, "ALTER TABLE app.t ALTER g DROP EXPRESSION"), "app.t")
    assert "no row had g" in reason(shown)


def test_a_key_is_the_one_that_the_table_has_then(database: Connection) -> None:
    install(database)
    known = table(
        run(
            database,
            "CREATE TABLE app.t (id int, v int NOT NULL, PRIMARY KEY (v, id))",
            "ALTER TABLE app.t DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (id)",
            "ALTER TABLE app.t DROP CONSTRAINT t_pkey",
        ),
        "app.t",
    )
    assert [[c.name for c in v.schema.key_columns] for v in known.versions] == [["v", "id"], ["id"], []]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("numeric(6,2)", "decimal(6,2)"),
        ("numeric(3,5)", "decimal(5,5)"),
        ("numeric(5,-2)", "decimal(7,0)"),
        ("numeric", "longtext"),
        ("timestamp(3) without time zone", "datetime(3)"),
        ("timestamp without time zone", "datetime(6)"),
        ("timestamp(0) with time zone", "timestamp(6)"),
        ("time(1) without time zone", "time(3)"),
        ("time with time zone", "longtext"),
        ("bit(5)", "bit(5)"),
        ("bit varying", "longblob"),
        ("boolean", "bit(1)"),
        ("integer[]", "json"),
        ("numeric(6,2)[]", "json"),
        ("character varying(9)", "longtext"),
        ("public.hstore", "json"),
        ("public.geometry(Point,4326)", "geometry"),
        ('"My Schema"."Some (type)"', "longtext"),
    ],
)
def test_types_are_those_that_embedded_schemas_state(text: str, kind: str) -> None:
    assert str(column_type(text)) == kind


@pytest.mark.parametrize(
    ("statement", "kinds"),
    [
        ("ALTER TABLE app.t ADD v int DEFAULT 5", ["mapping"]),
        ("ALTER TABLE app.t RENAME COLUMN a TO b", ["mapping"]),
        ("ALTER TABLE app.t DROP COLUMN a", ["destructive"]),
        ("ALTER TABLE app.t DROP a", ["destructive"]),
        ("ALTER TABLE app.t DROP CONSTRAINT t_pkey", ["barrier"]),
        ("ALTER TABLE app.t ALTER a TYPE bigint", ["barrier", "barrier"]),
        ("DROP TABLE app.t", ["destructive"]),
        ("CREATE TABLE app.u (id int PRIMARY KEY)", ["mapping"]),
    ],
)
def test_people_see_of_which_kind_a_change_is(database: Connection, statement: str, kinds: list[str]) -> None:
    install(database)
    run(database, "CREATE TABLE app.t (id int PRIMARY KEY, a int)")
    before = len(changes(database))
    run(database, statement)
    fresh = changes(database)[before:]
    assert [kind_of_relation(one.statement, one.relation) for one in fresh if one.relation is not None] == kinds


def test_what_could_not_be_described_blocks_its_table_or_all(database: Connection) -> None:
    install(database)
    run(database, "CREATE TABLE app.t (id int)", "CREATE TABLE app.u (id int)")
    database.execute(
        "INSERT INTO ctl.ddl_log (event, relid, system_identifier, error) SELECT 'ddl_command_end', relid,"
        " system_identifier, '53100' FROM ctl.ddl_log WHERE table_name = 't'"
    )
    timeline = build_timeline(changes(database))
    assert "could not describe a schema change: 53100" in reason(table(timeline, "app.t"))
    assert reason(table(timeline, "app.u")) == ""
    database.execute("INSERT INTO ctl.ddl_log (event, tag, error) VALUES ('ddl_command_end', 'ALTER TABLE', '53100')")
    assert "could not describe" in reason(table(build_timeline(changes(database)), "app.u"))
