# SPDX-License-Identifier: Apache-2.0
"""Say how far the engine of a batch is, while somebody is at work on it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow_provider_cdc.core.documents import Progress
from airflow_provider_cdc.core.model.status import BatchStatus

_FRESH = timedelta(seconds=90)
"""Age up to which progress counts: three times what an engine's driver lets pass between two records of it."""


def running_progress(row: Any, now: datetime) -> dict[str, Any] | None:
    """Return how far a batch is; None where its worker was killed, whoever holds the pipeline now.

    :param row: the batch with ``lease_token`` and ``lease_until`` of its pipeline.
    """
    seen = row.progress
    if row.status != BatchStatus.PLANNED or not seen or seen["lease"] != row.lease_token or row.lease_until is None:
        return None
    at = datetime.fromisoformat(seen["at"])
    if datetime.fromisoformat(row.lease_until).astimezone(UTC) <= now or now - at.astimezone(UTC) > _FRESH:
        return None
    progress = Progress.from_document(seen)
    left = progress.seconds_left
    return {
        **progress.document(),
        "at": seen["at"],
        "share": round(progress.share, 3),
        "seconds_left": None if left is None else round(left),
        "text": progress.sentence(),
    }
