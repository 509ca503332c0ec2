# SPDX-License-Identifier: Apache-2.0
"""Refuse a batch with a schema change that the policy of its table does not allow (``on_…: fail``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.asked_changes import (
    ON_CREATE_TABLE,
    ON_MISSING_CREATE,
    ON_RENAME_TABLE,
    AskedChanges,
)
from airflow_provider_cdc.core.timeline.change_kinds import ROWS_WITHOUT_CREATE, TableChange, changes_of
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.driver.table_groups import TableGroups
from spark_jobs.driver.unsettled import waiting

_SHOWN_TEXT = 200  # characters of a statement


def demand_allowed(
    was: Timeline,
    now: Timeline,
    groups: TableGroups,
    policy_of: Callable[[TableName], RunPolicy | None],
    asked: AskedChanges,
) -> None:
    """Refuse a batch with a schema change where the policy of its kind is ``fail``.

    A change that an earlier batch took is allowed: a repeat of it, a replay and a rewind give what that batch gave. So
    are the tables that the pipeline begins with.

    :param was: schema changes of earlier batches.
    :param now: the same with those of this batch.
    :param policy_of: returns the policy of a table, None for a table that the pipeline does not select.
    :param asked: the changes that were asked about; those that wait are refused also where a timeline has them.
    :raises DataError: ``apply.change_refused``.
    """
    waiting = [
        TableChange(item.position, item.name, printable(" ".join(item.statement.split()))[:_SHOWN_TEXT], item.policy)
        for item in asked.refused()
    ]
    named = {change.key for change in waiting}
    refused: list[TableChange] = []
    for table in now.tables.values():
        policy = policy_of(table.last_name)
        for change in changes_of(table):
            # the new name of a renamed table is not known to those who state rules
            deciding = policy_of(change.table) if change.policy == ON_RENAME_TABLE else policy
            begins = change.policy == ON_CREATE_TABLE and not was.tables
            if deciding is not None and getattr(deciding, change.policy) == "fail" and not begins:
                refused.append(change)
        if policy is not None and policy.on_truncate == "fail":
            refused += _of_rows(table, groups)
    refused = [
        change
        for change in refused
        if change.key not in named and not asked.is_taken(change.position, change.table, change.policy)
    ]
    refused = sorted([*refused, *waiting])
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


def demand_created(
    job: JobDocument,
    missing: Iterable[tuple[TableName, str]],
    state_of: Callable[[TableName], TableState],
    policy_of: Callable[[TableName], RunPolicy | None],
) -> None:
    """Refuse a batch where a table without CREATE TABLE would be parked, and its ``on_missing_create`` is ``fail``.

    :param missing: names whose rows wait for a CREATE TABLE, each with the position of its first row.
    :param state_of: returns the state of such a name before the batch.
    :raises DataError: ``apply.change_refused``.
    """
    for name, position in missing:
        policy = policy_of(name)
        if policy is None or policy.on_missing_create != "fail":
            continue
        if waiting(job, state_of(name), "").state == TableStatus.PARKED:
            raise DataError(
                "apply.change_refused",
                f"{ROWS_WITHOUT_CREATE} of a table whose {ON_MISSING_CREATE} is fail; nothing of this batch "
                "was applied",
                where={"table": str(name), "position": position},
                hint="state tables.<database.table>.create, or check source.topics and source.schema_topic",
            )


def _of_rows(table: TableTimeline, groups: TableGroups) -> Iterator[TableChange]:
    """Yield the TRUNCATEs that rows of this batch show, without those that rows of an earlier batch show."""
    spans = groups.spans(table)
    if not any(group.clears for span in spans for group in span.groups):
        return
    for position in set(groups.clears(table, "", spans)) - set(groups.clears(table, "", [])):
        yield TableChange(position, table.last_name, "TRUNCATE TABLE", "on_truncate")
