# SPDX-License-Identifier: Apache-2.0
"""Convert whole columns of dates, date-times and times; twin of ``scalar/temporal.py``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values.columnar.checked_casts import PLAIN, from_texts, only, unscaled
from airflow_provider_cdc.core.values.fields import (
    AMBIGUOUS_TIME,
    FRACTION_CUT,
    ZERO_DATE,
    ConversionError,
    Field,
    Reason,
)
from airflow_provider_cdc.core.values.shared import calendar, time_zones

_PER_UNIT = {Encoding.EPOCH_DAYS: calendar.DAY, Encoding.EPOCH_MILLIS: 1000, Encoding.TIME_MILLIS: 1000}
_NANOS = frozenset({Encoding.EPOCH_NANOS, Encoding.TIME_NANOS})
_DECIMALS = {Encoding.EPOCH_SECONDS: 6, Encoding.EPOCH_MILLIS_TEXT: 3}  # decimal digits from the unit to µs
_ZERO_TEXTS = pa.array(
    ["0000-00-00", "0000-00-00 00:00:00", *("0000-00-00 00:00:00." + "0" * digits for digits in range(1, 7))]
)


def epoch(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert whole numbers of days or of parts of a second since 1970."""
    if field.encoded.encoding is Encoding.EPOCH_DAYS and pa.types.is_date32(field.target):
        days = pa.array(values, pa.int32())
        _within(days, calendar.FIRST_DAY, calendar.LAST_DAY)
        return days.view(field.target)
    return _since_1970(_micros(values, field.encoded.encoding), field)


def epoch_text(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert seconds or milliseconds since 1970 with a fraction; a zero date raises."""
    return _since_1970(_decimals(values, _DECIMALS[field.encoded.encoding]), field)


def _since_1970(micros: pa.Array, field: Field) -> pa.Array:
    """Convert µs since 1970 to a date, a date-time, or the text of one."""
    target = field.target
    _within_years(micros)
    zone = time_zones.zone_of_numbers(field)
    if zone:
        micros = _within_years(time_zones.local_time_column(micros, zone))
    if pa.types.is_timestamp(target):
        return micros.view(target)
    if pa.types.is_date32(target):
        return _dates(micros)
    if not pa.types.is_string(target):
        raise ConversionError(Reason.TARGET)
    if field.type.name == "date":
        return _dates(micros).cast(target)
    return datetime_texts(micros.view(pa.timestamp("us")), calendar.fraction_digits(field.type))


def time(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert durations to the text of a TIME."""
    digits = _time_digits(field)
    return time_texts(_micros(values, field.encoded.encoding), digits)


def unscaled_time(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert durations whose fraction lacks its trailing zeros (dtle) to the text of a TIME."""
    digits = _time_digits(field)
    return time_texts(_scaled_times(_micros(values, field.encoded.encoding), digits), digits)


def _time_digits(field: Field) -> int:
    if not pa.types.is_string(field.target):
        raise ConversionError(Reason.TARGET)
    return calendar.fraction_digits(field.type)


def year(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert YEAR values that are counted from 1900."""
    if not pa.types.is_signed_integer(field.target):
        raise ConversionError(Reason.TARGET)
    years = pa.array(values, pa.int64())
    offsets = pa.nulls(len(years), pa.int64())
    for low, high, offset in calendar.YEARS_SINCE_1900:
        inside = pc.and_(pc.greater_equal(years, low), pc.less_equal(years, high))
        offsets = pc.if_else(inside, offset, offsets)
    if offsets.null_count != years.null_count:
        raise ConversionError(Reason.RANGE)
    return pc.add(years, offsets).cast(field.target)


def iso(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    """Convert ISO 8601 texts without an offset."""
    texts = pa.array(values, pa.string())
    if field.type.name == "time":
        return _time_iso(texts, calendar.fraction_digits(field.type))
    if len(texts) and (pc.any(pc.ends_with(texts, "Z"))).as_py():
        texts = pc.replace_substring_regex(texts, "Z$", "")
    return datetime_of(texts, field, lost)


def zoned(values: Sequence[Any], field: Field, lost: Counter[str]) -> pa.Array:
    """Convert ISO 8601 texts with an offset, or all without one where their zone is stated."""
    texts = pa.array(values, pa.string())
    try:
        instants = texts.cast(pa.timestamp("us", "UTC"))  # Arrow requires an offset
    except pa.ArrowInvalid:
        if not time_zones.zone_of_texts(field):
            raise
        return datetime_of(texts, field, lost)
    if field.type.name == "timestamp" and pc.min(instants.view(pa.int64())).as_py() == calendar.GO_ZERO:
        raise ConversionError(Reason.DATE)  # there is a zero date among them
    return _of_instants(instants, field)


def instant(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert ISO 8601 texts with an offset."""
    return _of_instants(pa.array(values, pa.string()).cast(pa.timestamp("us", "UTC")), field)


def _of_instants(instants: pa.Array, field: Field) -> pa.Array:
    _within_years(instants.view(pa.int64()))
    if pa.types.is_timestamp(field.target):
        return instants.view(field.target)
    if pa.types.is_string(field.target) and field.type.name != "date":
        return datetime_texts(instants.view(pa.timestamp("us")), calendar.fraction_digits(field.type))
    raise ConversionError(Reason.TARGET)


def datetime_of(texts: pa.Array, field: Field, lost: Counter[str]) -> pa.Array:
    """Convert texts of dates and date-times as the database prints them, in their zone if they show instants."""
    target, zone = field.target, time_zones.zone_of_texts(field)
    if not (pa.types.is_date32(target) or pa.types.is_timestamp(target) or (zone and pa.types.is_string(target))):
        raise ConversionError(Reason.TARGET)  # the scalar twin rewrites ISO texts for a text column
    zero = pc.is_in(texts, _ZERO_TEXTS)
    zero_dates = pc.sum(zero).as_py()
    if zero_dates:
        if pa.types.is_string(target):
            raise ConversionError(Reason.DATE)  # zero dates stay as they are; the scalar twin does it
        texts = pc.if_else(zero, None, texts)
    result, cut = (texts.cast(target), 0) if pa.types.is_date32(target) else _datetimes_and_cuts(texts)
    if not pa.types.is_date32(target):
        result = _within_years(result.view(pa.int64()))
        if zone:
            result, ambiguous = time_zones.instant_column(result, zone)
            _within_years(result)
            if ambiguous:
                lost[AMBIGUOUS_TIME] += ambiguous
        result = result.view(pa.timestamp("us") if pa.types.is_string(target) else target)
    if pa.types.is_string(target):
        if cut:
            raise ConversionError(Reason.FRACTION)  # a text keeps nanoseconds; the scalar twin writes them
        result = datetime_texts(result, calendar.fraction_digits(field.type))
    lost.update({loss: count for loss, count in ((ZERO_DATE, zero_dates), (FRACTION_CUT, cut)) if count})
    return result


def _datetimes_and_cuts(texts: pa.Array) -> tuple[pa.Array, int]:
    """Return date-times, and how many of them lost nanoseconds."""
    try:
        return texts.cast(pa.timestamp("us")), 0
    except pa.ArrowInvalid:
        shorter = pc.replace_substring_regex(texts, r"(:[0-9]{2}\.[0-9]{6})[0-9]{1,3}$", r"\1")
        cut = pc.sum(pc.match_substring_regex(texts, r":[0-9]{2}\.[0-9]{6}0*[1-9][0-9]*$")).as_py() or 0
        return shorter.cast(pa.timestamp("us")), cut


def datetime_texts(values: pa.Array, digits: int) -> pa.Array:
    """Write date-times as MySQL prints them; ``values`` has no zone."""
    if digits < 6 and pc.any(pc.not_equal(_remainder(values.view(pa.int64()), 10 ** (6 - digits)), 0)).as_py():
        raise ConversionError(Reason.FRACTION)
    return pc.utf8_slice_codeunits(values.cast(pa.string()), 0, 20 + digits if digits else 19)


def time_texts(micros: pa.Array, digits: int) -> pa.Array:
    """Write durations as MySQL prints them."""
    _within(micros, -calendar.MAX_TIME, calendar.MAX_TIME)
    amounts = pc.abs(micros)
    if pc.any(pc.not_equal(_remainder(amounts, 10 ** (6 - digits)), 0)).as_py():
        raise ConversionError(Reason.FRACTION)
    seconds = pc.divide(amounts, calendar.SECOND)
    parts = [
        pc.if_else(pc.less(micros, 0), "-", ""),
        _padded(pc.divide(seconds, 3600), 2),
        pa.scalar(":"),
        _padded(_remainder(pc.divide(seconds, 60), 60), 2),
        pa.scalar(":"),
        _padded(_remainder(seconds, 60), 2),
    ]
    if digits:
        fraction = pc.divide(_remainder(amounts, calendar.SECOND), 10 ** (6 - digits))
        parts += [pa.scalar("."), _padded(fraction, digits)]
    return pc.binary_join_element_wise(*parts, "")


def _dates(micros: pa.Array) -> pa.Array:
    if pc.any(pc.not_equal(_remainder(micros, calendar.DAY), 0)).as_py():
        raise ConversionError(Reason.FRACTION)
    return pc.divide(micros, calendar.DAY).cast(pa.int32()).view(pa.date32())


def _micros(values: Sequence[Any], encoding: Encoding) -> pa.Array:
    ints = pa.array(values, pa.int64())
    if encoding in _NANOS:
        if pc.any(pc.not_equal(_remainder(ints, 1000), 0)).as_py():
            raise ConversionError(Reason.FRACTION)
        return pc.divide(ints, 1000)
    factor = _PER_UNIT.get(encoding, 1)
    return pc.multiply_checked(ints, factor) if factor > 1 else ints


def _decimals(values: Sequence[Any], digits: int) -> pa.Array:
    """Return integers, or decimal texts, times 10^``digits``."""
    try:
        texts = pa.array(values, pa.string())
    except pa.ArrowTypeError:
        return pc.multiply_checked(pa.array(values, pa.int64()), 10**digits)
    return unscaled(from_texts(only(texts, PLAIN), pa.decimal128(18, digits)))


def _scaled_times(micros: pa.Array, digits: int) -> pa.Array:
    """Return the µs of durations whose ``digits`` fraction digits were written as if they were µs."""
    amounts = pc.abs_checked(micros)
    fraction = _remainder(amounts, calendar.SECOND)
    if pc.any(pc.greater_equal(fraction, 10**digits)).as_py():
        raise ConversionError(Reason.FRACTION)
    scaled = pc.add(pc.subtract(amounts, fraction), pc.multiply(fraction, 10 ** (6 - digits)))
    return pc.if_else(pc.less(micros, 0), pc.negate(scaled), scaled)


def _time_iso(texts: pa.Array, digits: int) -> pa.Array:
    texts = pc.replace_substring_regex(texts, "Z$", "")
    fraction = rf"\.[0-9]{{{digits}}}" if digits else ""
    if not _all(pc.match_substring_regex(texts, rf"^-?(?:[0-7]?[0-9])?[0-9]:[0-5][0-9]:[0-5][0-9]{fraction}$")):
        raise ConversionError(Reason.TIME)
    return texts


def _padded(ints: pa.Array, width: int) -> pa.Array:
    return pc.utf8_lpad(ints.cast(pa.string()), width, "0")


def _remainder(ints: pa.Array, divisor: int) -> pa.Array:
    return pc.subtract(ints, pc.multiply(pc.divide(ints, divisor), divisor))


def _all(flags: pa.Array) -> bool:
    return pc.all(flags).as_py() is not False


def _within(ints: pa.Array, low: int, high: int) -> None:
    bounds = pc.min_max(ints).as_py()
    if bounds["min"] is not None and not low <= bounds["min"] <= bounds["max"] <= high:
        raise ConversionError(Reason.RANGE)


def _within_years(micros: pa.Array) -> pa.Array:
    _within(micros, calendar.FIRST_DAY * calendar.DAY, (calendar.LAST_DAY + 1) * calendar.DAY - 1)
    return micros
