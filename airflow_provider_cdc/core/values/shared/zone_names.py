# SPDX-License-Identifier: Apache-2.0
"""Know time zones by their names, without Arrow: options are checked before anything is converted."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

_OFFSET = re.compile(r"([+-])([0-9]{1,2}):([0-5][0-9])")


@lru_cache(maxsize=256)
def zone_named(name: str) -> tzinfo | None:
    """Return the zone of this name in the time zone database, or with an offset such as ``+08:00``; None without it."""
    if name in ("UTC", "Z"):
        return UTC
    match = _OFFSET.fullmatch(name)
    try:
        if match:
            offset = timedelta(hours=int(match[2]), minutes=int(match[3]))
            return timezone(-offset if match[1] == "-" else offset)
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None
