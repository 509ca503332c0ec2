"""Dates, moments and times, one token at a time."""

from __future__ import annotations

import re
from typing import Any

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values import civil, zones
from airflow_provider_cdc.core.values.field import Field, Misfit, Reason
from airflow_provider_cdc.core.values.fit import Moment, exact, integral, unscaled_of
from airflow_provider_cdc.core.values.tokens import Number, integer_of, numeral_of, string_of

_MILLIS_AND_NANOS = re.compile(r"([0-9]{1,15})\.([0-9]{9})")
_UNITS = {
    Encoding.EPOCH_DAYS: (civil.DAY, 1),
    Encoding.EPOCH_MILLIS: (1000, 1),
    Encoding.EPOCH_MICROS: (1, 1),
    Encoding.EPOCH_NANOS: (1, 1000),
    Encoding.TIME_MILLIS: (1000, 1),
    Encoding.TIME_MICROS: (1, 1),
    Encoding.TIME_NANOS: (1, 1000),
}


def _micros(datum: Any, field: Field) -> tuple[int, int]:
    """Return microseconds, and what is beyond them."""
    multiply, divide = _UNITS[field.encoded.encoding]
    return divmod(integer_of(datum) * multiply, divide)


def epoch(datum: Any, field: Field) -> Moment:
    """Read a whole number of days or of parts of a second since 1970."""
    micros, beyond = _micros(datum, field)
    return _since_1970(micros, field, cut=bool(beyond))


def epoch_text(datum: Any, field: Field) -> Any:
    """Read seconds or milliseconds since 1970 with a fraction, or a zero date."""
    text = numeral_of(datum)
    if text.startswith("0000-"):  # OMS writes a zero TIMESTAMP so (docs/wire/oceanbase-oms.md 7.4)
        return _zero_date(text)
    return _number_since_1970(text, 6 if field.encoded.encoding is Encoding.EPOCH_SECONDS else 3, field)


def _number_since_1970(text: str, digits: int, field: Field) -> Moment:
    """Read a number whose ``digits`` behind the point make microseconds."""
    micros, beyond = divmod(unscaled_of(exact(text), digits + 3), 1000)
    return _since_1970(micros, field, cut=bool(beyond))


def _zero_date(text: str) -> str:
    try:
        civil.moment(text)
    except civil.NotOnCalendar:
        return text
    raise Misfit(Reason.NUMBER)


def _since_1970(micros: int, field: Field, cut: bool = False) -> Moment:
    civil.in_range(micros)
    zone = zones.zone_of_numbers(field)
    return Moment(zones.civil_of(micros, zone) if zone else micros, cut=cut)


def time(datum: Any, field: Field) -> str:
    """Read a duration."""
    micros, beyond = _micros(datum, field)
    if beyond:
        raise Misfit(Reason.FRACTION)
    return civil.time_text(micros, civil.fraction_digits(field.type))


def unscaled_time(datum: Any, field: Field) -> str:
    """Read a duration whose fraction lacks the zeros behind it (dtle)."""
    digits = civil.fraction_digits(field.type)
    return civil.time_text(civil.scaled_time(integer_of(datum), digits), digits)


def year(datum: Any, field: Field) -> int:
    """Read a YEAR counted from 1900."""
    return civil.year_since_1900(integer_of(datum))


def iso(datum: Any, field: Field) -> Any:
    """Read ISO 8601 without an offset."""
    text = string_of(datum)
    if field.type.name == "time":
        return civil.time_text(civil.duration(text.removesuffix("Z")), civil.fraction_digits(field.type))
    return moment(text, field, civil_z=True)


def zoned(datum: Any, field: Field) -> Any:
    """Read ISO 8601 with an offset."""
    text, cut = civil.without_nanos(string_of(datum))
    micros = civil.moment(text, zone=True)
    if micros == civil.GO_ZERO and field.type.name == "timestamp":
        digits = civil.fraction_digits(field.type)
        return "0000-00-00 00:00:00" + ("." + "0" * digits if digits else "")
    return Moment(micros, cut=cut)


def moment(text: str, field: Field, civil_z: bool = False) -> Moment:
    """Read a date or date-time, in its zone if it shows an instant."""
    text, cut = civil.without_nanos(text)
    micros = civil.moment(text, civil_z=civil_z)
    zone = zones.zone_of_texts(field)
    return Moment(*(zones.instant_of(micros, zone) if zone else (micros, False)), cut)


def moment_text(datum: Any, field: Field) -> Any:
    """Read a date-time in one of several forms."""
    if isinstance(datum, Number):
        return _millis_and_nanos(datum, field)
    text = string_of(datum)
    if not is_civil(text):
        return _number_since_1970(text, 6, field)
    day, _, rest = text.partition(" ")
    clock, _, zone = rest.partition(" ")
    if zone:
        return _named_zone(f"{day} {clock}", zone, field)
    try:
        return moment(text, field)
    except civil.NotOnCalendar:
        return datum  # given up, or kept as text, by what the target is


def _millis_and_nanos(number: Number, field: Field) -> Moment:
    """Read milliseconds, and behind a point the nanoseconds of the second (docs/wire/oceanbase-oms.md 10.19).

    Milliseconds that are told twice, by both, must agree; a shorter fraction could be of either unit.
    """
    found = _MILLIS_AND_NANOS.fullmatch(number)
    if found is None:
        return _since_1970(integral(number) * 1000, field)
    millis, nanos = int(found[1]), int(found[2])
    seconds, of_second = divmod(millis, 1000)
    if of_second not in (0, nanos // 1_000_000):
        raise Misfit(Reason.NUMBER)
    micros, beyond = divmod(nanos, 1000)
    return _since_1970(seconds * civil.SECOND + micros, field, cut=bool(beyond))


def _named_zone(text: str, zone: str, field: Field) -> Moment:
    text, cut = civil.without_nanos(text)
    moment = Moment(*zones.instant_of(civil.moment(text), zone), cut)
    if field.type.name == "timestamp":
        return moment
    own = zones.zone_of_numbers(field)
    if not own:
        raise Misfit(Reason.ZONE)  # a civil time without its zone would be another one
    return Moment(zones.civil_of(moment.micros, own), cut=cut)


def is_civil(text: str) -> bool:
    """Say whether a text is a date or a date-time, not a number."""
    return "-" in text[1:]
