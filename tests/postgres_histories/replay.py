# SPDX-License-Identifier: Apache-2.0
"""Replays a history of a PostgreSQL source in random batches, and judges each table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.model.offsets import OffsetRange
from tests.histories.run import Case, Replay
from tests.histories.tools import Tool
from tests.postgres_histories.comparison import unlike
from tests.postgres_histories.connector import LOG_TOPIC, Sent
from tests.postgres_histories.server import Content, Name, Picture, Structure
from tests.postgres_histories.steps import World

_UNCLEAR, _NOT_FOUND = "source.generation_unclear", "apply.row_not_found"
OPTIONS = {"connector": "postgresql"}
BARE = {"decimal.handling.mode": "string"}


class _Tool(Tool):
    """Debezium's connector for PostgreSQL."""

    def __init__(self, options: dict[str, str], schema_topic: str | None) -> None:
        super().__init__("debezium-json")
        self.__dict__.update(options=options, schema_topic=schema_topic, by_clock=False, states_creates=False)


@dataclass(frozen=True)
class PgCase(Case):
    """Everything that decides a replay; equal cases run equally. ``statements`` are steps.

    :param logs_ddl: whether the source logs its DDL.
    :param on_unseen: ``policy.on_unseen_ddl``.
    """

    logs_ddl: bool = False
    on_unseen: str = "ask"


@dataclass
class PgReplay(Replay):
    """One case on its way.

    :ivar equal: tables that were equal at the end.
    :ivar at_end: what the lake must hold at the end.
    """

    equal: Counter[str] = field(default_factory=Counter)
    at_end: Picture | None = None

    def _chosen_tool(self) -> Tool:
        options = {**OPTIONS, **({} if self.case.style.embedded else BARE)}
        return _Tool(options, LOG_TOPIC if self.case.logs_ddl else None)

    def _records(self) -> Sequence[Sent]:
        case = self.case
        self.world = World(case.seed, case.style, logs_ddl=case.logs_ddl)
        self.world.run(case.statements, case.style.snapshot_after)
        sent = self.world.connector.sent
        self.at_end = sent[-1].picture if sent else None
        return sent

    def _options(self) -> dict[str, str]:
        return dict(self._tool.options)

    def _rules(self) -> dict[str, Any]:
        if self.case.logs_ddl:
            return {"exclude": ["ctl.*"]}
        if self.case.style.embedded:
            return {}
        return {".".join(one.name): {"create": created(one)} for one in self.world.at_start}

    def _job(self, number: int, chunks: Any) -> JobDocument:
        job = super()._job(number, chunks)
        return replace(job, policy=replace(job.policy, on_unseen_ddl=self.case.on_unseen))

    def _begins_logs(self) -> bool:
        return bool(self.world.new_logs)

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Any) -> list[str]:
        """Carry out a batch; one that cannot tell two logs apart ends the history."""
        problems = super()._batch(number, chunks, picture)
        if self.world.new_logs and any(_UNCLEAR in problem for problem in problems):
            self.parked["the pipeline"] = _UNCLEAR
            return []
        return problems

    def _differences(self, picture: Picture) -> list[str]:
        """Return what is wrong, in words: a table is equal, or parked for what the history did to it."""
        problems, self.parked, self.equal = [], {}, Counter()
        for name, content in picture.tables.items():
            problems += [f"{'.'.join(name)}{problem}" for problem in self._judge(name, content, picture.hazards[name])]
        alive = {(state.database, state.table) for state in self.states.values() if state.state == "ok"}
        if self.case.logs_ddl:
            problems += [f"{'.'.join(name)} has a state but no table" for name in alive - picture.tables.keys()]
        return problems + self._shared_locations()

    def _judge(self, name: Name, content: Content, hazards: frozenset[str]) -> list[str]:
        states = [s for s in self.states.values() if (s.database, s.table) == name and s.state != "dropped"]
        if len(states) > 1:
            return [f": {len(states)} tables have the name: {[(s.state, s.reason) for s in states]}"]
        if not states:
            seen = content.rows or self.case.logs_ddl
            return [": there is no table"] if seen and not hazards else []
        (state,) = states
        if state.state == "ok":
            lake = self._rows(name)
            if lake is None:
                return [": there is no table"] if content.rows else []
            wrong = unlike(lake, content, ordered=self.case.logs_ddl)
            if wrong and state.pending_seq is not None and _NOT_FOUND in hazards:
                self.parked[state.table_id] = "removals that wait for a partition"  # as its state says
                return []
            self.equal[".".join(name)] += not wrong
            return [f": {problem}" for problem in wrong]
        hazard = next((hazard for hazard in sorted(hazards) if hazard in state.reason), None)
        if hazard is None:
            return [f" is {state.state}: {state.reason}"]
        self.parked[state.table_id] = hazard
        return []


def created(structure: Structure) -> str:
    """Return a CREATE TABLE as a pipeline states it."""
    columns = [f"`{column.name}` {column.kind.mysql}" for column in structure.columns]
    if structure.key:
        names = {column.attnum: column.name for column in structure.columns}
        columns.append(f"PRIMARY KEY ({', '.join(f'`{names[part]}`' for part in structure.key)})")
    return f"CREATE TABLE `{structure.name[1]}` ({', '.join(columns)})"
