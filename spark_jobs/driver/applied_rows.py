# SPDX-License-Identifier: Apache-2.0
"""Find the applied rows that a table's new rows must be compared with: those behind late ones, and repeats."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.clock_position import (
    earliest_unordered,
    is_clock_position,
    reaches,
    same_millisecond,
)
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.table_groups import TableGroups, each_once
from spark_jobs.lake.manifest import RowGroup
from spark_jobs.tasks.table_task import Span


class AppliedRows:
    """Find rows of earlier batches that new ones may repeat, or come before.

    :param groups: finds what batches hold of tables.
    """

    def __init__(self, groups: TableGroups, history: History) -> None:
        self._groups, self._history = groups, history

    def context(
        self, timeline: TableTimeline, base: TableState | None, spans: list[Span]
    ) -> tuple[str | None, list[Span]]:
        """Return from where on rows come late, None when none do, and the applied changes to compare them with."""
        if base is None or not base.applied_position:
            return None, []
        fresh = [group for span in spans for group in span.groups]
        begins = [group.min_position for group in self.repeats(timeline, base)]
        # what stands before the snapshot that the content begins with does not count, also where it comes late
        oldest = min((max(group.min_position, base.snapshot_position) for group in fresh if group.rows), default=None)
        if oldest is not None and reaches(base.applied_position, oldest):
            # rows of one name are on one topic: there only changes of one millisecond are unordered
            renamed = len({name for _, name in timeline.names if name is not None}) > 1
            begins.append(earliest_unordered(oldest) if renamed else same_millisecond(oldest))
        if not begins:
            return None, []
        context, late_from = [], min(begins)
        for seq in self._history.since(late_from):
            if seq <= base.applied_seq:
                for span in self._groups.spans_of(timeline, [seq]):
                    groups = [group for group in span.groups if group.max_position >= late_from]
                    if groups := _without_same_snapshot(groups, fresh, late_from):
                        context.append(replace(span, groups=groups))
        if not context:
            return None, []
        return late_from, [self.with_older(span, base.applied_seq) for span in each_once(context)]

    def repeats(self, timeline: TableTimeline, state: TableState | None) -> list[RowGroup]:
        """Return applied groups of a table whose rows may repeat rows of this batch of the table before it of the name.

        Rows of an earlier table that come late may show that rows were applied that are only sent again.
        """
        if state is None or state.version is None or not is_clock_position(state.applied_position):
            return []
        repeats = []
        for start, name in timeline.names:
            before = (
                [group for group in self._groups.by_name.get(name, ()) if group.min_position < start] if name else []
            )
            oldest = min((group.min_source_time for group in before if group.min_source_time is not None), default=None)
            if oldest is None:
                continue
            newest = max(group.max_source_time or oldest for group in before)
            applied = (seq for seq in self._history.since_source_time(oldest) if seq <= state.applied_seq)
            for span in self._groups.spans_of(timeline, applied):
                if span.start == start and name == TableName(span.groups[0].database, span.groups[0].table):
                    repeats += [g for g in span.groups if g.min_source_time is not None and g.min_source_time <= newest]
        return repeats

    def with_older(self, span: Span, applied_seq: int | None = None) -> Span:
        """Return a span with the other groups of its name, of this batch and earlier ones, that its rows may repeat.

        :param applied_seq: newest batch that the table holds, where it holds the span's rows.
        """
        times = [group.min_source_time for group in span.groups if group.min_source_time is not None]
        if not times or not is_clock_position(span.groups[0].max_position):
            return span
        name = TableName(span.groups[0].database, span.groups[0].table)
        mine = {group.origin for group in span.groups}
        now = self._groups.by_name.get(name, [])
        batches = {seq: self._groups.of_batch(seq).get(name, []) for seq in self._history.since_source_time(min(times))}
        known = [*(group for groups in batches.values() for group in groups), *now]
        alike = [group for group in known if (group.max_source_time or 0) >= min(times)]
        # rows behind the first that may be repeated, however old, show whether a row fits the stored state
        first = min(group.min_position for group in (*alike, *span.groups))
        behind = [group for group in (*self._groups.earlier_groups(name, first), *now) if group.max_position >= first]
        by_row_group = {group.origin: group for group in (*alike, *behind)}
        older = [group for row_group, group in by_row_group.items() if row_group not in mine]
        if applied_seq is None:
            return replace(span, older=older)
        unapplied = [*(group for seq, groups in batches.items() if seq > applied_seq for group in groups), *now]
        late = {group.origin for group in unapplied}
        return replace(
            span,
            older=[group for group in older if group.origin not in late],
            late=[group for group in older if group.origin in late],
        )


def _without_same_snapshot(applied: list[RowGroup], fresh: list[RowGroup], late_from: str) -> list[RowGroup]:
    """Return applied groups without those that only have rows of the snapshot which late rows are of.

    The rows of a snapshot share its position, and those of one key are equal. A large table's snapshot comes in many
    batches: comparing each with all before it would read the table again and again.

    :param late_from: position of the oldest late row.
    """
    if any(g.changes_from is not None and g.changes_from <= late_from for g in fresh if g.min_position <= late_from):
        return applied  # a change may have the position too
    replayed = {group.origin for group in fresh}
    return [
        group
        for group in applied
        if group.max_position > late_from or group.changes_from is not None or group.origin in replayed
    ]
