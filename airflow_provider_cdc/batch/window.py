# SPDX-License-Identifier: Apache-2.0
"""Choose the window of source time that a request asks for, and decide whether it is its turn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from airflow_provider_cdc.batch.arguments import as_instant, refuse_template
from airflow_provider_cdc.core.errors import SourceError
from airflow_provider_cdc.ledger import Ledger

NOW = "now"
"""Value of ``until`` that asks for what is in Kafka now, whatever the run is."""


@dataclass(frozen=True)
class Until:
    """The end of a window.

    :param at: everything that the source committed before it; None means what is in Kafka now.
    :param rule: what chose it, for the log.
    """

    at: datetime | None
    rule: str

    def __str__(self) -> str:
        return f"up to {self.at.isoformat() if self.at else 'what is in Kafka now'} ({self.rule})"


def choose_until(value: object, context: Mapping[str, Any]) -> Until:
    """Return the end that an argument names, else the one that follows from a run.

    In this order: the argument; the end of the run's data interval; the earliest end among the newest events of the
    pipelines whose assets started the run; now.

    :param value: a time, ISO text, ``now``, or empty.
    :param context: Airflow's context of the task, or a part of it.
    :raises ConfigurationError: it is neither.
    """
    if isinstance(value, str):
        refuse_template("until", value)
        if value.strip().lower() == NOW:
            return Until(None, "until is now")
    instant = as_instant(value)
    if instant is not None:
        return Until(instant, "the argument until")
    interval_end = as_instant(context.get("data_interval_end"))
    if interval_end is not None:
        return Until(interval_end, "the end of the run's data interval")
    announced = _announced_until(context.get("triggering_asset_events") or {})
    if announced is not None:
        return Until(announced, "the asset event that started the run")
    return Until(None, "the run has neither a data interval nor an asset event with a time")


def _announced_until(events: Mapping[Any, Iterable[Any]]) -> datetime | None:
    newest = []
    for asset in events:
        extras = [extra for event in events[asset] if isinstance(extra := getattr(event, "extra", None), Mapping)]
        times = [extra["until"] for extra in extras if extra.get("pipeline") and extra.get("until")]
        if times:
            newest.append(max(map(datetime.fromisoformat, times)))
    return min(newest, default=None)


@dataclass(frozen=True)
class ExactWindow:
    """A window that is to be one batch of its own.

    :param after: begin; everything before it has to be applied first.
    :param until: end.
    """

    after: datetime
    until: datetime

    def __str__(self) -> str:
        return f"window {self.after.isoformat()} to {self.until.isoformat()}"

    def holds_back(self, ledger: Ledger, pipeline: str) -> str:
        """Return why the window has to wait, by the ledger alone; empty if nothing holds it back.

        :raises SourceError: code ``window.passed``: another batch holds the window already.
        """
        if ledger.planned(pipeline, self.until) is not None:
            return ""
        covering = ledger.covering(pipeline, self.until)
        if covering is not None:
            raise SourceError(
                "window.passed", f"{self} is part of batch {covering.seq}, which reaches further",
                where={"pipeline": pipeline, "seq": covering.seq, "until": covering.until},
                hint="exact windows run in order: a backfill must not run backwards, and nothing else may sync the "
                "pipeline beyond the window; with window='cover' the run succeeds with what is applied",
            )  # fmt: skip
        if ledger.covering(pipeline, self.after) is not None:
            return ""
        reached = ledger.reached(pipeline)
        applied = "no window yet" if reached is None else f"up to {reached.isoformat()}"
        return f"{self} waits for everything before {self.after.isoformat()}; applied: {applied}"
