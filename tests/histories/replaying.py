# SPDX-License-Identifier: Apache-2.0
"""Let operators replay rows between the batches of a history."""

from __future__ import annotations

import random
from dataclasses import replace

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.documents import Replay as ReplayRequest
from airflow_provider_cdc.core.model.offsets import OffsetRange
from tests.histories.run import Replay
from tests.histories.source import Picture

_HOUR = 3_600_000_000


class WithReplays(Replay):
    """Replays ranges of the change log after each batch: the batch numbers in between are theirs."""

    replayed = 0

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = super()._batch(3 * number, chunks, picture)
        operator = random.Random(f"{self.case.seed} {number} operator")
        for seq in (3 * number + 1, 3 * number + 2):
            if problems or not self._seqs or operator.random() < 0.3:
                continue
            problems = self._replay_some(operator, seq, picture)
        return problems

    def _replay_some(self, operator: random.Random, seq: int, picture: Picture | None) -> list[str]:
        names = sorted({f"{state.database}.{state.table}" for state in self.states.values()})
        times = [state.source_time for state in self.states.values() if state.source_time is not None]
        newest = max(times, default=0)
        asked = ReplayRequest(
            operator.sample(names, operator.randint(0, len(names))),
            operator.choice((None, newest - operator.randint(0, _HOUR))),
            operator.choice((None, newest - operator.randint(0, _HOUR))),
        )
        self.story.append(f"    replay: {asked}")
        self.log.arm(None)
        job = replace(self._job(seq, []), order=asked)
        result = self._sync(JobDocument.from_document(job.document()))
        self.replayed += result.changes.get("replayed", 0)
        self._take_over(seq, result.document())
        self._backups.append((self._seqs, self._schema, self.states))
        return [] if picture is None else self._differences(picture)
