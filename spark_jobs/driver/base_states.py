# SPDX-License-Identifier: Apache-2.0
"""Find the base state that a table's new changes go onto, and which changes of which batches those are."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.stored_layout import StoredLayouts
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import DataError, SinkError
from airflow_provider_cdc.core.model.clock_position import (
    earliest_unordered,
    is_clock_position,
    latest_unordered,
    one_instant,
    reaches,
    same_millisecond,
)
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.barriers import barriers
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.full_snapshots import FullSnapshots, began_again, later_snapshots
from spark_jobs.driver.parent_tables import parents, removing, waits_above
from spark_jobs.driver.source_times import is_dated_before
from spark_jobs.lake.manifest import Manifest, RowGroup
from spark_jobs.tasks.table_task import ParentTable, Span


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

    :param was: the tables as they were known before the batch.
    :param now: the same with the batch's schema changes.
    :param seq: the batch's number.
    :param groups: what the batch holds, by table.
    :param snapshots: finds the full snapshots among changes.
    :param layouts: options that rows are made with now.
    :param lower_case: as of :func:`groups_by_name`.
    """

    def __init__(
        self,
        was: Timeline,
        now: Timeline,
        seq: int,
        groups: dict[TableName, list[RowGroup]],
        history: History,
        snapshots: FullSnapshots,
        layouts: StoredLayouts,
        *,
        lower_case: bool = False,
    ) -> None:
        self._was, self._now, self._seq, self._groups, self._history = was, now, seq, groups, history
        self.snapshots, self._layouts, self._lower_case = snapshots, layouts, lower_case
        self._earlier_groups: dict[int, dict[TableName, list[RowGroup]]] = {}  # by batch

    def spans(self, timeline: TableTimeline) -> list[Span]:
        """Return what this batch holds of a table."""
        return self._spans(timeline, self._groups)

    def _groups_of(self, seq: int) -> dict[TableName, list[RowGroup]]:
        """Return what an earlier batch holds, by table."""
        if seq not in self._earlier_groups:
            self._earlier_groups[seq] = groups_by_name(self._history.manifest(seq), lower_case=self._lower_case)
        return self._earlier_groups[seq]

    def clears(self, timeline: TableTimeline, since: str, spans: list[Span]) -> list[str]:
        """Return where rows of the log say TRUNCATE, at the earliest at a position."""
        earlier = self.spans_of(timeline, self._history.since(since))
        return [
            position
            for span in [*earlier, *spans]
            for group in span.groups
            for position in group.clears
            if position >= max(span.start, since) and (span.end is None or position < span.end)
            if position not in timeline.denied
        ]

    def parents(self, timeline: TableTimeline, start: Start) -> list[ParentTable]:
        """Return the tables that foreign keys refer to, with the deletes and updates to compare this one with."""
        result = []
        base, (begin, _) = start.base, start.snapshot
        oldest = min((group.min_position for span in start.spans for group in span.groups), default=None)
        again = [seq for seq in self._history.since(oldest) if base and seq <= base.applied_seq] if oldest else []
        for reference in timeline.references:
            for parent in parents(self._now, reference):
                unseen = [*self._unseen(timeline, parent, base), *self.spans(parent)]
                fresh = removing(_since(begin, unseen), reference)
                earlier = removing(_since(begin, self.spans_of(parent, again)), reference)
                if fresh or earlier:
                    result.append(ParentTable(reference.document(), parent.document(), fresh, earlier))
        return result

    def removes(self, timeline: TableTimeline) -> bool:
        """Return whether this batch may have taken away what a table refers to."""
        return any(
            removing(self.spans(parent), reference)
            for reference in timeline.references
            for parent in parents(self._now, reference)
        )

    def _unseen(self, timeline: TableTimeline, parent: TableTimeline, base: TableState | None) -> list[Span]:
        """Return what batches that a table's state does not hold have of its parent."""
        if base is not None:
            return self.spans_of(parent, (seq for seq in self._history.earlier if seq > base.applied_seq))
        return self.spans_of(parent, self._history.since(timeline.versions[0].position))

    def spans_of(self, timeline: TableTimeline, seqs: Iterable[int]) -> list[Span]:
        """Return what earlier batches hold of a table."""
        return [span for seq in seqs for span in self._spans(timeline, self._groups_of(seq))]

    def earlier_groups(self, name: TableName, position: str) -> list[RowGroup]:
        """Return what earlier batches hold of a name from a position on."""
        earlier = []
        for seq in self._history.since(position):
            groups = self._groups_of(seq).get(name, [])
            earlier += [group for group in groups if group.max_position >= position]
        return earlier

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
        every = _since(begins[0], [*self._earlier_spans(timeline, base), *spans])
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
            every = _since(begins[0], [*self._earlier_spans(timeline, base), *spans])
        clears, known = partial(self.clears, timeline, spans=every), not waits_above(state)
        newest = self.snapshots.begin(timeline, every, begins, clears, known=known)
        if newest > snapshot_of(base):
            # the content begins with this snapshot: what was before it counts no more
            earlier = self.spans_of(timeline, self._history.since(newest[0]))
            base, every, provided = None, _since(newest[0], [*earlier, *spans]), None
        elif origin is not None:
            self._demand_in_files(timeline, origin, [*self._earlier_spans(timeline, base), *spans])
            if base is origin:
                demand_same_changes(timeline, origin)
        again = began_again(timeline, every)
        return Start(base, back_to, [self._with_older(span) for span in _once(every)], newest, provided, again)

    def _demand_in_files(self, timeline: TableTimeline, files: TableState, spans: list[Span]) -> None:
        """Demand that the rows before an operator's files are from before their time: those are in the files.

        :param files: state of the files.
        :raises DataError: ``rebuild.files_outdated``.
        """
        begin, since = files.applied_position, (files.provided or {})["since"]
        for span in spans:
            for group in span.groups:
                oldest = max(group.min_position, span.start)
                in_time = group.max_source_time is not None and is_dated_before(group.max_source_time, since)
                if oldest >= begin or in_time:
                    continue
                rows = self._history.rows([group], ["position", "source_time"])
                rows = rows.filter(
                    pc.and_(
                        pc.greater_equal(rows.column("position"), span.start), pc.less(rows.column("position"), begin)
                    )
                )
                times = rows.column("source_time").cast(pa.int64()).to_pylist()
                if any(time is None or not is_dated_before(time, since) for time in times):
                    raise outdated(timeline, files, "rows that the table was rebuilt without")

    def _with_older(self, span: Span, applied_seq: int | None = None) -> Span:
        """Return a span with the other groups of its name, of this batch and earlier ones, that its rows may repeat.

        :param applied_seq: newest batch that the table holds, where it holds the span's rows.
        """
        times = [group.min_source_time for group in span.groups if group.min_source_time is not None]
        if not times or not is_clock_position(span.groups[0].max_position):
            return span
        name = TableName(span.groups[0].database, span.groups[0].table)
        mine = {group.origin for group in span.groups}
        now = self._groups.get(name, [])
        batches = {seq: self._groups_of(seq).get(name, []) for seq in self._history.since_source_time(min(times))}
        known = [*(group for groups in batches.values() for group in groups), *now]
        alike = [group for group in known if (group.max_source_time or 0) >= min(times)]
        # rows behind the first that may be repeated, however old, show whether a row fits the stored state
        first = min(group.min_position for group in (*alike, *span.groups))
        behind = [group for group in (*self.earlier_groups(name, first), *now) if group.max_position >= first]
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

    def _rewind(self, timeline: TableTimeline, back_to: str, rebuilt_seq: int) -> TableState | None:
        """Return the newest state from before a position such that every batch after it can be read again.

        :param rebuilt_seq: batch that last rebuilt the table: the versions before it may be gone.
        """
        first = self._seq
        for seq in self._history.since(earliest_unordered(back_to)):
            spans = self._spans(timeline, self._groups_of(seq))
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
                for span in self._spans(timeline, self._groups_of(seq)):
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
        return self.spans_of(timeline, seqs)

    def context(
        self, timeline: TableTimeline, base: TableState | None, spans: list[Span]
    ) -> tuple[str | None, list[Span]]:
        """Return from where on rows come late, None when none do, and the applied changes to compare them with."""
        if base is None or not base.applied_position:
            return None, []
        fresh = [group for span in spans for group in span.groups]
        begins = [group.min_position for group in self.applied_repeats(timeline, base)]
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
                for span in self._spans(timeline, self._groups_of(seq)):
                    groups = [group for group in span.groups if group.max_position >= late_from]
                    if groups := _without_same_snapshot(groups, fresh, late_from):
                        context.append(replace(span, groups=groups))
        if not context:
            return None, []
        return late_from, [self._with_older(span, base.applied_seq) for span in _once(context)]

    def applied_repeats(self, timeline: TableTimeline, state: TableState | None) -> list[RowGroup]:
        """Return applied groups of a table whose rows may repeat rows of this batch of the table before it of the name.

        Rows of an earlier table that come late may show that rows were applied that are only sent again.
        """
        if state is None or state.version is None or not is_clock_position(state.applied_position):
            return []
        repeats = []
        for start, name in timeline.names:
            before = [group for group in self._groups.get(name, ()) if group.min_position < start] if name else []
            oldest = min((group.min_source_time for group in before if group.min_source_time is not None), default=None)
            if oldest is None:
                continue
            newest = max(group.max_source_time or oldest for group in before)
            applied = (seq for seq in self._history.since_source_time(oldest) if seq <= state.applied_seq)
            for span in self.spans_of(timeline, applied):
                if span.start == start and name == TableName(span.groups[0].database, span.groups[0].table):
                    repeats += [g for g in span.groups if g.min_source_time is not None and g.min_source_time <= newest]
        return repeats

    def _spans(self, timeline: TableTimeline, by_name: dict[TableName, list[RowGroup]]) -> list[Span]:
        spans = []
        for name in dict.fromkeys(name for _, name in timeline.names if name is not None):
            groups = by_name.get(name)
            if not groups:
                continue
            starts = self._now.spans(name)
            ends = [*(start for start, _ in starts[1:]), None]
            owned = [(start, end, owner) for (start, owner), end in zip(starts, ends, strict=True) if owner is not None]
            for start, end, owner in owned:
                if owner != timeline.table_id:
                    continue
                ends_at = self._last_copy(end)
                inside = [g for g in groups if reaches(g.max_position, start) and _begins(g.min_position, ends_at)]
                others = [
                    (a, b)
                    for a, b, _ in owned
                    if a != start and _ends(self._last_copy(b), start) and _begins(a, ends_at)
                ]
                if inside:
                    spans.append(Span(inside, start, end, others))
        return spans

    def _last_copy(self, position: str | None) -> str | None:
        """Return the last position that a statement has on any partition: up to there rows may be older."""
        return None if position is None else max([position, *self._now.copies.get(position, ())])

    def _late_snapshots(self, timeline: TableTimeline, spans: list[Span], base: TableState) -> list[str]:
        """Return where full snapshots stand that a table keeps its rows at, and went past without theirs."""
        return [
            position
            for position, sent in self.snapshots.later(timeline, spans, snapshot_of(base))
            if position <= base.applied_position and not self._had_rows(timeline, position, sent, base.applied_seq)
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

    def first_difference(self, table_id: str, state: TableState | None) -> str | None:
        """Return the oldest position at which a schema change arrived late for rows that came before it."""
        if state is None or state.version is None:
            return None
        was, now = self._was.tables.get(table_id), self._now.tables[table_id]
        if was is None:
            return now.versions[0].position
        known = [] if state.rewind_to is None else [state.rewind_to]
        events = [set(timeline.events()) for timeline in (was, now)]
        for position in sorted(position for position, _ in events[0] ^ events[1]):
            if reaches(state.applied_position, position) or self._came_before(now, position, state.applied_seq):
                known.append(position)
                break
        for position, sent in later_snapshots(now):
            if (position, sent) not in was.snapshots and self._had_rows(now, position, sent, state.applied_seq):
                known.append(position)
        return min(known, default=None)

    def _had_rows(self, timeline: TableTimeline, position: str, sent: int, applied_seq: int) -> bool:
        """Return whether an applied batch holds rows of a snapshot."""
        applied = [seq for seq in self._history.since(position) if seq <= applied_seq]
        snapshots = (
            item for span in self.spans_of(timeline, applied) for group in span.groups for item in group.snapshots
        )
        return any(begin == position and newest >= sent for begin, newest in snapshots)

    def oldest_difference(self, table_id: str, state: TableState | None) -> str | None:
        """Return :meth:`first_difference`, or what is certainly not behind it where the change log cannot decide."""
        try:
            return self.first_difference(table_id, state)
        except SinkError:
            was, now = self._was.tables.get(table_id), self._now.tables[table_id]
            events = [set(timeline.events()) if timeline else set() for timeline in (was, now)]
            snapshots = [set(later_snapshots(timeline)) if timeline else set() for timeline in (was, now)]
            positions = [p for p, _ in events[0] ^ events[1]] + [p for p, _ in snapshots[0] ^ snapshots[1]]
            known = [] if state is None or state.rewind_to is None else [state.rewind_to]
            return min([*known, *positions], default=None)

    def _came_before(self, timeline: TableTimeline, position: str, applied_seq: int) -> bool:
        """Return whether an applied batch holds rows of this table from a position on, maybe under an unknown name."""
        for seq in self._history.since(earliest_unordered(position)):
            if seq <= applied_seq:
                spans = self._spans(timeline, self._groups_of(seq))
                if any(reaches(group.max_position, position) for span in spans for group in span.groups):
                    return True
        return False


def _begins(start: str, end: str | None) -> bool:
    """Return whether what starts at a position may have changes before an end, as far as the clock can order them."""
    return end is None or start < latest_unordered(end)


def _ends(end: str | None, start: str) -> bool:
    """Return whether what ends at a position may have changes after a start, as far as the clock can order them."""
    return end is None or latest_unordered(end) > start


def groups_by_name(manifest: Manifest, *, lower_case: bool = False) -> dict[TableName, list[RowGroup]]:
    """Return a batch's groups by table.

    :param lower_case: whether the server has tables by names in lower case; a TRUNCATE comes with the name as typed
        (recorded: Debezium 3.5 on MySQL 8.0).
    """
    result: dict[TableName, list[RowGroup]] = {}
    for group in manifest.groups:
        if group.database:  # errors stand under no table
            if lower_case:
                group = replace(group, database=group.database.lower(), table=group.table.lower())
            result.setdefault(TableName(group.database, group.table), []).append(group)
    return result


def snapshot_of(state: TableState | None) -> tuple[str, int]:
    """Return position and Kafka's time of the snapshot that a state's rows begin with, ("", 0) without one."""
    return ("", 0) if state is None else (state.snapshot_position, state.snapshot_sent)


def demand_same_changes(timeline: TableTimeline, files: TableState) -> None:
    """Refuse to start from an operator's files where a schema change from before them came since.

    :param files: state of the files.
    :raises DataError: ``rebuild.files_outdated``.
    """
    if timeline.mark(files.applied_position) != files.timeline_mark:
        raise outdated(timeline, files, "a schema change")


def outdated(timeline: TableTimeline, files: TableState, what: str) -> DataError:
    """Return why a table cannot start from an operator's files: something came after they were taken over.

    :param files: state of the files.
    :param what: what came, a noun.
    """
    return DataError(
        "rebuild.files_outdated",
        f"{what} from before the position of the files that the table was rebuilt from came only after that",
        where={"table": str(timeline.last_name), "position": files.applied_position},
        hint="rebuild the table again from newer files, or from a snapshot",
    )


def _since(position: str, spans: list[Span]) -> list[Span]:
    """Return what spans hold from a position on."""
    result = []
    for span in spans:
        groups = [group for group in span.groups if group.max_position >= position]
        if groups and (span.end is None or span.end > position):
            result.append(replace(span, groups=groups, start=max(span.start, position)))
    return result


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


def _once(spans: list[Span]) -> list[Span]:
    """Return spans without the groups that an earlier one has: a batch that replays rows names groups of others."""
    seen: set[tuple[str, int, int, str, str | None]] = set()
    result = []
    for span in spans:
        named = {(*group.origin, span.start, span.end): group for group in span.groups}
        groups = [group for name, group in named.items() if name not in seen]
        seen |= named.keys()
        if groups:
            result.append(replace(span, groups=groups))
    return result
