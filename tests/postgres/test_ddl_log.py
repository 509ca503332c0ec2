# SPDX-License-Identifier: Apache-2.0
"""Compare the timeline of what a real server's triggers write with its catalogue."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from airflow_provider_cdc.batch.coming_ddl import kind_of_relation
from airflow_provider_cdc.core.formats.connect.connectors.postgresql_ddl import DdlLog
from airflow_provider_cdc.core.formats.connect.connectors.postgresql_types import column_type
from airflow_provider_cdc.core.model.position import binlog_position
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.asked_changes import Answer, AskedChange, AskedChanges
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline, Timeline
from tests.postgres.database import Connection, install
from tests.sample import TIMES

# the columns of JSON come as texts, as the connector writes them
_ROWS = """
SELECT (to_jsonb(l) || jsonb_build_object('columns', l.columns::text, 'key', l.key::text,
  'children', l.children::text))::text FROM ctl.ddl_log l ORDER BY id
"""


def changes(database: Connection, *, op: str = "insert", again: int = 0) -> list[SchemaChange]:
    """Return the schema changes of all rows of the log, one at each position.

    :param again: rows that a snapshot at the end reads again, from the first on.
    """
    log, result = DdlLog(), []
    rows = [text.encode() for (text,) in database.execute(_ROWS)]  # type: ignore[arg-type]
    end = len(rows) + 1
    entries = [(op, (number, number, 1), row) for number, row in enumerate(rows, 1)]
    entries += [("incremental", (end, 0, 0), row) for row in rows[:again]]
    for number, (kind, at, row) in enumerate(entries):
        change = log.change(kind, at, row)
        if change is not None:
            position = binlog_position(*change.position)
            relation = log.relation(change.text)
            document = SchemaChange(
                position, number, change.database, change.statement, dialect=log.dialect, relation=relation
            ).document()
            result.append(SchemaChange.from_document(document))
    return result


def run(database: Connection, *statements: str) -> Timeline:
    """Return the timeline after statements, on a database with triggers."""
    for statement in statements:
        database.execute(statement)  # type: ignore[arg-type]
    return build_timeline(changes(database))


def table(timeline: Timeline, name: str) -> TableTimeline:
    (owner,) = [table for table in timeline.tables.values() if str(table.name) == name]
    return owner


def columns(known: TableTimeline) -> list[str]:
    return [column.name for column in known.schema.columns]


def reason(known: TableTimeline) -> str:
    block = known.unknown_since()
    return "" if block is None else block.reason


def fills(known: TableTimeline) -> dict[str, str | None]:
    names = {column.id: column.name for version in known.versions for column in version.schema.columns}
    return {names[column]: fill.text for column, fill in known.fills.items()}


def in_catalogue(database: Connection) -> dict[str, Any]:
    """Return names, types and keys of the ordinary tables, as the catalogue has them."""
    query = """
    SELECT n.nspname || '.' || c.relname, array_agg(a.attname::text ORDER BY a.attnum),
      array_agg(format_type(a.atttypid, a.atttypmod) ORDER BY a.attnum),
      (SELECT array_agg(k.attname::text ORDER BY x.number) FROM pg_index i,
         unnest(i.indkey::int2[]) WITH ORDINALITY x(attnum, number), pg_attribute k
       WHERE i.indrelid = c.oid AND i.indisprimary AND k.attrelid = c.oid AND k.attnum = x.attnum)
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'r' AND n.nspname IN ('app', 'other') AND a.attnum > 0 AND NOT a.attisdropped
    GROUP BY c.oid, n.nspname, c.relname
    """
    return {
        name: (list(zip(names, map(column_type, types), strict=True)), key or [])
        for name, names, types, key in database.execute(query)  # type: ignore[arg-type]
    }


def in_timeline(timeline: Timeline) -> dict[str, Any]:
    result = {}
    for known in timeline.tables.values():
        if known.name is not None and known.name.database in ("app", "other") and known.schema.columns:
            schema = known.schema
            described = [(column.name, column.type) for column in schema.columns]
            result[str(known.name)] = described, [column.name for column in schema.key_columns]
    return result


def test_a_rename_keeps_the_column_and_a_drop_and_add_does_not(database: Connection) -> None:
    install(database)
    before = run(database, "CREATE TABLE app.t (id int PRIMARY KEY, a int, b text)")
    ids = {column.name: column.id for column in table(before, "app.t").schema.columns}
    after = run(
        database,
        "ALTER TABLE app.t RENAME COLUMN a TO aa",
        "ALTER TABLE app.t DROP COLUMN b, ADD COLUMN b text",
    )
    now = {column.name: column.id for column in table(after, "app.t").schema.columns}
    assert (now["id"], now["aa"]) == (ids["id"], ids["a"])
    assert now["b"] != ids["b"]


def test_a_table_is_the_same_under_another_name_and_another_one_under_its_old_name(database: Connection) -> None:
    install(database)
    database.execute("CREATE SCHEMA other")
    first = table(run(database, "CREATE TABLE app.t (id int)"), "app.t").table_id
    moved = run(database, "ALTER TABLE app.t RENAME TO u", "ALTER TABLE app.u SET SCHEMA other")
    assert table(moved, "other.u").table_id == first
    again = run(database, "CREATE TABLE app.t (id int)", "DROP TABLE app.t", "CREATE TABLE app.t (id int)")
    assert len({one.table_id for one in again.tables.values()}) == 3
    assert table(again, "other.u").table_id == first


def test_names_that_are_exchanged_stay_with_their_tables(database: Connection) -> None:
    install(database)
    before = run(database, "CREATE TABLE app.a (id int, of_a int)", "CREATE TABLE app.b (id int, of_b int)")
    after = run(
        database,
        "ALTER TABLE app.a RENAME TO c; ALTER TABLE app.b RENAME TO a; ALTER TABLE app.c RENAME TO b",
    )
    assert table(after, "app.b").table_id == table(before, "app.a").table_id
    assert columns(table(after, "app.b")) == ["id", "of_a"]


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


def test_a_table_is_older_than_its_first_description_where_no_statement_made_it(database: Connection) -> None:
    database.execute("CREATE TABLE app.t (id int)")
    install(database)
    timeline = build_timeline(changes(database))
    assert timeline.owner(TableName("app", "t"), "") == table(timeline, "app.t").table_id
    assert reason(table(timeline, "app.t")) == ""


def test_rows_that_create_table_as_wrote_belong_to_the_table(database: Connection) -> None:
    install(database)
    timeline = run(database, "CREATE TABLE app.t AS SELECT 1 AS id")
    (change,) = changes(database)
    begin = table(timeline, "app.t").versions[0].position
    assert begin < change.position and begin[:25] == change.position[:25]


def test_partitions_count_where_rows_of_them_come(database: Connection) -> None:
    install(database)
    timeline = run(
        database,
        "CREATE TABLE app.e (id int, d date, PRIMARY KEY (id, d)) PARTITION BY RANGE (d)",
        "CREATE TABLE app.p PARTITION OF app.e FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
        "ALTER TABLE app.e ADD v text DEFAULT 'x'",
    )
    assert [(table(timeline, name).supposed, columns(table(timeline, name))) for name in ("app.e", "app.p")] == [
        (True, ["id", "d", "v"])
    ] * 2
    assert fills(table(timeline, "app.p")) == {"v": "x"}


def test_rows_that_move_with_a_partition_need_a_rebuild(database: Connection) -> None:
    install(database)
    name = "root_pub"
    timeline = run(
        database,
        f"CREATE PUBLICATION {name} FOR ALL TABLES WITH (publish_via_partition_root)",
        "CREATE TABLE app.e (id int, d date) PARTITION BY RANGE (d)",
        "CREATE TABLE app.p PARTITION OF app.e FOR VALUES FROM ('2026-01-01') TO ('2026-02-01')",
        "ALTER TABLE app.e ADD v text",
        "ALTER TABLE app.e DETACH PARTITION app.p",
    )
    assert "a partition was attached or detached" in reason(table(timeline, "app.e"))
    assert "partition of app.e" in reason(table(timeline, "app.p"))


def test_a_snapshot_that_reads_the_log_again_changes_nothing(database: Connection) -> None:
    install(database)
    run(
        database,
        "CREATE TABLE app.t (id int)",
        "ALTER TABLE app.t ADD v text DEFAULT 'x'",
        "ALTER TABLE app.t RENAME TO u",
        "CREATE TABLE app.t (other int)",
        "DROP TABLE app.t",
    )
    assert build_timeline(changes(database, again=5)) == build_timeline(changes(database))


def test_changes_in_any_order_and_twice_come_to_one_timeline(database: Connection) -> None:
    install(database)
    run(
        database,
        "CREATE TABLE app.t (id int PRIMARY KEY, a int)",
        "ALTER TABLE app.t RENAME a TO b",
        "ALTER TABLE app.t DROP b, ADD a text DEFAULT 'x'",
    )
    some = changes(database)
    shuffled = random.Random(1).sample([*some, *some], 2 * len(some))
    assert build_timeline(shuffled) == build_timeline(some)


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


# ---- changes that are asked about


def asked(database: Connection, policy: str, value: str, answers: Sequence[AskedChange] = ()) -> AskedChanges:
    some = changes(database)
    return AskedChanges(
        answers, lambda name, one: value if one == policy else "apply", [change.position for change in some]
    )


def test_a_column_that_is_kept_stays_in_the_target(database: Connection) -> None:
    install(database)
    run(database, "CREATE TABLE app.t (id int PRIMARY KEY, a int, b int)", "ALTER TABLE app.t DROP a")
    policy = asked(database, "on_drop_column", "keep")
    known = table(build_timeline(changes(database), asked=policy), "app.t")
    assert {column.name: column.dropped for column in known.schema.columns} == {"id": False, "b": False, "a": True}
    later = table(run(database, "ALTER TABLE app.t ADD a int"), "app.t")
    assert columns(later) == ["id", "b", "a"]


def test_a_renamed_column_that_is_kept_stays_next_to_the_new_one(database: Connection) -> None:
    install(database)
    run(database, "CREATE TABLE app.t (id int PRIMARY KEY, a int)", "ALTER TABLE app.t RENAME a TO b",
        "ALTER TABLE app.t ADD c int")  # fmt: skip
    policy = asked(database, "on_rename_column", "keep")
    known = table(build_timeline(changes(database), asked=policy), "app.t")
    assert {column.name: column.dropped for column in known.schema.columns} == {
        "id": False,
        "b": False,
        "c": False,
        "a": True,
    }
    assert fills(known)["b"] is None


def test_a_drop_that_waits_leaves_the_table_as_it_was(database: Connection) -> None:
    install(database)
    run(database, "CREATE TABLE app.t (id int PRIMARY KEY, a int)", "ALTER TABLE app.t DROP a",
        "ALTER TABLE app.t ADD c int")  # fmt: skip
    policy = asked(database, "on_drop_column", "ask")
    known = table(build_timeline(changes(database), asked=policy), "app.t")
    assert columns(known) == ["id", "a"]
    (waiting,) = policy.every()
    assert waiting.answer == Answer.OPEN and known.asked == [waiting.position]
    policy.decide(AskedChange(*waiting.key[:3], waiting.policy, waiting.statement, Answer.APPLY))
    assert columns(table(build_timeline(changes(database), asked=policy), "app.t")) == ["id", "c"]


# ---- any DDL


_TYPES = ("int", "bigint", "text", "varchar(9)", "numeric(7,2)", "numeric", "bool", "date", "timestamptz", "jsonb")


def _statement(chance: random.Random, tables: dict[str, tuple[list[str], list[str]]]) -> str:
    """Return a statement about one of the tables there are: it may fail."""
    name = chance.choice(sorted(tables)) if tables else ""
    new = f"{chance.choice(('app', 'other'))}.t{chance.randint(0, 5)}"
    column, kind = f"c{chance.randint(0, 5)}", chance.choice(_TYPES)
    if not name or chance.random() < 0.15:
        return f"CREATE TABLE {new} (id int PRIMARY KEY, c0 {kind})"
    present = chance.choice(tables[name][0])
    return chance.choice(
        (
            f"ALTER TABLE {name} ADD COLUMN {column} {kind}",
            f"ALTER TABLE {name} DROP COLUMN {present}",
            f"ALTER TABLE {name} DROP COLUMN {present}, ADD COLUMN {present} {kind}",
            f"ALTER TABLE {name} RENAME COLUMN {present} TO {column}",
            f"ALTER TABLE {name} ALTER COLUMN {present} TYPE {kind}",
            f"ALTER TABLE {name} RENAME TO t{chance.randint(0, 5)}",
            f"ALTER TABLE {name} SET SCHEMA {chance.choice(('app', 'other'))}",
            f"DROP TABLE {name}",
            f"CREATE TABLE {new} AS SELECT * FROM {name}",
            f"ALTER TABLE {name} DROP CONSTRAINT IF EXISTS {name.split('.')[1]}_pkey",
            f"ALTER TABLE {name} ADD PRIMARY KEY ({present})",
        )
    )


@pytest.mark.parametrize("seed", range(1, 1 + TIMES))
def test_structures_are_those_of_the_catalogue_after_any_ddl(database: Connection, seed: int) -> None:
    chance = random.Random(seed)
    database.execute("CREATE SCHEMA other; CREATE TABLE app.t0 (id int PRIMARY KEY, c0 text)")
    install(database)
    for _ in range(40):
        described = in_catalogue(database)
        statement = _statement(chance, {name: ([c for c, _ in cs], key) for name, (cs, key) in described.items() if cs})
        try:
            database.execute(statement)  # type: ignore[arg-type]
        except Exception:
            continue  # the server refuses it, and nothing happened
    timeline = build_timeline(changes(database))
    assert in_timeline(timeline) == in_catalogue(database)


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
