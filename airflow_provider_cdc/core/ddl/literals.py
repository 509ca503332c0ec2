# SPDX-License-Identifier: Apache-2.0
"""Convert a literal to the value that MySQL and MariaDB store in a column, as the text that the column prints.

If the two servers differ, or settings of the session decide, the value is not certain. Literals that a server rejects
as a default are not certain either: they cannot be in a log. Sources are MySQL's manual, "Data Types", "Date
and Time Literals", "Two-Digit Years in Dates" and "Type Conversion in Expression Evaluation".
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

from airflow_provider_cdc.core.model.schema import ColumnType

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")
_CLOCK = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2})(?::(?P<second>[0-9]{1,2})(?:\.(?P<fraction>[0-9]{1,6}))?)?"
_DATE = r"(?P<year>[0-9]{4}|[0-9]{2})(?P<mark>[-/])(?P<month>[0-9]{1,2})(?P=mark)(?P<day>[0-9]{1,2})"
_DATETIME = re.compile(rf"{_DATE}(?:[ T]{_CLOCK})?")
_TIME = re.compile(rf"(?P<sign>-?)(?:(?P<days>[0-9]{{1,2}}) )?{_CLOCK.replace('{1,2}', '{1,3}', 1)}")
_COMPACT_TIME = re.compile(r"(-?)([0-9]{1,7})(?:\.([0-9]{1,6}))?")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_WIDE = Context(prec=1000, rounding=ROUND_HALF_UP)
_MOST_DIGITS, _MOST_FRACTION_DIGITS = 65, 30  # of an exact number; longer ones become floating-point numbers
_PLAIN_FLOATS = (1e-3, 1e15)  # every server prints a floating-point number between them without an exponent
_SAME_JSON = frozenset({"{}", "[]", "null", "true", "false"})  # JSON texts that no server writes in another way


class Literal(NamedTuple):
    """Hold a literal as it is written.

    :param text: a string's content, or a number's digits with sign.
    :param number: whether it is written without quotes.
    """

    text: str
    number: bool = False


def stored_text(literal: Literal, column_type: ColumnType) -> str | None:
    """Return the value that the server stores for a literal in a column of a type, None if that is not certain."""
    return _RULES.get(column_type.name, _as_written)(literal, column_type)


def _value(literal: Literal) -> Decimal | None:
    """Return the number of a literal; with an exponent it is a double, unless it is in a string."""
    text = literal.text
    if not _NUMBER.fullmatch(text):
        return None
    number = Decimal(text)
    if _is_double(literal):
        double = float(text)
        return Decimal(repr(double)) if math.isfinite(double) else None
    exponent = int(number.as_tuple().exponent)
    most = max(len(number.as_tuple().digits), number.adjusted() + 1)
    return number if most <= _MOST_DIGITS and -exponent <= _MOST_FRACTION_DIGITS else None


def _is_double(literal: Literal) -> bool:
    return literal.number and "e" in literal.text.lower()


def _integer(literal: Literal, column_type: ColumnType) -> str | None:
    value = _value(literal)
    if value is None or (column_type.unsigned and value < 0):
        return None
    if _is_double(literal) and abs(value % 1) == Decimal("0.5"):
        return None  # servers round a double's half to different sides
    return str(int(value.to_integral_value(ROUND_HALF_UP)))


def _bit(literal: Literal, column_type: ColumnType) -> str | None:
    """Return the number; for a string the server would store the codes of its characters."""
    number = _integer(literal, column_type) if literal.number else None
    return number if number is not None and 0 <= int(number) < 1 << (column_type.length or 1) else None


def _decimal(literal: Literal, column_type: ColumnType) -> str | None:
    """Return the number rounded half away from zero to the column's digits."""
    value, precision, scale = _value(literal), column_type.length or 10, column_type.scale or 0
    if value is None or (column_type.unsigned and value < 0):
        return None
    rounded = value.quantize(Decimal((0, (1,), -scale)), context=_WIDE)
    fits = abs(rounded) < Decimal((0, (1,), precision - scale))
    return f"{abs(rounded) if rounded.is_zero() else rounded:f}" if fits else None


def _floating(literal: Literal, column_type: ColumnType) -> str | None:
    """Return the digits of the double, or of the float as a double, after rounding it to the declared digits."""
    if not _NUMBER.fullmatch(literal.text):
        return None
    double = float(literal.text)
    if not math.isfinite(double) or (column_type.unsigned and double < 0):
        return None
    if column_type.scale is not None:
        power, whole = 10.0**column_type.scale, math.floor(double)
        double = whole + round((double - whole) * power) / power
        if abs(double) > 10.0 ** ((column_type.length or 0) - column_type.scale) - 1 / power:
            return None
    if column_type.name == "float":
        try:
            (double,) = struct.unpack("<f", struct.pack("<f", double))
        except OverflowError:
            return None
    return repr(double)


def _year(literal: Literal, column_type: ColumnType) -> str | None:
    """Return the year: 1 to 69 are 2001 to 2069, 70 to 99 are 1970 to 1999; 0 is 0000 as a number, 2000 as a string."""
    value = _value(literal)
    if value is None or column_type.length == 2 or value != value.to_integral_value() or value.is_signed():
        return None
    year = int(value)
    if not literal.number and (len(literal.text) not in (1, 2, 4) or not literal.text.isdecimal()):
        return None
    if year == 0:
        return "0" if literal.number or len(literal.text) == 4 else "2000"
    if not literal.number and len(literal.text) == 4 and year < 100:
        return None
    year += (2000 if year < 70 else 1900) if year < 100 else 0
    return str(year) if 1901 <= year <= 2155 else None


def _text(literal: Literal, column_type: ColumnType) -> str | None:
    """Return a string, cut only by trailing spaces, or a number as the server prints it."""
    if literal.number:
        return _printed(literal, column_type)
    text, longest = literal.text, _longest(column_type)
    if longest is None or len(text) <= longest or text[longest:].strip(" "):
        return text
    return text[:longest]


def _bytes(literal: Literal, column_type: ColumnType) -> str | None:
    """Return a string if it is ASCII; other characters depend on the session's character set."""
    if literal.number:
        return _printed(literal, column_type)
    return literal.text if literal.text.isascii() else None


def _printed(literal: Literal, column_type: ColumnType) -> str | None:
    value = _value(literal)
    if value is None:
        return None
    if _is_double(literal):
        least, most = _PLAIN_FLOATS
        if value and not least <= abs(value) < most:
            return None
        value = value.normalize(_WIDE)
    if value.is_zero() and value.is_signed():
        if literal.text.strip("-0"):
            return None
        value = abs(value)
    text, longest = f"{value:f}", _longest(column_type)
    return text if longest is None or len(text) <= longest else None


def _longest(column_type: ColumnType) -> int | None:
    if column_type.name in ("char", "binary"):
        return column_type.length or 1
    return column_type.length if column_type.name in ("varchar", "varbinary") else None


def _enum(literal: Literal, column_type: ColumnType) -> str | None:
    """Return the label; a number must be both index and text of one label, as servers look for either."""
    if literal.number:
        index = int(literal.text) if literal.text.isdecimal() and len(literal.text) < 6 else 0
        labels = column_type.labels
        return literal.text if 0 < index <= len(labels) and labels[index - 1] == literal.text else None
    return _label(literal.text.rstrip(" "), column_type.labels)


def _set(literal: Literal, column_type: ColumnType) -> str | None:
    """Return the members in the type's order; a number must be both bit and text of one member."""
    if literal.number:
        label = literal.text
        bit = 1 << column_type.labels.index(label) if label in column_type.labels else 0
        return label if bit and label == str(bit) else None
    texts = literal.text.rstrip(" ").split(",") if literal.text else []
    members = {_label(text, column_type.labels) for text in texts}
    return None if None in members else ",".join(label for label in column_type.labels if label in members)


def _label(text: str, labels: tuple[str, ...]) -> str | None:
    """Find a label; a statement that the server accepted may differ in case, if only one label then matches."""
    if text in labels:
        return text
    matches = [label for label in labels if label.casefold() == text.casefold()]
    return matches[0] if len(matches) == 1 else None


def _date(literal: Literal, column_type: ColumnType) -> str | None:
    text = _date_and_time(literal, 0)
    return None if text is None else text[:10]


def _datetime(literal: Literal, column_type: ColumnType) -> str | None:
    return _date_and_time(literal, column_type.length or 0)


def _timestamp(literal: Literal, column_type: ColumnType) -> str | None:
    """Return the zero date; every other literal is in the session's time zone, which no log states."""
    text = _date_and_time(literal, column_type.length or 0)
    return text if text is not None and text.startswith("0000-00-00") else None


def _date_and_time(literal: Literal, digits: int) -> str | None:
    """Return a date with time; fraction digits beyond those of the column must be zeros."""
    match = _DATETIME.fullmatch(_spread(literal) or "")
    if match is None:
        return None
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    hour, minute, second = (int(match[part] or 0) for part in ("hour", "minute", "second"))
    if len(match["year"]) == 2 and any((year, month, day)):
        year += 2000 if year < 70 else 1900
    fraction = _fraction(match["fraction"], digits)
    if month > 12 or day > 31 or hour > 23 or minute > 59 or second > 59 or fraction is None:
        return None
    return f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d}{fraction}"


def _spread(literal: Literal) -> str | None:
    """Insert delimiters into a date that has only digits; return any other text unchanged."""
    text = literal.text
    if not (text.isascii() and text.isdecimal()):
        return None if literal.number else text
    if literal.number:
        text = text.lstrip("0")
        if len(text) in (7, 13):
            return None  # a year below 1000: refused
        text = text.zfill(next((size for size in (6, 8, 12, 14) if len(text) <= size), 0))
    elif text == "0":
        text = "000000"
    if len(text) not in (6, 8, 12, 14):
        return None
    century, pairs = (text[:2], text[2:]) if len(text) in (8, 14) else ("", text)
    parts = [pairs[i : i + 2] for i in range(0, len(pairs), 2)]
    clock = " " + ":".join(parts[3:]) if parts[3:] else ""
    return f"{century}{'-'.join(parts[:3])}{clock}"


def _time(literal: Literal, column_type: ColumnType) -> str | None:
    """Return a time; digits without a colon are seconds, then minutes, then hours."""
    text = literal.text
    compact = _COMPACT_TIME.fullmatch(text)
    if compact is not None:
        clock, fraction = compact[2].zfill(7), f".{compact[3]}" if compact[3] else ""
        text = f"{compact[1]}{clock[:3]}:{clock[3:5]}:{clock[5:]}{fraction}"
    elif literal.number:
        return None
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    hour = int(match["days"] or 0) * 24 + int(match["hour"])
    minute, second = int(match["minute"]), int(match["second"] or 0)
    fraction_text = _fraction(match["fraction"], column_type.length or 0)
    if hour > 838 or minute > 59 or second > 59 or fraction_text is None:
        return None
    return f"{match['sign']}{hour:02d}:{minute:02d}:{second:02d}{fraction_text}"


def _fraction(text: str | None, digits: int) -> str | None:
    """Return the fraction of a second with its point, None if it must be rounded, as servers differ in that."""
    fraction, beyond = (text or "")[:digits], (text or "")[digits:]
    if beyond.strip("0"):
        return None
    return f".{fraction}" if fraction else ""


def _json(literal: Literal, column_type: ColumnType) -> str | None:
    """Return texts that MySQL, which rewrites JSON, and MariaDB, which keeps the text, print equally."""
    return literal.text if literal.text in _SAME_JSON or re.fullmatch(r"0|[1-9][0-9]{0,17}", literal.text) else None


def _uuid(literal: Literal, column_type: ColumnType) -> str | None:
    return literal.text.lower() if _UUID.fullmatch(literal.text) else None


def _as_written(literal: Literal, column_type: ColumnType) -> str | None:
    return None if literal.number else literal.text


_RULES: Mapping[str, Callable[[Literal, ColumnType], str | None]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint"), _integer),
    **dict.fromkeys(("float", "double"), _floating),
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), _text),
    **dict.fromkeys(("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"), _bytes),
    "bit": _bit,
    "decimal": _decimal,
    "year": _year,
    "enum": _enum,
    "set": _set,
    "date": _date,
    "datetime": _datetime,
    "timestamp": _timestamp,
    "time": _time,
    "json": _json,
    "uuid": _uuid,
}
