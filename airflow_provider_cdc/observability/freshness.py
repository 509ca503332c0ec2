# SPDX-License-Identifier: Apache-2.0
"""Decide whether what was seen of a pipeline's lag is the present one: after twice the usual distance nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

BATCHES = 20
"""So many of the newest batches say how often a pipeline usually runs."""

_SHORTEST = timedelta(minutes=10)


def longest_age(batch_times: Sequence[datetime]) -> timedelta:
    """Return the age up to which a look at the lag is the present lag.

    :param batch_times: when the newest batches were planned, oldest first.
    """
    distances = [(later - earlier).total_seconds() for earlier, later in pairwise(batch_times)]
    return max(_SHORTEST, timedelta(seconds=2 * median(distances))) if distances else _SHORTEST


def is_present(seen_at: datetime, now: datetime, batch_times: Sequence[datetime]) -> bool:
    """Return whether a lag that was seen at a time may be shown as the lag of now."""
    return now - seen_at <= longest_age(batch_times)


def age_text(seen_at: datetime, now: datetime) -> str:
    """Return how long ago something was seen, in minutes, or hours from two hours on."""
    minutes = round((now - seen_at).total_seconds() / 60)
    return f"{minutes} min ago" if minutes < 120 else f"{round(minutes / 60)} h ago"
