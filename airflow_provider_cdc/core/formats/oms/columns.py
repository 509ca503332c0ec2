# SPDX-License-Identifier: Apache-2.0
"""Find the encodings and types of values in OMS's text formats (docs/wire/oceanbase-oms.md 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES, INTEGERS

_ORACLE_SOURCES = frozenset({"ORACLE", "OB_ORACLE", "OB_IN_ORACLE_MODE"})
_DB2_SOURCES = frozenset({"DB2_LUW", "DB2"})
_OCEANBASE_SOURCES = frozenset({"OB_MYSQL", "OB_ORACLE", "OCEANBASE", "OB_IN_ORACLE_MODE"})
_FLOATS = frozenset({"float", "double"})
_NUMBERS = _FLOATS | {*INTEGERS, "year", "decimal"}
# type names of records whose values are binary floating point also where the source speaks Oracle's dialect
_BINARY_FLOATS = frozenset({"DOUBLE", "BINARY_FLOAT", "BINARY_DOUBLE"})

# What a record's type name means where it states no length: the smallest type of ours that holds every value of that
# name. Nothing states whether an integer is unsigned: the next wider one; BIGINT is Java's BigInteger, INT64 the long.
_TEXT = ColumnType("longtext")
_MEANINGS: dict[str, ColumnType] = {
    "TINYINT": ColumnType("smallint"),
    "SMALLINT": ColumnType("int"),
    "MEDIUMINT": ColumnType("int"),
    "INT": ColumnType("bigint"),
    "INTEGER": ColumnType("bigint"),
    "INT64": ColumnType("bigint"),
    "BIGINT": ColumnType("decimal", 38, 0),
    "BOOLEAN": ColumnType("tinyint", 1),
    "BOOL": ColumnType("tinyint", 1),
    "YEAR": ColumnType("year"),
    "FLOAT": ColumnType("float"),
    "DOUBLE": ColumnType("double"),
    "BINARY_FLOAT": ColumnType("float"),
    "BINARY_DOUBLE": ColumnType("double"),
    "BIT": ColumnType("bit", 64),
    "DATE": ColumnType("date"),
    "TIME": ColumnType("time", 6),
    "DATETIME": ColumnType("datetime", 6),
    "TIMESTAMP": ColumnType("timestamp", 6),
    "JSON": ColumnType("json"),
    **dict.fromkeys(("DECIMAL", "NUMERIC", "NUMBER"), _TEXT),  # the scale is not stated, and money is not rounded
    **dict.fromkeys(("ZONED_DATETIME", "INTERVAL_DAY_TO_SECOND", "INTERVAL_YEAR_TO_MONTH", "ROWID", "UROWID"), _TEXT),
    **dict.fromkeys(("CHAR", "NCHAR", "VARCHAR", "VARCHAR2", "NVARCHAR2", "CLOB", "NCLOB", "ENUM", "SET"), _TEXT),
    **dict.fromkeys(("TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"), _TEXT),
    **dict.fromkeys(("TINYBLOB", "BLOB", "MEDIUMBLOB", "LONGBLOB", "BFILE"), ColumnType("longblob")),
    **dict.fromkeys(("BINARY", "VARBINARY", "RAW"), ColumnType("longblob")),
}
_UNSCALED = frozenset({"DECIMAL", "NUMERIC", "NUMBER"})

# type names of records that no column of a source which speaks Oracle's dialect can have
MYSQL_TYPES = frozenset(
    {"TINYINT", "MEDIUMINT", "YEAR", "ENUM", "SET", "VARBINARY"}
    | {f"{size}{kind}" for size in ("TINY", "MEDIUM", "LONG") for kind in ("TEXT", "BLOB")}
)


def speaks_oracle(source: str | None) -> bool:
    """Say whether ``dbType`` has Oracle's types; older names count too (docs/wire/oceanbase-oms.md 10.35)."""
    return source is not None and source.upper() in _ORACLE_SOURCES


def dialect_of(source: str | None) -> str | None:
    """Return the dialect of DDL, as :func:`core.ddl.parser.parse` takes it, by a record's ``dbType``.

    MySQL where none is said; None where OceanBase or MySQL is: OceanBase has some of Oracle's names of types too.
    """
    if source is None:
        return "mysql"
    if source.upper() in _DB2_SOURCES:
        return "db2"
    return "oracle" if speaks_oracle(source) else None


def is_oceanbase(source: str | None) -> bool:
    """Say whether a record's ``dbType`` names an OceanBase tenant, whose database stands behind the tenant's name."""
    return source is not None and source.upper() in _OCEANBASE_SOURCES


def encoding(
    name: str, column: ColumnType, *, said: str | None = None, oracle: bool = False, zone: str | None = None
) -> Encoded:
    """Return how a column stands in the images.

    :param said: the record's own name of its type, if it says one.
    :param oracle: whether the source speaks Oracle's dialect.
    :param zone: time zone of local times that stand for instants.
    :raises DataError: OMS does not say how it writes this type, or the column's type would round its values.
    """
    kind = column.name
    word = None if said is None else said.upper().partition("(")[0].strip()
    if kind in GEOMETRIES:
        raise DataError(
            "format.type_unknown",
            f"OMS does not say how it writes a {kind}",
            where={"column": name},
            hint="state the column as LONGTEXT under tables.<name>.create to keep what it writes",
        )
    if oracle and kind in _FLOATS and word not in _BINARY_FLOATS:
        raise DataError(
            "format.type_rounds",
            f"NUMBER and FLOAT of an Oracle tenant are decimal, a {kind} would round them",
            where={"column": name},
            hint="state the column as DECIMAL(p,s), or as LONGTEXT to keep all digits, under tables.<name>.create",
        )
    if kind in _NUMBERS:
        return Encoded(name, Encoding.NUMBER)
    if kind == "bit":
        return Encoded(name, Encoding.BITS_BE)  # zero bytes may be missing in front (docs/wire/oceanbase-oms.md 7.4)
    if kind in BINARIES:
        return Encoded(name, Encoding.BASE64)
    if kind == "time":
        return Encoded(name, Encoding.ISO_TEXT)  # zeros at the end of its fraction are left out
    if kind == "timestamp" and said is None and not oracle:
        return Encoded(name, Encoding.EPOCH_SECONDS, zone=zone)
    if kind in ("datetime", "timestamp"):
        return Encoded(name, Encoding.MIXED_DATETIME, zone=zone)  # local time (maybe with zone), seconds or millis
    return Encoded(name, Encoding.NUMBER if word in _UNSCALED else Encoding.TEXT)


def inferred_schema(
    names: Sequence[str], key: Sequence[str] | None, types: Mapping[str, str], *, oracle: bool = False
) -> TableSchema | None:
    """Return a schema for every value of columns whose type names the record states, None if one is not certain.

    :param key: the key's columns, empty without a key, None where the record's are not those of the row.
    :param types: type name by column; all columns must have one.
    """
    if key is None or any(name not in types for name in names):
        return None
    kinds = {name: column_type(types[name], oracle=oracle) for name in names}
    # a DECIMAL kept as text may be spelled in two ways: it cannot tell rows apart
    identity = key or names
    if None in kinds.values() or any(_is_unscaled(types[name]) for name in identity):
        return None
    columns = tuple(Column(number, name, kind) for number, (name, kind) in enumerate(kinds.items(), 1) if kind)
    ids = {column.name: column.id for column in columns}
    return TableSchema(columns, tuple(ids[name] for name in key))


def column_type(said: str, *, oracle: bool = False) -> ColumnType | None:
    """Return a type that holds every value of a record's type name, None for a name without a known meaning."""
    word = said.upper().partition("(")[0].strip()
    if "(" in said and (word in _UNSCALED or not oracle):
        try:
            return parse_type(said)
        except DataError:
            return None
    if oracle and word == "FLOAT":
        return _TEXT  # decimal there
    if oracle and word == "DATE":
        return ColumnType("datetime", 6)  # has a time of day there
    return _MEANINGS.get(word)


def _is_unscaled(said: str) -> bool:
    return said.upper().strip() in _UNSCALED
