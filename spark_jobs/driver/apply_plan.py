# SPDX-License-Identifier: Apache-2.0
"""Define what is to be done in a batch, table by table."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field

from airflow_provider_cdc.core.documents import TableLine, TableState
from airflow_provider_cdc.core.model.schema import TableName
from spark_jobs.tasks.table_task import ApplyTask


@dataclass(frozen=True, slots=True)
class Unowned:
    """A name with rows or unreadable records, but without a known CREATE TABLE.

    :param first: position of the first of its rows.
    :param alike: name of a table that differs only in case, empty without one.
    :param reason: why it is parked, None where it waits for the CREATE TABLE.
    """

    name: TableName
    first: str
    alike: str
    reason: str | None = None


def unowned_id(name: TableName) -> str:
    """Return the id of a table that nobody has created: different for different names, and plain text."""
    return f"?{hashlib.blake2b(json.dumps(name).encode(), digest_size=8).hexdigest()}"


def is_waiting_name(state: TableState) -> bool:
    """Return whether a state is that of a name whose rows have no table."""
    return state.table_id.startswith("?")


@dataclass(slots=True)
class ApplyPlan:
    """Tasks and state changes of a batch, once it is read.

    :param tasks: one per table to resolve.
    :param to_empty: states whose location no table has any more, because it moved or is to be dropped with its rows:
        emptied once the table itself is done.
    :param never_reached: states with a location whose name a table had only while it was parked or waiting: emptied
        also if the table does not go on.
    :param settled: states that change without a task (dropped, blocked, waiting).
    :param not_rebuilt: tables that stay as they are because they cannot be rebuilt, with the reasons.
    :param unowned: names with rows or unreadable records where no known table has the name.
    """

    tasks: list[ApplyTask] = field(default_factory=list)
    to_empty: list[TableState] = field(default_factory=list)
    never_reached: list[TableState] = field(default_factory=list)
    settled: list[TableState] = field(default_factory=list)
    unowned: list[Unowned] = field(default_factory=list)
    not_rebuilt: list[TableLine] = field(default_factory=list)
