# SPDX-License-Identifier: Apache-2.0
"""Choose small tables of one layout, such as the parts of a sharded table, that a task resolves together."""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.repeated_rows import with_sending
from airflow_provider_cdc.core.apply.resolve_together import Compared, layout_of, resolve_together
from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import CdcError
from airflow_provider_cdc.core.faults import summary
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from spark_jobs.lake.row_groups import read_together
from spark_jobs.lake.scratch import lake_of
from spark_jobs.tasks.clock_boundaries import is_apart_from_boundaries
from spark_jobs.tasks.table_changes import before_of, columns_of
from spark_jobs.tasks.table_shape import shape_of
from spark_jobs.tasks.table_task import ApplyTask
from spark_jobs.tasks.table_witness import verification_of

_TABLE_BYTES = 1 << 20  # of images: Arrow's cost of a call is nothing next to that of more
_TOGETHER_BYTES = 4 << 20  # of images: more would leave the processor's cache
_TOGETHER = 256  # tables
_FEW = 4  # tables: fewer are resolved one by one


@dataclass(frozen=True, slots=True)
class ResolvedTable:
    """Hold what resolving the changes of a table gave.

    :param first: topic, partition and offset of the first record that was read.
    """

    timeline: TableTimeline
    plan: MergePlan
    first: dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Candidate:
    task: ApplyTask
    timeline: TableTimeline
    layout: Hashable


@contextmanager
def _else_alone() -> Iterator[None]:
    """Leave tables that something is wrong with to be resolved alone: the one it is reports it, the others go on."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, CdcError):  # else the table's own report says it in full
            print(f"tables are resolved one by one: {summary(error)}", file=sys.stderr)


class TablesTogether:
    """Resolve the tables of a task ahead of their commits, a few neighbours at a time.

    :param tasks: in the order in which they are committed.
    """

    def __init__(self, job: JobDocument, tasks: Sequence[ApplyTask], secrets: dict[str, dict[str, str]]) -> None:
        self._job, self._tasks, self._secrets = job, tasks, secrets
        self._wire = open_format(job.format, job.format_options)
        self._most = min(_TOGETHER_BYTES, job.policy.apply_bytes)
        self._seen = 0  # tables that were looked at
        self._resolved: dict[str, ResolvedTable] = {}

    def resolved(self, number: int) -> ResolvedTable | None:
        """Return what resolving a table gave, None where it is to be resolved alone.

        :param number: of its task; ascending from call to call.
        """
        if number >= self._seen:
            self._resolved = {}
            self._resolve(self._neighbours())
        return self._resolved.pop(self._tasks[number].table_id, None)

    def _neighbours(self) -> list[ApplyTask]:
        """Return the next tables, as many as may be held in memory."""
        begin, size = self._seen, 0
        while self._seen < len(self._tasks) and self._seen - begin < _TOGETHER and size < self._most:
            size += self._tasks[self._seen].image_bytes
            self._seen += 1
        return list(self._tasks[begin : self._seen])

    def _resolve(self, tasks: Sequence[ApplyTask]) -> None:
        by_layout: dict[Hashable, list[_Candidate]] = {}
        for task in tasks if len(tasks) >= _FEW else ():
            with _else_alone():
                candidate = self._candidate(task)
                if candidate is not None:
                    by_layout.setdefault(candidate.layout, []).append(candidate)
        for alike in by_layout.values():
            if len(alike) >= _FEW:
                with _else_alone():
                    self._resolve_alike(alike)

    def _candidate(self, task: ApplyTask) -> _Candidate | None:
        """Return a table that can be resolved with others, None where anything but its changes counts."""
        special = task.context or task.parents or task.settled or task.provided or task.snapshot_sent
        special = special or task.late_from is not None or task.rewind_to is not None
        if special or not 0 < task.image_bytes <= min(_TABLE_BYTES, self._most):
            return None
        for span in task.spans:
            if span.others or span.older or span.late or any(group.clears for group in span.groups):
                return None
            if any(group.min_position < span.start for group in span.groups):
                return None
            if span.end is not None and any(group.max_position >= span.end for group in span.groups):
                return None
        timeline = TableTimeline.from_document(task.timeline)
        if self._wire.order == "clock" and not is_apart_from_boundaries(task, timeline):
            return None
        layout, shape = layout_of(timeline, self._wire), shape_of(self._job, timeline, self._secrets)
        if layout is None or not shape.goes_together:
            return None
        return _Candidate(task, timeline, (layout, self._options(task), repr(shape.rules)))

    def _options(self, task: ApplyTask) -> TypeOptions:
        return TypeOptions.of(self._policy(task))

    def _policy(self, task: ApplyTask) -> RunPolicy:
        return self._job.tables.policy(f"{task.database}.{task.table}", self._job.policy)

    def _compared(self, task: ApplyTask) -> Compared | None:
        """Return how a table's changes are compared with the rows that they find."""
        verification = verification_of(self._policy(task), self._job, task, self._wire)
        if verification is None:
            return None
        return task.base.applied_position if task.base else "", verification

    def _resolve_alike(self, alike: Sequence[_Candidate]) -> None:
        groups, owner_of = [], []
        for owner, candidate in enumerate(alike):
            mine = [group for span in candidate.task.spans for group in span.groups]
            groups += mine
            owner_of += [owner] * len(mine)
        timelines = [candidate.timeline for candidate in alike]
        compared = [self._compared(candidate.task) for candidate in alike]
        operations = before_of(timelines[0], self._wire, verifies=any(compared))
        shape = shape_of(self._job, timelines[0], self._secrets)
        columns = list(dict.fromkeys([*columns_of(self._wire, verifies=any(compared)), *shape.of_change]))
        rows, numbers = read_together(lake_of(self._job, self._secrets), groups, columns, before_of=operations)
        if self._wire.order == "clock":
            rows = with_sending(rows)
        owners = np.array(owner_of)[numbers]
        options = self._options(alike[0].task)
        plans = resolve_together(rows, owners, timelines, self._wire, options, compared, shape)
        if plans is None:
            return
        firsts = rows.select(["topic", "partition", "offset"]).take(pa.array(np.unique(owners, return_index=True)[1]))
        for candidate, plan, first in zip(alike, plans, firsts.to_pylist(), strict=True):
            self._resolved[candidate.task.table_id] = ResolvedTable(candidate.timeline, plan, first)
