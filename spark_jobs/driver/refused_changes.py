# SPDX-License-Identifier: Apache-2.0
"""Refuse a batch with a schema change that the policy of its table does not allow (``on_…: fail``)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.driver.base_states import BaseStates


class _Change(NamedTuple):
    """Hold a change that removes all rows of a table, or a column.

    :param policy: key of the policy that decides about it.
    """

    position: str
    table: TableName
    statement: str
    policy: str


def demand_allowed(
    was: Timeline, now: Timeline, starts: BaseStates, policy_of: Callable[[TableName], RunPolicy | None]
) -> None:
    """Refuse a batch that drops or truncates a table, or drops or renames a column, where the policy is ``fail``.

    A change that an earlier batch took is allowed: a repeat of it, a replay and a rewind give what that batch gave.

    :param was: schema changes of earlier batches.
    :param now: the same with those of this batch.
    :param policy_of: returns the policy of a table, None for a table that the pipeline does not select.
    :raises DataError: ``apply.change_refused``.
    """
    known = {change for table in was.tables.values() for change in _of_statements(table)}
    refused: list[_Change] = []
    for table in now.tables.values():
        policy = policy_of(table.last_name)
        if policy is None:
            continue
        refused += [change for change in _of_statements(table) if getattr(policy, change.policy) == "fail"]
        if policy.on_truncate == "fail":
            refused += _of_rows(table, starts)
    refused = sorted(change for change in refused if change not in known)
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
    """Yield what statements removed from a table, its rows, columns or itself, and the columns that they renamed."""
    for old, new in pairwise(table.versions):
        if {column.id for column in old.schema.columns_in_rows} - {column.id for column in new.schema.columns}:
            yield _Change(new.position, table.last_name, "DROP COLUMN", "on_drop_column")
        names = {column.id: column.name.lower() for column in old.schema.columns_in_rows}
        if any(names.get(column.id, column.name.lower()) != column.name.lower() for column in new.schema.columns):
            yield _Change(new.position, table.last_name, "RENAME COLUMN", "on_rename_column")
    for position in table.clears:
        yield _Change(position, table.last_name, "TRUNCATE TABLE", "on_truncate")
    if table.dropped_at is not None:
        yield _Change(table.dropped_at, table.last_name, "DROP TABLE", "on_drop_table")


def _of_rows(table: TableTimeline, starts: BaseStates) -> Iterator[_Change]:
    """Yield the TRUNCATEs that rows of this batch show, without those that rows of an earlier batch show."""
    spans = starts.spans(table)
    if not any(group.clears for span in spans for group in span.groups):
        return
    for position in set(starts.clears(table, "", spans)) - set(starts.clears(table, "", [])):
        yield _Change(position, table.last_name, "TRUNCATE TABLE", "on_truncate")
