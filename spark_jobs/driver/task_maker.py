# SPDX-License-Identifier: Apache-2.0
"""Make the task of a table that is resolved."""

from __future__ import annotations

from typing import Any

from airflow_provider_cdc.core.apply.stored_layout import LayoutChange
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.driver.base_states import Start, snapshot_of
from spark_jobs.driver.locations import Locations
from spark_jobs.driver.outdated_files import outdated
from spark_jobs.driver.planning import Planning
from spark_jobs.driver.source_formats import demand_one_format, demand_values, formats_after
from spark_jobs.tasks.table_task import ApplyTask, Span

_AHEAD = 8  # batches by which partitions may be read apart


class TaskMaker:
    """Makes tasks: from which state each table is resolved, and with which changes."""

    def __init__(self, planning: Planning, locations: Locations) -> None:
        self._p, self._locations = planning, locations

    def task(
        self,
        timeline: TableTimeline,
        state: TableState | None,
        spans: list[Span],
        changed_at: str | None,
        begins: tuple[str, int] | None = None,
        provided: dict[str, Any] | None = None,
    ) -> ApplyTask:
        """Return the task of a table.

        :param begins: of a table that is rebuilt the snapshot that its content begins with.
        :param provided: of such a table the state (document) of the operator's files that it begins with.
        """
        name, location, rebuilds = timeline.last_name, self._p.paths.demand(timeline), begins is not None
        known, applied_seq = self._p.states.get(timeline.table_id), 0 if state is None else state.applied_seq
        if not rebuilds and state is not None and not self.goes_on_from_rows(timeline, state):
            begins, provided = snapshot_of(state), state.provided  # all of it is made again
        if begins is not None:
            state = changed_at = None
        blocked = self._p.read.with_blocks(timeline, known)
        start = self._p.starts.start(blocked, state, spans, changed_at, begins, provided)
        self._demand_none_across(timeline, spans, start, known)
        base = None if start.begins_with_files else start.base  # of files every change from theirs on is taken again
        late_from, context = self._p.applied.context(timeline, base, start.spans)
        self._demand_one_way_of_reading(timeline, start, context)
        return ApplyTask(
            timeline.table_id,
            *name,
            location,
            timeline.document(),
            start.base,
            self._locations.expected_version(location),
            start.spans,
            context,
            late_from,
            start.back_to,
            self._p.parents.compared(timeline, start) if self._p.checks_references(timeline) else [],
            applied_seq,
            *start.snapshot,
            self._p.quarantine.settled,
            self._p.job.seq if rebuilds else 0 if known is None else known.rebuilt_seq,
            provided=start.provided,
            made_with=self._p.layouts.of(timeline),
            left_out=self._p.quarantine.left_out(timeline.table_id, start.base),
            unread=self._p.quarantine.unread(timeline),
            discarded=self._p.quarantine.discarded(timeline, start.base),
            snapshot_again=start.again,
            snapshots=self._p.snapshots.later(timeline, [*start.spans, *context], start.snapshot),
        )

    def again(self, task: ApplyTask, rewind_to: str) -> ApplyTask:
        """Return a task again, from a state that holds nothing from a position on.

        :raises DataError: ``rebuild.files_outdated``.
        """
        if task.begins_with_files:
            raise DataError(
                "rebuild.files_outdated",
                "the table has to go back behind the files that it was rebuilt from, or their copy is gone",
                where={"table": f"{task.database}.{task.table}"},
                hint="rebuild the table again from newer files, or from a snapshot",
            )
        timeline, state = self._p.now.tables[task.table_id], self._p.states.get(task.table_id)
        back_to = min(rewind_to, task.rewind_to or rewind_to)
        return self.task(timeline, state, self._p.groups.spans(timeline), back_to)

    def go_on(self, task: ApplyTask, held: TableState) -> ApplyTask:
        """Return a task again for a table that holds more than was known of it.

        :param held: the state that the table's own commit states.
        """
        timeline = self._p.now.tables[task.table_id]
        self._p.states[task.table_id] = held
        self._locations.note(held)
        changed_at = self._p.late.first_difference(task.table_id, held)
        return self.task(timeline, held, self._p.groups.spans(timeline), changed_at)

    def made_otherwise(self, timeline: TableTimeline, state: TableState | None) -> LayoutChange | None:
        """Return the option that a table's rows were made with and that is another one now, None without."""
        if state is None or state.version is None or timeline.dropped_at is not None:
            return None
        return self._p.layouts.change(timeline, state)

    def goes_on_from_rows(self, timeline: TableTimeline, state: TableState) -> bool:
        """Return whether a table goes on from its stored rows, where it has any, and not from the change log.

        Rows that it lacks because they did not fit may fit under other rules.
        """
        change = self.made_otherwise(timeline, state)
        if change is None:
            return True
        return change.from_rows and state.pending_seq is None and not self._p.quarantine.left_out(state.table_id, state)

    def _demand_none_across(
        self, timeline: TableTimeline, spans: list[Span], start: Start, known: TableState | None
    ) -> None:
        """Refuse changes of a transaction that was open across the place of the snapshot that the content begins with.

        :raises DataError: ``apply.order_unknown``.
        """
        groups, history, (position, _) = self._p.groups, self._p.history, start.snapshot
        if position:
            every = [*groups.spans_of(timeline, history.since(position)), *spans]
            # a partition may have been read further than those with the rows of a snapshot that is new
            before = history.earlier[-_AHEAD:] if snapshot_of(known) != start.snapshot else ()
            read = [*groups.spans_of(timeline, before), *spans]
            self._p.snapshots.demand_none_across(timeline, read, every, position, history)

    def _demand_one_way_of_reading(self, timeline: TableTimeline, start: Start, context: list[Span]) -> None:
        """Refuse changes and operator's files that were read under another format, or other options, than those of now.

        :raises DataError: they would have to be read again.
        """
        formats = formats_after(self._p.history.formats(), self._p.job)
        demand_one_format(self._p.job, formats, [*start.spans, *context], str(timeline.last_name))
        demand_values(timeline, [*start.spans, *context])
        if start.begins_with_files and start.base is not None:
            change = self._p.layouts.change(timeline, start.base)
            if change is not None:
                raise outdated(timeline, start.base, f"another value of {change.option}, which concerns rows")
