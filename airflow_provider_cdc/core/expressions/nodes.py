# SPDX-License-Identifier: Apache-2.0
"""Define the tree of an expression: what a text says, before the types of columns are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

Constant = bool | int | Decimal | float | str | None


@dataclass(frozen=True, slots=True)
class Literal:
    """Hold a value that stands in the text."""

    position: int
    value: Constant


@dataclass(frozen=True, slots=True)
class ColumnName:
    """Refer to a column of the row."""

    position: int
    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """Apply a function, or an operator by its sign or word.

    :param name: in capitals.
    """

    position: int
    name: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """Choose the value of the first condition that is true.

    :param branches: conditions and values.
    :param otherwise: value where none is true; None for NULL.
    """

    position: int
    branches: tuple[tuple[Node, Node], ...]
    otherwise: Node | None


@dataclass(frozen=True, slots=True)
class Cast:
    """Convert to another type.

    :param type: a name of :data:`~airflow_provider_cdc.core.expressions.kinds.CASTS`.
    :param digits: precision and scale of a DECIMAL.
    """

    position: int
    operand: Node
    type: str
    digits: tuple[int, int] | None = None


Node = Literal | ColumnName | Call | Case | Cast


def walk(node: Node) -> Iterator[Node]:
    """Yield a node and all below it, from left to right."""
    yield node
    match node:
        case Call():
            children = node.arguments
        case Cast():
            children = (node.operand,)
        case Case():
            children = tuple(one for branch in node.branches for one in branch)
            children += (node.otherwise,) if node.otherwise else ()
        case _:
            return
    for child in children:
        yield from walk(child)
