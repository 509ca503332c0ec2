"""The vocabulary of type changes: families of types, ranges, and the refusal to guess."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
    """One type change.

    :param server: ``mysql`` or ``mariadb``, None where it is not known.
    :param lost: counts of values that did not fit, by kind of loss.
    """

    old: ColumnType
    new: ColumnType
    target: pa.DataType
    server: str | None = None
    lost: Counter[str] = field(default_factory=Counter)

    def lose(self, kind: str, flags: pa.Array) -> None:
        """Count the values whose flag is set."""
        count = pc.sum(flags).as_py()
        if count:
            self.lost[kind] += count


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


def converted_one_by_one(
    values: pa.Array, convert: Callable[[Any], tuple[Any, str | None]], step: Step, target: pa.DataType
) -> pa.Array:
    """Convert each distinct value once.

    :param convert: returns the result and the kind of loss to count, None for no loss.
    """
    coded = values.dictionary_encode()
    results = [convert(value) for value in coded.dictionary.to_pylist()]
    for kind in {kind for _, kind in results if kind is not None}:
        step.lose(kind, pa.array([loss == kind for _, loss in results]).take(coded.indices))
    return pa.array([value for value, _ in results], target).take(coded.indices)


def shaped(texts: pa.Array, pattern: str, otherwise: str) -> pa.Array:
    """Refuse unless every text has a shape."""
    demand(pc.match_substring_regex(texts, rf"\A(?:{pattern})\z"), otherwise)
    return texts
