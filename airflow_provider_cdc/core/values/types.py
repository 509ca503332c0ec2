# SPDX-License-Identifier: Apache-2.0
"""Map source types to the Arrow types that hold them without loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

import pyarrow as pa

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import ColumnType

if TYPE_CHECKING:
    from airflow_provider_cdc.core.config import RunPolicy

INTEGERS = ("tinyint", "smallint", "mediumint", "int", "bigint")
GEOMETRIES = frozenset(
    {
        "geometry",
        "point",
        "linestring",
        "polygon",
        "multipoint",
        "multilinestring",
        "multipolygon",
        "geometrycollection",
        "geomcollection",
    }
)
BINARIES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
MAX_DIGITS = 38  # of decimal128
_MAX_BINARY = 255
UNSIGNED_BIGINT = pa.decimal128(20, 0)

_SIGNED = dict(zip(INTEGERS, (pa.int8(), pa.int16(), pa.int32(), pa.int32(), pa.int64()), strict=True))
_UNSIGNED = dict(zip(INTEGERS, (pa.int16(), pa.int32(), pa.int32(), pa.int64(), UNSIGNED_BIGINT), strict=True))
_PLAIN = {
    "float": pa.float32(),
    "double": pa.float64(),
    "year": pa.int16(),
    "vector": pa.list_(pa.float32()),
    **dict.fromkeys(GEOMETRIES | BINARIES, pa.binary()),
}
_DATES = {"date": pa.date32(), "datetime": pa.timestamp("us"), "timestamp": pa.timestamp("us", "UTC")}


@dataclass(frozen=True, slots=True)
class TypeOptions:
    """Hold the lossy or unusual choices of a pipeline.

    :param tinyint1_as_boolean: TINYINT(1) becomes a boolean; other values than 0 and 1 are counted as lost.
    :param zero_dates: how to store ``0000-00-00``: as NULL, or as text in a column that is then a string.
    """

    tinyint1_as_boolean: bool = False
    zero_dates: Literal["null", "text"] = "null"

    @classmethod
    def of(cls, policy: RunPolicy) -> Self:
        """Return the choices of a table's policy."""
        return cls(policy.tinyint1_as_boolean, policy.zero_dates)


_DEFAULTS = TypeOptions()


def arrow_type(column: ColumnType, options: TypeOptions = _DEFAULTS) -> pa.DataType:
    """Return the Arrow type that holds every value of a column.

    :raises DataError: no database has a column of this type; its description is damaged.
    """
    name = column.name
    if _is_impossible(column):
        raise DataError(
            "schema.impossible_type",
            f"a column is said to be of the type {column}, which no database has",
            hint="see what its records and statements say of its columns; if that is wrong, state tables.<name>.create",
        )
    if name in _SIGNED:
        if name == "tinyint" and column.length == 1 and not column.unsigned and options.tinyint1_as_boolean:
            return pa.bool_()
        return (_UNSIGNED if column.unsigned else _SIGNED)[name]
    if name in _DATES:
        return _DATES[name] if options.zero_dates == "null" else pa.string()
    if name == "decimal":
        return _decimal(column)
    if name == "bit":
        return _bits(column.length or 1)
    return _PLAIN.get(name, pa.string())


def _is_impossible(column: ColumnType) -> bool:
    if column.name == "decimal":
        precision, scale = decimal_digits(column)
        return not 0 <= scale <= precision
    # MySQL pads these to their full length: a damaged length would fill the memory
    return column.name == "binary" and not 0 <= (column.length or 0) <= _MAX_BINARY


def decimal_digits(column: ColumnType) -> tuple[int, int]:
    """Return precision and scale of a DECIMAL; without arguments it is (10,0) in MySQL."""
    return column.length or 10, column.scale or 0


def _decimal(column: ColumnType) -> pa.DataType:
    precision, scale = decimal_digits(column)
    return pa.decimal128(precision, scale) if precision <= MAX_DIGITS else pa.string()


def _bits(length: int) -> pa.DataType:
    if length == 1:
        return pa.bool_()
    return pa.int64() if length < 64 else UNSIGNED_BIGINT
