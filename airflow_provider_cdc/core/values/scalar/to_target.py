# SPDX-License-Identifier: Apache-2.0
"""Convert one Python value to a target type, exactly or not at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.values.fields import (
    FRACTION_CUT,
    INVALID_DATE,
    NOT_BOOLEAN,
    ZERO_DATE,
    ConversionError,
    Field,
    Reason,
)
from airflow_provider_cdc.core.values.shared import calendar
from airflow_provider_cdc.core.values.shared.enum_set import spellings
from airflow_provider_cdc.core.values.shared.numbers import DECIMAL, exact, integral, plain_decimal, scaled, unscaled_of
from airflow_provider_cdc.core.values.types import GEOMETRIES


class DateTime(NamedTuple):
    """Hold a date-time in microseconds since 1970, in local time or UTC.

    :param ambiguous: whether its text also denotes a later instant.
    :param nanos: nanoseconds beyond them, which only a text keeps.
    """

    micros: int
    ambiguous: bool = False
    nanos: int = 0


def fit(value: Any, field: Field, lost: Counter[str]) -> Any:
    """Return the value as ``pa.array`` accepts it for the target; NULL for a date that no calendar has.

    :param value: str, bytes, bool, int, float, Decimal, DateTime or list; a float is NaN or infinite.
    :param lost: receives the counts of allowed losses.
    :raises ConversionError: the value does not fit the target exactly.
    """
    try:
        return _fitter(field.target)(value, field, lost)
    except calendar.NotOnCalendar as error:
        return null_for(error, lost)


def null_for(error: calendar.NotOnCalendar, lost: Counter[str]) -> None:
    """Count a date that no calendar has, and return NULL for it."""
    lost[ZERO_DATE if error.zero else INVALID_DATE] += 1


def _to_integer(value: Any, field: Field, lost: Counter[str]) -> int:
    number = integral(value)
    bits = field.target.bit_width - 1
    if not -(1 << bits) <= number < 1 << bits:
        raise ConversionError(Reason.RANGE)
    return number


def _to_decimal(value: Any, field: Field, lost: Counter[str]) -> Decimal:
    unscaled = unscaled_of(exact(value), field.target.scale)
    if abs(unscaled) >= 10**field.target.precision:
        raise ConversionError(Reason.RANGE)
    return scaled(unscaled, field.target.scale)


def _to_float(value: Any, field: Field, lost: Counter[str]) -> Any:
    if isinstance(value, float):
        return value
    if isinstance(value, (bytes, DateTime, list)):
        raise ConversionError(Reason.TARGET)
    text = value if isinstance(value, str) else str(exact(value))
    if not DECIMAL.fullmatch(text):
        raise ConversionError(Reason.NUMBER)
    # Arrow rounds the text once to either width; going through a double would round twice
    result = pa.array([text]).cast(field.target)[0].as_py()
    if result in (float("inf"), float("-inf")):
        raise ConversionError(Reason.RANGE)
    return result


def _to_boolean(value: Any, field: Field, lost: Counter[str]) -> bool:
    number = integral(value)
    if number not in (0, 1):
        if field.type.name != "tinyint":
            raise ConversionError(Reason.RANGE)
        if not -128 <= number <= 255:
            raise ConversionError(Reason.RANGE)
        lost[NOT_BOOLEAN] += 1
    return bool(number)


def _micros(value: Any, lost: Counter[str]) -> int:
    if isinstance(value, DateTime):
        micros, nanos = value.micros, value.nanos
    elif isinstance(value, str):
        text, nanos = calendar.without_nanos(value)
        micros = calendar.parse_datetime(text)
    else:
        raise ConversionError(Reason.TARGET)
    lost.update([FRACTION_CUT] if nanos else [])
    return micros


def _to_timestamp(value: Any, field: Field, lost: Counter[str]) -> int:
    return _micros(value, lost)


def _to_date(value: Any, field: Field, lost: Counter[str]) -> int:
    days, clock = divmod(_micros(value, lost), calendar.DAY)
    if clock:
        raise ConversionError(Reason.FRACTION)
    return days


def _to_string(value: Any, field: Field, lost: Counter[str]) -> str:
    if isinstance(value, str):
        if field.type.name == "decimal":  # some tools write an exponent, or strip zeros (docs/wire/canal.md 10.4)
            return plain_decimal(exact(value), field)
        return spellings(field.type.labels).get(str(value), str(value))
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise ConversionError(Reason.TEXT) from None
    if isinstance(value, DateTime):
        return _date_or_datetime_text(value, field, lost)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise ConversionError(Reason.TOKEN)
    # the column's scale, not the record's, so that equal numbers are equal texts
    return plain_decimal(value, field) if isinstance(value, Decimal) else str(value)


def _date_or_datetime_text(value: DateTime, field: Field, lost: Counter[str]) -> str:
    if field.type.name != "date":
        digits = calendar.fraction_digits(field.type)
        text = calendar.datetime_text(value.micros, digits)
        if value.nanos and digits == calendar.MOST_DIGITS:
            return f"{text}{value.nanos:03d}"
        lost.update([FRACTION_CUT] if value.nanos else [])
        return text
    days, clock = divmod(value.micros, calendar.DAY)
    if clock:
        raise ConversionError(Reason.FRACTION)
    return calendar.date_text(days)


def _to_binary(value: Any, field: Field, lost: Counter[str]) -> bytes:
    if isinstance(value, str) and field.type.name not in GEOMETRIES:
        if "\ufffd" in value:  # the tool decoded bytes as text that are not text
            raise ConversionError(Reason.TEXT)
        value = value.encode()
    if not isinstance(value, bytes):
        raise ConversionError(Reason.TARGET)
    if field.type.name != "binary":
        return value
    width = field.type.length or 1
    if len(value) > width:
        raise ConversionError(Reason.LENGTH)
    return value.ljust(width, b"\0")


def _to_list(value: Any, field: Field, lost: Counter[str]) -> list[float]:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value.encode())
        except (ValueError, RecursionError):
            raise ConversionError(Reason.TOKEN) from None
    if not isinstance(value, list) or not all(type(item) in (int, float) for item in value):
        raise ConversionError(Reason.TOKEN)
    limit = 3.4028235677973366e38  # midpoint between the largest float and the next one, if there were one
    if any(abs(item) >= limit for item in value):
        raise ConversionError(Reason.RANGE)
    return [float(item) for item in value]


@lru_cache(maxsize=256)
def _fitter(target: pa.DataType) -> Callable[[Any, Field, Counter[str]], Any]:
    for test, fitter in _FITTERS:
        if test(target):
            return fitter
    return _unsupported


def _unsupported(value: Any, field: Field, lost: Counter[str]) -> Any:
    raise ConversionError(Reason.TARGET)


_FITTERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Field, Counter[str]], Any]], ...] = (
    (pa.types.is_signed_integer, _to_integer),
    (pa.types.is_decimal128, _to_decimal),
    (pa.types.is_floating, _to_float),
    (pa.types.is_boolean, _to_boolean),
    (pa.types.is_timestamp, _to_timestamp),
    (pa.types.is_date32, _to_date),
    (pa.types.is_string, _to_string),
    (pa.types.is_binary, _to_binary),
    (pa.types.is_list, _to_list),
)
