# SPDX-License-Identifier: Apache-2.0
"""Check what the timeline says of a table's comments: those of the newest statement, and that there was one before."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline

CREATE = "CREATE TABLE t (a INT PRIMARY KEY COMMENT 'A', b INT, c INT COMMENT 'C') COMMENT 'T'"


def table(*statements: str, dialect: str | None = None, name: str = "t") -> TableTimeline:
    """Return the table that has a name after some statements."""
    changes = [SchemaChange(f"{n:03}", n, "d", text, dialect=dialect) for n, text in enumerate(statements)]
    timeline = build_timeline(changes)
    owner = timeline.owner(TableName("d", name), "999")
    assert owner is not None
    return timeline.tables[owner]


def said(of: TableTimeline) -> tuple[str | None, dict[str, str]]:
    return of.comment, {column.name: of.comments[column.id] for column in of.schema.columns if column.id in of.comments}


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("ADD d INT COMMENT 'D'", ("T", {"a": "A", "c": "C", "d": "D"})),
        ("MODIFY c INT, COMMENT ''", ("", {"a": "A", "c": ""})),
        ("CHANGE c x INT COMMENT 'X', COMMENT='U'", ("U", {"a": "A", "x": "X"})),
        ("CHANGE c x INT", ("T", {"a": "A", "x": ""})),
        ("RENAME COLUMN c TO x, RENAME COLUMN b TO c", ("T", {"a": "A", "x": "C", "c": ""})),
        ("DROP c", ("T", {"a": "A"})),
        ("ALTER c SET DEFAULT 5", ("T", {"a": "A", "c": "C"})),
        ("MODIFY c INT COMMENT 'X', DROP missing", ("T", {"a": "A", "c": "C"})),  # which the server refuses
    ],
)
def test_alter_table(clauses: str, expected: tuple[str, dict[str, str]]) -> None:
    assert said(table(CREATE, f"ALTER TABLE t {clauses}")) == expected


def test_a_table_without_comments_says_nothing() -> None:
    plain = table("CREATE TABLE t (a INT PRIMARY KEY, b INT)")
    assert said(plain) == (None, {})
    assert not {"comment", "comments"} & plain.document().keys()


def test_a_comment_makes_no_version_and_no_event() -> None:
    one = table(CREATE)
    other = table(CREATE, "ALTER TABLE t COMMENT 'U', MODIFY c INT COMMENT 'X'")
    assert (one.versions, one.events(), one == other) == (other.versions, other.events(), True)


@pytest.mark.parametrize("again", ["CREATE TABLE t (a INT PRIMARY KEY, b INT COMMENT 'B')"])
def test_another_table_of_the_name_has_none_of_the_first(again: str) -> None:
    assert said(table(CREATE, "DROP TABLE t", again)) == ("", {"a": "", "b": "B"})
    renamed = table(CREATE, again.replace(" t ", " u "), "RENAME TABLE t TO v, u TO t")
    assert said(renamed) == ("", {"a": "", "b": "B"})


def test_a_copy_has_those_of_its_table() -> None:
    copied = table(CREATE, "CREATE TABLE u LIKE t", "ALTER TABLE u MODIFY c INT", name="u")
    assert said(copied) == ("T", {"a": "A", "c": ""})


def test_the_document_keeps_them() -> None:
    one = table(CREATE, "ALTER TABLE t COMMENT ''")
    assert said(TableTimeline.from_document(one.document())) == said(one)


def test_oracles_statements() -> None:
    create = "CREATE TABLE t (a NUMBER(5) PRIMARY KEY, b NUMBER(5))"
    comments = ("COMMENT ON TABLE t IS 'T'", "COMMENT ON COLUMN d.t.a IS 'A'", "COMMENT ON COLUMN nowhere.b IS 'B'")
    changes = [SchemaChange(f"{n:03}", n, "D", s, dialect="oracle") for n, s in enumerate((create, *comments))]
    (one,) = build_timeline(changes).tables.values()
    assert said(one) == ("T", {"A": "A"})


def test_halves_of_characters_and_long_texts_are_cut() -> None:
    assert said(table("CREATE TABLE t (a INT COMMENT '\ud83d')")) == (None, {"a": "?"})
    assert len(table(f"CREATE TABLE t (a INT) COMMENT '{'x' * 9999}'").comment or "") == 4096
