# SPDX-License-Identifier: Apache-2.0
"""Parse and write dates and times, one value at a time, for the whole range of MySQL (year 0 included)."""

from __future__ import annotations

import re

from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.fields import ConversionError, Reason

SECOND = 1_000_000
DAY = 86_400 * SECOND
FIRST_DAY, LAST_DAY = -719_528, 2_932_896  # 0000-01-01, 9999-12-31
MAX_TIME = (838 * 3600 + 59 * 60 + 59) * SECOND + 999_999
GO_ZERO = -62_135_596_800 * SECOND  # 0001-01-01, a zero date in Go (docs/wire/debezium-dtle.md A3)
# ranges of :func:`year_since_1900` and the offset to the year: 0, 2000 to 2155, 1970 on, 1901 on
YEARS_SINCE_1900 = ((-1900, -1900, 1900), (100, 255, 1900), (1970, 1999, 0), (2001, 2069, -100))

_ZONE = r"(?P<zone>Z|[+-][0-9]{2}(?::?[0-9]{2})?)?"
_CLOCK = r"(?P<h>[0-9]{2})(?::(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2})(?:\.(?P<f>[0-9]{1,9}))?)?)?"
_DATE = r"(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_DATETIME = re.compile(rf"{_DATE}(?:[ T]{_CLOCK})?{_ZONE}")
_TIME = re.compile(
    r"(?P<sign>-?)(?P<h>[0-9]{2,3}):(?P<m>[0-9]{2})(?::(?P<s>[0-9]{2})(?:\.(?P<f>[0-9]{1,9}))?)?", re.ASCII
)
_NANOS = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[ T][0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6})([0-9]{1,3})(?![0-9])")
MOST_DIGITS = 6  # of a second's fraction, in the databases' types
_MONTHS = (0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class NotOnCalendar(ConversionError):
    """Signal a date that MySQL can store but no calendar has: zero parts, 31 February.

    :param zero: whether all parts are zero.
    """

    def __init__(self, zero: bool) -> None:
        super().__init__(Reason.DATE)
        self.zero = zero


def fraction_digits(column: ColumnType) -> int:
    """Return the fraction digits of a second that a column prints."""
    digits = column.length or 0
    if column.name not in ("time", "datetime", "timestamp") or not 0 <= digits <= MOST_DIGITS:
        raise ConversionError(Reason.TARGET)
    return digits


def days_of(year: int, month: int, day: int) -> int:
    """Return days since 1970-01-01 in the proleptic Gregorian calendar."""
    if month > 12 or day > 31:
        raise ConversionError(Reason.DATE)
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not month or not 1 <= day <= _MONTHS[month] + leap:
        raise NotOnCalendar(zero=year == month == day == 0)
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month + (9 if month <= 2 else -3)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year + FIRST_DAY + 60


def date_text(days: int) -> str:
    """Write a date as MySQL prints it."""
    shifted = days - FIRST_DAY - 60
    era, of_era = divmod(shifted, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    day = of_year - (153 * shifted_month + 2) // 5 + 1
    month = shifted_month + (3 if shifted_month < 10 else -9)
    return f"{year_of_era + era * 400 + (month <= 2):04d}-{month:02d}-{day:02d}"


def parse_datetime(text: str, *, zone: bool = False, local_z: bool = False) -> int:
    """Parse a date or date-time to µs since 1970.

    :param zone: require an offset.
    :param local_z: allow a Z, which then has no meaning.
    """
    match = _DATETIME.fullmatch(text)
    if match is None:
        raise ConversionError(Reason.DATE)
    offset = match["zone"]
    if (zone and (not offset or not match["h"])) or (offset and not zone and not (local_z and offset == "Z")):
        raise ConversionError(Reason.DATE)
    days = days_of(int(match["year"]), int(match["month"]), int(match["day"]))
    micros = days * DAY + (_clock(match, 23) if match["h"] else 0)
    if zone and offset != "Z":
        micros -= _offset(offset)
    return in_range(micros)


def is_local_time(text: str) -> bool:
    """Return whether a text is a date or a date-time, not a number."""
    return "-" in text[1:]


def without_nanos(text: str) -> tuple[str, int]:
    """Cut the digits after microseconds from a date-time's text; return the nanoseconds that they are."""
    match = _NANOS.match(text)
    if match is None:
        return text, 0
    return match[1] + text[match.end() :], int(match[2].ljust(3, "0"))


def in_range(micros: int) -> int:
    """Return the µs since 1970 unchanged; raise if they are out of MySQL's range of years."""
    if not FIRST_DAY * DAY <= micros < (LAST_DAY + 1) * DAY:
        raise ConversionError(Reason.RANGE)
    return micros


def datetime_text(micros: int, digits: int) -> str:
    """Write a DATETIME or TIMESTAMP as MySQL prints it."""
    days, clock = divmod(micros, DAY)
    return f"{date_text(days)} {time_text(clock, digits)}"


def duration(text: str) -> int:
    """Read a TIME as µs."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ConversionError(Reason.TIME)
    micros = _clock(match, 838)
    return -micros if match["sign"] else micros


def scaled_time(micros: int, digits: int) -> int:
    """Return the µs of a TIME whose ``digits`` fraction digits were written as µs (docs/wire/debezium-dtle.md A3)."""
    seconds, fraction = divmod(abs(micros), SECOND)
    if fraction >= 10**digits:
        raise ConversionError(Reason.FRACTION)
    scaled: int = seconds * SECOND + fraction * 10 ** (6 - digits)
    return -scaled if micros < 0 else scaled


def year_since_1900(offset: int) -> int:
    """Return the YEAR of an offset from 1900.

    An offset below 100 was made a year again by the tool as MySQL would: it is 2001 to 2069 or 1970 to 1999.

    Source: docs/wire/debezium-dtle.md A3.
    """
    for low, high, added in YEARS_SINCE_1900:
        if low <= offset <= high:
            return offset + added
    raise ConversionError(Reason.RANGE)


def time_text(micros: int, digits: int) -> str:
    """Write a TIME with the declared fraction digits."""
    if abs(micros) > MAX_TIME:
        raise ConversionError(Reason.RANGE)
    seconds, fraction = divmod(abs(micros), SECOND)
    shown, lost = divmod(fraction, 10 ** (6 - digits))
    if lost:
        raise ConversionError(Reason.FRACTION)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{'-' if micros < 0 else ''}{clock}" + (f".{shown:0{digits}d}" if digits else "")


def _clock(match: re.Match[str], max_hour: int) -> int:
    hour, minute, second = int(match["h"]), int(match["m"] or 0), int(match["s"] or 0)
    if hour > max_hour or minute > 59 or second > 59:
        raise ConversionError(Reason.DATE if max_hour == 23 else Reason.TIME)
    micros, beyond = divmod(int((match["f"] or "").ljust(9, "0")), 1000)
    if beyond:
        raise ConversionError(Reason.FRACTION)
    return ((hour * 60 + minute) * 60 + second) * SECOND + micros


def _offset(text: str) -> int:
    hours, minutes = int(text[1:3]), int(text[3:].lstrip(":") or 0)
    if hours > 23 or minutes > 59:
        raise ConversionError(Reason.DATE)
    return (hours * 60 + minutes) * 60 * SECOND * (-1 if text[0] == "-" else 1)
