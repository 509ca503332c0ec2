# SPDX-License-Identifier: Apache-2.0
"""Decide whether the rows of a table are known: changes, or foreign keys, may leave them unknown."""

from __future__ import annotations

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.timeline.timeline import Block, TableTimeline
from spark_jobs.driver.base_states import snapshot_of
from spark_jobs.driver.parent_tables import parents, rows_changed, waits_above
from spark_jobs.driver.planning import Planning
from spark_jobs.tasks.table_task import Span


class UnknownRows:
    """The changes that leave tables unknown."""

    def __init__(self, planning: Planning) -> None:
        self._p = planning

    def since(
        self,
        timeline: TableTimeline,
        state: TableState | None,
        spans: list[Span],
        changed_at: str | None,
        begins: tuple[str, int] | None,
        *,
        files: bool,
    ) -> Block | None:
        """Return the change that leaves the table unknown.

        A later TRUNCATE, also one that came as a row, or a later snapshot with rows of the table ends that.

        :param begins: of a table that is rebuilt the snapshot that its content begins with.
        :param files: whether that stands for files of an operator, from before or after what the table holds.
        """
        timeline = self._p.read.with_blocks(timeline, state)
        if not timeline.blocked:
            return None
        settled = [] if files else self._settled(timeline, state)
        first = next((block for block in timeline.blocked if block not in settled), None)
        if first is None:
            return None
        clears = self._p.groups.clears(timeline, first.position, spans)
        if begins is not None and (files or begins > snapshot_of(state)):
            # an ad hoc snapshot does not state the columns
            columns = next((block for block in timeline.blocked if block.columns and block not in settled), None)
            return columns or timeline.unknown_since(clears, settled=settled, snapshot=begins[0])
        snapshot, _ = self._p.starts.start(timeline, state, spans, changed_at).snapshot
        return timeline.unknown_since(clears, settled=settled, snapshot=snapshot)

    def _settled(self, timeline: TableTimeline, state: TableState | None) -> list[Block]:
        """Return the changes that a table has passed: well although they were known, it had a TRUNCATE behind them."""
        was = self._p.was.tables.get(timeline.table_id)
        if was is None or state is None or state.state != TableStatus.OK:
            return []
        alike = self._p.layouts.leaves_out_alike(timeline, state)
        return [block for block in was.blocked if alike or not block.by_rule]

    def lacks_rows_above(
        self, timeline: TableTimeline, state: TableState, spans: list[Span], changed_at: str | None
    ) -> bool:
        """Return whether a table stays parked because of a table above it, whose rows a foreign key changed.

        It goes on when it is emptied itself or begins with a new snapshot, or when that table is well again without
        having been emptied.
        """
        if not waits_above(state) or not self._p.checks_references(timeline):
            return False
        since = state.applied_position
        if self._p.starts.start(timeline, state, spans, changed_at).snapshot[0] > since:
            return False
        if any(position > since for position in (*timeline.clears, *self._p.groups.clears(timeline, since, spans))):
            return False
        above = [table for reference in timeline.references for table in parents(self._p.now, reference)]
        return any(
            rows_changed(self._p.states.get(table.table_id))
            or table.dropped_at is not None
            or any(
                p > since for p in (*table.clears, *self._p.groups.clears(table, since, self._p.groups.spans(table)))
            )
            for table in above
            if table.table_id != timeline.table_id
        )
