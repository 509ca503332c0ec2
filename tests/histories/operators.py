# SPDX-License-Identifier: Apache-2.0
"""Random histories in which operators act between the batches: repair, replay, rebuild, maintain, decide."""

from __future__ import annotations

import random
import shutil
import traceback
from collections import Counter
from dataclasses import replace

from airflow_provider_cdc.core.documents import JobDocument, Maintenance, QuarantineEntry, TableState
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from spark_jobs.driver.maintenance import maintain
from spark_jobs.sinks.ownership import NOT_OURS
from tests.histories.approving import WithApprovals
from tests.histories.quarantined import WithQuarantine
from tests.histories.rebuilding import WithRebuilds
from tests.histories.replaying import WithReplays
from tests.histories.retention import REFUSED
from tests.histories.run import Replay, inline
from tests.histories.source import Picture
from tests.locations import table_place

_EACH = 100  # batch numbers from one batch to the next


_ROUNDS = 6  # in which all that waits is decided: what is decided may bring more
_SETTLED_AT_ONCE = 3  # decisions about records in turn: of others rows fit only once a schema change is approved


class Operated(WithQuarantine, WithRebuilds, WithReplays, WithApprovals):
    """Lets operators act in random order after each batch.

    They replay ranges, rebuild tables, repair and discard quarantined records, maintain tables and shorten the change
    log. In half of the histories some policies ask before the table changes; then changes are also approved and
    denied, and in the end all are approved.
    Once the log was shortened no table is damaged any more, and tables may be refused because of that.

    :cvar acts: what they choose from.
    :ivar removed: files that were removed from the change log.
    :ivar maintained: tables whose files were put together or removed.
    """

    acts = (
        "nothing", "replay", "replay", "rebuild", "rebuild", "shorten", "decide", "decide", "settle", "settle",
        "maintain", "maintain",
    )  # fmt: skip
    removed = 0
    maintained = 0

    def __post_init__(self) -> None:
        if random.Random(f"{self.case.seed} policies").random() < 0.5:
            self.case = replace(self.case, on_drop="ask")
        super().__post_init__()
        self._touched: set[str] = set()  # locations that were ever damaged

    def _waiting(self, job: JobDocument) -> list[QuarantineEntry]:
        """Return what waits for a decision; nothing where topics are made again: offsets name other records then."""
        return [] if self.case.recreated else super()._waiting(job)

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = Replay._batch(self, _EACH * number, self._broken_chunks(chunks), None)
        if self._is_unclear(problems):
            return []
        if problems or not self._seqs or "the pipeline" in self.parked:
            return problems
        operator = random.Random(f"{self.case.seed} {number} operators")
        try:
            for seq in range(_EACH * number + 1, _EACH * number + 9, 2):
                problems += [*self._act(operator, seq), *self._lost()]
            problems += self._act_at_the_end(operator, number, approves=picture is not None)
        except Exception as error:  # whatever it is, a history must not end a batch
            unclear = self._is_unclear([str(error)])
            return [] if unclear else [*problems, f"an operator's act failed: {traceback.format_exc()}"]
        if not self._is_last() and self._waiting(self._job(_EACH * (number + 1) - 1, [])):
            picture = None
        return [*problems, *self._verdict(picture)]

    def _act(self, operator: random.Random, seq: int) -> list[str]:
        """Do something at random; return what went wrong."""
        match operator.choice(self.acts):
            case "replay":
                return self._replay_some(operator, seq, None)
            case "rebuild":
                self._damage_and_rebuild(operator, seq, damages=not self.removed)
            case "shorten" if not self.damaged:
                self._shorten(operator)
            case "decide":
                self._decide_about_one(operator, seq)
            case "settle":
                self._settle(operator, seq)
            case "maintain":
                return self._maintain(operator)
        return []

    def _damage(self, operator: random.Random, state: TableState) -> None:
        super()._damage(operator, state)
        if state.table_id in self.damaged:
            self._touched.add(table_place(state.database, state.table))

    def _lost(self) -> list[str]:
        """Return the tables that cannot be read or written although nobody damaged what lies at their locations."""
        lost = [state for state in self.states.values() if state.code.startswith("sink.")]
        named = {state.table_id: table_place(state.database, state.table) for state in lost}
        lost = [state for state in lost if not {state.location, named[state.table_id]} & self._touched]
        return [f"{state.database}.{state.table} is lost: {state.reason}" for state in lost]

    def _act_at_the_end(self, operator: random.Random, number: int, *, approves: bool) -> list[str]:
        """Rebuild what is damaged; once the log is read to its end, decide about all that waits first.

        :param approves: approve all that waits for a decision, also before.
        """
        seqs = iter(range(_EACH * number + 20, _EACH * (number + 1) - 1))
        for _ in range(_ROUNDS if approves else 1):
            for _ in range(_SETTLED_AT_ONCE):
                if not self._is_last() or not self._settle(operator, next(seqs), everything=True):
                    break
            if approves:
                self._approve_all(operator, seqs)
            if self.damaged or any(state.code.startswith("sink.") for state in self.states.values()):
                self._damage_and_rebuild(operator, next(seqs), damages=False)
                next(seqs)
                if self._move_away():
                    self._damage_and_rebuild(operator, next(seqs), damages=False)
                    next(seqs)
            waits = self._asked_about(Answer.OPEN) or (self._is_last() and self._waiting(self._job(next(seqs), [])))
            if not waits:
                return []
        return ["what waits for a decision never ends"] if approves else []

    def _move_away(self) -> bool:
        """Move away what was changed where another table got the name since: no rebuild replaces that.

        :return: whether there was any.
        """
        refused = {table_id for table_id, reason in self.damaged.items() if NOT_OURS in reason}
        refused |= {table_id for table_id, state in self.states.items() if state.code == NOT_OURS}
        locations = {table_place(state.database, state.table) for state in map(self.states.__getitem__, refused)}
        for location in sorted(locations & self._touched):
            shutil.rmtree(self.root / location)
            self.story.append(f"    what lies at {location} is moved away")
        return bool(locations & self._touched)

    def _maintain(self, operator: random.Random) -> list[str]:
        """Put files together and remove those of older versions; return the tables for which that failed."""
        order = Maintenance(1 << 20, operator.choice((0, 24)))
        named = [state for state in self.states.values() if state.version is not None and state.state != "dropped"]
        alone = Counter(state.location for state in named)
        names = sorted(f"{state.database}.{state.table}" for state in named if alone[state.location] == 1)
        if names and operator.random() < 0.4:
            order = Maintenance(1 << 20, 0, purge=operator.choice(names))
        self.log.arm(None)
        reports = maintain(self._job(max(self._seqs) + 1, []), order, {}, inline).maintained
        done = [report for report in reports if report.compacted or report.vacuumed]
        self.maintained += len(done)
        self.story.append(f"    {len(done)} of {len(reports)} tables are maintained, {order}")
        # what lies at a damaged table's name may be another table's, which did not move yet
        excused = {
            (s.database, s.table) for s in self.states.values() if s.location in self._touched or "sink." in s.code
        }
        failed = [report for report in reports if report.error and (report.database, report.table) not in excused]
        return [f"{report.database}.{report.table} cannot be maintained: {report.error}" for report in failed]

    def _shorten(self, operator: random.Random) -> None:
        """Remove rows of the change log that every table has applied, from its begin up to some batch."""
        newest = max(self._seqs)
        order = Maintenance(1 << 20, 24, expire_through=operator.randint(1, newest))
        self.log.arm(None)
        report = maintain(self._job(newest + 1, []), order, {}, inline).expired
        self.removed += report.files
        self.story.append(f"    the change log is removed up to batch {report.through}: {report.files} files")

    def _differences(self, picture: Picture) -> list[str]:
        refused = [state for state in self.states.values() if REFUSED in state.reason]
        names = {f"{state.database}.{state.table}" for state in refused}
        self.parked |= {state.table_id: REFUSED for state in refused}  # a renamed one stays where it is
        return [problem for problem in super()._differences(picture) if not any(name in problem for name in names)]
