# SPDX-License-Identifier: Apache-2.0
"""Read PostgreSQL's names of types (``format_type``), as the columns of its catalogue have them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

from airflow_provider_cdc.core.model.schema import ColumnType

_TYPE = re.compile(r"(?P<name>[^(\[]+?)\s*(?:\((?P<arguments>[-\w,\s]+)\))?(?P<rest>[^(\[]*?)(?P<array>(?:\[\d*\])*)")
_SCHEMA = re.compile(r'(?:"(?:[^"]|"")+"|[^".]+)\.')
_TEXT, _BYTES, _DOCUMENT = ColumnType("longtext"), ColumnType("longblob"), ColumnType("json")
_GEOMETRY = ColumnType("geometry")
_LONGEST_BITS = 64
_LONGEST_MONEY = 38
_MILLIS = 3  # digits of a time that the connector writes in milliseconds

_PLAIN = {
    "smallint": ColumnType("smallint"),
    "integer": ColumnType("int"),
    "bigint": ColumnType("bigint"),
    "oid": ColumnType("bigint"),
    "real": ColumnType("float"),
    "double precision": ColumnType("double"),
    "boolean": ColumnType("bit", 1),
    "money": ColumnType("decimal", _LONGEST_MONEY, 2),
    "bytea": _BYTES,
    "date": ColumnType("date"),
    "json": _DOCUMENT,
    "jsonb": _DOCUMENT,
    "hstore": _DOCUMENT,
    "point": _GEOMETRY,
    "geometry": _GEOMETRY,
    "geography": _GEOMETRY,
    "timestamp with time zone": ColumnType("timestamp", 6),
}
_AS_TEXT = frozenset(
    re.split(
        r",\s*",
        """character varying, character, text, name, "char", citext, uuid, xml, ltree, tsvector, inet, cidr, macaddr,
        macaddr8, interval, int4range, int8range, numrange, tsrange, tstzrange, daterange, time with time zone""",
    )
)
_UNREAD = frozenset(
    re.split(
        r",\s*",
        """box, line, lseg, path, polygon, circle, int4multirange, int8multirange, nummultirange, tsmultirange,
        tstzmultirange, datemultirange, tsquery, pg_lsn, jsonpath, regclass, regproc, regprocedure, regoper,
        regoperator, regtype, regrole, regnamespace, regconfig, regdictionary, regcollation, txid_snapshot,
        pg_snapshot, xid, xid8, cid, tid""",
    )
)
_OFFSET = re.compile(r"(.*[+-]\d\d)(?::?(\d\d))?")


def column_type(text: str) -> ColumnType:
    """Return the type of a column by the text of ``format_type``; what people made, such as an enum, is text."""
    name, arguments, is_array = _parts(text)
    if is_array:
        return _DOCUMENT
    if name in _SIZED:
        return _SIZED[name](arguments)
    return _PLAIN.get(name, _TEXT)


def is_built_in(text: str) -> bool:
    """Return whether a type is not one that people made: an enum, a domain or a composite type."""
    name, _, _ = _parts(text)
    return name in _PLAIN or name in _SIZED or name in _AS_TEXT or name in _UNREAD


def is_unread(text: str) -> bool:
    """Return whether the connector leaves columns of a type out, unless its settings let it write their bytes."""
    name, _, is_array = _parts(text)
    return name in _UNREAD and not is_array


def prints_numbers(text: str) -> bool:
    """Return whether a number that is converted to a type is the text that the server prints, neither cut nor padded.

    A text that is too long for a ``varchar`` is refused.
    """
    name, arguments, is_array = _parts(text)
    return not is_array and (name in ("text", "character varying") or (name == "numeric" and not arguments))


def element(missing: str) -> str | None:
    """Return the item of an array of one, as ``attmissingval`` is written; None for NULL."""
    item = missing[1:-1]
    if item.startswith('"'):
        return re.sub(r"\\(.)", r"\1", item[1:-1], flags=re.DOTALL)
    return None if item == "NULL" else item


def constant(text: str, kind: ColumnType, source: str) -> str | None:
    """Return the server's text of a value as defaults are written here, None where that cannot be said.

    :param source: the type's own name.
    """
    name, _, is_array = _parts(source)
    if is_array or kind in (_DOCUMENT, _BYTES) or name in ("interval", "time with time zone", "money"):
        return None
    if kind.name == "bit":
        if name == "boolean":
            return {"t": "1", "f": "0"}.get(text)
        return str(int(text, 2)) if re.fullmatch("[01]+", text) else None
    if kind.name in ("date", "datetime", "timestamp"):
        return _moment(text, kind)
    return text if kind == _TEXT or re.fullmatch(r"-?[\d.:e+-]+", text) else None


def _moment(text: str, kind: ColumnType) -> str | None:
    """Return a date or a time of the years 1 to 9999, an instant in UTC."""
    match = _OFFSET.fullmatch(text) if kind.name == "timestamp" else None
    try:
        if kind.name != "timestamp":
            return datetime.fromisoformat(text).isoformat(" ", "auto")[: 10 if kind.name == "date" else None]
        if match is None:
            return None
        moment = datetime.fromisoformat(f"{match[1]}:{match[2] or '00'}")
        return moment.astimezone(UTC).replace(tzinfo=None).isoformat(" ", "microseconds")
    except (ValueError, OverflowError):
        return None


def _parts(text: str) -> tuple[str, tuple[int, ...], bool]:
    """Return name without its schema, arguments, and whether it is an array."""
    match = _TYPE.fullmatch(text)
    if match is None:
        return text, (), False
    name = match["name"] + match["rest"]
    if name not in _AS_TEXT:
        name = _SCHEMA.sub("", name, count=1) if _SCHEMA.match(name) else name
    parts = (match["arguments"] or "").split(",")
    arguments = tuple(int(part) for part in parts if part.strip().removeprefix("-").isdigit())
    return name, arguments, bool(match["array"])


def _numeric(arguments: tuple[int, ...]) -> ColumnType:
    if not arguments:
        return _TEXT
    digits, scale = arguments[0], arguments[1] if len(arguments) > 1 else 0
    if scale < 0:
        return ColumnType("decimal", digits - scale, 0)
    return ColumnType("decimal", max(digits, scale), scale)


def _bits(arguments: tuple[int, ...]) -> ColumnType:
    length = arguments[0] if arguments else None
    return ColumnType("bit", length) if length is not None and length <= _LONGEST_BITS else _BYTES


def _time(name: str) -> Callable[[tuple[int, ...]], ColumnType]:
    def sized(arguments: tuple[int, ...]) -> ColumnType:
        return ColumnType(name, _MILLIS if arguments and arguments[0] <= _MILLIS else 6)

    return sized


_SIZED: dict[str, Callable[[tuple[int, ...]], ColumnType]] = {
    "numeric": _numeric,
    "bit": lambda arguments: _bits(arguments or (1,)),
    "bit varying": _bits,
    "timestamp without time zone": _time("datetime"),
    "time without time zone": _time("time"),
}
