# SPDX-License-Identifier: Apache-2.0
"""Decide whether what was seen of a pipeline is true now: after twice the usual distance nobody knows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median

NEWEST = 20
"""So many of the newest figures, or runs, say how far apart they usually are."""

SHORTEST = timedelta(minutes=10)
"""A figure of the lag holds for so long at least, and for so long where there is only one."""

FIRST_RUN = timedelta(days=1)
"""A pipeline that was run once may rest for so long."""


def usual_distance(times: Sequence[datetime]) -> timedelta | None:
    """Return the median of the distances between two times that follow each other; None for fewer than two times.

    :param times: oldest first.
    """
    distances = [(later - earlier).total_seconds() for earlier, later in pairwise(times)]
    return timedelta(seconds=median(distances)) if distances else None


def longest_age(times: Sequence[datetime], without: timedelta = SHORTEST) -> timedelta:
    """Return how old the newest figure or run may be: twice the usual distance.

    :param times: of the newest ones, oldest first.
    :param without: the age where there is no distance yet.
    """
    distance = usual_distance(times)
    return without if distance is None else max(SHORTEST, 2 * distance)


def is_present(times: Sequence[datetime], now: datetime) -> bool:
    """Return whether the newest figure of a lag may be shown as the lag of now.

    :param times: when the newest figures were seen, oldest first.
    """
    return now - times[-1] <= longest_age(times)


def age_text(seen_at: datetime, now: datetime) -> str:
    """Return how long ago something was seen."""
    return f"{span_text(now - seen_at)} ago"


def span_text(span: timedelta) -> str:
    """Return a span in minutes, or hours from two hours on, days from two days on."""
    minutes = round(span.total_seconds() / 60)
    hours = round(minutes / 60)
    return f"{minutes} min" if minutes < 120 else f"{hours} h" if hours < 48 else f"{round(hours / 24)} d"
