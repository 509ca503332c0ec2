"""Foreign keys by which rows change without row events, as statements make and end them."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.ddl.fold import build_timeline
from airflow_provider_cdc.core.ddl.statement import ForeignKey, Name
from airflow_provider_cdc.core.ddl.timeline import Reference, SchemaChange, TableTimeline
from airflow_provider_cdc.core.model.schema import TableName
from tests.unit.core.ddl.single_statements import create

PARENT = "CREATE TABLE p (id INT PRIMARY KEY, code INT UNIQUE)"


def table(name: str, *statements: str) -> TableTimeline:
    """A table after statements at positions 01, 02, ... in the database ``shop``."""
    changes = [SchemaChange(f"{n:02d}", n, "shop", text, time=0) for n, text in enumerate(statements, 1)]
    found = build_timeline(changes)
    table_id = found.owner(TableName("shop", name), "99")
    assert table_id is not None
    assert not found.tables[table_id].blocked
    return found.tables[table_id]


def references(*statements: str) -> list[tuple[list[str], list[str], str | None]]:
    """Columns, the parent's names and the end of each reference of the table ``c``."""
    child = table("c", PARENT, *statements)
    names = {column.id: column.name for epoch in child.epochs for column in epoch.schema.columns}
    return [([names[i] for i in r.columns], [str(p) for p in r.parents], r.until) for r in child.references]


@pytest.mark.parametrize(
    ("actions", "cascades"),
    [
        ("ON DELETE CASCADE", True),
        ("ON DELETE SET NULL ON UPDATE RESTRICT", True),
        ("ON UPDATE CASCADE ON DELETE NO ACTION", True),
        ("MATCH FULL ON DELETE SET DEFAULT", True),
        ("ON DELETE RESTRICT ON UPDATE NO ACTION", False),
        ("", False),
    ],
)
def test_actions_that_change_rows(actions: str, cascades: bool) -> None:
    found = create(f"CREATE TABLE c (a INT, CONSTRAINT fk FOREIGN KEY i (a) REFERENCES d.p (id, x) {actions})")
    assert found.references == (ForeignKey(("fk", "i"), ("a",), Name("d", "p"), ("id", "x"), cascades),)
    assert bool(references(f"CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (id) {actions})")) == cascades


def test_a_reference_of_a_column_definition_counts() -> None:
    assert references("CREATE TABLE c (a INT REFERENCES p (id) ON DELETE CASCADE NOT NULL)") == [
        (["a"], ["shop.p"], None)
    ]
    added = ("CREATE TABLE c (a INT)", "ALTER TABLE c ADD b INT REFERENCES p (id) ON DELETE CASCADE")
    assert references(*added) == [(["b"], ["shop.p"], None)]


def test_a_reference_is_added_and_dropped_by_alter() -> None:
    added = (
        "CREATE TABLE c (a INT)",
        "ALTER TABLE c ADD CONSTRAINT Fk FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE",
    )
    assert references(*added) == [(["a"], ["shop.p"], None)]
    for clause in ("DROP FOREIGN KEY fk", "DROP CONSTRAINT fk", "DROP FOREIGN KEY c.fk"):
        assert references(*added, f"ALTER TABLE c {clause}") == [(["a"], ["shop.p"], "04")]


def test_a_reference_without_name_has_the_servers() -> None:
    two = (
        "CREATE TABLE c (a INT, b INT, FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE, "
        "FOREIGN KEY (b) REFERENCES p (code) ON DELETE CASCADE)"
    )
    assert references(two, "ALTER TABLE c DROP FOREIGN KEY c_ibfk_2") == [
        (["a"], ["shop.p"], None),
        (["b"], ["shop.p"], "03"),
    ]


def test_a_reference_stays_with_its_columns_and_its_parent_when_those_are_renamed() -> None:
    child = "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE)"
    assert references(child, "RENAME TABLE p TO q", "ALTER TABLE q RENAME other.r") == [
        (["a"], ["shop.p", "shop.q", "other.r"], None)
    ]
    renamed = table("d", PARENT, child, "ALTER TABLE c RENAME COLUMN a TO b, RENAME TO d")
    (reference,) = renamed.references
    assert renamed.schema.column(reference.columns[0]).name == "b"  # type: ignore[union-attr]


def test_a_child_may_come_before_its_parent() -> None:
    child = "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES later (id) ON DELETE CASCADE)"
    assert references(child, "CREATE TABLE later (id INT PRIMARY KEY)") == [(["a"], ["shop.later"], None)]


def test_documents_bring_references_back() -> None:
    child = table("c", "CREATE TABLE c (a INT, FOREIGN KEY (a) REFERENCES p (id) ON DELETE CASCADE)")
    assert TableTimeline.from_document(child.document()) == child
    (reference,) = child.references
    assert Reference.from_document(reference.document()) == reference
