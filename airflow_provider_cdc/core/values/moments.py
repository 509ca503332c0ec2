"""Dates, moments and times, one token at a time."""

from __future__ import annotations

from typing import Any

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values import civil, zones
from airflow_provider_cdc.core.values.field import Field, Misfit, Reason
from airflow_provider_cdc.core.values.fit import Moment, exact, integral, unscaled_of
from airflow_provider_cdc.core.values.tokens import Number, integer_of, numeral_of, string_of

_UNITS = {
    Encoding.EPOCH_DAYS: (civil.DAY, 1),
    Encoding.EPOCH_MILLIS: (1000, 1),
    Encoding.EPOCH_MICROS: (1, 1),
    Encoding.EPOCH_NANOS: (1, 1000),
    Encoding.TIME_MILLIS: (1000, 1),
    Encoding.TIME_MICROS: (1, 1),
    Encoding.TIME_NANOS: (1, 1000),
}


def _micros(datum: Any, field: Field) -> int:
    multiply, divide = _UNITS[field.encoded.encoding]
    micros, beyond = divmod(integer_of(datum) * multiply, divide)
    if beyond:
        raise Misfit(Reason.FRACTION)
    return micros


def epoch(datum: Any, field: Field) -> Moment:
    """Read a whole number of days or of parts of a second since 1970."""
    return _since_1970(_micros(datum, field), field)


def epoch_text(datum: Any, field: Field) -> Any:
    """Read seconds or milliseconds since 1970 with a fraction, or a zero date."""
    text = numeral_of(datum)
    if text.startswith("0000-"):  # OMS writes a zero TIMESTAMP so (oceanbase-oms sheet 7.4)
        return _zero_date(text)
    digits = 6 if field.encoded.encoding is Encoding.EPOCH_SECONDS else 3
    return _since_1970(unscaled_of(exact(text), digits), field)


def _zero_date(text: str) -> str:
    try:
        civil.moment(text)
    except civil.NotOnCalendar:
        return text
    raise Misfit(Reason.NUMBER)


def _since_1970(micros: int, field: Field) -> Moment:
    civil.in_range(micros)
    zone = zones.zone_of_numbers(field)
    return Moment(zones.civil_of(micros, zone) if zone else micros)


def time(datum: Any, field: Field) -> str:
    """Read a duration."""
    return civil.time_text(_micros(datum, field), civil.fraction_digits(field.type))


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
    micros = civil.moment(string_of(datum), zone=True)
    if micros == civil.GO_ZERO and field.type.name == "timestamp":
        digits = civil.fraction_digits(field.type)
        return "0000-00-00 00:00:00" + ("." + "0" * digits if digits else "")
    return Moment(micros)


def moment(text: str, field: Field, civil_z: bool = False) -> Moment:
    """Read a date or date-time, in its zone if it shows an instant."""
    micros = civil.moment(text, civil_z=civil_z)
    zone = zones.zone_of_texts(field)
    return Moment(*zones.instant_of(micros, zone)) if zone else Moment(micros)


def moment_text(datum: Any, field: Field) -> Any:
    """Read a date-time in one of several forms."""
    if isinstance(datum, Number):
        return _since_1970(integral(datum) * 1000, field)
    text = string_of(datum)
    if not is_civil(text):
        return _since_1970(unscaled_of(exact(text), 6), field)
    day, _, rest = text.partition(" ")
    clock, _, zone = rest.partition(" ")
    if zone:
        return _named_zone(f"{day} {clock}", zone, field)
    try:
        return moment(text, field)
    except civil.NotOnCalendar:
        return datum  # given up, or kept as text, by what the target is


def _named_zone(text: str, zone: str, field: Field) -> Moment:
    moment = Moment(*zones.instant_of(civil.moment(text), zone))
    if field.type.name == "timestamp":
        return moment
    own = zones.zone_of_numbers(field)
    if not own:
        raise Misfit(Reason.ZONE)  # a civil time without its zone would be another one
    return Moment(zones.civil_of(moment.micros, own))


def is_civil(text: str) -> bool:
    """Say whether a text is a date or a date-time, not a number."""
    return "-" in text[1:]
