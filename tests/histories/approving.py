# SPDX-License-Identifier: Apache-2.0
"""Let operators decide about schema changes between the batches of a history."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

from airflow_provider_cdc.core.config.policy import CHOICES
from airflow_provider_cdc.core.documents import Approval, JobDocument
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.timeline.asked_changes import DENIABLE, Answer, AskedChange
from spark_jobs.driver.batch_history import history_of
from spark_jobs.lake.scratch import lake_of
from tests.histories.run import Replay
from tests.histories.source import Picture

_ASKING = [name for name, values in CHOICES.items() if "ask" in values]
_EACH = 100  # batch numbers from one batch to the next
_AT = "2026-01-02T00:00:00+00:00"


class WithApprovals(Replay):
    """Decides about some of the changes that wait after each batch; before tables are compared, approves all.

    Where ``on_drop`` of the case is ``ask``, about half of the other policies ask too.

    :ivar decided: number of decisions.
    """

    decided = 0

    def _loses(self) -> bool:
        """Return also whether changes may be denied: until they are approved, the tables lack them."""
        return super()._loses() or self.case.on_drop == "ask"

    def _job(self, number: int, chunks: list[OffsetRange]) -> JobDocument:
        job = super()._job(number, chunks)
        chance = random.Random(f"{self.case.format} {self.case.seed} asks")
        values = {name: "ask" for name in _ASKING if chance.random() < 0.5 or name == "on_drop_table"}
        values["on_missing_create"] = chance.choice(("park", "infer"))
        return replace(job, policy=replace(job.policy, **values)) if self.case.on_drop == "ask" else job

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        problems = super()._batch(_EACH * number, chunks, None)
        if problems or not self._seqs:
            return problems
        operator = random.Random(f"{self.case.seed} {number} approvals")
        seqs = iter(range(_EACH * number + 1, _EACH * (number + 1)))
        for _ in range(operator.randint(0, 4)):
            self._decide_about_one(operator, next(seqs))
        if picture is None:
            return []
        self._approve_all(operator, seqs)
        return self._differences(picture)

    def _decide_about_one(self, operator: random.Random, seq: int) -> None:
        """Approve or deny one of the changes that wait."""
        if waiting := self._asked_about(Answer.OPEN):
            item = operator.choice(waiting)
            answers = (Answer.APPLY, Answer.DENY) if item.policy in DENIABLE else (Answer.APPLY,)
            self._decide(seq, item, operator.choice(answers))

    def _approve_all(self, operator: random.Random, seqs: Iterator[int]) -> None:
        """Approve what waits, and after all what was denied, in random order."""
        while undone := [*self._asked_about(Answer.OPEN), *self._asked_about(Answer.DENY)]:
            self._decide(next(seqs), operator.choice(undone), Answer.APPLY)

    def _asked_about(self, answer: Answer) -> Sequence[AskedChange]:
        """Return the changes with an answer, as the newest batch in the lake has them."""
        job = self._job(max(self._seqs) + 1, [])
        return [item for item in history_of(job, lake_of(job, {})).asked() if item.answer == answer]

    def _decide(self, seq: int, item: AskedChange, answer: Answer) -> None:
        self.story.append(f"    {answer}: {item.statement} of {item.name} at {item.position}")
        self.log.arm(None)
        decision = replace(item, answer=answer, by="an operator", at=_AT)
        result = self._sync(replace(self._job(seq, []), order=Approval(decision.document())))
        self._take_over(seq, result.document())
        self._backups.append((self._seqs, self._schema, self.states))
        self.decided += 1
