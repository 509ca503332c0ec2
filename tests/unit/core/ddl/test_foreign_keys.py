# SPDX-License-Identifier: Apache-2.0
"""Test foreign keys on the timeline, in every statement that states them."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import Reference, SchemaChange

PARENT = "CREATE TABLE p (id INT PRIMARY KEY)"
CHILD = "CREATE TABLE c (id INT PRIMARY KEY, p INT)"
WITH_KEY = (
    "CREATE TABLE c (id INT PRIMARY KEY, p INT, CONSTRAINT f FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE)"
)


def references(*statements: str, snapshot: str | None = None) -> list[Reference]:
    """Return the foreign keys of ``shop.c``, by which rows change without row events.

    :param snapshot: statement that a snapshot writes after the others.
    """
    changes = [SchemaChange(f"{index:02}", index, "shop", text) for index, text in enumerate(statements)]
    if snapshot is not None:
        changes.append(SchemaChange("50", 50, "shop", snapshot, snapshot=1))
    timeline = build_timeline(changes)
    owner = timeline.owner(TableName("shop", "c"), "~")
    assert owner is not None
    return timeline.tables[owner].references


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
    (reference,) = references(*statements)
    assert (reference.parents, reference.until) == ([TableName("shop", "p")], None)


def test_a_snapshot_states_the_foreign_key_of_a_table_that_is_known() -> None:
    (reference,) = references(PARENT, CHILD, snapshot=WITH_KEY)
    assert (reference.position, reference.parents) == ("50", [TableName("shop", "p")])


def test_a_snapshot_states_a_known_foreign_key_once() -> None:
    assert len(references(PARENT, WITH_KEY, snapshot=WITH_KEY)) == 1
