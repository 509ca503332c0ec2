# SPDX-License-Identifier: Apache-2.0
"""A log without DDL: what only rows show waits, since no record says what the rows of before have now."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableName, TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import ON_UNSEEN_DDL, Answer, AskedChanges
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline

INT, TEXT = ColumnType("int"), ColumnType("longtext")
NAME = TableName("app", "t")


def shown(
    pos: int, columns: dict[str, ColumnType], rows: str, key: Sequence[str] = ("id",), *, keyless: bool = False
) -> SchemaChange:
    """Return what rows show of the table's columns."""
    made = [Column(number, name, kind) for number, (name, kind) in enumerate(columns.items(), 1)]
    schema = TableSchema(tuple(made), tuple(column.id for column in made if column.name in key))
    return SchemaChange(
        f"0000.{pos:020d}.{pos:020d}.0000000000",
        pos,
        "app",
        "",
        ((*NAME, schema),),
        chosen_key=True,
        keyless=keyless,
        rows=rows,
    )


def table(*changes: SchemaChange, policy: str = "ask") -> tuple[TableTimeline, list[str]]:
    """Return the table, and what is asked about it."""
    asked = AskedChanges(value_of=lambda name, key: policy if key == ON_UNSEEN_DDL else "apply")
    timeline = build_timeline(changes, asked=asked)
    waiting = [item.statement for item in asked.every() if item.answer == Answer.OPEN]
    return next(iter(timeline.tables.values())), waiting


READ = shown(100, {"id": INT, "a": INT}, "read")


def test_a_table_of_a_snapshot_is_not_asked_about() -> None:
    built, waiting = table(READ, shown(200, {"id": INT, "a": INT}, "streamed"))
    assert (built.asked, waiting) == ([], [])


def test_a_table_that_no_snapshot_had_waits() -> None:
    built, waiting = table(shown(200, {"id": INT}, "streamed"))
    assert len(built.asked) == 1
    assert waiting[0].startswith("a table that no snapshot had")
    assert table(shown(200, {"id": INT}, "streamed"), policy="apply")[1] == []


def test_changes_of_columns_wait() -> None:
    changed = {
        "b came": {"id": INT, "a": INT, "b": INT},
        "a went": {"id": INT},
        "b came, a went": {"id": INT, "b": INT},
        "a from int to bigint": {"id": INT, "a": ColumnType("bigint")},
    }
    for what, columns in changed.items():
        assert table(READ, shown(200, columns, "streamed"))[1] == [f"columns that only rows show: {what}"]


def test_labels_that_came_change_no_row_and_one_that_went_was_renamed() -> None:
    def labelled(*labels: str) -> dict[str, ColumnType]:
        return {"id": INT, "a": ColumnType("longtext", labels=labels)}

    first = shown(100, labelled("sad"), "read")
    assert table(first, shown(200, labelled("new", "sad"), "streamed"))[1] == []
    assert len(table(first, shown(200, labelled("blue"), "streamed"))[1]) == 1


def test_a_later_snapshot_begins_the_content_again() -> None:
    wide = {"id": INT, "a": INT, "b": INT}
    built, _ = table(READ, shown(200, wide, "streamed"), shown(300, wide, "read"))
    assert (built.asked, len(built.unseen)) == ([], 1)


def test_rows_without_a_key_say_nothing_of_a_key_that_is_known() -> None:
    keyless = shown(200, {"id": INT, "a": INT}, "streamed", (), keyless=True)
    built, waiting = table(READ, keyless)
    assert [column.name for column in built.schema.key_columns] == ["id"]
    assert waiting == []
    assert TableTimeline.from_document(built.document()) == built
