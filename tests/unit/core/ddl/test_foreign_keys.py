"""Foreign keys on the timeline: wherever a statement of the log states them."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.ddl.fold import build_timeline
from airflow_provider_cdc.core.ddl.timeline import Reference, SchemaChange
from airflow_provider_cdc.core.model.schema import TableName

PARENT = "CREATE TABLE p (id INT PRIMARY KEY)"
CHILD = "CREATE TABLE c (id INT PRIMARY KEY, p INT)"
WITH_KEY = (
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT f FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)"
)


def references(*statements: str, snapshot: str | None = None) -> list[Reference]:
    """Return the foreign keys of ``shop.c``, by which rows change without row events.

    :param snapshot: statement that a snapshot writes behind the others.
    """
    changes = [SchemaChange(f"{place:02}", place, "shop", text) for place, text in enumerate(statements)]
    if snapshot is not None:
        changes.append(SchemaChange("50", 50, "shop", snapshot, snapshot=1))
    found = build_timeline(changes)
    owner = found.owner(TableName("shop", "c"), "~")
    assert owner is not None
    return found.tables[owner].references


@pytest.mark.parametrize(
    "statements",
    [
        (PARENT, WITH_KEY),
        (WITH_KEY, PARENT),  # with foreign_key_checks=0
        (PARENT, "CREATE TABLE c (id INT PRIMARY KEY, p INT REFERENCES p (id) ON UPDATE SET NULL)"),
        (PARENT, CHILD, "ALTER TABLE c ADD FOREIGN KEY (p) REFERENCES p (id) ON DELETE SET NULL"),
        (PARENT, CHILD, "ALTER TABLE c ADD q INT REFERENCES p (id) ON DELETE CASCADE"),
    ],
)
def test_statements_of_the_log_state_foreign_keys(statements: tuple[str, ...]) -> None:
    (found,) = references(*statements)
    assert (found.parents, found.until) == ([TableName("shop", "p")], None)


def test_a_snapshot_states_the_foreign_key_of_a_table_that_is_known() -> None:
    (found,) = references(PARENT, CHILD, snapshot=WITH_KEY)
    assert (found.position, found.parents) == ("50", [TableName("shop", "p")])


def test_a_snapshot_states_a_known_foreign_key_once() -> None:
    assert len(references(PARENT, WITH_KEY, snapshot=WITH_KEY)) == 1
