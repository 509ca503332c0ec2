# SPDX-License-Identifier: Apache-2.0
"""Say which path each table has by its present name: no two tables share one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property

from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.sinks.contract import Sink, Stored
from spark_jobs.sinks.names import NameRule


class Paths:
    """The paths of tables below the root.

    A table stays where it is while that is a path of its name under any rule, so another ``sink.names`` moves none.

    :param now: the timelines of all tables.
    :param states: the tables' states before the batch, by table id.
    :param is_selected: says whether the pipeline selects a name.
    """

    def __init__(
        self,
        job: JobDocument,
        sink: Sink[Stored],
        now: Timeline,
        states: Mapping[str, TableState],
        is_selected: Callable[[TableName], bool],
    ) -> None:
        self._job, self._sink, self._now, self._states = job, sink, now, states
        self._is_selected = is_selected
        self._known: dict[tuple[str, TableName], str] = {}

    def of(self, table_id: str, name: TableName) -> str:
        """Return the path of a table under a name, be it taken or not."""
        key = table_id, name
        if key not in self._known:
            self._known[key] = self._path(*key)
        return self._known[key]

    def free(self, timeline: TableTimeline) -> str:
        """Return the path of a table by its present name, empty where a table of another name has it."""
        return "" if self._other(timeline) else self.of(timeline.table_id, timeline.last_name)

    def demand(self, timeline: TableTimeline) -> str:
        """Return the path of a table by its present name.

        :raises SinkError: ``target.name_taken``, a table of another name has it.
        """
        other, name = self._other(timeline), timeline.last_name
        path = self.of(timeline.table_id, name)
        if other is None:
            return path
        exact = NameRule("exact", folds=self._sink.names.folds).path(*name)
        helps = self._sink.names.same(exact) != self._sink.names.same(path)
        raise SinkError(
            "target.name_taken",
            f"the table and {other.last_name} of the source have one name in the target, and {other.last_name} has it",
            where={"table": str(name), "path": path},
            hint=f"{'set sink.names to exact, ' if helps else ''}exclude one of the two, or rename one at the source; "
            "the table goes on when the name is free",
        )

    def _path(self, table_id: str, name: TableName) -> str:
        state, own = self._states.get(table_id), self._sink.names.path(*name)
        lies_at = state.location if state is not None and state.version is not None else ""
        if lies_at == own:
            return own
        paths = self._sink.names.paths(*name)
        if lies_at in paths:
            return lies_at
        if len(paths) == 1:
            return own
        # an attempt of another rule may have made it, or the ledger that knew it may be lost
        return next((path for path in paths if self._holds(table_id, path)), own)

    def _holds(self, table_id: str, path: str) -> bool:
        """Return whether a table wrote what is at a path now."""
        app = f"cdc/{self._job.pipeline}/{table_id}/0"
        try:
            target = self._sink.open(self._job.at(path))
            return target.exists and target.applied(app) is not None and target.newest_app(of_anybody=False) == app
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
            if earlier is None or path not in self._sink.names.paths(*earlier):
                break
            since = position
        state = self._states.get(table_id)
        lies_there = state is not None and state.version is not None and state.location == path
        stays = lies_there and state is not None and state.applied_position >= since
        return not stays, since, str(name)
