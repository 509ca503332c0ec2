# SPDX-License-Identifier: Apache-2.0
"""Plan apply: decide which tables a batch touches, and give each its task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_cdc.core.apply.stored_layout import LayoutChange
from airflow_provider_cdc.core.config.option_kinds import OptionKind
from airflow_provider_cdc.core.documents import TableLine, TableState
from airflow_provider_cdc.core.errors import CdcError, DataError, Transient
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import ApplyStatus, TableStatus
from airflow_provider_cdc.core.timeline.asked_changes import AskedChanges
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline, Timeline
from spark_jobs.driver.apply_plan import ApplyPlan, is_waiting_name
from spark_jobs.driver.asked_changes import approval_required
from spark_jobs.driver.changed_rules import ChangedRules
from spark_jobs.driver.locations import Locations
from spark_jobs.driver.planning import NEWEST, Planning
from spark_jobs.driver.quarantine import EXCEEDED, Quarantine
from spark_jobs.driver.rebuilds import Rebuilds
from spark_jobs.driver.refused_changes import demand_allowed, demand_created
from spark_jobs.driver.task_maker import TaskMaker
from spark_jobs.driver.unknown_rows import UnknownRows
from spark_jobs.driver.unowned_names import UnownedNames
from spark_jobs.driver.unsettled import REPLACED, may_go_on
from spark_jobs.tasks.parking import as_cdc_error
from spark_jobs.tasks.table_shape import demand_fit
from spark_jobs.tasks.table_task import Span


@dataclass(slots=True)
class _Case:
    """Hold what is known of one table before it is decided about.

    :param spans: its changes in this batch.
    :param changed_at: first position at which its schema changes differ from those that its rows went through.
    :param aside: why its records park it, None without.
    :param made_otherwise: the option that its rows were made with and that is another one now, None without.
    :ivar begins: of a table that is rebuilt the snapshot that its content begins with; ``provided`` the state
        (document) of an operator's files.
    """

    timeline: TableTimeline
    state: TableState | None
    spans: list[Span]
    changed_at: str | None
    aside: str | CdcError | None
    made_otherwise: LayoutChange | None
    begins: tuple[str, int] | None = None
    provided: dict[str, Any] | None = None


class ApplyPlanner:
    """Decide which tables a batch touches; ``BaseStates`` finds from where each is resolved.

    :ivar now: the timelines with the batch's schema changes; ``fresh`` these changes.
    :ivar asked: schema changes that were asked about; ``tasks`` makes the tables' tasks.
    :ivar states: the tables' states before the batch, by table id.
    """

    def __init__(self, planning: Planning) -> None:
        self._p = planning
        self.now: Timeline = self._p.now
        self.fresh: list[SchemaChange] = self._p.fresh
        self.asked: AskedChanges = self._p.asked
        self.states: dict[str, TableState] = self._p.states
        self.quarantine: Quarantine = self._p.quarantine
        self._locations, self._rebuilds = Locations(self._p), Rebuilds(self._p)
        self._unknown, self._unowned = UnknownRows(self._p), UnownedNames(self._p)
        self.tasks = TaskMaker(self._p, self._locations)
        self._changed = ChangedRules(self._p, self.tasks.goes_on_from_rows)

    def referring(self) -> list[str]:
        """Return the ids of the tables that are parked where a foreign key changed rows."""
        return self._p.referring()

    def plan(self) -> ApplyPlan:
        """Return what is to be done.

        :raises DataError: ``apply.change_refused``.
        """
        demand_allowed(self._p.was, self._p.now, self._p.groups, self._p.policy_of, self._p.asked)
        plan = ApplyPlan()
        for table_id, timeline in self._p.tables.items():
            if self._p.is_selected(timeline.last_name) or self._waits_to_leave(timeline):
                with self._parking(plan, timeline):
                    self._table(plan, timeline)
            elif (state := self._p.states.get(table_id)) is not None and state.state != TableStatus.DROPPED:
                plan.settled.append(self._deselected(state, timeline))
        doubtful = self._unowned.doubtful()
        plan.settled += doubtful.values()
        for state in self._p.states.values():
            named = state.table_id in self._p.tables or is_waiting_name(state) or state.table_id in doubtful
            if not named and (state.state != TableStatus.DROPPED or state.version is not None):
                plan.settled.append(self._replaced(plan, state))
        self._unowned.settle(plan, doubtful)
        missing = [(item.name, item.first) for item in plan.unowned if item.reason is None]
        demand_created(self._p.job, missing, self._unowned.state_before, self._p.policy_of)
        self._locations.collect_left(plan)
        self._changed.withdraw()
        return plan

    def _waits_to_leave(self, timeline: TableTimeline) -> bool:
        """Return whether a table waits for a decision about a name that the pipeline does not select."""
        return bool(timeline.asked) and any(
            name is not None and self._p.is_selected(name) for _, name in timeline.names
        )

    def _deselected(self, state: TableState, timeline: TableTimeline) -> TableState:
        """Settle a table that the pipeline no longer selects: its rows stay; selected again, it is resolved again."""
        reason = f"tables does not select {timeline.last_name}"
        return replace(state, state=TableStatus.DROPPED, reason=reason, code="", waiting_since=None, rewind_to=None)

    def _replaced(self, plan: ApplyPlan, state: TableState) -> TableState:
        """Settle a table that a late schema change showed to be another one: what lies at its name was never there."""
        name = TableName(state.database, state.table)
        of_that_name = [timeline for timeline in self._p.tables.values() if timeline.last_name == name]
        empties = all(self._p.empties(timeline) for timeline in of_that_name)
        if state.version is not None and empties and state.location not in self._locations.live():
            plan.to_empty.append(state)
            state = replace(state, version=None)  # else a later batch looks again
        return replace(state, state=TableStatus.DROPPED, reason=REPLACED, code="")

    def _table(self, plan: ApplyPlan, timeline: TableTimeline) -> None:
        """Settle a table by the first verdict that answers; where none does it is resolved."""
        case = self._case(timeline)
        if any(verdict(self, plan, case) for verdict in _VERDICTS):
            return
        case.begins, case.provided = self._rebuilds.begin_with(timeline, case.state)
        if case.made_otherwise is not None:
            self._demand_made_again(case, case.made_otherwise)
        if any(verdict(self, plan, case) for verdict in _LAST_VERDICTS):
            return
        demand_fit(self._p.job, timeline)
        if (question := self._changed.question(timeline, case.state, case.spans)) is not None:
            raise question
        task = self.tasks.task(timeline, case.state, case.spans, case.changed_at, case.begins, case.provided)
        plan.tasks.append(task)

    def _case(self, timeline: TableTimeline) -> _Case:
        """Collect what is known of a table before it is decided about."""
        state = self._p.states.get(timeline.table_id)
        if state is not None and state.state == TableStatus.DROPPED and timeline.dropped_at is None:
            state = None  # schema changes that came since show that it was there all along
        spans = self._p.groups.spans(timeline)
        changed_at = self._p.late.first_difference(timeline.table_id, state)
        exceeded = self._p.quarantine.exceeded(timeline)
        aside = self._p.unclear.get(timeline.last_name) or exceeded or self._unowned.truncated_as(timeline)
        return _Case(timeline, state, spans, changed_at, aside, self.tasks.made_otherwise(timeline, state))

    def _stays_dropped(self, plan: ApplyPlan, case: _Case) -> bool:
        state = case.state
        if state is None or state.state != TableStatus.DROPPED or case.spans or case.changed_at is not None:
            return False
        if (state.database, state.table) != case.timeline.last_name:
            self._drop(plan, case.timeline, state)  # a RENAME before the DROP came late
        return True

    def _is_untouched(self, plan: ApplyPlan, case: _Case) -> bool:
        state, job = case.state, self._p.job
        touched = bool(case.spans) or case.changed_at is not None or case.aside is not None
        behind = state is not None and state.applied_seq < job.seq and may_go_on(job, state)
        if touched or behind or case.made_otherwise is not None or self._is_touched(case.timeline, state):
            return False
        settled = self._unchanged(case.timeline, state)
        if state is not None and any(after.made_with != state.made_with for after in settled):
            demand_fit(job, case.timeline)  # rules that change nothing may be mistyped
        plan.settled += settled
        return True

    def _asks(self, plan: ApplyPlan, case: _Case) -> bool:
        if not case.timeline.asked:
            return False
        error = approval_required(case.timeline, self._p.asked)
        plan.settled.append(self._p.parked(case.timeline, case.state, str(error), error.code))
        return True

    def _is_dropped(self, plan: ApplyPlan, case: _Case) -> bool:
        if case.timeline.dropped_at is None:
            return False
        self._drop(plan, case.timeline, case.state)
        return True

    def _lost_its_name(self, plan: ApplyPlan, case: _Case) -> bool:
        timeline, state = case.timeline, case.state
        if self._p.now.owner(timeline.last_name, NEWEST) == timeline.table_id:
            return False
        reason = self._p.now.doubtful.get(timeline.last_name)
        nameless = self._p.nameless(timeline, state) if reason is None else self._p.parked(timeline, state, reason)
        plan.settled.append(nameless)
        return True

    def _is_unknown(self, plan: ApplyPlan, case: _Case) -> bool:
        timeline, state, files = case.timeline, case.state, self._rebuilds.concern_files(case.timeline)
        unknown = self._unknown.since(timeline, state, case.spans, case.changed_at, case.begins, files=files)
        if unknown is None:
            return False
        if files:
            raise DataError(
                "rebuild.files_behind",
                f"the table's rows became unknown after the files: {unknown.reason}",
                where={"table": str(timeline.last_name), "position": unknown.position},
                hint="rebuild the table from newer files, with a later --since",
            )
        plan.settled.append(self._p.parked(timeline, state, f"needs rebuild: {unknown}"))
        return True

    def _waits_for_a_parent(self, plan: ApplyPlan, case: _Case) -> bool:
        state = case.state
        if state is None or not self._unknown.lacks_rows_above(case.timeline, state, case.spans, case.changed_at):
            return False
        plan.settled.append(self._p.parked(case.timeline, state, state.reason, state.code))
        return True

    def _is_set_aside(self, plan: ApplyPlan, case: _Case) -> bool:
        if case.aside is None:
            return False
        code = getattr(case.aside, "code", "")
        plan.settled.append(self._p.parked(case.timeline, case.state, str(case.aside), code))
        return True

    @staticmethod
    def _demand_made_again(case: _Case, change: LayoutChange) -> None:
        """Refuse to go on with rows that were made with another value of an option.

        :raises DataError: unless they are made again from the change log.
        """
        rebuilt = case.begins is not None and change.kind != OptionKind.LOG
        if change.kind != OptionKind.LAYOUT and not rebuilt:
            raise change.error(str(case.timeline.last_name))

    def _is_touched(self, timeline: TableTimeline, state: TableState | None) -> bool:
        """Return whether the batch concerns a table by something else than its own rows and schema changes."""
        return (
            state is None
            or self._is_new(timeline, state)
            or (state.state == TableStatus.OK and self._p.paths.is_elsewhere(timeline, state))
            or (self._p.checks_references(timeline) and self._p.parents.removes(timeline))
            or self._p.quarantine.settles(timeline)
            or self._rebuilds.concern(timeline)
            or state.code == EXCEEDED
            or self._changed.wait(state)
            or (timeline.dropped_at is None and bool(self._p.applied.repeats(timeline, state)))
            or self._p.read.concern(timeline)
        )

    def _unchanged(self, timeline: TableTimeline, state: TableState | None) -> list[TableState]:
        """Return the state of a table that nothing concerns, where it has another text or other options now."""
        if state is None or state.state != TableStatus.OK:
            return []
        made_with = state.made_with and self._p.layouts.of(timeline)
        after = replace(state, notes=timeline.notes, made_with=made_with)
        return [] if after == state else [after]

    def _drop(self, plan: ApplyPlan, timeline: TableTimeline, state: TableState | None) -> None:
        """Settle a dropped table, and have its location emptied where the policy says so."""
        dropped = self._dropped(timeline, state)
        if self._p.empties(timeline) and dropped.version is not None:
            plan.to_empty.append(dropped)
            dropped = replace(dropped, version=None)  # emptied once: what lies there later is not this table's
        plan.settled.append(dropped)

    def _dropped(self, timeline: TableTimeline, state: TableState | None) -> TableState:
        name = timeline.last_name
        location = self._p.paths.free(timeline)
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
            applied_seq=self._p.job.seq,
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
            if self._rebuilds.concern(timeline):
                line = TableLine(*timeline.last_name, ApplyStatus.PARKED, reason=str(cdc_error))
                plan.not_rebuilt.append(line)
                return
            plan.settled.append(
                self._p.parked(timeline, self._p.states.get(timeline.table_id), str(cdc_error), cdc_error.code)
            )

    def _is_new(self, timeline: TableTimeline, state: TableState | None) -> bool:
        was = self._p.was.tables.get(timeline.table_id)
        return state is None or was is None or was.events() != timeline.events()


_Verdict = Callable[[ApplyPlanner, ApplyPlan, _Case], bool]
# each says whether it settled the table; the order matters
_VERDICTS: tuple[_Verdict, ...] = (
    ApplyPlanner._stays_dropped,
    ApplyPlanner._is_untouched,
    ApplyPlanner._asks,
    ApplyPlanner._is_dropped,
    ApplyPlanner._lost_its_name,
)
_LAST_VERDICTS: tuple[_Verdict, ...] = (
    ApplyPlanner._is_unknown,
    ApplyPlanner._waits_for_a_parent,
    ApplyPlanner._is_set_aside,
)
