# SPDX-License-Identifier: Apache-2.0
"""Say in one word what is with a pipeline; nothing that has become old counts as good news."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.core.model.status import BatchStatus, ResultStatus
from airflow_provider_cdc.ledger.health import UNSETTLED
from airflow_provider_cdc.observability.freshness import FIRST_RUN, longest_age, usual_distance


@dataclass(frozen=True)
class Runs:
    """When a pipeline was run.

    :param batches: when its newest batches were planned, oldest first.
    :param ran_at: when somebody ran it last, also without a batch of its own; None before the first run.
    """

    batches: Sequence[datetime]
    ran_at: datetime | None

    @staticmethod
    def seen(batches: Sequence[datetime], last: Any, attempt: Any) -> Runs:
        """Return the runs that batches and attempts show.

        :param last: row of the newest batch, of which ``committed_at`` counts.
        :param attempt: row of the last attempt.
        """
        ends = [None if last is None else last.committed_at, None if attempt is None else attempt.at]
        times = [*batches[-1:], *(datetime.fromisoformat(end) for end in ends if end is not None)]
        return Runs(batches, max(times, default=None))

    def usual_seconds(self) -> float | None:
        """Return the usual distance between two batches, None where there are fewer than two."""
        usual = usual_distance(self.batches)
        return None if usual is None else usual.total_seconds()

    def rest(self, lag: Mapping[str, Any] | None, now: datetime) -> bool:
        """Return whether nobody has run the pipeline for longer than twice the usual distance, or for a day.

        It may rest where somebody looks and nothing is there to run for.

        :param lag: newest figure of its lag.
        """
        idle = lag is not None and lag["present"] and lag["records"] == 0
        return self.ran_at is not None and now - self.ran_at > longest_age(self.batches, FIRST_RUN) and not idle


def pipeline_state(tables: Mapping[str, int], last: Any, attempt: Any, now: datetime, *, rests: bool) -> str:
    """Return one word for a pipeline, the worst that is true.

    :param tables: number of tables by state.
    :param last: row of the newest batch with ``outcome`` and the lease; None, or without status, where there is none.
    :param attempt: row of the last attempt.
    :param rests: whether nobody runs it.
    """
    planned = last is not None and last.status == BatchStatus.PLANNED
    if planned and last.outcome in (ResultStatus.REFUSED, ResultStatus.CRASHED):
        return str(last.outcome)
    if attempt is not None and attempt.code:
        return "failing"
    for state in UNSETTLED:
        if tables.get(state):
            return str(state)
    if last is None or last.status is None:
        return "new"
    if planned:
        return "running" if _is_held(last, now) else "interrupted"
    return "stale" if rests else "ok"


def _is_held(row: Any, now: datetime) -> bool:
    """Return whether somebody holds the lease of a pipeline: a worker that was killed holds it until it ends."""
    return row.lease_until is not None and datetime.fromisoformat(row.lease_until).astimezone(UTC) > now
