# SPDX-License-Identifier: Apache-2.0
"""Compare the timeline of what a real server's triggers write with its catalogue: names, identities, any order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.connect.connectors.postgresql_types import column_type
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.asked_changes import Answer, AskedChange, AskedChanges
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import Timeline
from tests.postgres.database import Connection, install
from tests.postgres.ddl_log import changes, columns, fills, reason, run, table
from tests.sample import TIMES
from tests.services.postgres import sql


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
        for name, names, types, key in database.execute(sql(query))
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
            database.execute(sql(statement))
        except Exception:
            continue  # the server refuses it, and nothing happened
    timeline = build_timeline(changes(database))
    assert in_timeline(timeline) == in_catalogue(database)
