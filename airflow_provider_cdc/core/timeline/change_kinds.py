# SPDX-License-Identifier: Apache-2.0
"""Name the kinds of schema changes: which policy decides about what statements, or rows, did to a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableName, TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import (
    ON_ADD_COLUMN,
    ON_CONVERT_COLUMN,
    ON_CREATE_TABLE,
    ON_DROP_COLUMN,
    ON_DROP_TABLE,
    ON_FAILOVER,
    ON_KEY_CHANGE,
    ON_MISSING_CREATE,
    ON_RENAME_COLUMN,
    ON_RENAME_TABLE,
    ON_TRUNCATE,
    ON_UNSEEN_DDL,
    ON_WIDEN_COLUMN,
)
from airflow_provider_cdc.core.timeline.barriers import keeps_values
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline

ROWS_WITHOUT_CREATE = "rows without CREATE TABLE"
UNSEEN_DDL = "DDL that only rows show"
FAILOVER = "a failover of the source"


class TableChange(NamedTuple):
    """Hold a schema change of one table.

    :param statement: what to call it.
    :param policy: key of the policy that decides about it.
    """

    position: str
    table: TableName
    statement: str
    policy: str

    @property
    def key(self) -> tuple[str, str]:
        """Identify the change, whatever name the table has now."""
        return self.position, self.policy


def changes_of(table: TableTimeline) -> Iterator[TableChange]:
    """Yield what a table's schema changes did: begin and renames under the name then, the rest under its last."""
    begin, first_name = table.versions[0].position, next(name for _, name in table.names if name is not None)
    if begin and not table.supposed:  # else the pipeline's own rules state it
        yield TableChange(begin, first_name, "CREATE TABLE", ON_CREATE_TABLE)
    if table.from_rows:
        yield TableChange(begin, first_name, ROWS_WITHOUT_CREATE, ON_MISSING_CREATE)
    for old, new in pairwise(table.versions):
        for statement, policy in kinds_between(old.schema, new.schema):
            yield TableChange(new.position, table.last_name, statement, policy)
    for position in table.unseen:
        yield TableChange(position, table.last_name, UNSEEN_DDL, ON_UNSEEN_DDL)
    for position in table.failovers:
        yield TableChange(position, table.last_name, FAILOVER, ON_FAILOVER)
    for position in table.clears:
        yield TableChange(position, table.last_name, "TRUNCATE TABLE", ON_TRUNCATE)
    for (_, old_name), (position, name) in pairwise(table.names):
        if old_name is not None and name not in (None, old_name):
            yield TableChange(position, old_name, "RENAME TABLE", ON_RENAME_TABLE)
    if table.dropped_at is not None:
        yield TableChange(table.dropped_at, table.last_name, "DROP TABLE", ON_DROP_TABLE)


class TakenChanges:
    """The changes that batches with a timeline took; those that wait are none of them."""

    def __init__(self, timeline: Timeline) -> None:
        self._keys: set[tuple[str, str]] = set()
        self._begins: dict[TableName, str] = {}  # position of the newest begin of a table with this name
        for table in timeline.tables.values():
            for change in changes_of(table):
                if change.position not in table.asked:
                    self._keys.add(change.key)
                    if change.policy in _BEGINS:
                        begin = max(change.position, self._begins.get(change.table, ""))
                        self._begins[change.table] = begin

    def has(self, position: str, name: TableName, policy: str) -> bool:
        """Return whether a change was taken.

        A statement or a row that comes late lets a table begin earlier than it was known to: it is the same table.
        """
        late = policy in _BEGINS and position <= self._begins.get(name, "")
        return late or (position, policy) in self._keys


def kinds_between(old: TableSchema, new: TableSchema) -> Iterator[tuple[str, str]]:
    """Yield the kinds of changes from one schema to the next: what to call each, and its policy."""
    for statement, policy, has in _ALTERATIONS:
        if has(old, new):
            yield statement, policy


def unseen_change(old: TableSchema, new: TableSchema) -> str:
    """Return how a statement that no record has changed a table's columns; empty where it did not.

    A column that went may have been renamed, where another came at once, or may be generated: those are not streamed.
    """
    both = [(was, column) for column in new.columns if (was := old.column(column.id)) is not None]
    known = {was.id for was, _ in both}
    gone = [column.name for column in old.columns_in_rows if column.id not in known]
    came = [column.name for column in new.columns if column.id not in known]
    changed = [f"{now.name} from {was.type} to {now.type}" for was, now in both if _is_changed(was.type, now.type)]
    parts = [f"{', '.join(came)} came" if came else "", f"{', '.join(gone)} went" if gone else "", *changed]
    what = ", ".join(filter(None, parts))
    return f"columns that only rows show: {what}" if what else ""


def _is_changed(old: ColumnType, new: ColumnType) -> bool:
    """Return whether stored values may have changed with a type; labels that were added change none."""
    return replace(old, labels=()) != replace(new, labels=()) or not set(old.labels) <= set(new.labels)


def _adds(old: TableSchema, new: TableSchema) -> bool:
    """Return whether there is a new column that does not stand next to one that stays under its old name."""
    stays = len(new.columns) - len(new.columns_in_rows) > len(old.columns) - len(old.columns_in_rows)
    return not stays and bool({column.id for column in new.columns} - {column.id for column in old.columns})


def _drops(old: TableSchema, new: TableSchema) -> bool:
    return bool({column.id for column in old.columns_in_rows} - {column.id for column in new.columns})


def _renames(old: TableSchema, new: TableSchema) -> bool:
    names = {column.id: column.name.lower() for column in old.columns_in_rows}
    return any(names.get(column.id, column.name.lower()) != column.name.lower() for column in new.columns)


def _widens(old: TableSchema, new: TableSchema) -> bool:
    return any(was.type != now.type and keeps_values(was.type, now.type) for was, now in _both(old, new))


def _converts(old: TableSchema, new: TableSchema) -> bool:
    return any(
        not keeps_values(was.type, now.type) or (was.nullable and not now.nullable) for was, now in _both(old, new)
    )


def _both(old: TableSchema, new: TableSchema) -> list[tuple[Column, Column]]:
    """Return each column that both have, as it was and as it is."""
    return [(was, now) for now in new.columns if (was := old.column(now.id)) is not None and not now.dropped]


_BEGINS = (ON_CREATE_TABLE, ON_MISSING_CREATE)
# the kinds of changes of a table's structure: what to call one, the policy that decides, whether two schemas show it
_ALTERATIONS: tuple[tuple[str, str, Callable[[TableSchema, TableSchema], bool]], ...] = (
    ("ADD COLUMN", ON_ADD_COLUMN, _adds),
    ("DROP COLUMN", ON_DROP_COLUMN, _drops),
    ("RENAME COLUMN", ON_RENAME_COLUMN, _renames),
    ("MODIFY COLUMN to a wider type", ON_WIDEN_COLUMN, _widens),
    ("MODIFY COLUMN that converts values", ON_CONVERT_COLUMN, _converts),
    ("PRIMARY KEY", ON_KEY_CHANGE, lambda old, new: old.key != new.key),
)
