# SPDX-License-Identifier: Apache-2.0
"""Test which table a name means at a position, and its schema there."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import replace

import pytest

from airflow_provider_cdc.core.config import TableRules
from airflow_provider_cdc.core.model.schema import Column, ColumnType, Default, TableName, TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import DENIABLE, Answer, AskedChange, AskedChanges
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.new_changes import new_changes
from airflow_provider_cdc.core.timeline.stated import stated_changes
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline, Timeline

T, U = TableName("shop", "t"), TableName("shop", "u")


def changes(*statements: str) -> list[SchemaChange]:
    """Return schema changes of statements, at positions 01, 02, ..."""
    return [SchemaChange(f"{n:02d}", n, "shop", text, time=n * 1_000_000) for n, text in enumerate(statements, 1)]


def timeline(*statements: str) -> Timeline:
    return build_timeline(changes(*statements))


def only(built: Timeline, name: TableName = T) -> TableTimeline:
    table_id = built.owner(name, "99")
    assert table_id is not None
    return built.tables[table_id]


def names(table: TableTimeline) -> list[str]:
    return [column.name for column in table.schema.columns]


def test_a_column_keeps_its_id_over_rename_and_change_of_type() -> None:
    table = only(timeline("CREATE TABLE t (a INT PRIMARY KEY, b INT)", "ALTER TABLE t CHANGE b c BIGINT FIRST"))
    before, after = (version.schema for version in table.versions)
    assert names(table) == ["c", "a"]
    assert after.named("c").id == before.named("b").id
    assert after.named("c").type.name == "bigint"


def test_a_column_dropped_and_added_again_is_another_column() -> None:
    table = only(timeline("CREATE TABLE t (a INT, b INT)", "ALTER TABLE t DROP b", "ALTER TABLE t ADD b INT DEFAULT 7"))
    assert table.versions[0].schema.named("b").id != table.schema.named("b").id
    assert table.fills[table.schema.named("b").id] == Default("constant", "7")


@pytest.mark.parametrize(
    ("definition", "fill"),
    [
        ("INT", None),
        ("INT NOT NULL", "0"),
        ("INT NOT NULL DEFAULT 5", "5"),
        ("VARCHAR(9) NOT NULL", ""),
        ("ENUM('x','y') NOT NULL", "x"),
        ("DATE NOT NULL", "0000-00-00"),
        ("DATETIME DEFAULT CURRENT_TIMESTAMP", "1970-01-01 00:00:02.000000"),
    ],
)
def test_stored_rows_get_what_the_database_gives_them(definition: str, fill: str | None) -> None:
    table = only(timeline("CREATE TABLE t (a INT)", f"ALTER TABLE t ADD n {definition}"))
    assert table.fills[table.schema.named("n").id].text == fill
    assert bool(table.notes) == ("CURRENT_TIMESTAMP" in definition)


def test_a_swap_moves_both_tables_at_one_position() -> None:
    built = timeline("CREATE TABLE t (a INT)", "CREATE TABLE u (b INT)", "RENAME TABLE t TO x, u TO t, x TO u")
    assert built.owner(T, "02") == built.owner(U, "03")
    assert built.owner(U, "02") == built.owner(T, "03")
    assert names(only(built, T)) == ["b"]


def test_a_name_that_is_dropped_and_created_again_is_another_table() -> None:
    built = timeline("CREATE TABLE t (a INT)", "DROP TABLE t", "CREATE TABLE t (b INT PRIMARY KEY)")
    first, second = built.owner(T, "01"), built.owner(T, "03")
    assert built.owner(T, "02") is None
    assert first != second
    assert built.tables[first].dropped_at == "02"
    assert built.tables[first].last_name == T


def test_dropping_a_database_drops_its_tables() -> None:
    built = timeline("CREATE TABLE t (a INT)", "CREATE TABLE other.v (a INT)", "DROP DATABASE shop")
    assert built.owner(T, "03") is None
    assert built.owner(TableName("other", "v"), "03") is not None


def test_copies_and_order_of_arrival_do_not_matter() -> None:
    statements = changes(
        "CREATE TABLE t (a INT PRIMARY KEY)",
        "ALTER TABLE t ADD b INT",
        "RENAME TABLE t TO u",
        "CREATE TABLE t LIKE u",
        "ALTER TABLE u DROP b, ADD c DATE",
    )
    expected = {i: t.document() for i, t in build_timeline(statements).tables.items()}
    for seed in range(20):
        shuffled = random.Random(seed).sample([*statements, *statements], 2 * len(statements))
        assert {i: t.document() for i, t in build_timeline(shuffled).tables.items()} == expected


def test_equal_statements_of_two_databases_are_two_tables() -> None:
    rules = TableRules.from_document({f"{database}.t": {"create": "CREATE TABLE t (a INT)"} for database in "xy"})
    stated = stated_changes(rules)
    built = build_timeline(stated)
    tables = {built.owner(TableName(database, "t"), "99") for database in "xy"}
    assert len(tables) == 2
    assert None not in tables
    # so do those of a snapshot, where all statements may have one position
    read = [replace(change, position="01", order=change.order + 1) for change in stated]
    assert new_changes([], read, [], exact=True) == read


def test_ids_of_later_columns_do_not_change_when_an_earlier_statement_arrives_late() -> None:
    statements = changes("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT", "ALTER TABLE t ADD c INT")
    without = only(build_timeline([statements[0], statements[2]]))
    assert only(build_timeline(statements)).schema.named("c").id == without.schema.named("c").id


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t DROP PARTITION p0",
        "ALTER TABLE t ADD id INT AUTO_INCREMENT PRIMARY KEY",
        "ALTER TABLE t ADD r DOUBLE DEFAULT (RAND())",
        "ALTER TABLE t ADD g INT AS (a DIV 2)",
        "ALTER TABLE t DROP nonsense",
        "ALTER TABLE t FROBNICATE a",
    ],
)
def test_an_unknown_effect_blocks_only_its_table(statement: str) -> None:
    built = timeline("CREATE TABLE t (a INT)", "CREATE TABLE u (a INT)", statement)
    assert [block.position for block in only(built, T).blocked] == ["03"]
    assert only(built, U).blocked == []


def test_the_tools_own_account_of_the_columns_wins_over_the_text() -> None:
    stated = TableSchema((Column(1, "a", ColumnType("int"), nullable=False), Column(2, "b", ColumnType("date"))), (1,))
    change = SchemaChange("01", 1, "shop", "CREATE TABLE t AS SELECT 1", (("shop", "t", stated),))
    table = only(build_timeline([change]))
    assert names(table) == ["a", "b"]
    assert [column.name for column in table.schema.key_columns] == ["a"]
    assert table.blocked == []


def test_a_table_older_than_the_log_begins_where_its_structure_is_first_stated() -> None:
    stated = TableSchema((Column(1, "a", ColumnType("int")), Column(2, "b", ColumnType("date"))))
    change = SchemaChange("05", 1, "shop", "ALTER TABLE t ADD b DATE", (("shop", "t", stated),))
    assert names(only(build_timeline([change]))) == ["a", "b"]
    assert build_timeline(changes("ALTER TABLE t ADD b DATE")).tables == {}


def test_structures_that_rows_show_make_versions_if_the_tool_carries_no_ddl() -> None:
    first = TableSchema((Column(1, "a", ColumnType("int")),), (1,))
    second = TableSchema((Column(1, "a", ColumnType("int")), Column(2, "b", ColumnType("longtext"))), (1,))
    built = build_timeline(
        [
            SchemaChange("01", 0, "shop", "", (("shop", "t", first),)),
            SchemaChange("07", 0, "shop", "", (("shop", "t", second),)),
        ]
    )
    table = only(built)
    assert [version.position for version in table.versions] == ["01", "07"]
    assert table.versions[0].schema.named("a").id == table.schema.named("a").id


def test_documents_round_trip() -> None:
    statements = changes(
        "CREATE TABLE t (a DECIMAL(9,2) UNSIGNED PRIMARY KEY, e SET('x','y''z') DEFAULT 'x')",
        "TRUNCATE t",
        "DROP TABLE t",
    )
    table = next(iter(build_timeline(statements).tables.values()))
    assert TableTimeline.from_document(table.document()) == table
    assert table.clears == ["02"]
    assert [SchemaChange.from_document(change.document()) for change in statements] == statements


def test_the_mark_shows_whether_two_timelines_agree_up_to_a_position() -> None:
    short = only(timeline("CREATE TABLE t (a INT)"))
    long = only(timeline("CREATE TABLE t (a INT)", "ALTER TABLE t ADD b INT"))
    assert short.mark("01") == long.mark("01")
    assert short.mark("02") != long.mark("02")


def test_without_a_session_database_a_bare_name_means_the_only_table_that_has_it() -> None:
    created = SchemaChange("1", 0, "shop", "CREATE TABLE rb (id INT PRIMARY KEY)")
    timeline = build_timeline([created, SchemaChange("2", 0, "", "RENAME TABLE rb TO other.moved")])
    (table,) = timeline.tables.values()
    assert table.name == TableName("other", "moved")


def test_without_a_session_database_a_name_that_several_tables_have_blocks_them() -> None:
    created = [SchemaChange(name, 0, name, "CREATE TABLE rb (id INT PRIMARY KEY)") for name in "ab"]
    timeline = build_timeline([*created, SchemaChange("c", 0, "", "RENAME TABLE rb TO c.moved")])
    assert all(table.blocked for table in timeline.tables.values())
    assert [str(table.last_name) for table in timeline.tables.values()] == ["a.rb", "b.rb", "c.moved"]
    assert [table.supposed for table in timeline.tables.values()] == [False, False, True]


# ---- changes that a policy asks about


def asking(
    *statements: str,
    answer: Answer | None = None,
    fresh: bool = True,
    value: str = "ask",
    policies: Collection[str] = DENIABLE,
) -> tuple[Timeline, list[AskedChange]]:
    """Return a timeline and what these policies of table t ask, after each question got an answer."""
    positions = {change.position for change in changes(*statements)} if fresh else set()

    def value_of(name: TableName, policy: str) -> str:
        return value if name == T and policy in policies else ""

    asked = AskedChanges(value_of=value_of, fresh=positions, at="now")
    built = build_timeline(changes(*statements), asked=asked)
    if answer is None:
        return built, asked.every()
    known = [replace(item, answer=answer) for item in asked.every()]
    return build_timeline(changes(*statements), asked=AskedChanges(known)), known


CREATE = "CREATE TABLE t (a INT PRIMARY KEY)", "CREATE TABLE u (a INT PRIMARY KEY)"


def test_a_truncate_that_waits_is_left_out_and_named() -> None:
    built, asked = asking(*CREATE, "TRUNCATE TABLE t", "TRUNCATE TABLE u")
    assert [(item.position, item.table, item.policy, item.answer) for item in asked] == [
        ("03", "t", "on_truncate", Answer.OPEN)
    ]
    assert (only(built).clears, only(built).asked, only(built).denied) == ([], ["03"], [])
    assert (only(built, U).clears, only(built, U).asked) == (["04"], [])


@pytest.mark.parametrize(("answer", "clears", "denied"), [(Answer.APPLY, ["03"], []), (Answer.DENY, [], ["03"])])
def test_a_truncate_is_carried_out_or_left_out_as_decided(answer: Answer, clears: list[str], denied: list[str]) -> None:
    built, _ = asking(*CREATE, "TRUNCATE TABLE t", answer=answer)
    assert (only(built).clears, only(built).asked, only(built).denied) == (clears, [], denied)


@pytest.mark.parametrize("statement", ["DROP TABLE t, u", "DROP DATABASE shop", "CREATE OR REPLACE TABLE t (b INT)"])
@pytest.mark.parametrize("answer", [None, Answer.DENY])
def test_a_table_whose_drop_is_not_approved_keeps_name_and_columns(statement: str, answer: Answer | None) -> None:
    built, asked = asking(*CREATE, statement, "CREATE TABLE t (c INT)", answer=answer)
    table = only(built)
    assert (names(table), table.name, table.dropped_at) == (["a"], T, None)
    assert [(item.table, item.policy) for item in asked] == [("t", "on_drop_table")]
    assert (table.asked, table.denied) == ((["03"], []) if answer is None else ([], ["03"]))


def test_an_approved_drop_is_as_any_other() -> None:
    statements = (*CREATE, "DROP TABLE t", "CREATE TABLE t (c INT)")
    built, _ = asking(*statements, answer=Answer.APPLY)
    assert built == timeline(*statements)


def test_what_an_earlier_batch_took_is_not_asked_about() -> None:
    built, asked = asking(*CREATE, "TRUNCATE TABLE t", "DROP TABLE t", fresh=False)
    assert asked == []
    assert built == timeline(*CREATE, "TRUNCATE TABLE t", "DROP TABLE t")


@pytest.mark.parametrize("answer", [None, Answer.DENY])
def test_a_table_that_takes_the_name_of_one_whose_drop_is_not_approved_is_unknown(answer: Answer | None) -> None:
    built, _ = asking(*CREATE, "DROP TABLE t", "RENAME TABLE u TO t", answer=answer)
    assert only(built).blocked[0].reason == "it took the name of shop.t, whose DROP TABLE is not approved"
    assert only(built).blocked[0].columns


@pytest.mark.parametrize(
    ("statement", "policy"),
    [
        ("ALTER TABLE t ADD b INT", "on_add_column"),
        ("ALTER TABLE t MODIFY a BIGINT", "on_widen_column"),
        ("ALTER TABLE t MODIFY a SMALLINT", "on_convert_column"),
        ("ALTER TABLE t DROP PRIMARY KEY", "on_key_change"),
        ("RENAME TABLE t TO u", "on_rename_table"),
        ("CREATE TABLE t (b INT)", "on_create_table"),
    ],
)
def test_a_change_that_cannot_be_left_out_is_on_the_timeline_while_it_waits(statement: str, policy: str) -> None:
    statements = (statement,) if policy == "on_create_table" else (CREATE[0], statement)
    name = U if policy == "on_rename_table" else T
    built, (item,) = asking(*statements, policies=[policy])
    assert (item.table, item.policy, item.statement, item.answer) == ("t", policy, statement, Answer.OPEN)
    assert only(built, name).asked == [item.position]
    approved, _ = asking(*statements, policies=[policy], answer=Answer.APPLY)
    assert approved == timeline(*statements)
    only(built, name).asked.clear()
    assert built == approved


def test_documents_of_a_timeline_have_what_is_asked_and_denied() -> None:
    for answer in (None, Answer.DENY):
        table = only(asking(*CREATE, "TRUNCATE TABLE t", answer=answer)[0])
        assert TableTimeline.from_document(table.document()) == table


def test_only_a_denied_change_is_decided_again() -> None:
    _, (item,) = asking(*CREATE, "TRUNCATE TABLE t")
    for first, second, last in (
        (Answer.DENY, Answer.APPLY, Answer.APPLY),
        (Answer.APPLY, Answer.DENY, Answer.APPLY),
    ):
        asked = AskedChanges([item])
        for answer in (first, second):
            asked.decide(replace(item, answer=answer, by="ann", at="now"))
        assert asked.every() == [replace(item, answer=last, by="ann", at="now")]


@pytest.mark.parametrize("value", ["ask", "keep"])
def test_a_column_stays_where_its_drop_is_denied_or_the_policy_keeps_it(value: str) -> None:
    create = "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL DEFAULT 3, c INT)"
    answer = Answer.DENY if value == "ask" else None
    built, asked = asking(create, "ALTER TABLE t DROP b, ADD d INT", answer=answer, value=value)
    assert [(item.policy, item.answer) for item in asked] == [("on_drop_column", Answer.DENY)]
    schema = only(built).schema
    assert names(only(built)) == ["a", "b", "c", "d"]
    assert [column.name for column in schema.columns_in_rows] == ["a", "c", "d"]
    column = schema.named("b")
    assert column is not None
    assert (column.dropped, column.nullable, column.default) == (True, True, None)
    assert TableSchema.from_document(schema.document()) == schema
    assert column.id == only(built).versions[0].schema.named("b").id  # type: ignore[union-attr]


def test_nothing_of_a_statement_that_waits_is_carried_out() -> None:
    built, _ = asking(CREATE[0], "ALTER TABLE t DROP b, ADD d INT, RENAME TO u")
    assert (names(only(built)), only(built).asked) == (["a"], ["02"])


def test_texts_of_schemas_in_stored_digests_stay_as_they_were() -> None:
    column = Column(1, "a", ColumnType("int"))
    assert "dropped" not in str(TableSchema((column, replace(column, id=2, dropped=True))))


def test_a_renamed_column_stays_next_to_the_new_one_where_the_policy_keeps_it() -> None:
    create = "CREATE TABLE t (a INT PRIMARY KEY, b INT NOT NULL, c INT)"
    built, asked = asking(create, "ALTER TABLE t CHANGE b d BIGINT NOT NULL DEFAULT 5 FIRST", value="keep")
    assert [(item.policy, item.answer) for item in asked] == [("on_rename_column", Answer.DENY)]
    table = only(built)
    assert [(column.name, column.dropped) for column in table.schema.columns] == [
        ("d", False), ("a", False), ("b", True), ("c", False)
    ]  # fmt: skip
    new, _, old, _ = table.schema.columns
    assert old.id == table.versions[0].schema.columns[1].id
    assert (old.type.name, new.type.name) == ("int", "bigint")
    assert table.fills[new.id] == Default("constant", None)
