# SPDX-License-Identifier: Apache-2.0
"""Check whether everything that the source committed before a time is in Kafka."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.batch.planner import Log, observe
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.plan.progress import received

_SHOWN = 5


@dataclass(frozen=True)
class ReceivedStatus:
    """State of the source's log in Kafka.

    :param reached: whether it is complete up to the time that was asked for.
    :param until: that time, ISO text in UTC.
    :param progress: source time up to which it is complete, None while unknown.
    :param message: the same in a sentence that names the partitions which are behind.
    """

    reached: bool
    until: str
    progress: str | None
    message: str

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return {"until": self.until, "received": self.progress}


def check_received(pipeline: CdcPipeline, until: datetime, log: Log) -> ReceivedStatus:
    """Read the ends of the pipeline's partitions once; blocks for as long as Kafka takes.

    :raises CdcError: the log cannot be read.
    """
    facts, beats = observe(pipeline, log)
    state = received(int(until.timestamp() * 1000), facts, beats)
    progress = _iso(state.progress_ms)
    text = until.astimezone(UTC).isoformat()
    if state.reached:
        return ReceivedStatus(True, text, progress, f"everything before {text} is in Kafka; received up to {progress}")
    behind = [
        f"{hold.topic}/{hold.partition} (known up to {_iso(hold.progress_ms) or 'nothing'}: {hold.why})"
        for hold in state.holds[:_SHOWN]
    ]
    rest = f" and {len(state.holds) - _SHOWN} more" if len(state.holds) > _SHOWN else ""
    message = f"not everything before {text} is in Kafka; held back by {', '.join(behind)}{rest}"
    return ReceivedStatus(False, text, progress, message)


def _iso(millis: int | None) -> str | None:
    return None if millis is None else datetime.fromtimestamp(millis / 1000, UTC).isoformat()
