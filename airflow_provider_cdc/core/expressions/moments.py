# SPDX-License-Identifier: Apache-2.0
"""Kernels of dates and timestamps, whose zone is always UTC: none of them reads the zones of the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.expressions.kinds import INSTANT, TIMESTAMP
from airflow_provider_cdc.core.expressions.rows import Values

UNITS = ("YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND")


def wall_clock(values: Values) -> Any:
    """Return timestamps without zone: of instants, what a clock in UTC shows."""
    if values.type != INSTANT:
        return values
    return values.cast(TIMESTAMP)


def to_time(values: Values, target: pa.DataType) -> Any:
    """Return dates and timestamps as timestamps of another type; a date is its midnight."""
    plain = wall_clock(values) if values.type == INSTANT else values.cast(TIMESTAMP)
    return plain.cast(target) if target == INSTANT else plain


def to_date(values: pa.Array) -> pa.Array:
    """Return the days of timestamps."""
    return pc.floor_temporal(wall_clock(values), 1, "day").cast(pa.date32())


def part(read: Callable[[Values], Any]) -> Callable[[pa.Array], pa.Array]:
    """Return a kernel that gives a part of a date or timestamp as INT.

    :param read: Arrow's function.
    """
    return lambda values: read(wall_clock(values)).cast(pa.int32())


def truncated(unit: str, values: pa.Array) -> pa.Array:
    """Return the first moment of a unit of time; weeks begin on Monday."""
    moments = to_time(values, TIMESTAMP)
    first = pc.floor_temporal(moments, 1, unit.lower(), week_starts_monday=True)
    return first.cast(INSTANT) if values.type == INSTANT else first
