# SPDX-License-Identifier: Apache-2.0
"""Say which properties a pipeline may give its tables: those that hold however the tables are written."""

from __future__ import annotations

import re
from collections.abc import Mapping

_INTERVAL = re.compile(
    r"interval\s+\d{1,9}\s+(?:nanosecond|microsecond|millisecond|second|minute|hour|day|week)s?", re.IGNORECASE
)
_DELTA: Mapping[str, tuple[re.Pattern[str], str]] = {
    "delta.logRetentionDuration": (_INTERVAL, "expected an interval, as interval 30 days"),
    "delta.deletedFileRetentionDuration": (_INTERVAL, "expected an interval, as interval 7 days"),
    "delta.enableExpiredLogCleanup": (re.compile("true|false"), "expected true or false"),
    "delta.dataSkippingNumIndexedCols": (re.compile(r"-1|\d{1,4}"), "expected a number of columns, or -1 for all"),
}
_ICEBERG = ("write.", "read.", "history.", "commit.")
_ICEBERG_WORDS = ("comment", "owner")
# where files lie, what they are, and commits that nobody sees: writers and maintenance of ours count on what they do
_ICEBERG_REFUSED = (
    "write.data.path",
    "write.delete.format.default",
    "write.folder-storage.path",
    "write.format.default",
    "write.location-provider.impl",
    "write.metadata.compression-codec",
    "write.metadata.path",
    "write.object-storage.",
    "write.parquet.compression-codec",
    "write.py-location-provider.impl",
    "write.wap.enabled",
)


def delta_problem(name: str, value: str) -> str | None:
    """Return why a Delta table cannot have a property, None where it can."""
    if name.lower().startswith("cdc."):
        return "names that begin with cdc. are the pipeline's own"
    if not name.lower().startswith("delta."):
        return None
    if name not in _DELTA:
        return f"is not a property that every writer of the table keeps to; of those of Delta: {', '.join(_DELTA)}"
    pattern, problem = _DELTA[name]
    return None if pattern.fullmatch(value) else problem


def iceberg_problem(name: str, value: str) -> str | None:
    """Return why an Iceberg table cannot have a property, None where it can."""
    if name.startswith(_ICEBERG_REFUSED):
        return "the pipeline's files and commits would not be as it says"
    if name.startswith(_ICEBERG) or name in _ICEBERG_WORDS:
        return None
    known = ", ".join([*(f"{prefix}*" for prefix in _ICEBERG), *_ICEBERG_WORDS])
    return f"is not a property that a pipeline may set; those are {known}"
