# SPDX-License-Identifier: Apache-2.0
"""Read Oracle's data types; what they mean is as :mod:`core.formats.oms.columns` has it for rows."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_cdc.core.ddl.reader import TokenReader, words
from airflow_provider_cdc.core.ddl.tokens import Kind
from airflow_provider_cdc.core.model.schema import ColumnType

_TEXT = ColumnType("longtext")
_BYTES = ColumnType("longblob")
_PRECISION = 38  # of NUMBER, and of DECIMAL in Delta
_MICROSECONDS = 6
_INTEGERS = frozenset({"INTEGER", "INT", "SMALLINT"})  # NUMBER(38)
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})  # NUMBER with scale 0 where none is stated
_FLOATS = frozenset({"FLOAT", "REAL"})  # NUMBER with a binary precision and any scale
_PADDED = frozenset({"CHAR", "CHARACTER", "NCHAR"})
_VARYING = frozenset({"VARCHAR2", "VARCHAR", "NVARCHAR2", "CLOB", "NCLOB"})
_OTHER_TEXT = frozenset({"ROWID", "UROWID", "XMLTYPE"})
_BINARY = {"BINARY_FLOAT": ColumnType("float"), "BINARY_DOUBLE": ColumnType("double")}
_LENGTH_UNITS = words("BYTE CHAR")


@dataclass(frozen=True, slots=True)
class Declared:
    """Hold a type as a statement declares it.

    :param type: the column type of its values.
    :param family: ``number``, ``binary`` (floating point), ``char`` (padded with blanks), ``text``, ``datetime``
        (without a zone) or ``other``; it decides which defaults are possible.
    :param length: characters or bytes of a padded text.
    """

    type: ColumnType
    family: str
    length: int | None = None

    @property
    def any_scale(self) -> bool:
        """True for a decimal number of any scale: it is stored as text, with the digits that the tool writes."""
        return self.family == "number" and self.type == _TEXT


def read_type(reader: TokenReader) -> Declared:
    """Read a data type.

    :raises DdlError: it is a user-defined or an unknown type.
    """
    if _accept_geometry(reader):
        return Declared(ColumnType("geometry"), "other")
    if reader.peek().kind is not Kind.NAME:
        raise reader.error("a column type")
    word = reader.peek().word
    if word == "NUMBER" or word in _DECIMALS | _INTEGERS | _FLOATS or word == "DOUBLE":
        return Declared(_number(reader), "number")
    if word in _PADDED or word == "NATIONAL":
        return _padded(reader)
    if word in ("DATE", "TIMESTAMP", "INTERVAL"):
        return _date_or_interval(reader)
    reader.take()
    if word in _VARYING:
        _length(reader)
        return Declared(_TEXT, "text")
    if word == "LONG":
        return Declared(_BYTES, "other") if reader.accept("RAW") else Declared(_TEXT, "text")
    if word in ("BLOB", "BFILE", "RAW") or word in _OTHER_TEXT:
        _length(reader)
        return Declared(_TEXT if word in _OTHER_TEXT else _BYTES, "other")
    if word in _BINARY:
        return Declared(_BINARY[word], "binary")
    raise reader.error(f"a known column type instead of {word[:20]!r}")


def _accept_geometry(reader: TokenReader) -> bool:
    """Read SDO_GEOMETRY, qualified or not, quoted or not."""
    ahead = 2 if reader.peek().value.upper() == "MDSYS" and reader.peek(1).word == "." else 0
    if reader.peek(ahead).kind is Kind.STRING or reader.peek(ahead).value.upper() != "SDO_GEOMETRY":
        return False
    for _ in range(ahead + 1):
        reader.take()
    return True


def _number(reader: TokenReader) -> ColumnType:
    word = reader.take().word
    if word in _INTEGERS:
        return ColumnType("decimal", _PRECISION, 0)
    if word in _FLOATS or word == "DOUBLE":
        if word == "DOUBLE":
            reader.expect("PRECISION")
        _length(reader)
        return _TEXT
    if not reader.accept("("):
        return _TEXT if word == "NUMBER" else ColumnType("decimal", _PRECISION, 0)
    every = reader.accept("*")  # NUMBER(*,s)
    precision = _PRECISION if every else reader.integer()
    scale = 0
    stated = reader.accept(",")
    if stated:
        sign = -1 if reader.accept("-") else 1
        scale = sign * reader.integer()
    reader.expect(")")
    if every and not stated:
        return _TEXT
    # a negative scale rounds to tens, hundreds, ...; a scale above the precision leaves zeros after the point
    digits, scale = (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)
    return ColumnType("decimal", digits, scale) if digits <= _PRECISION else _TEXT


def _padded(reader: TokenReader) -> Declared:
    reader.accept("NATIONAL")
    if not reader.accept_any(_PADDED):
        raise reader.error("CHAR or CHARACTER")
    varying = reader.accept("VARYING")
    length = _length(reader)
    return Declared(_TEXT, "text") if varying else Declared(_TEXT, "char", 1 if length is None else length)


def _date_or_interval(reader: TokenReader) -> Declared:
    if reader.accept("DATE"):
        return Declared(ColumnType("datetime"), "datetime")  # it has a time of day, in seconds
    if reader.accept("INTERVAL"):
        for _ in range(2):
            if not reader.accept_any(("YEAR", "MONTH", "DAY", "SECOND")):
                raise reader.error("YEAR TO MONTH or DAY TO SECOND")
            _length(reader)
            reader.accept("TO")
        return Declared(_TEXT, "other")
    reader.expect("TIMESTAMP")
    digits = _length(reader)
    fraction = _MICROSECONDS if digits is None else min(digits, _MICROSECONDS)
    if not reader.accept("WITH"):
        return Declared(ColumnType("datetime", fraction), "datetime")
    local = reader.accept("LOCAL")
    reader.expect("TIME", "ZONE")
    return Declared(ColumnType("timestamp", fraction) if local else _TEXT, "other")


def _length(reader: TokenReader) -> int | None:
    """Read ``(n)``, ``(n BYTE)`` or ``(n CHAR)`` if it comes next."""
    if not reader.accept("("):
        return None
    length = reader.integer()
    reader.accept_any(_LENGTH_UNITS)
    reader.expect(")")
    return length
