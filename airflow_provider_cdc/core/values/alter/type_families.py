# SPDX-License-Identifier: Apache-2.0
"""Define type families and value ranges of ALTER conversions, and the error for results that cannot be known."""

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


class UncertainConversion(Exception):
    """Raise where the source's result of a conversion cannot be known."""


@dataclass(frozen=True, slots=True)
class Step:
    """Describe one type change.

    :param server: ``mysql`` or ``mariadb``, None if unknown.
    :param lost: counts of values that did not fit, by kind of loss.
    """

    old: ColumnType
    new: ColumnType
    target: pa.DataType
    server: str | None = None
    lost: Counter[str] = field(default_factory=Counter)

    def lose(self, loss: str, flags: pa.Array) -> None:
        """Count the values whose flag is set."""
        count = pc.sum(flags).as_py()
        if count:
            self.lost[loss] += count


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
    """Raise :class:`UncertainConversion` unless every flag that is not NULL is set."""
    if pc.all(flags).as_py() is False:
        raise UncertainConversion(otherwise)


def convert_distinct(
    values: pa.Array, convert: Callable[[Any], tuple[Any, str | None]], step: Step, target: pa.DataType
) -> pa.Array:
    """Convert each distinct value once, in Python.

    :param convert: returns the result and the kind of loss to count, None for no loss.
    """
    coded = values.dictionary_encode()
    results = [convert(value) for value in coded.dictionary.to_pylist()]
    for loss in {loss for _, loss in results if loss is not None}:
        step.lose(loss, pa.array([other == loss for _, other in results]).take(coded.indices))
    return pa.array([value for value, _ in results], target).take(coded.indices)


def shaped(texts: pa.Array, pattern: str, otherwise: str) -> pa.Array:
    """Return the texts; raise :class:`UncertainConversion` unless every one matches the pattern."""
    demand(pc.match_substring_regex(texts, rf"\A(?:{pattern})\z"), otherwise)
    return texts
