# SPDX-License-Identifier: Apache-2.0
"""Compare source times, which tools write with fractions of a second or without."""

from __future__ import annotations


def is_dated_before(time: int, since: int) -> bool:
    """Return whether a change is surely from before a source time, both in microseconds since the epoch.

    A time without fractions stands for its whole second or millisecond.
    """
    return time + next(unit for unit in (1_000_000, 1_000, 1) if time % unit == 0) <= since
