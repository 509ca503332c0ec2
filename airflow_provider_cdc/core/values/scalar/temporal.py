# SPDX-License-Identifier: Apache-2.0
"""Read dates, date-times and times, one token at a time; twin of ``columnar/temporal.py``."""

from __future__ import annotations

import re
from typing import Any

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values.fields import ConversionError, Field, Reason
from airflow_provider_cdc.core.values.scalar.json_tokens import Number, integer_of, numeral_of, string_of
from airflow_provider_cdc.core.values.scalar.to_target import DateTime
from airflow_provider_cdc.core.values.shared import calendar, time_zones
from airflow_provider_cdc.core.values.shared.numbers import exact, integral, unscaled_of

_MILLIS_AND_NANOS = re.compile(r"([0-9]{1,15})\.([0-9]{9})")
_UNITS = {
    Encoding.EPOCH_DAYS: (calendar.DAY, 1),
    Encoding.EPOCH_MILLIS: (1000, 1),
    Encoding.EPOCH_MICROS: (1, 1),
    Encoding.EPOCH_NANOS: (1, 1000),
    Encoding.TIME_MILLIS: (1000, 1),
    Encoding.TIME_MICROS: (1, 1),
    Encoding.TIME_NANOS: (1, 1000),
}


def _micros(datum: Any, field: Field) -> tuple[int, int]:
    """Return microseconds, and the remainder in nanoseconds."""
    multiply, divide = _UNITS[field.encoded.encoding]
    return divmod(integer_of(datum) * multiply, divide)


def epoch(datum: Any, field: Field) -> DateTime:
    """Read a whole number of days or of parts of a second since 1970."""
    micros, beyond = _micros(datum, field)
    return _since_1970(micros, field, nanos=beyond)


def epoch_text(datum: Any, field: Field) -> Any:
    """Read seconds or milliseconds since 1970 with a fraction, or a zero date."""
    text = numeral_of(datum)
    if text.startswith("0000-"):  # OMS writes a zero TIMESTAMP so (docs/wire/oceanbase-oms.md 7.4)
        return _zero_date(text)
    return _number_since_1970(text, 6 if field.encoded.encoding is Encoding.EPOCH_SECONDS else 3, field)


def _number_since_1970(text: str, digits: int, field: Field) -> DateTime:
    """Read a decimal text whose first ``digits`` decimal places reach to microseconds."""
    micros, beyond = divmod(unscaled_of(exact(text), digits + 3), 1000)
    return _since_1970(micros, field, nanos=beyond)


def _zero_date(text: str) -> str:
    try:
        calendar.parse_datetime(text)
    except calendar.NotOnCalendar:
        return text
    raise ConversionError(Reason.NUMBER)


def _since_1970(micros: int, field: Field, nanos: int = 0) -> DateTime:
    calendar.in_range(micros)
    zone = time_zones.zone_of_numbers(field)
    return DateTime(time_zones.local_time_of(micros, zone) if zone else micros, nanos=nanos)


def time(datum: Any, field: Field) -> str:
    """Read a duration."""
    micros, beyond = _micros(datum, field)
    if beyond:
        raise ConversionError(Reason.FRACTION)
    return calendar.time_text(micros, calendar.fraction_digits(field.type))


def unscaled_time(datum: Any, field: Field) -> str:
    """Read a duration whose fraction lacks its trailing zeros (dtle)."""
    digits = calendar.fraction_digits(field.type)
    return calendar.time_text(calendar.scaled_time(integer_of(datum), digits), digits)


def year(datum: Any, field: Field) -> int:
    """Read a YEAR counted from 1900."""
    return calendar.year_since_1900(integer_of(datum))


def iso(datum: Any, field: Field) -> Any:
    """Read ISO 8601 without an offset."""
    text = string_of(datum)
    if field.type.name == "time":
        return calendar.time_text(calendar.duration(text.removesuffix("Z")), calendar.fraction_digits(field.type))
    return datetime_of(text, field, local_z=True)


def zoned(datum: Any, field: Field) -> Any:
    """Read ISO 8601 with an offset."""
    text, nanos = calendar.without_nanos(string_of(datum))
    try:
        micros = calendar.parse_datetime(text, zone=True)
    except ConversionError:
        if field.type.name != "timestamp":
            raise
        return _in_stated_zone(string_of(datum), field)
    if micros == calendar.GO_ZERO and field.type.name == "timestamp":
        digits = calendar.fraction_digits(field.type)
        return "0000-00-00 00:00:00" + ("." + "0" * digits if digits else "")
    return DateTime(micros, nanos=nanos)


def instant(datum: Any, field: Field) -> DateTime:
    """Read ISO 8601 with an offset; the first second of the year 1 is what it says."""
    text, nanos = calendar.without_nanos(string_of(datum))
    return DateTime(calendar.parse_datetime(text, zone=True), nanos=nanos)


def _in_stated_zone(text: str, field: Field) -> DateTime:
    instant = datetime_of(text, field)
    if not time_zones.zone_of_texts(field):
        raise ConversionError(Reason.ZONE_UNKNOWN)
    return instant


def datetime_of(text: str, field: Field, local_z: bool = False) -> DateTime:
    """Read a date or date-time, in its zone if it shows an instant."""
    text, nanos = calendar.without_nanos(text)
    micros = calendar.parse_datetime(text, local_z=local_z)
    zone = time_zones.zone_of_texts(field)
    return DateTime(*(time_zones.instant_of(micros, zone) if zone else (micros, False)), nanos)


def mixed_datetime(datum: Any, field: Field) -> Any:
    """Read a date-time in one of several forms."""
    if isinstance(datum, Number):
        return _millis_and_nanos(datum, field)
    text = string_of(datum)
    if not calendar.is_local_time(text):
        return _number_since_1970(text, 6, field)
    day, _, clock_and_zone = text.partition(" ")
    clock, _, zone = clock_and_zone.partition(" ")
    if zone:
        return _named_zone(f"{day} {clock}", zone, field)
    try:
        return datetime_of(text, field)
    except calendar.NotOnCalendar:
        return datum  # becomes NULL or stays text, depending on the target


def _millis_and_nanos(number: Number, field: Field) -> DateTime:
    """Read milliseconds, and after a point the nanoseconds of the second (docs/wire/oceanbase-oms.md 10.19).

    If both parts have the milliseconds, they must agree. A shorter fraction raises: its unit could be either.
    """
    match = _MILLIS_AND_NANOS.fullmatch(number)
    if match is None:
        return _since_1970(integral(number) * 1000, field)
    millis, nanos = int(match[1]), int(match[2])
    seconds, of_second = divmod(millis, 1000)
    if of_second not in (0, nanos // 1_000_000):
        raise ConversionError(Reason.NUMBER)
    micros, beyond = divmod(nanos, 1000)
    return _since_1970(seconds * calendar.SECOND + micros, field, nanos=beyond)


def _named_zone(text: str, zone: str, field: Field) -> DateTime:
    text, nanos = calendar.without_nanos(text)
    instant = DateTime(*time_zones.instant_of(calendar.parse_datetime(text), zone), nanos)
    if field.type.name == "timestamp":
        return instant
    own = time_zones.zone_of_numbers(field)
    if not own:
        raise ConversionError(Reason.ZONE)  # without its zone it would be another local time
    return DateTime(time_zones.local_time_of(instant.micros, own), nanos=nanos)
