"""Putting one value of any kind into a target type, exactly or not at all."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.values import civil
from airflow_provider_cdc.core.values.field import (
    FRACTION_CUT,
    INVALID_DATE,
    NOT_BOOLEAN,
    ZERO_DATE,
    Field,
    Misfit,
    Reason,
)
from airflow_provider_cdc.core.values.types import GEOMETRIES

INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MAX_EXPONENT = 400  # beyond any MySQL number; without a bound 1e9999 would make 10 000 digits


class Moment(NamedTuple):
    """Microseconds since 1970, civil or UTC.

    ``ambiguous`` if its text also stands for a later instant, ``cut`` if it had nanoseconds.
    """

    micros: int
    ambiguous: bool = False
    cut: bool = False


def fit(value: Any, field: Field, lost: Counter[str]) -> Any:
    """Return what ``pa.array`` takes for the target; ``value`` is str, bytes, bool, int, Decimal, Moment or list."""
    try:
        return _fitter(field.target)(value, field, lost)
    except civil.NotOnCalendar as error:
        return given_up(error, lost)


def given_up(error: civil.NotOnCalendar, lost: Counter[str]) -> None:
    """Count a date that no calendar has; it becomes NULL."""
    lost[ZERO_DATE if error.zero else INVALID_DATE] += 1


def _to_integer(value: Any, field: Field, lost: Counter[str]) -> int:
    number = integral(value)
    bits = field.target.bit_width - 1
    if not -(1 << bits) <= number < 1 << bits:
        raise Misfit(Reason.RANGE)
    return number


def integral(value: Any) -> int:
    """Return a whole number exactly."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, str) and len(value) < 100 and INTEGER.fullmatch(value):
        return int(value)
    number = exact(value)
    if number != number.to_integral_value():
        raise Misfit(Reason.FRACTION)
    return int(number)


def exact(value: Any) -> Decimal:
    """Return a number exactly."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, (bool, int)):
        return Decimal(int(value))
    if not isinstance(value, str):
        raise Misfit(Reason.TARGET)
    if not _DECIMAL.fullmatch(value):
        raise Misfit(Reason.NUMBER)
    number = Decimal(value)
    if number and not -_MAX_EXPONENT <= number.adjusted() <= _MAX_EXPONENT:
        raise Misfit(Reason.RANGE)
    return number if number else Decimal(0)


def _to_decimal(value: Any, field: Field, lost: Counter[str]) -> Decimal:
    unscaled = unscaled_of(exact(value), field.target.scale)
    if abs(unscaled) >= 10**field.target.precision:
        raise Misfit(Reason.RANGE)
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -field.target.scale))


def unscaled_of(number: Decimal, scale: int) -> int:
    """Return ``number`` x 10^``scale`` if that is a whole number."""
    sign, digits, exponent = number.as_tuple()
    shift = int(exponent) + scale
    unscaled = int("".join(map(str, digits)) or "0")
    power: int = 10 ** abs(shift)
    whole, beyond = (unscaled * power, 0) if shift >= 0 else divmod(unscaled, power)
    if beyond:
        raise Misfit(Reason.FRACTION)
    return -whole if sign else whole


def plain(number: Decimal, scale: int) -> str:
    """Write a number with exactly ``scale`` fraction digits."""
    unscaled = unscaled_of(number, scale)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if unscaled < 0 else text


def _to_float(value: Any, field: Field, lost: Counter[str]) -> Any:
    if isinstance(value, (bytes, Moment, list)):
        raise Misfit(Reason.TARGET)
    text = value if isinstance(value, str) else str(exact(value))
    if not _DECIMAL.fullmatch(text):
        raise Misfit(Reason.NUMBER)
    # Arrow rounds the text once to either width; going through a double would round twice
    result = pa.array([text]).cast(field.target)[0].as_py()
    if result in (float("inf"), float("-inf")):
        raise Misfit(Reason.RANGE)
    return result


def _to_boolean(value: Any, field: Field, lost: Counter[str]) -> bool:
    number = integral(value)
    if number not in (0, 1):
        if field.type.name != "tinyint":
            raise Misfit(Reason.RANGE)
        if not -128 <= number <= 255:
            raise Misfit(Reason.RANGE)
        lost[NOT_BOOLEAN] += 1
    return bool(number)


def _micros(value: Any, lost: Counter[str]) -> int:
    if isinstance(value, Moment):
        return value.micros
    if isinstance(value, str):
        text, cut = civil.without_nanos(value)
        micros = civil.moment(text)
        lost.update([FRACTION_CUT] if cut else [])
        return micros
    raise Misfit(Reason.TARGET)


def _to_moment(value: Any, field: Field, lost: Counter[str]) -> int:
    return _micros(value, lost)


def _to_date(value: Any, field: Field, lost: Counter[str]) -> int:
    days, clock = divmod(_micros(value, lost), civil.DAY)
    if clock:
        raise Misfit(Reason.FRACTION)
    return days


def _to_string(value: Any, field: Field, lost: Counter[str]) -> str:
    if isinstance(value, str):
        if field.type.name == "decimal":  # some tools write an exponent, or cut zeros off (docs/wire/canal.md 10.4)
            return plain_decimal(exact(value), field)
        return spellings(field.type.labels).get(str(value), str(value))
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise Misfit(Reason.TEXT) from None
    if isinstance(value, Moment):
        return _date_or_moment(value.micros, field)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        raise Misfit(Reason.TOKEN)
    # the column's scale, not the record's, so that equal numbers are equal texts
    return plain_decimal(value, field) if isinstance(value, Decimal) else str(value)


def plain_decimal(number: Decimal, field: Field) -> str:
    """Write a number as its column prints it."""
    text = plain(number, scale_of(field))
    if field.type.name == "decimal" and len(text.lstrip("-0.").replace(".", "")) > (field.type.length or 10):
        raise Misfit(Reason.RANGE)
    return text


def scale_of(field: Field) -> int:
    """Return the fraction digits of a DECIMAL written as text."""
    scale = field.type.scale if field.type.name == "decimal" else None
    return scale if scale is not None else field.encoded.scale or 0


def _date_or_moment(micros: int, field: Field) -> str:
    if field.type.name != "date":
        return civil.moment_text(micros, civil.fraction_digits(field.type))
    days, clock = divmod(micros, civil.DAY)
    if clock:
        raise Misfit(Reason.FRACTION)
    return civil.date_text(days)


@lru_cache(maxsize=1024)
def spellings(labels: tuple[str, ...]) -> dict[str, str]:
    """Return ENUM labels by what some tools write for them: a backslash before the comma, or no quotes (dtle)."""
    written: dict[str, list[str]] = {}
    for label in labels:
        for spelling in {label.replace(",", "\\,"), label.replace("'", "")} - {*labels}:
            written.setdefault(spelling, []).append(label)
    return {spelling: meant[0] for spelling, meant in written.items() if len(meant) == 1}


def _to_binary(value: Any, field: Field, lost: Counter[str]) -> bytes:
    if isinstance(value, str) and field.type.name not in GEOMETRIES:
        if "\ufffd" in value:  # the tool read bytes as text that were none
            raise Misfit(Reason.TEXT)
        value = value.encode()
    if not isinstance(value, bytes):
        raise Misfit(Reason.TARGET)
    if field.type.name != "binary":
        return value
    width = field.type.length or 1
    if len(value) > width:
        raise Misfit(Reason.LENGTH)
    return value.ljust(width, b"\0")


def _to_list(value: Any, field: Field, lost: Counter[str]) -> list[float]:
    if isinstance(value, str):
        try:
            value = msgspec.json.decode(value.encode())
        except (ValueError, RecursionError):
            raise Misfit(Reason.TOKEN) from None
    if not isinstance(value, list) or not all(type(item) in (int, float) for item in value):
        raise Misfit(Reason.TOKEN)
    limit = 3.4028235677973366e38  # midpoint of the largest float and what would be the next
    if any(abs(item) >= limit for item in value):
        raise Misfit(Reason.RANGE)
    return [float(item) for item in value]


@lru_cache(maxsize=256)
def _fitter(target: pa.DataType) -> Callable[[Any, Field, Counter[str]], Any]:
    for test, fitter in _FITTERS:
        if test(target):
            return fitter
    return _unsupported


def _unsupported(value: Any, field: Field, lost: Counter[str]) -> Any:
    raise Misfit(Reason.TARGET)


_FITTERS: tuple[tuple[Callable[[Any], bool], Callable[[Any, Field, Counter[str]], Any]], ...] = (
    (pa.types.is_signed_integer, _to_integer),
    (pa.types.is_decimal128, _to_decimal),
    (pa.types.is_floating, _to_float),
    (pa.types.is_boolean, _to_boolean),
    (pa.types.is_timestamp, _to_moment),
    (pa.types.is_date32, _to_date),
    (pa.types.is_string, _to_string),
    (pa.types.is_binary, _to_binary),
    (pa.types.is_list, _to_list),
)
