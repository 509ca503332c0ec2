# SPDX-License-Identifier: Apache-2.0
"""Say in one word what is with a pipeline, and since when; nothing that has become old counts as good news."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_cdc.core.model.status import BatchStatus, ResultStatus, TableStatus
from airflow_provider_cdc.ledger.health import UNSETTLED
from airflow_provider_cdc.ledger.records import time_text
from airflow_provider_cdc.observability.freshness import FIRST_RUN, longest_age, usual_distance

GROUPS: Mapping[str, tuple[str, ...]] = {
    "failing": (ResultStatus.REFUSED, ResultStatus.CRASHED, "failing"),
    "parked": (TableStatus.PARKED,),
    "waiting": (TableStatus.WAITING,),
    "late": ("interrupted", "stale", "late"),
    "new": ("new",),
    "ok": ("running", "ok"),
}
"""States by what they ask of a person, the most urgent group first."""


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

    def bound(self) -> timedelta:
        """Return how long the pipeline may rest, and how late it may be: twice the usual distance, first a day."""
        return longest_age(self.batches, FIRST_RUN)

    def rest(self, lag: Mapping[str, Any] | None, now: datetime) -> bool:
        """Return whether nobody has run the pipeline for longer than its bound.

        It may rest where somebody looks and nothing is there to run for.

        :param lag: newest figure of its lag.
        """
        idle = lag is not None and lag["present"] and lag["records"] == 0
        return self.ran_at is not None and now - self.ran_at > self.bound() and not idle


@dataclass(frozen=True)
class Standing:
    """Say what is with a pipeline.

    :param state: one word, the worst that is true.
    :param since: ISO time since which it is so at least; None where nobody knows.
    """

    state: str
    since: str | None

    @property
    def group(self) -> str:
        """Name of the group of states."""
        return next(group for group, states in GROUPS.items() if self.state in states)


def standing(
    unsettled: Mapping[str, str | None],
    last: Any,
    attempt: Any,
    runs: Runs,
    lag: Mapping[str, Any] | None,
    now: datetime,
) -> Standing:
    """Return what is with a pipeline.

    :param unsettled: since when tables have stopped, by state.
    :param last: row of the newest batch with ``outcome`` and the lease; None, or without status, where there is none.
    :param attempt: row of the last attempt.
    :param lag: newest figure of its lag.
    """
    known = last is not None and last.status is not None
    planned = known and last.status == BatchStatus.PLANNED
    if planned and last.outcome in (ResultStatus.REFUSED, ResultStatus.CRASHED):
        return Standing(str(last.outcome), last.planned_at)
    if attempt is not None and attempt.code:
        return Standing("failing", (last.committed_at or last.planned_at) if known else attempt.at)
    for state in UNSETTLED:
        if state in unsettled:
            return Standing(str(state), unsettled[state])
    if not known:
        return Standing("new", None)
    if planned and is_held(last, now):
        return Standing("running", last.lease_since)
    if planned:
        return Standing("interrupted", last.lease_until or last.planned_at)
    if runs.rest(lag, now):
        return Standing("stale", time_text(runs.ran_at))
    behind = _late_since(lag, runs)
    return Standing("ok", last.committed_at) if behind is None else Standing("late", behind)


def _late_since(lag: Mapping[str, Any] | None, runs: Runs) -> str | None:
    """Return the time up to which everything is applied, where that is longer ago than the pipeline's bound."""
    if lag is None or not lag["present"] or lag["records"] == 0 or lag["seconds"] is None:
        return None
    behind = timedelta(seconds=lag["seconds"])
    return time_text(datetime.fromisoformat(lag["seen_at"]) - behind) if behind > runs.bound() else None


def is_held(row: Any, now: datetime) -> bool:
    """Return whether somebody holds the lease of a pipeline: a worker that was killed holds it until it ends."""
    return row.lease_until is not None and datetime.fromisoformat(row.lease_until).astimezone(UTC) > now
