"""Between land and apply: the batch's schema changes go on the timeline, and each touched table gets its task."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_provider_cdc.core.apply.mapping import barriers
from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.ddl.fold import build_timeline
from airflow_provider_cdc.core.ddl.news import new_changes
from airflow_provider_cdc.core.ddl.timeline import SchemaChange, TableTimeline
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableName
from spark_jobs.change_log import Group, Manifest
from spark_jobs.history import History
from spark_jobs.storage import table_location
from spark_jobs.tasks.table_task import ApplyTask, Span


@dataclass(slots=True)
class Work:
    """What the batch has to do besides reading.

    :param tasks: one per table to resolve.
    :param vacated: states whose location no table has any more, because it moved or is to be dropped with its rows:
        emptied once the table itself is done.
    :param settled: states that change without a task (dropped, blocked, waiting).
    :param unowned: names with rows but without a known CREATE TABLE.
    """

    tasks: list[ApplyTask] = field(default_factory=list)
    vacated: list[TableState] = field(default_factory=list)
    settled: list[TableState] = field(default_factory=list)
    unowned: list[dict[str, Any]] = field(default_factory=list)


class Between:
    """Decides, for one batch, which tables are touched and from where each is resolved."""

    def __init__(
        self,
        job: JobDocument,
        manifest: Manifest,
        read: Sequence[SchemaChange],
        observed: Sequence[SchemaChange],
        history: History,
    ) -> None:
        self._job, self._manifest, self._history = job, manifest, history
        self._rules = TableRules.from_document(job.tables)
        known = [*_stated(self._rules), *(SchemaChange.from_document(item) for item in job.schema_changes)]
        exact = open_format(job.format, job.format_options).order == "exact"
        self.fresh = new_changes(known, read, observed, exact=exact)
        self._was = build_timeline(known)
        self.now = build_timeline([*known, *self.fresh]) if self.fresh else self._was
        self._states = {state.table_id: state for state in job.states}
        self._by_name: dict[TableName, list[Group]] = {}
        for group in manifest.groups:
            if group.database:  # errors stand under no table
                self._by_name.setdefault(TableName(group.database, group.table), []).append(group)

    def work(self) -> Work:
        """Return what is to be done."""
        work = Work()
        for table_id, timeline in self.now.tables.items():
            if self._wanted(timeline.last_name):
                self._table(work, table_id, timeline)
        for state in self._states.values():
            if state.table_id not in self.now.tables and state.state != "dropped":
                # a late schema change showed that this was another table's content all along
                work.settled.append(
                    replace(state, state="dropped", reason="replaced by what a late schema change told")
                )
        self._unowned(work)
        self._vacate(work)
        return work

    def _table(self, work: Work, table_id: str, timeline: TableTimeline) -> None:
        state = self._states.get(table_id)
        spans = self._spans(timeline, self._by_name)
        changed_at = self._first_difference(table_id, state)
        if state is not None and state.state == "dropped" and not spans and changed_at is None:
            return
        touched = bool(spans) or state is None or changed_at is not None or self._is_new(timeline, state)
        behind = state is not None and state.state in ("waiting", "parked") and state.applied_seq < self._job.seq
        if not touched and not behind:
            return
        if timeline.dropped_at is not None:
            work.settled.append(self._dropped(timeline, state))
            policy = self._rules.policy(timeline.last_name, RunPolicy(**self._job.policy))
            if policy.on_drop_table == "apply" and state is not None and state.version is not None:
                work.vacated.append(state)
            return
        blocked = [reason for position, reason in timeline.blocked]
        if blocked:
            work.settled.append(self._parked(timeline, state, "needs rebuild: " + blocked[0]))
            return
        work.tasks.append(self._task(timeline, state, spans, changed_at))

    def _task(
        self, timeline: TableTimeline, state: TableState | None, spans: list[Span], changed_at: str | None
    ) -> ApplyTask:
        name = timeline.last_name
        base, back_to, spans = self._start(timeline, state, spans, changed_at)
        late_from, context = self._context(timeline, base, spans)
        location = table_location(self._job.sink_root, name.database, name.table)
        return ApplyTask(
            timeline.table_id,
            name.database,
            name.table,
            location,
            timeline.document(),
            base,
            self._expected(location),
            spans,
            context,
            late_from,
            back_to,
        )

    def again(self, task: ApplyTask, rewind_to: str) -> ApplyTask:
        """Return a task anew, from a state that holds nothing from a position on."""
        timeline, state = self.now.tables[task.table_id], self._states.get(task.table_id)
        back_to = min(rewind_to, task.rewind_to or rewind_to)
        return self._task(timeline, state, self._spans(timeline, self._by_name), back_to)

    def _start(
        self, timeline: TableTimeline, state: TableState | None, spans: list[Span], changed_at: str | None
    ) -> tuple[TableState | None, str | None, list[Span]]:
        """Return the state to start from, the position it had to go back behind if any, and all spans to resolve."""
        base = state if state is not None and state.version is not None else None
        every = [*self._earlier_spans(timeline, base), *spans]
        back_to: str | None = None
        while base is not None:
            late = [*self._late_clears(every, base), *self._late_barriers(timeline, every, base)]
            if changed_at is not None and back_to is None:
                late.append(changed_at)
            if not late:
                break
            # the older state may lack rows that have to pass barriers of their own: look again from there
            back_to = min([*late, back_to] if back_to is not None else late)
            base = self._rewind(timeline, back_to)
            every = [*self._earlier_spans(timeline, base), *spans]
        return base, back_to, every

    def _rewind(self, timeline: TableTimeline, back_to: str) -> TableState | None:
        """Return the newest state from before a position such that every batch after it can be read again."""
        first = self._job.seq
        for seq in self._history.since(back_to):
            spans = self._spans(timeline, _by_name(self._history.manifest(seq)))
            if any(group.max_position >= back_to for span in spans for group in span.groups):
                first = seq
                break
        return self._history.state_before(timeline, back_to, first)

    def _earlier_spans(self, timeline: TableTimeline, base: TableState | None) -> list[Span]:
        """Return what batches after the base's hold of this table: it was parked, waiting, unknown or is rewound."""
        if base is not None:
            seqs: Iterable[int] = (seq for seq in self._history.earlier if seq > base.applied_seq)
        else:
            seqs = self._history.since(timeline.epochs[0].position)
        return [span for seq in seqs for span in self._spans(timeline, _by_name(self._history.manifest(seq)))]

    def _context(
        self, timeline: TableTimeline, base: TableState | None, spans: list[Span]
    ) -> tuple[str | None, list[Span]]:
        if base is None or not base.applied_position:
            return None, []
        oldest = min((group.min_position for span in spans for group in span.groups if group.rows), default=None)
        if oldest is None or oldest > base.applied_position:
            return None, []
        context = []
        for seq in self._history.since(oldest):
            if seq <= base.applied_seq:
                for span in self._spans(timeline, _by_name(self._history.manifest(seq))):
                    groups = [group for group in span.groups if group.max_position >= oldest]
                    if groups:
                        context.append(replace(span, groups=groups))
        return oldest, context

    def _spans(self, timeline: TableTimeline, by_name: dict[TableName, list[Group]]) -> list[Span]:
        spans = []
        for name in dict.fromkeys(name for _, name in timeline.names if name is not None):
            groups = by_name.get(name)
            if not groups:
                continue
            owners = self.now.spans(name)
            for place, (start, owner) in enumerate(owners):
                end = owners[place + 1][0] if place + 1 < len(owners) else None
                if owner != timeline.table_id:
                    continue
                inside = [g for g in groups if g.max_position >= start and (end is None or g.min_position < end)]
                if inside:
                    spans.append(Span(inside, start, end))
        return spans

    def _late_clears(self, spans: list[Span], base: TableState) -> list[str]:
        clears = [p for span in spans for group in span.groups for p in group.clears]
        return [position for position in clears if position <= base.applied_position]

    def _late_barriers(self, timeline: TableTimeline, spans: list[Span], base: TableState) -> list[str]:
        """Return applied barriers that rows arriving now should have met: their key was another one then."""
        oldest = min((group.min_position for span in spans for group in span.groups), default=None)
        if oldest is None or oldest > base.applied_position:
            return []
        places = [timeline.epochs[place].position for place in barriers(timeline.epochs)]
        return [position for position in places if oldest < position <= base.applied_position]

    def _first_difference(self, table_id: str, state: TableState | None) -> str | None:
        """Return the oldest position at which a schema change arrived late for rows that came before it."""
        if state is None or state.version is None:
            return None
        was, now = self._was.tables.get(table_id), self.now.tables[table_id]
        if was is None:
            return now.epochs[0].position
        known = [] if state.rewind_to is None else [state.rewind_to]
        events = [set(timeline.events()) for timeline in (was, now)]
        for position in sorted(position for position, _ in events[0] ^ events[1]):
            if position <= state.applied_position or self._came_before(now, position, state.applied_seq):
                known.append(position)
                break
        return min(known, default=None)

    def _came_before(self, timeline: TableTimeline, position: str, applied_seq: int) -> bool:
        """Return whether an applied batch holds rows of this table from a position on, maybe under an unknown name."""
        for seq in self._history.since(position):
            if seq <= applied_seq:
                spans = self._spans(timeline, _by_name(self._history.manifest(seq)))
                if any(group.max_position >= position for span in spans for group in span.groups):
                    return True
        return False

    def _is_new(self, timeline: TableTimeline, state: TableState | None) -> bool:
        was = self._was.tables.get(timeline.table_id)
        return state is None or was is None or was.events() != timeline.events()

    def _expected(self, location: str) -> int | None:
        return max(
            (s.version for s in self._states.values() if s.location == location and s.version is not None), default=None
        )

    def _dropped(self, timeline: TableTimeline, state: TableState | None) -> TableState:
        name = timeline.last_name
        state = state or TableState(
            timeline.table_id, name.database, name.table, table_location(self._job.sink_root, name.database, name.table)
        )
        location = table_location(self._job.sink_root, name.database, name.table)
        return replace(
            state,
            database=name.database,
            table=name.table,
            location=location,
            version=state.version if state.location == location else None,  # what it left elsewhere is vacated
            state="dropped",
            reason="DROP TABLE",
            applied_seq=self._job.seq,
        )

    def _parked(self, timeline: TableTimeline, state: TableState | None, reason: str) -> TableState:
        name = timeline.last_name
        location = table_location(self._job.sink_root, name.database, name.table)
        state = state or TableState(timeline.table_id, name.database, name.table, location)
        back_to = self._first_difference(timeline.table_id, state)
        return replace(
            state, database=name.database, table=name.table, state="parked", reason=reason, rewind_to=back_to
        )

    def _vacate(self, work: Work) -> None:
        """Find the places that tables moved away from and that no other table takes."""
        targets = {task.location for task in work.tasks}
        done = [(task.table_id, task.location) for task in work.tasks]
        done += [(state.table_id, state.location) for state in work.settled if state.state == "dropped"]
        for table_id, location in done:
            old = self._states.get(table_id)
            if old is None or old.version is None or old.location == location:
                continue
            if self.now.owner(TableName(old.database, old.table), "~") is None:
                work.vacated.append(old)
        work.vacated = [state for state in work.vacated if state.location not in targets]

    def _unowned(self, work: Work) -> None:
        for name, groups in self._by_name.items():
            if not self._wanted(name):
                continue
            first = min(group.min_position for group in groups)
            if name not in self.now.names or self.now.owner(name, first) is None:
                late = [
                    g
                    for g in groups
                    if self.now.owner(name, g.max_position) is None or self.now.owner(name, g.min_position) is None
                ]
                rows = sum(group.rows for group in late)
                work.unowned.append({"database": name.database, "table": name.table, "rows": rows, "position": first})

    def _wanted(self, name: TableName) -> bool:
        return self._rules.selects(name)


def _stated(rules: TableRules) -> list[SchemaChange]:
    """Return the CREATE TABLE statements that the pipeline states itself; they stand before everything else."""
    return [
        SchemaChange("", number, full.split(".", 1)[0], rule.create)
        for number, (full, rule) in enumerate(rules.tables.items())
        if rule.create
    ]


def _by_name(manifest: Manifest) -> dict[TableName, list[Group]]:
    result: dict[TableName, list[Group]] = {}
    for group in manifest.groups:
        if group.database:
            result.setdefault(TableName(group.database, group.table), []).append(group)
    return result
