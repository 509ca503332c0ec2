# SPDX-License-Identifier: Apache-2.0
"""Random histories of tables that rules name in the target, where operators change the rules at any time."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_cdc.core.config import TargetRule
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.model.schema import TableName
from spark_jobs.driver.paths import TargetPaths
from tests.histories.run import Replay
from tests.histories.source import Name, Picture

_RAW = TargetRule(r"(?P<db>[^.]+)\.(?P<table>.+)", "raw_{db|lower}.{table}")
_APART = TargetRule(r".*", "all.{database}-{table|upper}-{table|digest}")
_SOME = TargetRule(r".*\.(?:.*[a-m])", "some.{database}__{table}")  # the others keep their own names
SETS: tuple[tuple[TargetRule, ...], ...] = ((), (_RAW,), (_APART,), (_SOME,), (_SOME, _APART))
"""Rules under each of which all tables have names of their own."""

_MEETING = (TargetRule(r".*[a-m]", "met.one"), TargetRule(".*", "met.two"))
TAKEN = "target.name_taken"


class Routed(Replay):
    """Lets operators change the rules before each batch, and between the attempts at one.

    In the end a batch without records is carried out: then each table is where the rules of now put it, and no rows are
    anywhere else.
    """

    sets = SETS

    def __post_init__(self) -> None:
        super().__post_init__()
        self._hand = random.Random(f"{self.case.format} {self.case.seed} target")
        self._now = self.sets[0]
        self._settles = False

    def _job(self, number: int, chunks: list[OffsetRange]) -> JobDocument:
        if not self._settles and self._hand.random() < 0.4:
            self._now = self._hand.choice(self.sets)
            self.story.append(f"    target: {[rule.to for rule in self._now]}")
        return replace(super()._job(number, chunks), target=self._now)

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = super()._batch(number, chunks, picture)
        count = len(self.case.ends) + 1 if self.case.ends else self.case.batches
        if problems or number < count or picture is None or "the pipeline" in self.parked or not self._seqs:
            return problems
        self._settles = True
        self.log.arm(None)
        self._take_over(number + 1, self._sync(self._job(number + 1, [])).document())
        return self._differences(picture)

    def _by(self, rules: Sequence[TargetRule]) -> TargetPaths:
        return TargetPaths(rules, self._sink.names)

    def _path(self, name: Name) -> str:
        """Return where a table is: an attempt with other rules may have put it there until the next batch."""
        own = self._by(self._now).path(TableName(*name))
        if self._settles:
            return own
        states = [s for s in self.states.values() if (s.database, s.table) == name and s.version is not None]
        paths = {self._by(rules).path(TableName(*name)) for rules in self.sets}
        return next((s.location for s in states if s.state == "ok" and s.location in paths), own)

    def _leftovers(self, picture: Picture, excused: set[Name]) -> list[str]:
        if not self._settles:
            return []
        # what is not settled, or is kept, stays where it is
        stays = {s.location for s in self.states.values() if s.version is not None and s.state != "dropped"}
        if self.case.on_drop == "keep":
            stays |= {state.location for state in self.states.values() if state.state == "dropped"}
        names = {*picture.tables, *picture.renamed_away, *picture.dropped} - excused
        paths = {self._by(rules).path(TableName(*name)) for name in names for rules in self.sets}
        return [f"{path} holds rows of no table" for path in sorted(paths - stays) if self._has_rows(path)]

    def _has_rows(self, path: str) -> bool:
        stored = self._sink.open(f"{self.root}/{path}")
        return stored.exists and not stored.is_empty()


class Meeting(Routed):
    """Lets some tables have one name under some rules: one of them has it, the others are parked."""

    sets = (*SETS, *[_MEETING] * 5)

    @property
    def _further_reasons(self) -> tuple[str, ...]:
        return (TAKEN,)
