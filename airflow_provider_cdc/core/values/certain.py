"""The vocabulary of type changes: families of types, ranges, and the refusal to guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES, INTEGERS

TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BITS = dict(zip(INTEGERS, (8, 16, 24, 32, 64), strict=True))
_FAMILIES = {
    **dict.fromkeys(INTEGERS, "integer"),
    **dict.fromkeys(TEXTS, "text"),
    **dict.fromkeys(BINARIES, "bytes"),
    **dict.fromkeys(GEOMETRIES, "geometry"),
    "float": "float",
    "double": "float",
}


class Uncertain(Exception):
    """What the source made of a value cannot be known."""


@dataclass(frozen=True, slots=True)
class Step:
    """One type change."""

    old: ColumnType
    new: ColumnType
    target: pa.DataType
    fractions: Literal["round", "truncate"]


def family(column: ColumnType) -> str:
    """Return the group of types that convert alike."""
    return _FAMILIES.get(column.name, column.name)


def bounds(column: ColumnType) -> tuple[int, int]:
    """Return the least and the greatest value of an integer type or BIT."""
    if column.name == "bit":
        return 0, (1 << (column.length or 1)) - 1
    bits = _BITS[column.name]
    return (0, (1 << bits) - 1) if column.unsigned else (-(1 << bits - 1), (1 << bits - 1) - 1)


def demand(flags: pa.Array, otherwise: str) -> None:
    """Refuse unless every value that is not NULL passes."""
    if pc.all(flags).as_py() is False:
        raise Uncertain(otherwise)


def shaped(texts: pa.Array, pattern: str, otherwise: str) -> pa.Array:
    """Refuse unless every text has a shape."""
    demand(pc.match_substring_regex(texts, rf"\A(?:{pattern})\z"), otherwise)
    return texts
