# SPDX-License-Identifier: Apache-2.0
"""Read data types and reduce the many spellings of one type to one."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.tokens import Kind
from airflow_provider_cdc.core.model.schema import ColumnType

_SYNONYMS = {
    "int1": "tinyint",
    "int2": "smallint",
    "int3": "mediumint",
    "middleint": "mediumint",
    "int4": "int",
    "integer": "int",
    "int8": "bigint",
    "dec": "decimal",
    "numeric": "decimal",
    "fixed": "decimal",
    "number": "decimal",
    "real": "double",
    "float8": "double",
    "float4": "float",
    "character": "char",
    "nchar": "char",
    "varcharacter": "varchar",
    "varchar2": "varchar",
    "nvarchar": "varchar",
    "raw": "varbinary",
    "clob": "longtext",
    "xmltype": "longtext",
    "geomcollection": "geometrycollection",
}
ORACLE_NAMES = frozenset({"number", "varchar2", "raw", "clob"})
"""Names of Oracle's types that MariaDB knows in its Oracle mode."""
_INTEGERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_NUMBERS = _INTEGERS | {"decimal", "float", "double"}
_LENGTH_ONE = frozenset({"char", "binary", "bit"})
_LENGTH_NEEDED = frozenset({"varchar", "varbinary"})
_FRACTION = frozenset({"datetime", "timestamp", "time"})
WITH_CHARSET = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
_SPATIAL = frozenset(
    {"geometry", "point", "linestring", "polygon"}
    | {"multipoint", "multilinestring", "multipolygon", "geometrycollection"}
)
_BARE = (
    _SPATIAL
    | {"date", "json", "uuid", "inet4", "inet6", "tinyblob", "mediumblob", "longblob"}
    | {"tinytext", "mediumtext", "longtext"}
)
_WITH_LENGTH = _INTEGERS | _LENGTH_ONE | _LENGTH_NEEDED | _FRACTION | {"text", "blob", "vector"}
_OF_CHARSET_BINARY = {
    "char": "binary",
    "varchar": "varbinary",
    "tinytext": "tinyblob",
    "text": "blob",
    "mediumtext": "mediumblob",
    "longtext": "longblob",
}
BYTES = frozenset(_OF_CHARSET_BINARY.values())
"""Types of bytes that a text column becomes with the character set binary."""
_BYTES_PER_CHARACTER = {
    **dict.fromkeys(("utf8mb4", "utf16", "utf16le", "utf32", "gb18030"), 4),
    **dict.fromkeys(("utf8", "utf8mb3", "ujis", "eucjpms"), 3),
    **dict.fromkeys(("ucs2", "gbk", "gb2312", "big5", "sjis", "cp932", "euckr"), 2),
}
_SIZES = ((0xFF, "tiny"), (0xFFFF, ""), (0xFFFFFF, "medium"))


def read_type(reader: TokenReader) -> ColumnType:
    """Read a data type with its attributes; :func:`settle` completes it when the table's character set is known."""
    spelling = _spelling(reader)
    if spelling in ("bool", "boolean"):
        return ColumnType("tinyint", 1)
    if spelling == "serial":
        return ColumnType("bigint", unsigned=True)
    if spelling in ("enum", "set"):
        column_type = ColumnType(spelling, labels=_labels(reader))
    elif spelling == "year":
        _arguments(reader, 1)
        column_type = ColumnType("year")
    else:
        national = spelling in ("nchar", "nvarchar")
        column_type = _sized(reader, spelling)
        column_type = replace(column_type, charset="utf8") if national else column_type
    return _attributes(reader, column_type)


def settle(column_type: ColumnType, table_charset: str | None) -> ColumnType:
    """Return the type that the server derives from a declaration.

    ``text(n)`` gets the type for its size; text with the character set binary becomes bytes. Without a stated character
    set it is utf8mb4.
    """
    charset = (column_type.charset or table_charset or "utf8mb4").lower()
    if column_type.name in ("text", "blob") and column_type.length is not None:
        width = _BYTES_PER_CHARACTER.get(charset, 1) if column_type.name == "text" else 1
        size = column_type.length * width
        prefix = next((name for limit, name in _SIZES if size <= limit), "long") if size else ""
        column_type = replace(column_type, name=prefix + column_type.name, length=None)
    if charset == "binary" and column_type.name in _OF_CHARSET_BINARY:
        column_type = replace(column_type, name=_OF_CHARSET_BINARY[column_type.name], charset=None)
    return column_type


def takes_arguments(column_type: ColumnType) -> bool:
    """Return whether a length, digits or labels decide what values of a type are."""
    return column_type.name not in _BARE and column_type.name != "year"


def read_charset(reader: TokenReader) -> str | None:
    """Read the value after CHARACTER SET: a name or a string; None for DEFAULT."""
    reader.accept("=")
    if reader.accept("DEFAULT"):
        return None
    return (reader.string() if reader.at_string() else reader.name("a character set")).lower()


def read_collation(reader: TokenReader) -> str | None:
    """Read the value after COLLATE; return its character set if the name begins with one."""
    collation = read_charset(reader)
    if collation is None or collation.startswith("uca1400"):
        return None
    return collation.split("_")[0]


def accept_charset(reader: TokenReader) -> bool:
    """Read CHARACTER SET, CHAR SET or CHARSET if it comes next."""
    return reader.accept("CHARACTER", "SET") or reader.accept("CHAR", "SET") or reader.accept("CHARSET")


def _spelling(reader: TokenReader) -> str:
    if reader.peek().kind is not Kind.NAME:
        raise reader.error("a column type")
    first = reader.take().word
    if first == "LONG":
        if reader.accept("VARBINARY"):
            return "mediumblob"
        if reader.accept_any(("VARCHAR", "VARCHARACTER")):
            return "mediumtext"
        if reader.accept_any(("CHAR", "CHARACTER")):
            reader.expect("VARYING")
        return "mediumtext"
    national = first in ("NATIONAL", "NCHAR", "NVARCHAR")
    if first == "NATIONAL":
        first = reader.accept_any(("CHAR", "CHARACTER", "VARCHAR", "VARCHARACTER"))
        if not first:
            raise reader.error("CHAR or VARCHAR")
    if first in ("CHAR", "CHARACTER") and reader.accept("VARYING"):
        first = "VARCHAR"
    if first == "NCHAR" and reader.accept_any(("VARYING", "VARCHAR", "VARCHARACTER")):
        first = "NVARCHAR"
    if national:
        return "nvarchar" if "VAR" in first else "nchar"
    if first == "DOUBLE":
        reader.accept("PRECISION")
    return first.lower()


def _sized(reader: TokenReader, spelling: str) -> ColumnType:
    name = _SYNONYMS.get(spelling, spelling)
    if spelling in reader.unknown_types:
        raise reader.error(f"a type of MySQL instead of {spelling[:20]!r}")
    if name in ("decimal", "float", "double"):
        return _number(spelling, name, _arguments(reader, 2))
    if name in _WITH_LENGTH:
        length = _arguments(reader, 1)
        if not length and name in _LENGTH_NEEDED:
            raise reader.error("a length")
        return ColumnType(name, length[0] if length else 1 if name in _LENGTH_ONE else None)
    if name in _BARE:
        return ColumnType(name)
    raise reader.error(f"a column type instead of {spelling[:20]!r}")


def _number(spelling: str, name: str, arguments: tuple[int, ...]) -> ColumnType:
    if len(arguments) == 2:
        return ColumnType(name, *arguments)
    if name == "decimal":
        if spelling == "number" and not arguments:
            return ColumnType("double")
        return ColumnType(name, arguments[0] if arguments else 10, 0)
    if name == "float" and arguments and arguments[0] > 24:
        name = "double"
    return ColumnType(name)


def _arguments(reader: TokenReader, most: int) -> tuple[int, ...]:
    if not reader.accept("("):
        return ()
    arguments = [reader.integer()]
    while len(arguments) < most and reader.accept(","):
        arguments.append(reader.integer())
    reader.expect(")")
    return tuple(arguments)


def _labels(reader: TokenReader) -> tuple[str, ...]:
    reader.expect("(")
    labels = [_label(reader)]
    while reader.accept(","):
        labels.append(_label(reader))
    reader.expect(")")
    return tuple(labels)


def _label(reader: TokenReader) -> str:
    if reader.peek().word.startswith("_"):  # a character set introducer
        reader.take()
    if reader.peek().kind is Kind.BITS:
        raise reader.error("a label")
    return reader.string().rstrip(" ")


def _attributes(reader: TokenReader, column_type: ColumnType) -> ColumnType:
    while True:
        if column_type.name in _NUMBERS and reader.accept("SIGNED"):
            continue
        if column_type.name in _NUMBERS and reader.accept_any(("UNSIGNED", "ZEROFILL")):
            column_type = replace(column_type, unsigned=True)
        elif column_type.name not in WITH_CHARSET:
            return column_type
        elif reader.accept("BYTE"):
            column_type = replace(column_type, charset="binary")
        elif reader.accept("ASCII"):
            column_type = replace(column_type, charset="latin1")
        elif reader.accept("UNICODE"):
            column_type = replace(column_type, charset="ucs2")
        elif accept_charset(reader):
            column_type = replace(column_type, charset=read_charset(reader))
        elif not reader.accept("BINARY"):
            return column_type
