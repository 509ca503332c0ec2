# SPDX-License-Identifier: Apache-2.0
"""Define formulas of generated columns: computations by the server from other columns of the same row."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class ColumnValue:
    """Refer to the value of a column of the same row.

    :param column_id: id of that column in the table's schema.
    """

    column_id: int

    @property
    def columns(self) -> frozenset[int]:
        """Ids of the columns that it uses."""
        return frozenset({self.column_id})


@dataclass(frozen=True, slots=True)
class Number:
    """Hold an exact number literal.

    :param text: digits, with a point for a DECIMAL.
    """

    text: str

    @property
    def columns(self) -> frozenset[int]:
        """Ids of the columns that it uses."""
        return frozenset()


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left operator right``; a minus sign in front of a formula has no ``left``."""

    operator: Literal["+", "-", "*"]
    left: Formula | None
    right: Formula

    @property
    def columns(self) -> frozenset[int]:
        """Ids of the columns that it uses."""
        return self.right.columns if self.left is None else self.left.columns | self.right.columns


Formula = ColumnValue | Number | Arithmetic


@dataclass(frozen=True, slots=True)
class Computed:
    """Describe a column that the server computed for every stored row.

    :param column_id: id of the generated column.
    """

    column_id: int
    formula: Formula

    def document(self) -> list[Any]:
        """Return plain JSON data."""
        return [self.column_id, _document(self.formula)]

    @staticmethod
    def from_document(data: list[Any]) -> Computed:
        """Rebuild from :meth:`document`."""
        return Computed(data[0], _formula(data[1]))


def _document(formula: Formula | None) -> Any:
    match formula:
        case ColumnValue():
            return formula.column_id
        case Number():
            return formula.text
        case Arithmetic():
            return [formula.operator, _document(formula.left), _document(formula.right)]
    return None


def _formula(data: Any) -> Formula:
    if isinstance(data, int):
        return ColumnValue(data)
    if isinstance(data, str):
        return Number(data)
    operator, left, right = data
    return Arithmetic(operator, None if left is None else _formula(left), _formula(right))
