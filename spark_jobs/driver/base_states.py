# SPDX-License-Identifier: Apache-2.0
"""Find the base state that a table's new changes go onto, and which changes of which batches those are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from airflow_provider_cdc.core.apply.stored_layout import StoredLayouts
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.clock_position import earliest_unordered, one_instant, reaches
from airflow_provider_cdc.core.timeline.barriers import barriers
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.driver.applied_rows import AppliedRows
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.full_snapshots import FullSnapshots, began_again
from spark_jobs.driver.late_schema_changes import LateSchemaChanges
from spark_jobs.driver.outdated_files import demand_in_files, demand_same_changes
from spark_jobs.driver.parent_tables import waits_above
from spark_jobs.driver.table_groups import TableGroups, each_once, spans_since
from spark_jobs.tasks.table_task import Span


@dataclass(frozen=True, slots=True)
class Start:
    """Base state and changes from which a table is resolved.

    :param base: the state to start from, None to start from nothing.
    :param back_to: the position that it had to go back behind, None without.
    :param spans: all changes to resolve.
    :param snapshot: position and Kafka's time of the snapshot that the content begins with, ("", 0) if it begins with
        the table.
    :param provided: state (document) of the operator's files that the content begins with, None without.
    :param again: whether that snapshot began several times at its position, as far as its rows have to be told apart:
        ``timed`` if the times of its statements rise, ``unclear`` if they do not; empty otherwise.
    """

    base: TableState | None
    back_to: str | None
    spans: list[Span]
    snapshot: tuple[str, int]
    provided: dict[str, Any] | None = None
    again: str = ""

    @property
    def begins_with_files(self) -> bool:
        """Return whether the base is the state of the operator's files."""
        return self.base is not None and self.provided is not None and self.base.location == self.provided["location"]


class BaseStates:
    """Finds, for one batch, from where each table is resolved.

    :param seq: the batch's number.
    :param groups: finds what batches hold of tables; ``late`` schema changes that came late, ``applied`` rows that
        may come again.
    :param snapshots: finds the full snapshots among changes.
    :param layouts: options that rows are made with now.
    """

    def __init__(
        self,
        seq: int,
        groups: TableGroups,
        late: LateSchemaChanges,
        applied: AppliedRows,
        history: History,
        snapshots: FullSnapshots,
        layouts: StoredLayouts,
    ) -> None:
        self._seq, self._groups, self._late, self._applied = seq, groups, late, applied
        self._history, self._snapshots, self._layouts = history, snapshots, layouts

    def start(
        self,
        timeline: TableTimeline,
        state: TableState | None,
        spans: list[Span],
        changed_at: str | None,
        begins: tuple[str, int] | None = None,
        provided: dict[str, Any] | None = None,
    ) -> Start:
        """Return from where the table is resolved.

        :param begins: position and Kafka's time of the snapshot that the content begins with; None for the state's.
        :param provided: state (document) of the operator's files that it begins with, where ``begins`` is stated.
        :raises DataError: ``rebuild.files_outdated``.
        """
        base = state if state is not None and state.version is not None else None
        if begins is None:
            begins, provided = snapshot_of(base), None if base is None else base.provided
        origin = None if provided is None else TableState.from_document(provided)
        base = base or origin
        every = spans_since(begins[0], [*self._earlier_spans(timeline, base), *spans])
        back_to: str | None = None
        while base is not None and base is not origin:
            late = [*self._late_clears(timeline, every, base), *self._late_barriers(timeline, every, base)]
            late += self._late_snapshots(timeline, every, base)
            if changed_at is not None and back_to is None:
                late.append(changed_at)
            if not late:
                break
            # the older state may lack rows that have to pass barriers of their own: look again from there
            back_to = min([*late, back_to] if back_to is not None else late)
            base = self._rewind(timeline, back_to, base.rebuilt_seq) or origin
            every = spans_since(begins[0], [*self._earlier_spans(timeline, base), *spans])
        clears, known = partial(self._groups.clears, timeline, spans=every), not waits_above(state)
        newest = self._snapshots.begin(timeline, every, begins, clears, known=known)
        if newest > snapshot_of(base):
            # the content begins with this snapshot: what was before it counts no more
            earlier = self._groups.spans_of(timeline, self._history.since(newest[0]))
            base, every, provided = None, spans_since(newest[0], [*earlier, *spans]), None
        elif origin is not None:
            demand_in_files(timeline, origin, [*self._earlier_spans(timeline, base), *spans], self._history)
            if base is origin:
                demand_same_changes(timeline, origin)
        again = began_again(timeline, every)
        return Start(
            base, back_to, [self._applied.with_older(span) for span in each_once(every)], newest, provided, again
        )

    def _rewind(self, timeline: TableTimeline, back_to: str, rebuilt_seq: int) -> TableState | None:
        """Return the newest state from before a position such that every batch after it can be read again.

        :param rebuilt_seq: batch that last rebuilt the table: the versions before it may be gone.
        """
        first = self._seq
        for seq in self._history.since(earliest_unordered(back_to)):
            spans = self._groups.spans_of(timeline, [seq])
            if any(reaches(group.max_position, back_to) for span in spans for group in span.groups):
                first = seq
                break
        seqs = range(rebuilt_seq, first)
        return self._history.state_before(timeline, back_to, seqs, partial(self._is_whole, timeline))

    def _is_whole(self, timeline: TableTimeline, state: TableState) -> bool:
        """Return whether a state holds all rows of its batches, as they are made now.

        Some may have come before the DDL that names them.
        """
        if self._layouts.change(timeline, state) is not None:
            return False
        for seq in self._history.since(state.applied_position):
            if seq <= state.applied_seq:
                for span in self._groups.spans_of(timeline, [seq]):
                    ends = (min(group.max_position, span.end or group.max_position) for group in span.groups)
                    if max(ends) > state.applied_position:
                        return False
        return True

    def _earlier_spans(self, timeline: TableTimeline, base: TableState | None) -> list[Span]:
        """Return what batches after the base's hold of this table: it was parked, waiting, unknown or is rewound."""
        if base is not None:
            seqs: Iterable[int] = (seq for seq in self._history.earlier if seq > base.applied_seq)
        else:
            seqs = self._history.since(earliest_unordered(timeline.versions[0].position))
        return self._groups.spans_of(timeline, seqs)

    def _late_snapshots(self, timeline: TableTimeline, spans: list[Span], base: TableState) -> list[str]:
        """Return where full snapshots stand that a table keeps its rows at, and went past without theirs."""
        return [
            position
            for position, sent in self._snapshots.later(timeline, spans, snapshot_of(base))
            if position <= base.applied_position and not self._late.had_rows(timeline, position, sent, base.applied_seq)
        ]

    def _late_clears(self, timeline: TableTimeline, spans: list[Span], base: TableState) -> list[str]:
        clears = [p for span in spans for group in span.groups for p in group.clears]
        return [p for p in clears if p <= base.applied_position and p not in timeline.denied]

    def _late_barriers(self, timeline: TableTimeline, spans: list[Span], base: TableState) -> list[str]:
        """Return applied barriers that rows arriving now should have met: their key was another one then."""
        oldest = min((group.min_position for span in spans for group in span.groups), default=None)
        if oldest is None or not reaches(base.applied_position, oldest):
            return []
        mine = self._layouts.mode(timeline).barriers(timeline.versions, barriers(timeline.versions))
        positions = [timeline.versions[index].position for index in mine]
        applied = [position for position in positions if reaches(base.applied_position, position)]
        return [position for position in applied if oldest < position or one_instant(oldest, position)]


def snapshot_of(state: TableState | None) -> tuple[str, int]:
    """Return position and Kafka's time of the snapshot that a state's rows begin with, ("", 0) without one."""
    return ("", 0) if state is None else (state.snapshot_position, state.snapshot_sent)
