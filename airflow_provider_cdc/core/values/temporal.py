"""Whole columns of dates, moments and times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values import civil, zones
from airflow_provider_cdc.core.values.exact import PLAIN, from_texts, only, unscaled
from airflow_provider_cdc.core.values.field import AMBIGUOUS_TIME, FRACTION_CUT, ZERO_DATE, Field, Misfit, Reason

_PER_UNIT = {Encoding.EPOCH_DAYS: civil.DAY, Encoding.EPOCH_MILLIS: 1000, Encoding.TIME_MILLIS: 1000}
_NANOS = frozenset({Encoding.EPOCH_NANOS, Encoding.TIME_NANOS})
_DECIMALS = {Encoding.EPOCH_SECONDS: 6, Encoding.EPOCH_MILLIS_TEXT: 3}  # digits from the unit to µs
_ZERO_TEXTS = pa.array(
    ["0000-00-00", "0000-00-00 00:00:00", *("0000-00-00 00:00:00." + "0" * digits for digits in range(1, 7))]
)


def epoch(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert numbers since 1970 to a date, a moment, or the text of one."""
    target = field.target
    if field.encoded.encoding is Encoding.EPOCH_DAYS and pa.types.is_date32(target):
        days = pa.array(values, pa.int32())
        _within(days, civil.FIRST_DAY, civil.LAST_DAY)
        return days.view(target)
    micros = _micros(values, field.encoded.encoding)
    _within_years(micros)
    zone = zones.zone_of_numbers(field)
    if zone:
        micros = _within_years(zones.civil_column(micros, zone))
    if pa.types.is_timestamp(target):
        return micros.view(target)
    if pa.types.is_date32(target):
        return _dates(micros)
    if not pa.types.is_string(target):
        raise Misfit(Reason.TARGET)
    if field.type.name == "date":
        return _dates(micros).cast(target)
    return moment_texts(micros.view(pa.timestamp("us")), civil.fraction_digits(field.type))


def time(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert durations to the text of a TIME."""
    if not pa.types.is_string(field.target):
        raise Misfit(Reason.TARGET)
    digits = civil.fraction_digits(field.type)
    micros = _micros(values, field.encoded.encoding)
    if field.encoded.encoding is Encoding.TIME_MICROS_UNSCALED:
        micros = _scaled_times(micros, digits)
    return time_texts(micros, digits)


def years(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert years that had 1900 taken off."""
    if not pa.types.is_signed_integer(field.target):
        raise Misfit(Reason.TARGET)
    numbers = pa.array(values, pa.int64())
    added = pa.nulls(len(numbers), pa.int64())
    for low, high, more in civil.YEARS_SINCE_1900:
        inside = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
        added = pc.if_else(inside, more, added)
    if added.null_count != numbers.null_count:
        raise Misfit(Reason.RANGE)
    return pc.add(numbers, added).cast(field.target)


def iso(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    """Convert ISO 8601 texts without an offset."""
    texts = pa.array(values, pa.string())
    if field.type.name == "time":
        return _time_iso(texts, civil.fraction_digits(field.type))
    if len(texts) and (pc.any(pc.ends_with(texts, "Z"))).as_py():
        texts = pc.replace_substring_regex(texts, "Z$", "")
    return moments(texts, field, lost)


def zoned(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert ISO 8601 texts with an offset; Arrow demands one."""
    moments_utc = pa.array(values, pa.string()).cast(pa.timestamp("us", "UTC"))
    micros = _within_years(moments_utc.view(pa.int64()))
    if field.type.name == "timestamp" and pc.min(micros).as_py() == civil.GO_ZERO:
        raise Misfit(Reason.DATE)  # a zero date among them
    if pa.types.is_timestamp(field.target):
        return moments_utc.view(field.target)
    if pa.types.is_string(field.target) and field.type.name != "date":
        return moment_texts(moments_utc.view(pa.timestamp("us")), civil.fraction_digits(field.type))
    raise Misfit(Reason.TARGET)


def moments(texts: pa.Array, field: Field, lost: Counter[str]) -> pa.Array:
    """Convert dates and date-times as the database prints them."""
    target, zone = field.target, zones.zone_of_texts(field)
    if not (pa.types.is_date32(target) or pa.types.is_timestamp(target) or (zone and pa.types.is_string(target))):
        raise Misfit(Reason.TARGET)  # ISO texts for a text column are rewritten one by one
    zero = pc.is_in(texts, _ZERO_TEXTS)
    count = pc.sum(zero).as_py()
    if count:
        if pa.types.is_string(target):
            raise Misfit(Reason.DATE)  # they stay as they are
        texts = pc.if_else(zero, None, texts)
    result, cut = (texts.cast(target), 0) if pa.types.is_date32(target) else _moments_and_cuts(texts)
    if not pa.types.is_date32(target):
        result = _within_years(result.view(pa.int64()))
        if zone:
            result, twice = zones.instant_column(result, zone)
            _within_years(result)
            if twice:
                lost[AMBIGUOUS_TIME] += twice
        result = result.view(pa.timestamp("us") if pa.types.is_string(target) else target)
    if pa.types.is_string(target):
        result = moment_texts(result, civil.fraction_digits(field.type))
    lost.update({kind: number for kind, number in ((ZERO_DATE, count), (FRACTION_CUT, cut)) if number})
    return result


def _moments_and_cuts(texts: pa.Array) -> tuple[pa.Array, int]:
    """Return moments, and how many of them had nanoseconds."""
    try:
        return texts.cast(pa.timestamp("us")), 0
    except pa.ArrowInvalid:
        shorter = pc.replace_substring_regex(texts, r"(:[0-9]{2}\.[0-9]{6})[0-9]{1,3}$", r"\1")
        cut = pc.sum(pc.match_substring_regex(texts, r":[0-9]{2}\.[0-9]{6}0*[1-9][0-9]*$")).as_py() or 0
        return shorter.cast(pa.timestamp("us")), cut


def moment_texts(values: pa.Array, digits: int) -> pa.Array:
    """Write moments as MySQL prints them; ``values`` has no zone."""
    if digits < 6 and pc.any(pc.not_equal(_rest(values.view(pa.int64()), 10 ** (6 - digits)), 0)).as_py():
        raise Misfit(Reason.FRACTION)
    return pc.utf8_slice_codeunits(values.cast(pa.string()), 0, 20 + digits if digits else 19)


def time_texts(micros: pa.Array, digits: int) -> pa.Array:
    """Write durations as MySQL prints them."""
    _within(micros, -civil.MAX_TIME, civil.MAX_TIME)
    amounts = pc.abs(micros)
    if pc.any(pc.not_equal(_rest(amounts, 10 ** (6 - digits)), 0)).as_py():
        raise Misfit(Reason.FRACTION)
    seconds = pc.divide(amounts, civil.SECOND)
    parts = [
        pc.if_else(pc.less(micros, 0), "-", ""),
        _padded(pc.divide(seconds, 3600), 2),
        pa.scalar(":"),
        _padded(_rest(pc.divide(seconds, 60), 60), 2),
        pa.scalar(":"),
        _padded(_rest(seconds, 60), 2),
    ]
    if digits:
        fraction = pc.divide(_rest(amounts, civil.SECOND), 10 ** (6 - digits))
        parts += [pa.scalar("."), _padded(fraction, digits)]
    return pc.binary_join_element_wise(*parts, "")


def _dates(micros: pa.Array) -> pa.Array:
    if pc.any(pc.not_equal(_rest(micros, civil.DAY), 0)).as_py():
        raise Misfit(Reason.FRACTION)
    return pc.divide(micros, civil.DAY).cast(pa.int32()).view(pa.date32())


def _micros(values: Sequence[Any], encoding: Encoding) -> pa.Array:
    if encoding in _DECIMALS:
        return _decimals(values, _DECIMALS[encoding])
    numbers = pa.array(values, pa.int64())
    if encoding in _NANOS:
        if pc.any(pc.not_equal(_rest(numbers, 1000), 0)).as_py():
            raise Misfit(Reason.FRACTION)
        return pc.divide(numbers, 1000)
    factor = _PER_UNIT.get(encoding, 1)
    return pc.multiply_checked(numbers, factor) if factor > 1 else numbers


def _decimals(values: Sequence[Any], digits: int) -> pa.Array:
    """Return numbers, or texts of numbers, times 10^``digits``."""
    try:
        texts = pa.array(values, pa.string())
    except pa.ArrowTypeError:
        return pc.multiply_checked(pa.array(values, pa.int64()), 10**digits)
    return unscaled(from_texts(only(texts, PLAIN), pa.decimal128(18, digits)))


def _scaled_times(micros: pa.Array, digits: int) -> pa.Array:
    """Return durations whose ``digits`` of a fraction were taken for µs as they stand."""
    amounts = pc.abs_checked(micros)
    fraction = _rest(amounts, civil.SECOND)
    if pc.any(pc.greater_equal(fraction, 10**digits)).as_py():
        raise Misfit(Reason.FRACTION)
    scaled = pc.add(pc.subtract(amounts, fraction), pc.multiply(fraction, 10 ** (6 - digits)))
    return pc.if_else(pc.less(micros, 0), pc.negate(scaled), scaled)


def _time_iso(texts: pa.Array, digits: int) -> pa.Array:
    texts = pc.replace_substring_regex(texts, "Z$", "")
    fraction = rf"\.[0-9]{{{digits}}}" if digits else ""
    if not _all(pc.match_substring_regex(texts, rf"^-?(?:[0-7]?[0-9])?[0-9]:[0-5][0-9]:[0-5][0-9]{fraction}$")):
        raise Misfit(Reason.TIME)
    return texts


def _padded(numbers: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(numbers.cast(pa.string()), width, "0")


def _rest(numbers: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(numbers, pc.multiply(pc.divide(numbers, divisor), divisor))


def _all(flags: pa.Array) -> bool:
    return pc.all(flags).as_py() is not False


def _within(numbers: pa.Array, low: int, high: int) -> None:
    bounds = pc.min_max(numbers).as_py()
    if bounds["min"] is not None and not low <= bounds["min"] <= bounds["max"] <= high:
        raise Misfit(Reason.RANGE)


def _within_years(micros: pa.Array) -> pa.Array:
    _within(micros, civil.FIRST_DAY * civil.DAY, (civil.LAST_DAY + 1) * civil.DAY - 1)
    return micros
