# SPDX-License-Identifier: Apache-2.0
"""Write Avro values as members of a JSON image: text as it is, numbers and times as text, bytes as base64; all exact.

Records that stand for one value are recognised by their fields: those of docs/wire/huawei-drs.md A. Other records,
arrays and maps are refused when they are met.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from math import isfinite
from operator import gt, itemgetter
from typing import Any

from airflow_provider_cdc.core.formats.common.epoch_times import MAX_SECONDS
from airflow_provider_cdc.core.formats.drs.avro_reader import AvroType
from airflow_provider_cdc.core.values.fields import ConversionError, Reason
from airflow_provider_cdc.core.values.shared import calendar, charsets

# bytes become base64 when the image is written, and until then show which columns are bytes
Token = str | bytes | bool | None
Render = Callable[[Any], Token]
RenderAll = Callable[[Iterable[Any]], list[Token]]

# what an enum symbol gives that says "not carried"; of the rarest kind of tokens, so that it is seldom looked for
ABSENT = b"\0absent"
_PYTHON: dict[str, type] = {
    "null": type(None),
    "boolean": bool,
    **dict.fromkeys(("int", "long"), int),
    **dict.fromkeys(("float", "double"), float),
    "bytes": bytes,
    "string": str,
    "array": list,
    "map": dict,
}
_is_number = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?").fullmatch
# the largest parts of a local time, the hour as MySQL's TIME has it
_PARTS = {"year": 9999, "month": 12, "day": 31, "hour": 838, "minute": 59, "second": 59}
_DATE, _CLOCK = "%04d-%02d-%02d", "%02d:%02d:%02d"
# which of the parts are there -> where they stand, and their text
_LOCAL = {
    (True, True, True, True, True, True): (slice(0, 6), f"{_DATE} {_CLOCK}"),
    (True, True, True, False, False, False): (slice(0, 3), _DATE),
    (False, False, False, True, True, True): (slice(3, 6), _CLOCK),
    (True, False, False, False, False, False): (slice(0, 1), "%d"),
}
_LARGEST = tuple(_PARTS.values())
_local_parts = itemgetter(*_PARTS, "millis")
_INSTANT = frozenset({"timestamp", "millis"})
_UNREADABLE = frozenset({"timestamp-nanos", "local-timestamp-nanos", "duration", "big-decimal"})


def renderer(kind: AvroType, symbols: Mapping[str, Token]) -> Render:
    """Return a function that makes tokens of a type's values; it raises ValueError or ConversionError.

    :param symbols: what enum symbols mean: None for NULL, :data:`ABSENT`.
    """
    if kind.kind == "union":
        named, plain = _branches(kind, symbols)
        return lambda value: named[value[0]](value[1]) if value.__class__ is tuple else plain[value.__class__](value)
    if kind.logical in _UNREADABLE:
        return partial(_refused, kind)
    match kind.kind:
        case "null" | "boolean" | "string":
            return _same
        case "int" | "long":
            return _WHOLE.get(kind.logical, str)
        case "float" | "double":
            return _float
        case "bytes" | "fixed":
            return partial(_decimal, kind.scale) if kind.logical == "decimal" else _same
        case "enum":
            return partial(_symbol, symbols)
        case "record":
            return _record(kind, symbols)
    return partial(_refused, kind)


def renderer_of_all(kind: AvroType, symbols: Mapping[str, Token]) -> RenderAll:
    """Return what makes tokens of many values of a type, each as :func:`renderer` has it."""
    if kind.kind != "union":
        render = renderer(kind, symbols)
        return lambda values: list(map(render, values))
    named, plain = _branches(kind, symbols)
    # the same without a call for each value
    return lambda values: [
        named[value[0]](value[1]) if value.__class__ is tuple else plain[value.__class__](value) for value in values
    ]


def has_instants(kind: AvroType) -> bool:
    """Say whether values can be instants, which become seconds since the epoch."""
    if kind.kind == "record" and kind.fields.keys() == _INSTANT:
        return True
    inner = (*kind.parts, *kind.fields.values())
    return kind.logical in ("timestamp-millis", "timestamp-micros") or any(map(has_instants, inner))


def _branches(kind: AvroType, symbols: Mapping[str, Token]) -> tuple[dict[str, Render], dict[type, Render]]:
    """Return renderers of a union by the named type, which is next to the value, and by the value's own class."""
    named: dict[str, Render] = {}
    plain: dict[type, Render] = {}
    for branch in kind.parts:
        if branch.name:
            named[branch.name] = renderer(branch, symbols)
            continue
        like = _PYTHON[branch.kind]
        # of an int and a long only one may mean more than a number, else the value does not show which it is
        twice = any(_PYTHON.get(b.kind) is like and b.logical != branch.logical for b in kind.parts if not b.name)
        plain[like] = partial(_refused, branch) if twice else renderer(branch, symbols)
    return named, plain


def _record(kind: AvroType, symbols: Mapping[str, Token]) -> Render:
    names = kind.fields.keys()
    kinds = {name: {branch.kind for branch in part.branches} for name, part in kind.fields.items()}
    whole = all(kinds[name] <= {"int", "long"} for name in names)
    if names == _INSTANT and whole:
        return _instant
    if names == {*_PARTS, "millis"} and whole:
        return _local_time
    if names == {"charset", "value"} and kinds["charset"] == {"string"} and kinds["value"] == {"bytes"}:
        return _characters
    if "value" in names and names <= {"value", "precision", "scale", "type"}:
        value = renderer(kind.fields["value"], symbols)
        return _of_value(_numbers(value) if "precision" in names else value)
    return partial(_refused, kind)


def _of_value(render: Render) -> Render:
    if render is _same:
        return itemgetter("value")
    return lambda datum: render(datum["value"])


def _numbers(render: Render) -> Render:
    if render in (str, _float):
        return render  # gives nothing but numbers
    return _number if render is _same else lambda value: _number(render(value))


def _same(value: Any) -> Any:
    return value


def _refused(kind: AvroType, value: Any) -> Token:
    what = " ".join(filter(None, (kind.kind, kind.name, kind.logical)))
    raise ValueError(f"a value of the type {what}, whose meaning is not known")


def _float(value: float) -> str:
    if not isfinite(value):
        raise ValueError("a number that is not finite")
    return repr(value)


def _decimal(scale: int, value: bytes) -> str:
    unscaled = int.from_bytes(value, "big", signed=True)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if unscaled < 0 else text


def _symbol(symbols: Mapping[str, Token], value: str) -> Token:
    if value not in symbols:
        raise ValueError("an enum symbol whose meaning is not stated")
    return symbols[value]


def _number(text: Token) -> Token:
    if isinstance(text, str) and ((text.isdecimal() and text.isascii()) or _is_number(text)):
        return text
    if text is not None:
        raise ValueError("an invalid number")
    return None


def _characters(datum: Mapping[str, Any]) -> Token:
    raw = datum["value"]
    return None if raw is None else _decoder(datum["charset"])(raw)


@lru_cache(maxsize=256)
def _decoder(charset: str | None) -> Callable[[bytes], Token]:
    if not charset:
        raise ValueError("characters without their character set")
    if charset.lower() == "binary":
        return bytes
    return _utf8 if charsets.is_utf8(charset) else charsets.decoder(charset)


def _utf8(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ConversionError(Reason.TEXT) from None


def _instant(datum: Mapping[str, Any]) -> Token:
    seconds, millis = datum["timestamp"], datum["millis"] or 0
    # a larger number is of another unit
    if seconds is None or not 0 <= seconds <= MAX_SECONDS or not 0 <= millis <= 999:
        raise ValueError("an invalid time stamp")
    return f"{seconds}.{millis:03d}" if millis else str(seconds)


def _local_time(datum: Mapping[str, Any]) -> Token:
    """Return a date, a time, both, or a year alone, by what is there."""
    return _local_text(*_local_parts(datum))


@lru_cache(maxsize=4096)  # dates are few, and an update has most times twice
def _local_text(*parts: int | None) -> str:
    there = tuple([part is not None for part in parts[:6]])
    millis = parts[6] or 0
    if there not in _LOCAL or not 0 <= millis <= 999 or (millis and not there[5]):
        raise ValueError("a local time of which parts are missing")
    where, form = _LOCAL[there]
    stated: Any = parts[where]
    if min(stated) < 0 or any(map(gt, stated, _LARGEST[where])):
        raise ValueError("an invalid local time")
    text = form % stated
    return f"{text}.{millis:03d}" if millis else text


def _date(days: int) -> str:
    if not calendar.FIRST_DAY <= days <= calendar.LAST_DAY:
        raise ValueError("a date out of range")
    return calendar.date_text(days)


def _seconds(per_second: int, value: int) -> str:
    seconds, fraction = divmod(abs(value), per_second)
    sign = "-" if value < 0 else ""
    return f"{sign}{seconds}.{str(fraction).rjust(len(str(per_second)) - 1, '0')}"


_WHOLE: dict[str, Render] = {
    "date": _date,
    "time-millis": lambda value: calendar.time_text(value * 1000, 3),
    "time-micros": lambda value: calendar.time_text(value, 6),
    "timestamp-millis": partial(_seconds, 1000),
    "timestamp-micros": partial(_seconds, 1_000_000),
    "local-timestamp-millis": lambda value: calendar.datetime_text(calendar.in_range(value * 1000), 3),
    "local-timestamp-micros": lambda value: calendar.datetime_text(calendar.in_range(value), 6),
}
