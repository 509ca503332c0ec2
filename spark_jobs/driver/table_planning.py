# SPDX-License-Identifier: Apache-2.0
"""Plan apply: put the batch's schema changes on the timeline and give each touched table its task."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from typing import Any

from airflow_provider_cdc.core.apply.stored_layout import LayoutChange, StoredLayouts
from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.config.option_kinds import OptionKind
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.documents import JobDocument, Rebuild, RebuildSource, TableLine, TableState
from airflow_provider_cdc.core.errors import DataError, Transient
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.clock_position import one_instant
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import ApplyStatus, TableStatus
from airflow_provider_cdc.core.timeline.asked_changes import ON_DROP_TABLE, AskedChanges
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.left_out_columns import without_left_out
from airflow_provider_cdc.core.timeline.new_changes import new_changes
from airflow_provider_cdc.core.timeline.stated import stated_changes
from airflow_provider_cdc.core.timeline.timeline import Block, SchemaChange, TableTimeline
from spark_jobs.driver.ad_hoc_snapshots import demand_ad_hoc_snapshots, first_row
from spark_jobs.driver.apply_plan import ApplyPlan, Unowned, is_waiting_name, unowned_id
from spark_jobs.driver.asked_changes import approval_required, asked_changes
from spark_jobs.driver.base_states import BaseStates, Start, groups_by_name, outdated, snapshot_of
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.parent_tables import parents, rows_changed, waits_above
from spark_jobs.driver.provided_files import ProvidedFiles
from spark_jobs.driver.quarantine import EXCEEDED, Quarantine
from spark_jobs.driver.read_rows import ReadRows
from spark_jobs.driver.refused_changes import demand_allowed, demand_created
from spark_jobs.driver.source_formats import demand_one_format
from spark_jobs.driver.unsettled import REPLACED, may_go_on, set_aside, waiting
from spark_jobs.lake.manifest import Manifest, RowGroup
from spark_jobs.lake.storage import Storage, table_place
from spark_jobs.tasks.parking import as_cdc_error
from spark_jobs.tasks.table_task import ApplyTask, Span

_NEWEST = "~"  # behind every position


class ApplyPlanner:
    """Decide which tables a batch touches; ``BaseStates`` finds from where each is resolved."""

    def __init__(
        self,
        job: JobDocument,
        manifest: Manifest,
        read: Sequence[SchemaChange],
        observed: Sequence[SchemaChange],
        history: History,
        unclear: Mapping[TableName, str],
        storage: Storage,
    ) -> None:
        """Put the schema changes onto the timelines.

        :param unclear: by table why what its rows say of their columns cannot be read.
        """
        self._job, self._storage = job, storage
        self._rules = job.tables
        self._rebuild = job.order if isinstance(job.order, Rebuild) else None
        known = [*stated_changes(self._rules), *(SchemaChange.from_document(item) for item in job.schema_changes)]
        server = Server.of(job.format_options)
        self._layouts = StoredLayouts(job.tables, job.policy, job.format, job.format_options)
        self._exact = open_format(job.format, job.format_options).order == "exact"
        self.fresh = new_changes(known, read, observed, exact=self._exact, server=server)
        self._was = without_left_out(build_timeline(known, server, AskedChanges(history.asked())), job.tables)
        lower_case, self._case_is_known = server.lower_case_names is True, server.lower_case_names is not None
        self._by_name = groups_by_name(manifest, lower_case=lower_case)
        self.asked = asked_changes(job, self._by_name, self.fresh, manifest.approvals, history, self._was)
        new = self.fresh or self.asked.news()
        self.now = self._was
        if new:
            self.now = without_left_out(build_timeline([*known, *self.fresh], server, self.asked), job.tables)
        self.states = {state.table_id: state for state in job.states}  # as known before the batch
        self._ids_at: dict[str, set[str]] = {}  # ids of the tables that are, or were, at a location
        for state in job.states:
            self._ids_at.setdefault(state.location, set()).add(state.table_id)
        self._history = history
        announced = job.schema_topic is not None
        self._starts = BaseStates(
            self._was, self.now, job.seq, self._by_name, history, announced, self._layouts, lower_case=lower_case
        )
        self._read = ReadRows(self._was, self.now, self._by_name, self.states, self._starts, history)
        self._tables = {i: timeline for i, timeline in self.now.tables.items() if self._read.shows(timeline)}
        self.quarantine = Quarantine(job, self._rules, self.now, [*known, *self.fresh], manifest, history)
        self._unclear = unclear

    def plan(self) -> ApplyPlan:
        """Return what is to be done.

        :raises DataError: ``apply.change_refused``.
        """
        demand_allowed(self._was, self.now, self._starts, self._policy_of, self.asked)
        plan = ApplyPlan()
        for table_id, timeline in self._tables.items():
            if self._is_selected(timeline.last_name) or self._waits_to_leave(timeline):
                with self._parking(plan, timeline):
                    self._table(plan, table_id, timeline)
            elif (state := self.states.get(table_id)) is not None and state.state != TableStatus.DROPPED:
                plan.settled.append(self._deselected(state, timeline))
        doubtful = self._doubtful()
        plan.settled += doubtful.values()
        for state in self.states.values():
            named = state.table_id in self._tables or is_waiting_name(state) or state.table_id in doubtful
            if not named and (state.state != TableStatus.DROPPED or state.version is not None):
                plan.settled.append(self._replaced(plan, state))
        self._unowned(plan, doubtful)
        missing = [(item.name, item.first) for item in plan.unowned if item.reason is None]
        demand_created(self._job, missing, self._nameless_state, self._policy_of)
        self._collect_left_locations(plan)
        return plan

    def _waits_to_leave(self, timeline: TableTimeline) -> bool:
        """Return whether a table waits for a decision about a name that the pipeline does not select."""
        return bool(timeline.asked) and any(name is not None and self._is_selected(name) for _, name in timeline.names)

    def _deselected(self, state: TableState, timeline: TableTimeline) -> TableState:
        """Settle a table that the pipeline no longer selects: its rows stay; selected again, it is resolved again."""
        reason = f"tables does not select {timeline.last_name}"
        return replace(state, state=TableStatus.DROPPED, reason=reason, code="", waiting_since=None, rewind_to=None)

    def _replaced(self, plan: ApplyPlan, state: TableState) -> TableState:
        """Settle a table that a late schema change showed to be another one: what lies at its name was never there."""
        name = TableName(state.database, state.table)
        of_that_name = [timeline for timeline in self._tables.values() if timeline.last_name == name]
        empties = all(self._empties(timeline) for timeline in of_that_name)
        if state.version is not None and empties and state.location not in self._live():
            plan.to_empty.append(state)
            state = replace(state, version=None)  # else a later batch looks again
        return replace(state, state=TableStatus.DROPPED, reason=REPLACED, code="")

    def _table(self, plan: ApplyPlan, table_id: str, timeline: TableTimeline) -> None:
        state = self.states.get(table_id)
        if state is not None and state.state == TableStatus.DROPPED and timeline.dropped_at is None:
            state = None  # schema changes that came since show that it was there all along
        spans = self._starts.spans(timeline)
        changed_at = self._starts.first_difference(table_id, state)
        if state is not None and state.state == TableStatus.DROPPED and not spans and changed_at is None:
            if state.table != timeline.last_name.table or state.database != timeline.last_name.database:
                self._drop(plan, timeline, state)  # a RENAME before the DROP came late
            return
        exceeded = self.quarantine.exceeded(timeline)
        aside = self._unclear.get(timeline.last_name) or exceeded or self._truncated_as(timeline)
        touched = bool(spans) or changed_at is not None or aside is not None or self._is_touched(timeline, state)
        behind = state is not None and state.applied_seq < self._job.seq and may_go_on(self._job, state)
        made_otherwise = self._made_otherwise(timeline, state)
        if not touched and not behind and made_otherwise is None:
            plan.settled += self._unchanged(timeline, state)
            return
        if timeline.asked:
            error = approval_required(timeline, self.asked)
            plan.settled.append(self._parked(timeline, state, str(error), error.code))
            return
        if timeline.dropped_at is not None:
            self._drop(plan, timeline, state)
            return
        if self.now.owner(timeline.last_name, _NEWEST) != table_id:
            reason = self.now.doubtful.get(timeline.last_name)
            nameless = self._nameless(timeline, state) if reason is None else self._parked(timeline, state, reason)
            plan.settled.append(nameless)
            return
        begins, provided = self._rebuilt_from(timeline, state)
        if made_otherwise is not None and not self._is_made_again(made_otherwise, rebuilds=begins is not None):
            raise made_otherwise.error(str(timeline.last_name))
        unknown = self._unknown(timeline, state, spans, changed_at, begins, files=self._rebuilds_from_files(timeline))
        if unknown is not None and self._rebuilds_from_files(timeline):
            raise DataError(
                "rebuild.files_behind",
                f"the table's rows became unknown after the files: {unknown.reason}",
                where={"table": str(timeline.last_name), "position": unknown.position},
                hint="rebuild the table from newer files, with a later --since",
            )
        if unknown is not None:
            plan.settled.append(self._parked(timeline, state, f"needs rebuild: {unknown}"))
            return
        if state is not None and self._lacks_rows_above(timeline, state, spans, changed_at):
            plan.settled.append(self._parked(timeline, state, state.reason, state.code))
            return
        if aside is not None:
            plan.settled.append(self._parked(timeline, state, str(aside), getattr(aside, "code", "")))
            return
        plan.tasks.append(self._task(timeline, state, spans, changed_at, begins, provided))

    def _is_touched(self, timeline: TableTimeline, state: TableState | None) -> bool:
        """Return whether the batch concerns a table by something else than its own rows and schema changes."""
        return (
            state is None
            or self._is_new(timeline, state)
            or (self._checks_references(timeline) and self._starts.removes(timeline))
            or self.quarantine.settles(timeline)
            or self._rebuilds(timeline)
            or state.code == EXCEEDED
            or (timeline.dropped_at is None and bool(self._starts.applied_repeats(timeline, state)))
            or self._read.concern(timeline)
        )

    def _unchanged(self, timeline: TableTimeline, state: TableState | None) -> list[TableState]:
        """Return the state of a table that nothing concerns, where it has another text or other options now."""
        if state is None or state.state != TableStatus.OK:
            return []
        made_with = state.made_with and self._layouts.of(timeline)
        after = replace(state, notes=timeline.notes, made_with=made_with)
        return [] if after == state else [after]

    def _made_otherwise(self, timeline: TableTimeline, state: TableState | None) -> LayoutChange | None:
        """Return the option that a table's rows were made with and that is another one now, None without."""
        if state is None or state.version is None or timeline.dropped_at is not None:
            return None
        return self._layouts.change(timeline, state.made_with)

    @staticmethod
    def _is_made_again(change: LayoutChange, *, rebuilds: bool) -> bool:
        """Return whether a table is made again from the change log for an option that changed."""
        return change.kind == OptionKind.LAYOUT or (rebuilds and change.kind != OptionKind.LOG)

    def _drop(self, plan: ApplyPlan, timeline: TableTimeline, state: TableState | None) -> None:
        """Settle a dropped table, and have its location emptied where the policy says so."""
        dropped = self._dropped(timeline, state)
        if self._empties(timeline) and dropped.version is not None:
            plan.to_empty.append(dropped)
            dropped = replace(dropped, version=None)  # emptied once: what lies there later is not this table's
        plan.settled.append(dropped)

    def _empties(self, timeline: TableTimeline) -> bool:
        """Return whether a table's content goes from its location when the table does, or was never there."""
        value = self._rules.policy(timeline.last_name, self._job.policy).on_drop_table
        if value == "ask":  # about a DROP; without one nobody is asked
            dropped_at = timeline.dropped_at
            return dropped_at is None or self.asked.is_approved(dropped_at, timeline.last_name, ON_DROP_TABLE)
        return value == "apply"

    def _checks_references(self, timeline: TableTimeline) -> bool:
        """Return whether a table has foreign keys that change rows, and is to be parked where they did."""
        policy = self._rules.policy(timeline.last_name, self._job.policy)
        return bool(timeline.references) and policy.on_cascade == "park"

    def referring(self) -> list[str]:
        """Return the ids of the tables that are parked where a foreign key changed rows."""
        return [i for i, timeline in self._tables.items() if self._checks_references(timeline)]

    def _unknown(
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
        by_rows = self._read.blocks(timeline, is_ok=state is not None and state.state == TableStatus.OK)
        if not timeline.blocked and not by_rows:
            return None
        timeline = replace(timeline, blocked=[*timeline.blocked, *by_rows])
        policy = self._rules.policy(timeline.last_name, self._job.policy)
        was = self._was.tables.get(timeline.table_id)
        # a table that is well although the change was known before had its TRUNCATE in an earlier batch
        settled = was.blocked if was is not None and state is not None and state.state == TableStatus.OK else []
        settled = [] if files else settled
        first = timeline.unknown_since(settled=settled, truncates=False)
        if first is None:
            return None
        clears = self._starts.clears(timeline, first.position, spans)
        truncates = policy.on_truncate != "ignore"
        if begins is not None and (files or begins > snapshot_of(state)):
            # an ad hoc snapshot does not state the columns
            columns = next((block for block in timeline.blocked if block.columns and block not in settled), None)
            return columns or timeline.unknown_since(clears, settled=settled, truncates=truncates, snapshot=begins[0])
        snapshot, _ = self._starts.start(timeline, state, spans, changed_at).snapshot
        return timeline.unknown_since(clears, settled=settled, truncates=truncates, snapshot=snapshot)

    def _lacks_rows_above(
        self, timeline: TableTimeline, state: TableState, spans: list[Span], changed_at: str | None
    ) -> bool:
        """Return whether a table stays parked because of a table above it, whose rows a foreign key changed.

        It goes on when it is emptied itself or begins with a new snapshot, or when that table is well again without
        having been emptied.
        """
        if not waits_above(state) or not self._checks_references(timeline):
            return False
        since = state.applied_position
        if self._starts.start(timeline, state, spans, changed_at).snapshot[0] > since:
            return False
        if any(position > since for position in (*timeline.clears, *self._starts.clears(timeline, since, spans))):
            return False
        above = [table for reference in timeline.references for table in parents(self.now, reference)]
        return any(
            rows_changed(self.states.get(table.table_id))
            or table.dropped_at is not None
            or any(p > since for p in (*table.clears, *self._starts.clears(table, since, self._starts.spans(table))))
            for table in above
            if table.table_id != timeline.table_id
        )

    @contextmanager
    def _parking(self, plan: ApplyPlan, timeline: TableTimeline) -> Iterator[None]:
        """Park a table whose planning fails in the block; a fault of the store is the whole batch's."""
        try:
            yield
        except Exception as error:
            if isinstance(error, Transient):
                raise
            cdc_error = as_cdc_error(error, {"table": str(timeline.last_name)})
            if self._rebuilds(timeline):
                line = TableLine(*timeline.last_name, ApplyStatus.PARKED, reason=str(cdc_error))
                plan.not_rebuilt.append(line)
                return
            plan.settled.append(
                self._parked(timeline, self.states.get(timeline.table_id), str(cdc_error), cdc_error.code)
            )

    def _task(
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
        name = timeline.last_name
        known, rebuilds = self.states.get(timeline.table_id), begins is not None
        applied_seq = 0 if state is None else state.applied_seq
        if not rebuilds and state is not None and self._made_otherwise(timeline, state) is not None:
            begins, provided = snapshot_of(state), state.provided  # all of it is made again
        if begins is not None:
            state = changed_at = None
        start = self._starts.start(timeline, state, spans, changed_at, begins, provided)
        late_from: str | None = None
        context: list[Span] = []
        if not start.begins_with_files:  # every change from theirs on is taken again
            late_from, context = self._starts.context(timeline, start.base, start.spans)
        self._demand_one_way_of_reading(timeline, start, context)
        location = table_place(name.database, name.table)
        return ApplyTask(
            timeline.table_id,
            name.database,
            name.table,
            location,
            timeline.document(),
            start.base,
            self._expected(location),
            start.spans,
            context,
            late_from,
            start.back_to,
            self._starts.parents(timeline, start) if self._checks_references(timeline) else [],
            applied_seq,
            *start.snapshot,
            self.quarantine.settled,
            self._job.seq if rebuilds else 0 if known is None else known.rebuilt_seq,
            provided=start.provided,
            made_with=self._layouts.of(timeline),
            left_out=self.quarantine.left_out(timeline.table_id, start.base),
            snapshot_again=start.again,
        )

    def _demand_one_way_of_reading(self, timeline: TableTimeline, start: Start, context: list[Span]) -> None:
        """Refuse changes and operator's files that were read under another format, or other options, than those of now.

        :raises DataError: they would have to be read again.
        """
        demand_one_format(self._job, self._history.formats(), [*start.spans, *context], str(timeline.last_name))
        if start.begins_with_files and start.base is not None:
            change = self._layouts.change(timeline, start.base.made_with)
            if change is not None:
                raise outdated(timeline, start.base, f"another value of {change.option}, which concerns rows")

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
        timeline, state = self.now.tables[task.table_id], self.states.get(task.table_id)
        back_to = min(rewind_to, task.rewind_to or rewind_to)
        return self._task(timeline, state, self._starts.spans(timeline), back_to)

    def go_on(self, task: ApplyTask, held: TableState) -> ApplyTask:
        """Return a task again for a table that holds more than was known of it.

        :param held: the state that the table's own commit states.
        """
        timeline = self.now.tables[task.table_id]
        self.states[task.table_id] = held
        self._ids_at.setdefault(held.location, set()).add(task.table_id)
        changed_at = self._starts.first_difference(task.table_id, held)
        return self._task(timeline, held, self._starts.spans(timeline), changed_at)

    def _rebuilds(self, timeline: TableTimeline) -> bool:
        """Return whether the batch resolves a table from the change log alone."""
        asked = self._rebuild
        return asked is not None and timeline.dropped_at is None and str(timeline.last_name) in asked.tables

    def _rebuilds_from_files(self, timeline: TableTimeline) -> bool:
        asked = self._rebuild
        return asked is not None and asked.source == RebuildSource.FILES and self._rebuilds(timeline)

    def _rebuilt_from(
        self, timeline: TableTimeline, state: TableState | None
    ) -> tuple[tuple[str, int] | None, dict[str, Any] | None]:
        """Return a rebuilt table's beginning: its snapshot, and the state (document) of an operator's files.

        Both are None of a table that is not rebuilt.

        :raises DataError: there is nothing to rebuild it from.
        """
        asked = self._rebuild
        if asked is None or not self._rebuilds(timeline):
            return None, None
        if asked.source == RebuildSource.SNAPSHOT:
            demand_ad_hoc_snapshots(self._job)
            return (first_row(timeline, state, self._starts, self._history, asked.since), 0), None
        if asked.source == RebuildSource.FILES:
            assert asked.since is not None, "files come with their time"
            files = ProvidedFiles(self._job, self._storage, timeline, asked.path, asked.since)
            provided = files.taken_over(self._starts, self._history, state)
            provided.made_with = self._layouts.of(timeline)
            return snapshot_of(provided), provided.document()
        return snapshot_of(state), None if state is None else state.provided

    def _is_new(self, timeline: TableTimeline, state: TableState | None) -> bool:
        was = self._was.tables.get(timeline.table_id)
        return state is None or was is None or was.events() != timeline.events()

    def _expected(self, location: str) -> int | None:
        """Return the newest version that a table of ours made at a location; a rebuild may have begun them again."""
        known = (self.states[table_id] for table_id in self._ids_at.get(location, ()))
        here = [state for state in known if state.location == location and state.version is not None]
        since = max((state.rebuilt_seq for state in here), default=0)
        return max(
            (state.version for state in here if state.applied_seq >= since and state.version is not None), default=None
        )

    def _dropped(self, timeline: TableTimeline, state: TableState | None) -> TableState:
        name = timeline.last_name
        location = table_place(name.database, name.table)
        state = state or TableState(timeline.table_id, name.database, name.table, location)
        return replace(
            state,
            database=name.database,
            table=name.table,
            location=location,
            version=state.version if state.location == location else None,  # the location that it left is emptied
            state=TableStatus.DROPPED,
            reason="DROP TABLE",
            code="",
            applied_seq=self._job.seq,
        )

    def _parked(self, timeline: TableTimeline, state: TableState | None, reason: str, code: str = "") -> TableState:
        return set_aside(self._job, self._not_applied(timeline, state), reason, code)

    def _nameless(self, timeline: TableTimeline, state: TableState | None) -> TableState:
        """Let a table wait whose name another table has taken: its rows must not meet the other's location."""
        reason = f"another table took its name {timeline.last_name}: the RENAME or DROP before that is still missing"
        return waiting(self._job, self._not_applied(timeline, state), reason)

    def _not_applied(self, timeline: TableTimeline, state: TableState | None) -> TableState:
        """Return the state of a table that takes no part in the batch, under its present name."""
        name = timeline.last_name
        location = table_place(name.database, name.table)
        state = state or TableState(timeline.table_id, name.database, name.table, location)
        back_to = self._starts.oldest_difference(timeline.table_id, state)
        return replace(state, database=name.database, table=name.table, rewind_to=back_to)

    def _doubtful(self) -> dict[str, TableState]:
        """Return states for names that a table of the source may have and none of the pipeline's is known to have."""
        known = {timeline.name for timeline in self._tables.values()}
        states = {}
        for name, reason in self.now.doubtful.items():
            if name not in known and self._is_selected(name):
                table_id = unowned_id(name)
                state = self.states.get(table_id) or TableState(table_id, name.database, name.table, "")
                states[table_id] = set_aside(self._job, state, reason)
        return states

    def _collect_left_locations(self, plan: ApplyPlan) -> None:
        """Add the locations that tables moved away from, and keep only those whose name no live table has."""
        done = [(task.table_id, task.location) for task in plan.tasks]
        done += [(state.table_id, state.location) for state in plan.settled if state.state == TableStatus.DROPPED]
        for table_id, location in done:
            old = self.states.get(table_id)
            if old is not None and old.version is not None and old.location != location:
                plan.to_empty.append(old)
        live = self._live()
        plan.to_empty = [state for state in plan.to_empty if state.location not in live]
        plan.never_reached = [state for state in self._never_reached() if state.location not in live]

    def _never_reached(self) -> Iterator[TableState]:
        """Yield the states of parked and waiting tables, each at the location of its name, where no table is.

        Another table may have moved away from there: its rows were left for the table that had the name by then.
        """
        occupied = {state.location for state in self.states.values() if state.version is not None}
        for state in self.states.values():
            if state.state in (TableStatus.PARKED, TableStatus.WAITING) and state.location:
                location = table_place(state.database, state.table)
                if location not in occupied:
                    yield replace(state, location=location)

    def _live(self) -> set[str]:
        """Return the locations whose name a table has now."""
        return {
            table_place(name.database, name.table)
            for timeline in self._tables.values()
            if (name := timeline.name) is not None and self._is_selected(name)
        }

    def _unowned(self, plan: ApplyPlan, doubtful: Collection[str]) -> None:
        """Find the names whose rows or unreadable records have no table, and settle those that found theirs."""
        waiting = {TableName(s.database, s.table): s for s in self.states.values() if is_waiting_name(s)}
        for name in dict.fromkeys([*self._by_name, *waiting, *self.quarantine.unowned()]):
            if unowned_id(name) in doubtful:
                continue
            state = waiting.get(name)
            groups = self._by_name.get(name, [])
            if state is not None:
                groups = [*self._starts.earlier_groups(name, state.rewind_to or ""), *groups]
            selected = self._is_selected(name)
            late = self._without_table(name, groups) if selected else []
            reason = self._unreadable(name) if selected else None
            if late or reason is not None:
                first = min((group.min_position for group in late), default=_NEWEST)
                plan.unowned.append(Unowned(name, first, self._alike(name), reason))
            elif state is not None and state.state != TableStatus.DROPPED:
                plan.settled.append(
                    replace(
                        state, state=TableStatus.DROPPED, reason=REPLACED, code="", waiting_since=None, rewind_to=None
                    )
                )

    def _nameless_state(self, name: TableName) -> TableState:
        """Return the state before the batch of a name whose rows have no table."""
        table_id = unowned_id(name)
        return self.states.get(table_id) or TableState(table_id, *name, "", applied_seq=self._job.seq - 1)

    def _unreadable(self, name: TableName) -> str | None:
        """Return why a name that no table has ever had is parked, None where it is not."""
        unclear = self._unclear.get(name) if not any(owner for _, owner in self.now.spans(name)) else None
        error = self.quarantine.exceeded_by_name(name)
        return unclear or (None if error is None else str(error))

    def _without_table(self, name: TableName, groups: list[RowGroup]) -> list[RowGroup]:
        """Return the groups that begin or end where no table has the name.

        By a tool's clock, rows that are sent again after a DROP seem to come after it.
        """
        return [
            group
            for group in groups
            if any(self._is_free(name, p, group.max_source_time) for p in (group.min_position, group.max_position))
        ]

    def _is_free(self, name: TableName, position: str, source_time: int | None) -> bool:
        return not self._owned(name, position) and not self.now.sent_again(name, position, source_time)

    def _truncated_as(self, timeline: TableTimeline) -> str | None:
        """Return why a table is parked that a TRUNCATE may mean which names it in another case, None without one."""
        if self._case_is_known or timeline.dropped_at is not None:
            return None
        for name, groups in self._without_owner.items():
            alike = str(name).lower() == str(timeline.last_name) != str(name)
            if alike and any(group.clears for group in groups):
                reason = f"a TRUNCATE names {name}, which is this table if the server has lower_case_table_names=1"
                return f"{reason}: state source.options.lower_case_table_names"
        return None

    @cached_property
    def _without_owner(self) -> dict[TableName, list[RowGroup]]:
        """The groups of this batch and earlier ones under names that no table has."""
        waiting = {TableName(s.database, s.table): s for s in self.states.values() if is_waiting_name(s)}
        return {
            name: [
                *(self._starts.earlier_groups(name, waiting[name].rewind_to or "") if name in waiting else []),
                *self._by_name.get(name, []),
            ]
            for name in dict.fromkeys([*self._by_name, *waiting])
            if name not in self.now.names
        }

    def _alike(self, name: TableName) -> str:
        """Return the name of a known table that differs only in case, empty without one."""
        return next((str(other) for other in self.now.names if str(other).lower() == str(name).lower()), "")

    def _owned(self, name: TableName, position: str) -> bool:
        """Return whether a table has a name at a position, or in the instant of the tool's clock that it is in.

        Where it was not known which table had it, and that table is gone since, no row has to wait.
        """
        if self.now.owner(name, position) is not None:
            return True
        doubts = self.now.doubts.get(name, ())
        if any(start <= position < end or one_instant(start, position) for start, end in doubts):
            return True
        return any(one_instant(start, position) for start, _ in self.now.spans(name))

    def _policy_of(self, name: TableName) -> RunPolicy | None:
        return self._rules.policy(name, self._job.policy) if self._is_selected(name) else None

    def _is_selected(self, name: TableName) -> bool:
        return self._rules.selects(name)
