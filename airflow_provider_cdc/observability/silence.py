# SPDX-License-Identifier: Apache-2.0
"""Say that a source is silent: without new records a batch ends well, also where the connector stands still."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow_provider_cdc.core.plan.lag import Lag
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.observability.freshness import FIRST_RUN, NEWEST, longest_age, span_text, usual_distance


def silence_text(ledger: Ledger, pipeline: str, lag: Lag) -> str:
    """Return how old the newest record or heartbeat is, where that is older than usual; empty where it is not.

    :param pipeline: its name.
    :param lag: a look at the log.
    """
    seen = [part.received_ms for part in lag.partitions if part.received_ms is not None]
    times = _batch_times(ledger, pipeline)
    if not seen or not times:
        return ""
    age, usual = timedelta(milliseconds=lag.at_ms - max(seen)), usual_distance(times)
    if age <= longest_age(times, FIRST_RUN):
        return ""
    known = "" if usual is None else f"; batches usually bring newer ones every {span_text(usual)}"
    return (
        f"the source is silent: its newest record is {span_text(age)} old{known}. Its connector stands still, or "
        "nothing has changed: `airflow-cdc lag PIPELINE.yaml` names the partitions"
    )


def _batch_times(ledger: Ledger, pipeline: str) -> list[datetime]:
    """Return the source times that the newest batches reached, ascending."""
    numbers = ledger.applied(pipeline)[-NEWEST:]
    batches = ledger.batches(pipeline, after=numbers[0] - 1) if numbers else []
    reached = {((batch.result or {}).get("cut") or {}).get("source_time") for batch in batches}
    return sorted(datetime.fromisoformat(time).astimezone(UTC) for time in reached if time is not None)
