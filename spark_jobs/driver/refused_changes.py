# SPDX-License-Identifier: Apache-2.0
"""Refuse a batch with a schema change that the policy of its table does not allow (``on_…: fail``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import Column, TableName, TableSchema
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.asked_changes import AskedChanges
from airflow_provider_cdc.core.timeline.barriers import keeps_values
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.driver.base_states import BaseStates

_SHOWN_TEXT = 200  # characters of a statement


class _Change(NamedTuple):
    """Hold a schema change of one table.

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


def demand_allowed(
    was: Timeline,
    now: Timeline,
    starts: BaseStates,
    policy_of: Callable[[TableName], RunPolicy | None],
    asked: AskedChanges,
) -> None:
    """Refuse a batch with a schema change where the policy of its kind is ``fail``.

    A change that an earlier batch took is allowed: a repeat of it, a replay and a rewind give what that batch gave. So
    are the tables that the pipeline begins with.

    :param was: schema changes of earlier batches.
    :param now: the same with those of this batch.
    :param policy_of: returns the policy of a table, None for a table that the pipeline does not select.
    :param asked: the changes that were asked about; those that wait are on no timeline.
    :raises DataError: ``apply.change_refused``.
    """
    known = {change.key for table in was.tables.values() for change in _of_statements(table)}
    refused = [
        _Change(item.position, item.name, printable(" ".join(item.statement.split()))[:_SHOWN_TEXT], item.policy)
        for item in asked.refused()
    ]
    for table in now.tables.values():
        policy = policy_of(table.last_name)
        if policy is None:
            continue
        changes = [change for change in _of_statements(table) if getattr(policy, change.policy) == "fail"]
        refused += [change for change in changes if was.tables or change.policy != _CREATE]
        if policy.on_truncate == "fail":
            refused += _of_rows(table, starts)
    refused = sorted(change for change in refused if change.key not in known)
    if not refused:
        return
    first, others = refused[0], len(refused) - 1
    more = f", and {others} more such changes follow" if others else ""
    raise DataError(
        "apply.change_refused",
        f"{first.statement} of a table whose {first.policy} is fail{more}; nothing of this batch was applied",
        where={"table": str(first.table), "position": first.position},
        hint=f"state tables.<database.table>.{first.policy} with another value and run again",
    )


def _of_statements(table: TableTimeline) -> Iterator[_Change]:
    """Yield what statements did to a table."""
    if table.versions[0].position:  # else the pipeline's own rules state it
        yield _Change(table.versions[0].position, table.last_name, "CREATE TABLE", _CREATE)
    for old, new in pairwise(table.versions):
        for statement, policy, has in _ALTERATIONS:
            if has(old.schema, new.schema):
                yield _Change(new.position, table.last_name, statement, policy)
    for position in table.clears:
        yield _Change(position, table.last_name, "TRUNCATE TABLE", "on_truncate")
    for position, name in table.names[1:]:
        if name is not None:
            yield _Change(position, table.last_name, "RENAME TABLE", "on_rename_table")
    if table.dropped_at is not None:
        yield _Change(table.dropped_at, table.last_name, "DROP TABLE", "on_drop_table")


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


_CREATE = "on_create_table"
# the kinds of changes of a table's structure: what to call one, the policy that decides, whether two schemas show it
_ALTERATIONS: tuple[tuple[str, str, Callable[[TableSchema, TableSchema], bool]], ...] = (
    ("ADD COLUMN", "on_add_column", _adds),
    ("DROP COLUMN", "on_drop_column", _drops),
    ("RENAME COLUMN", "on_rename_column", _renames),
    ("MODIFY COLUMN to a wider type", "on_widen_column", _widens),
    ("MODIFY COLUMN that converts values", "on_convert_column", _converts),
    ("PRIMARY KEY", "on_key_change", lambda old, new: old.key != new.key),
)


def _of_rows(table: TableTimeline, starts: BaseStates) -> Iterator[_Change]:
    """Yield the TRUNCATEs that rows of this batch show, without those that rows of an earlier batch show."""
    spans = starts.spans(table)
    if not any(group.clears for span in spans for group in span.groups):
        return
    for position in set(starts.clears(table, "", spans)) - set(starts.clears(table, "", [])):
        yield _Change(position, table.last_name, "TRUNCATE TABLE", "on_truncate")
