# SPDX-License-Identifier: Apache-2.0
"""Convert stored values of DATE, DATETIME, TIMESTAMP and TIME to another type."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values.alter import from_numbers
from airflow_provider_cdc.core.values.alter.to_text import printed_as
from airflow_provider_cdc.core.values.alter.type_families import Step, UncertainConversion, demand
from airflow_provider_cdc.core.values.columnar import temporal
from airflow_provider_cdc.core.values.shared import calendar
from airflow_provider_cdc.core.values.types import MAX_DIGITS

_END = (calendar.LAST_DAY + 1) * calendar.DAY


def to_datetime(values: pa.Array, step: Step) -> pa.Array:
    """Change between DATE and DATETIME, and the fraction digits."""
    if pa.types.is_string(values.type) or pa.types.is_string(step.target):
        return _extended_text(values, step)
    micros = values.cast(pa.timestamp("us", getattr(values.type, "tz", None))).view(pa.int64())
    if step.new.name == "date":
        micros = shortened(micros, 0, step)
        return _multiple(micros, calendar.DAY, 0).view(pa.timestamp("us")).cast(pa.date32())
    return shortened(micros, step.new.length or 0, step).view(step.target)


def shortened(micros: pa.Array, digits: int, step: Step) -> pa.Array:
    """Drop fraction digits of a second: MySQL rounds half away from zero, MariaDB truncates."""
    unit: int = 10 ** (6 - digits)
    if unit == 1:
        return micros
    result = _dropped(micros, unit, step)
    if (pc.max(result).as_py() or 0) >= _END:
        raise UncertainConversion("a date-time is rounded beyond year 9999")
    return result


def times(values: pa.Array, step: Step) -> pa.Array:
    """Change the fraction digits of TIME, which is stored as text."""
    micros = pa.array([None if text is None else calendar.duration(text) for text in values.to_pylist()], pa.int64())
    unit: int = 10 ** (6 - (step.new.length or 0))
    amounts = _dropped(pc.abs(micros), unit, step)
    signed = pc.if_else(pc.less(micros, 0), pc.negate(amounts), amounts)
    return temporal.time_texts(signed, step.new.length or 0)


def _extended_text(values: pa.Array, step: Step) -> pa.Array:
    """Append zeros to dates that are stored as text (option ``zero_dates``); any other conversion of them raises."""
    digits = step.new.length or 0
    if values.type != step.target or step.old.name != step.new.name or digits < (step.old.length or 0):
        raise UncertainConversion("dates are kept as text")
    missing = digits - (step.old.length or 0)
    point = "." if missing and not step.old.length else ""
    return pc.binary_join_element_wise(values, point + "0" * missing, "")


def _dropped(micros: pa.Array, unit: int, step: Step) -> pa.Array:
    truncated = _multiple(micros, unit, 0)
    if step.server == "mariadb":
        return truncated
    rounded = _multiple(micros, unit, unit // 2)
    if step.server is None:
        otherwise = (
            "MySQL rounds the fraction of a second, MariaDB truncates it; source.options.server states which it is"
        )
        demand(pc.equal(rounded, truncated), otherwise)
    return rounded


def _multiple(ints: pa.Array, unit: int, add: int) -> pa.Array:
    """Add ``add`` to each integer and round it down to a multiple of ``unit``."""
    raised = pc.add(ints, add)
    remainder = pc.subtract(raised, pc.multiply(pc.divide(raised, unit), unit))
    modulo = pc.if_else(pc.less(remainder, 0), pc.add(remainder, unit), remainder)
    return pc.subtract(raised, modulo)


def _printed(values: pa.Array, step: Step) -> pa.Array:
    """Write dates and date-times as the server prints them."""
    if pa.types.is_timestamp(values.type):
        return temporal.datetime_texts(values, step.old.length or 0)
    return values.cast(pa.string())


def _digits_then(then: Callable[[pa.Array, Step], pa.Array]) -> Callable[[pa.Array, Step], pa.Array]:
    """Return a step that converts the digits of a date-time as one number: 20200131235959."""

    def convert(values: pa.Array, step: Step) -> pa.Array:
        if step.old.name != "date" and step.old.length:
            raise UncertainConversion("how the fraction of a second is rounded")
        digits = pc.replace_substring_regex(_printed(values, step), "[-: ]", "")
        return then(digits.cast(pa.decimal128(MAX_DIGITS, 0)), step)

    return convert


STEPS: dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]] = {
    **{(old, new): to_datetime for old in ("date", "datetime") for new in ("date", "datetime")},
    ("timestamp", "timestamp"): to_datetime,  # to and from other types the session's time zone decides
    ("time", "time"): times,
    **printed_as("date", _printed),
    **printed_as("datetime", _printed),
    **printed_as("time", _printed),
    **{
        (old, new): _digits_then(then)
        for old in ("date", "datetime")
        for new, then in (
            ("integer", from_numbers.to_integer),
            ("decimal", from_numbers.to_decimal),
            ("float", from_numbers.to_float),
        )
    },
}
