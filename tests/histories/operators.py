# SPDX-License-Identifier: Apache-2.0
"""Random histories in which operators act between the batches: replay, rebuild, remove what is old, decide."""

from __future__ import annotations

import random
from dataclasses import replace

from airflow_provider_cdc.core.documents import Maintenance
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.driver.maintenance import maintain
from tests.histories.run import Replay, inline
from tests.histories.source import Picture
from tests.histories.test_operator_approvals import WithApprovals
from tests.histories.test_operator_replays import WithReplays
from tests.histories.test_rebuilds import WithRebuilds
from tests.histories.test_short_retention import REFUSED

_EACH = 100  # batch numbers from one batch to the next


class Operated(WithRebuilds, WithReplays, WithApprovals):
    """Replays ranges, rebuilds tables and shortens the change log, in random order, after each batch.

    In half of the histories the policies ask before rows or columns go; then changes are also approved and
    denied, and in the end all are approved.
    Once the log was shortened no table is damaged any more, and tables may be refused because of that.

    :ivar removed: files that were removed from the change log.
    """

    removed = 0

    def __post_init__(self) -> None:
        if random.Random(f"{self.case.seed} policies").random() < 0.5:
            self.case = replace(self.case, on_drop="ask")
        super().__post_init__()

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = Replay._batch(self, _EACH * number, chunks, None)
        operator = random.Random(f"{self.case.seed} {number} operators")
        if problems or not self._seqs or "the pipeline" in self.parked:
            return problems
        for seq in range(_EACH * number + 1, _EACH * number + 9, 2):
            match operator.choice(("nothing", "replay", "replay", "rebuild", "rebuild", "shorten", "decide", "decide")):
                case "replay":
                    problems = self._replay_some(operator, seq, None)
                case "rebuild":
                    self._damage_and_rebuild(operator, seq, damages=not self.removed)
                case "shorten" if not self.damaged:
                    self._shorten(operator)
                case "decide":
                    self._decide_about_one(operator, seq)
        if picture is not None:
            self._approve_all(operator, iter(range(_EACH * number + 20, _EACH * (number + 1))))
        if self.damaged or any(state.code.startswith("sink.") for state in self.states.values()):
            self._damage_and_rebuild(operator, _EACH * (number + 1) - 2, damages=False)
        return [*problems, *self._verdict(picture)]

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
