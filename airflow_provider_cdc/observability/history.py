# SPDX-License-Identifier: Apache-2.0
"""Record a pipeline's progress over time in the ledger: at most one sample a minute, for thirty days."""

from __future__ import annotations

from datetime import UTC, datetime

from airflow_provider_cdc.core.plan.lag import Lag
from airflow_provider_cdc.ledger import ProgressSample


def sample_of(lag: Lag) -> ProgressSample:
    """Return a look at a pipeline's lag as a sample of the minute in which it was made."""
    at = _instant(lag.at_ms)
    assert at is not None
    return ProgressSample(
        at.replace(second=0, microsecond=0),
        _instant(lag.received_ms),
        _instant(lag.applied_ms),
        lag.seconds,
        lag.records,
    )


def _instant(millis: int | None) -> datetime | None:
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC)
