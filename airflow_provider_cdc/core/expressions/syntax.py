# SPDX-License-Identifier: Apache-2.0
"""Read the text of an expression to a tree; all that is not listed here is refused by name."""

from __future__ import annotations

from decimal import Decimal
from functools import cache
from math import isfinite
from typing import Any, ClassVar

from sqlglot import exp

from airflow_provider_cdc.core.expressions.errors import ExpressionError, nearest
from airflow_provider_cdc.core.expressions.functions import FUNCTIONS
from airflow_provider_cdc.core.expressions.kinds import CASTS
from airflow_provider_cdc.core.expressions.nodes import Call, Case, Cast, ColumnName, Literal, Node
from airflow_provider_cdc.core.expressions.refused import (
    FUNCTION_REASONS,
    NODE_REASONS,
)
from airflow_provider_cdc.core.expressions.sqlglot_tree import (
    AMBIGUOUS,
    CALLED,
    MOST_LEVELS,
    parse_text,
    place_of,
    too_deep,
)
from airflow_provider_cdc.core.values.types import MAX_DIGITS

_MOST_CHARACTERS = 20_000
# before 30.20 sqlglot read x - x % x as (x - x) % x
_SHAPES = {
    "x - x % x / x + -x * x": "(+ (- x (/ (% x x) x)) (* (- x) x))",
    "x OR NOT x = x + x AND x IS NOT NULL": "(OR x (AND (NOT (= x (+ x x))) (NOT (IS NULL x))))",
    "x NOT LIKE '%' AND x NOT IN (x) OR x NOT BETWEEN x AND x AND x": (
        "(OR (AND (NOT (LIKE x x)) (NOT (IN x x))) (AND (NOT (AND (>= x x) (<= x x))) x))"
    ),
}
_BACKSLASH = "a backslash is not possible: some databases read it as itself, others with the character that follows"
_BINARY = frozenset({"this", "expression"})

_OPERATORS = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
}
_CHAINS = {exp.And: "AND", exp.Or: "OR"}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE)
_PREDICATES = (*_COMPARISONS, exp.In, exp.Between, exp.Like, exp.Escape, exp.Is, exp.Not)


def read(text: str) -> Node:
    """Return the tree of an expression.

    :raises ExpressionError: it is not one that is supported.
    """
    if len(text) > _MOST_CHARACTERS:
        raise ExpressionError(f"the expression has more than {_MOST_CHARACTERS} characters", text, _MOST_CHARACTERS)
    _check_precedence()
    return _Reader(text).node(parse_text(text), 0, 0)


@cache
def _check_precedence() -> None:
    """Refuse an edition of sqlglot that reads other expressions than those that were written."""
    for text, shape in _SHAPES.items():
        if _shape(_Reader(text).node(parse_text(text), 0, 0)) != shape:
            message = "the installed edition of sqlglot does not read operators as SQL does; install sqlglot>=30.20,<31"
            raise ExpressionError(message, text, 0)


def _shape(node: Node) -> str:
    return f"({node.name} {' '.join(map(_shape, node.arguments))})" if isinstance(node, Call) else "x"


class _Reader:
    """Turn sqlglot's tree into ours.

    :param text: of the whole expression, for errors.
    """

    def __init__(self, text: str) -> None:
        self._text = text

    def node(self, tree: Any, near: int, level: int) -> Node:
        """Return one node.

        :param near: place of what is around it, for those that have no place.
        :param level: how deep it is nested.
        """
        position = place_of(tree, near)
        if level > MOST_LEVELS:
            raise too_deep(self._text, position)
        read, members = self._READERS.get(type(tree), (None, frozenset()))
        if read is None:
            raise ExpressionError(_reason(tree), self._text, position)
        members_given = {name for name, value in tree.args.items() if value}
        if not members_given <= members:
            words = ", ".join(sorted(members_given - members))
            raise ExpressionError(f"{tree.key.upper()} with {words} is not part of expressions", self._text, position)
        node: Node = read(self, tree, position, level + 1)
        return Call(position, "NOT", (node,)) if tree.args.get("negate") else node

    def _nodes(self, trees: list[Any], near: int, level: int) -> tuple[Node, ...]:
        return tuple(self.node(tree, near, level) for tree in trees)

    def _paren(self, tree: Any, position: int, level: int) -> Node:
        return self.node(tree.this, position, level)

    def _operator(self, tree: Any, position: int, level: int) -> Node:
        if isinstance(tree, _COMPARISONS) and (ambiguous := _predicate_in(tree)) is not None:
            raise ExpressionError(AMBIGUOUS, self._text, place_of(ambiguous, position))
        operands = self._nodes([tree.left, tree.right], position, level)
        return Call(position, _OPERATORS[type(tree)], operands)

    def _begin(self, word: str, position: int) -> int:
        """Return where a word that stands before a place begins; the place if it does not stand there."""
        before = self._text[:position].rstrip()
        return len(before) - len(word) if before.upper().endswith(word) else position

    def _chain(self, tree: Any, position: int, level: int) -> Node:
        return Call(position, _CHAINS[type(tree)], self._nodes([*tree.flatten()], position, level))

    def _not(self, tree: Any, position: int, level: int) -> Node:
        return Call(self._begin("NOT", position), "NOT", self._nodes([tree.this], position, level))

    def _negative(self, tree: Any, position: int, level: int) -> Node:
        position = self._begin("-", position)
        operand = self.node(tree.this, position, level)
        if (
            type(tree.this) is exp.Literal
            and isinstance(operand, Literal)
            and not isinstance(operand.value, str | None)
        ):
            return Literal(position, -operand.value)
        return Call(position, "-", (operand,))

    def _in(self, tree: Any, position: int, level: int) -> Node:
        if not tree.expressions or any(tree.args.get(name) for name in ("query", "unnest", "field", "is_global")):
            raise ExpressionError("IN takes a list of values in parentheses", self._text, position)
        return Call(position, "IN", self._nodes([tree.this, *tree.expressions], position, level))

    def _between(self, tree: Any, position: int, level: int) -> Node:
        value, low, high = self._nodes([tree.this, tree.args["low"], tree.args["high"]], position, level)
        return Call(position, "AND", (Call(position, ">=", (value, low)), Call(position, "<=", (value, high))))

    def _like(self, tree: Any, position: int, level: int) -> Node:
        return Call(position, "LIKE", (self.node(tree.this, position, level), self._pattern(tree.expression, position)))

    def _escape(self, tree: Any, position: int, level: int) -> Node:
        negated, like = False, self.node(tree.this, position, level)
        if isinstance(like, Call) and like.name == "NOT":
            negated, like = True, like.arguments[0]
        if not isinstance(like, Call) or like.name != "LIKE" or len(like.arguments) != 2:
            raise ExpressionError("ESCAPE belongs to LIKE", self._text, position)
        value, pattern = like.arguments
        escape = self._pattern(tree.expression, position)
        if any(isinstance(one, Literal) and "\\" in str(one.value) for one in (pattern, escape)):
            raise ExpressionError(f"with ESCAPE, {_BACKSLASH}", self._text, pattern.position)
        like = Call(position, "LIKE", (value, pattern, escape))
        return Call(position, "NOT", (like,)) if negated else like

    def _pattern(self, tree: Any, near: int) -> Literal:
        position = place_of(tree, near)
        if type(tree) is not exp.Literal or not tree.is_string:
            raise ExpressionError("the pattern of LIKE and its ESCAPE are literal texts", self._text, position)
        return Literal(position, str(tree.this))

    def _is(self, tree: Any, position: int, level: int) -> Node:
        if type(tree.expression) is not exp.Null:
            raise ExpressionError("IS is followed by NULL or NOT NULL", self._text, position)
        return Call(position, "IS NULL", self._nodes([tree.this], position, level))

    def _case(self, tree: Any, position: int, level: int) -> Node:
        branches = []
        for branch in tree.args["ifs"]:
            condition = self.node(branch.this, position, level)
            if tree.this is not None:
                condition = Call(condition.position, "=", (self.node(tree.this, position, level), condition))
            branches.append((condition, self.node(branch.args["true"], position, level)))
        default = tree.args.get("default")
        otherwise = None if default is None else self.node(default, position, level)
        return Case(position, tuple(branches), otherwise)

    def _cast(self, tree: Any, position: int, level: int) -> Node:
        target = tree.args["to"]
        name = target.this.name if isinstance(target, exp.DataType) and hasattr(target.this, "name") else str(target)
        digits = [one.this for one in target.expressions if isinstance(one, exp.DataTypeParam)]
        proper = {name_ for name_, value in target.args.items() if value} <= {"this", "expressions"}
        if name not in CASTS or not proper or len(digits) != len(target.expressions):
            known = ", ".join(dict.fromkeys(CASTS.values()))
            message = f"CAST to {target.sql()} is not supported; known: {known}"
            raise ExpressionError(message, self._text, position)
        operand = self.node(tree.this, position, level)
        return Cast(position, operand, name, self._digits(name, [str(one.this) for one in digits], position))

    def _digits(self, name: str, digits: list[str], position: int) -> tuple[int, int] | None:
        if name != "DECIMAL":
            if digits:
                raise ExpressionError(f"CAST to {CASTS[name]} takes no length", self._text, position)
            return None
        if not 1 <= len(digits) <= 2 or not all(one.isdecimal() for one in digits):
            message = "CAST to DECIMAL needs its digits: DECIMAL(precision, scale)"
            raise ExpressionError(message, self._text, position)
        precision, scale = int(digits[0]), int(digits[1]) if len(digits) > 1 else 0
        if not (1 <= precision <= MAX_DIGITS and scale <= precision):
            message = f"a DECIMAL has 1 to {MAX_DIGITS} digits, and not more of them after the point"
            raise ExpressionError(message, self._text, position)
        return precision, scale

    def _literal(self, tree: Any, position: int, level: int) -> Node:
        value = str(tree.this)
        if tree.is_string and "\\" in value:
            raise ExpressionError(_BACKSLASH, self._text, position)
        if tree.is_string:
            return Literal(position, value)
        if "e" in value.lower():
            if not isfinite(number := float(value)):
                raise ExpressionError("the number is too large for a DOUBLE", self._text, position)
            return Literal(position, number)
        if len(value.replace(".", "").lstrip("0")) > MAX_DIGITS:
            raise ExpressionError(f"the number has more than {MAX_DIGITS} digits", self._text, position)
        return Literal(position, int(value) if value.isdecimal() else Decimal(value))

    def _word(self, tree: Any, position: int, level: int) -> Node:
        return Literal(position, None if isinstance(tree, exp.Null) else bool(tree.this))

    def _column(self, tree: Any, position: int, level: int) -> Node:
        identifier = tree.this
        if [name for name, value in tree.args.items() if value] != ["this"] or not isinstance(
            identifier, exp.Identifier
        ):
            message = _reason(identifier) if isinstance(identifier, exp.Star) else "a column is named without its table"
            raise ExpressionError(message, self._text, position)
        name = str(identifier.this)
        return ColumnName(position, name)

    def _call(self, tree: Any, position: int, level: int) -> Node:
        name = str(tree.this).removeprefix(CALLED).upper()
        if name in FUNCTION_REASONS:
            raise ExpressionError(f"{name} {FUNCTION_REASONS[name]}", self._text, position)
        if name not in FUNCTIONS:
            raise ExpressionError(f"unknown function {name}{nearest(name, FUNCTIONS)}", self._text, position)
        return Call(position, name, self._nodes(tree.expressions, position, level))

    # with the members of sqlglot's nodes that the reader knows: another one would change the meaning
    _READERS: ClassVar[dict[Any, tuple[Any, frozenset[str]]]] = {
        exp.Paren: (_paren, frozenset({"this"})),
        **dict.fromkeys(_OPERATORS, (_operator, _BINARY)),
        **dict.fromkeys(_CHAINS, (_chain, _BINARY)),
        exp.Div: (_operator, _BINARY | {"typed", "safe"}),  # how other databases divide
        exp.Not: (_not, frozenset({"this"})),
        exp.Neg: (_negative, frozenset({"this"})),
        exp.In: (_in, frozenset({"this", "expressions", "query", "unnest", "field", "negate"})),
        exp.Between: (_between, frozenset({"this", "low", "high", "negate"})),
        exp.Like: (_like, _BINARY | {"negate"}),
        exp.Escape: (_escape, _BINARY | {"negate"}),
        exp.Is: (_is, _BINARY | {"negate"}),
        exp.Case: (_case, frozenset({"this", "ifs", "default"})),
        exp.Cast: (_cast, frozenset({"this", "to"})),
        exp.Literal: (_literal, frozenset({"this", "is_string"})),
        exp.Null: (_word, frozenset()),
        exp.Boolean: (_word, frozenset({"this"})),
        exp.Column: (_column, frozenset({"this", "table", "db", "catalog"})),
        exp.Anonymous: (_call, frozenset({"this", "expressions"})),
    }


def _predicate_in(comparison: Any) -> Any:
    """Return the operand of a comparison that is itself a condition without parentheses, if there is one."""
    return next((one for one in (comparison.left, comparison.right) if isinstance(one, _PREDICATES)), None)


def _reason(tree: Any) -> str:
    for kind, reason in NODE_REASONS.items():
        if isinstance(tree, kind):
            return reason
    return f"{tree.key.upper()} is not part of expressions"
