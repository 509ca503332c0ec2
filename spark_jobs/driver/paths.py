# SPDX-License-Identifier: Apache-2.0
"""Say which path each table has by its present name: no two tables share one. Nothing else makes a path of a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from airflow_provider_cdc.core.config.target import TargetRule, TargetRules
from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.sinks.contract import Sink, Stored
from spark_jobs.sinks.names import NameRule


class TargetPaths:
    """The paths that names have by the rules of a pipeline and the names that its sink takes."""

    def __init__(self, rules: Sequence[TargetRule], names: NameRule) -> None:
        self.rules, self._names = TargetRules(rules), names

    def path(self, name: TableName) -> str:
        """Return the path, below the root, of the table of a name."""
        return self._names.path(*self.rules.name_of(name))

    def paths(self, name: TableName) -> tuple[str, ...]:
        """Return the paths that a name has under any ``sink.names``, that of the present one first."""
        return self._names.paths(*self.rules.name_of(name))

    def is_no_name(self, name: TableName) -> bool:
        """Return whether a rule makes nothing of a name, or half of one."""
        return not all(self.rules.name_of(name))

    def exact(self, name: TableName) -> str:
        """Return the path of a name where the sink had exact names."""
        return NameRule("exact", folds=self._names.folds).path(*self.rules.name_of(name))


class Paths:
    """The paths of tables below the root.

    A table stays where it is while that is a path of its name under any ``sink.names``, so another one moves none.
    Other rules of ``target`` move it, as a RENAME TABLE does.

    :param now: the timelines of all tables.
    :param states: the tables' states before the batch, by table id.
    :param is_selected: says whether the pipeline selects a name.
    :param tried: rules of ``target`` with which earlier attempts at the batch may have written tables.
    :param before: rules of ``target`` of the batch before.
    """

    def __init__(
        self,
        job: JobDocument,
        sink: Sink[Stored],
        now: Timeline,
        states: Mapping[str, TableState],
        is_selected: Callable[[TableName], bool],
        tried: Sequence[Sequence[TargetRule]] = (),
        before: Sequence[TargetRule] = (),
    ) -> None:
        self._job, self._sink, self._now, self._states = job, sink, now, states
        self._is_selected = is_selected
        self._known: dict[tuple[str, TableName], str] = {}
        self._target = TargetPaths(job.target, sink.names)
        self._tried = [TargetPaths(rules, sink.names) for rules in tried]
        self._before = TargetPaths(before, sink.names)
        for target in (self._target, *self._tried):
            target.rules.learn(name for table in now.tables.values() for _, name in table.names if name is not None)

    def of(self, table_id: str, name: TableName) -> str:
        """Return the path of a table under a name, be it taken or not."""
        key = table_id, name
        if key not in self._known:
            self._known[key] = self._path(*key)
        return self._known[key]

    def free(self, timeline: TableTimeline) -> str:
        """Return the path of a table by its present name, empty where another table has it, or a rule makes none."""
        is_taken = self._other(timeline) or self._target.is_no_name(timeline.last_name)
        return "" if is_taken else self.of(timeline.table_id, timeline.last_name)

    def before(self, name: TableName) -> str:
        """Return the path that a name had by the rules of the batch before."""
        return self._before.path(name)

    def is_elsewhere(self, timeline: TableTimeline, state: TableState) -> bool:
        """Return whether the rows of a table lie at another path than that of its present name."""
        if state.version is None or timeline.dropped_at is not None:
            return False
        return state.location != self.of(timeline.table_id, timeline.last_name)

    def demand(self, timeline: TableTimeline) -> str:
        """Return the path of a table by its present name.

        :raises SinkError: ``target.name_taken``, a table of another name has it; ``target.name_refused``, a rule of
            ``target`` makes no name of it.
        """
        other, name = self._other(timeline), timeline.last_name
        path = self.of(timeline.table_id, name)
        if self._target.is_no_name(name):
            raise SinkError(
                "target.name_refused",
                "a rule of target leaves the namespace or the table without a name",
                where={"table": str(name)},
                hint="let the rule's groups match at least one character",
            )
        if other is None:
            return path
        helps = self._sink.names.same(self._target.exact(name)) != self._sink.names.same(path)
        ways = ["set sink.names to exact"] if helps else []
        ways += ["let target name one of the two otherwise"] if self._job.target else []
        raise SinkError(
            "target.name_taken",
            f"the table and {other.last_name} of the source have one name in the target, and {other.last_name} has it",
            where={"table": str(name), "path": path},
            hint=f"{', '.join([*ways, 'exclude one of the two'])}, or rename one at the source; "
            "the table goes on when the name is free",
        )

    def _path(self, table_id: str, name: TableName) -> str:
        state, own = self._states.get(table_id), self._target.path(name)
        tried = [path for target in self._tried for path in target.paths(name)]
        written = next((path for path in tried if path != own and self._holds(table_id, path, self._job.seq)), None)
        if written is not None:  # by another attempt at this batch: the next one moves it
            return written
        lies_at = state.location if state is not None and state.version is not None else ""
        if lies_at == own:
            return own
        paths = self._target.paths(name)
        if lies_at in paths or (state is not None and lies_at and self._is_dropped_there(state, name)):
            return lies_at
        if len(paths) == 1:
            return own
        # an attempt of another rule may have made it, or the ledger that knew it may be lost
        return next((path for path in paths if self._holds(table_id, path)), own)

    def _is_dropped_there(self, state: TableState, name: TableName) -> bool:
        """Return whether a table that is dropped now has the name that its rows are at: other rules do not move it."""
        timeline = self._now.tables.get(state.table_id)
        return timeline is not None and timeline.name is None and (state.database, state.table) == name

    def _holds(self, table_id: str, path: str, since: int = 0) -> bool:
        """Return whether a table wrote what is at a path now, in a batch or a later one."""
        app = f"cdc/{self._job.pipeline}/{table_id}/0"
        try:
            target = self._sink.open(self._job.at(path))
            done = target.applied(app) if target.exists else None
            return done is not None and done >= since and target.newest_app(of_anybody=False) == app
        except SinkError:
            return False  # the target has no such name, or something else lies there

    def _other(self, timeline: TableTimeline) -> TableTimeline | None:
        """Return the table of another name that has a table's path, None without one."""
        first = self._first.get(self._sink.names.same(self.of(timeline.table_id, timeline.last_name)))
        return None if first is None or first.last_name == timeline.last_name else first

    @cached_property
    def _first(self) -> dict[str, TableTimeline]:
        """The table that has each path: the one whose rows are there, else the one that got its name first."""
        sharing: dict[str, list[TableTimeline]] = {}
        for table_id, name in self._named():
            path = self._sink.names.same(self.of(table_id, name))
            sharing.setdefault(path, []).append(self._now.tables[table_id])
        return {path: min(tables, key=self._precedence) for path, tables in sharing.items()}

    def _named(self) -> list[tuple[str, TableName]]:
        """Return the tables that have a name which the pipeline selects."""
        return [
            (table_id, name)
            for table_id, timeline in self._now.tables.items()
            if (name := timeline.name) is not None
            and self._is_selected(name)
            and self._now.owner(name, "~") == table_id
        ]

    def _precedence(self, timeline: TableTimeline) -> tuple[bool, str, str]:
        """Return a key by which tables that share a path are ordered, the same however batches are cut."""
        table_id, name = timeline.table_id, timeline.last_name
        path = self.of(table_id, name)
        since = timeline.names[-1][0]
        for position, earlier in reversed(timeline.names):
            if earlier is None or path not in self._target.paths(earlier):
                break
            since = position
        state = self._states.get(table_id)
        lies_there = state is not None and state.version is not None and state.location == path
        stays = lies_there and state is not None and state.applied_position >= since
        return not stays, since, str(name)
