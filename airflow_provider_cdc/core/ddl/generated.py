# SPDX-License-Identifier: Apache-2.0
"""Parse expressions of generated columns; find those that the server computes again for stored rows.

Whole and DECIMAL numbers and columns with ``+``, ``-``, ``*`` and parentheses are computed, which MySQL and MariaDB
evaluate exactly and equally, and the bare name of a column of the same type.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.tokens import DdlError, Kind, tokenize
from airflow_provider_cdc.core.model.formula import Arithmetic, ColumnValue, Computed, Formula, Number
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema

_WHOLE = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}
_TEXTS = frozenset({"varchar", "tinytext", "text", "mediumtext", "longtext"})
_NUMBER = re.compile(r"[0-9]{1,65}(?:\.[0-9]{0,30})?|\.[0-9]{1,30}")
_MOST_TOKENS = 200  # of an expression that is read: what is simple is short
_SHOWN = 60
# MySQL's limits of DECIMAL; of columns those that Arrow holds (see core/values/types.py)
_MOST_DIGITS, _MOST_FRACTION_DIGITS, _MOST_COLUMN_DIGITS = 65, 30, 38


class NotComputed(Exception):
    """Signal an expression whose values only the server knows; the text states why."""


@dataclass(frozen=True, slots=True)
class Expression:
    """Hold the expression of a generated column.

    :param text: its SQL; None if only the tool's account states that the column is generated.
    :param columns: ids of the columns that it names.
    :param formula: None if it is not computed; then ``reason`` states why.
    """

    text: str | None
    columns: frozenset[int] = frozenset()
    formula: Formula | None = None
    reason: str = ""

    def __str__(self) -> str:
        text = self.text or ""
        return f"({text if len(text) <= _SHOWN else text[:_SHOWN] + '...'})"


_UNSTATED = Expression(None, reason="its expression is not known")


def read_expression(text: str, schema: TableSchema) -> Expression:
    """Parse the expression of a generated column.

    :param schema: of the table after the statement: the expression names its columns.
    """
    try:
        tokens = tokenize(text)
    except DdlError as error:
        return Expression(text, frozenset(column.id for column in schema.columns), None, str(error))
    quoted = (Kind.NAME, Kind.QUOTED, Kind.DOUBLE_QUOTED)
    named = (schema.named(token.value.strip('"')) for token in tokens if token.kind in quoted)
    columns = frozenset(column.id for column in named if column is not None)
    reader = TokenReader(text, tokens)
    try:
        if len(tokens) > _MOST_TOKENS:
            raise NotComputed(f"it has more than {_MOST_TOKENS} names, numbers and signs")
        formula = _sum(reader, schema)
        reader.expect_end()
    except (DdlError, NotComputed) as error:
        reason = str(error) if isinstance(error, NotComputed) else "only +, - and * of columns and numbers are computed"
        return Expression(text, columns, None, reason)
    return Expression(text, formula.columns, formula)


def recomputed(
    before: TableSchema, after: TableSchema, was: Mapping[int, Expression], now: Mapping[int, Expression]
) -> tuple[list[Computed], list[tuple[Column, str]]]:
    """Return the columns that a statement made the server compute for stored rows, and those with unknown values.

    :param was: expressions of generated columns before the statement, by column id.
    :param now: expressions after it.
    :return: computed columns, each after the columns that it uses; unknown columns, each with the reason.
    """
    if not any(_is_computed(column) for column in after.columns):
        return [], []
    altered = _altered(before, after)
    computed: list[Computed] = []
    unknown: list[tuple[Column, str]] = []
    order = _in_order(after, now)
    for index, column in enumerate(order):
        expression, old = now.get(column.id, _UNSTATED), before.column(column.id)
        same = old is not None and expression.text == was.get(column.id, _UNSTATED).text
        type_is_same = old is not None and old.type == column.type
        if same and type_is_same and not expression.columns & altered.keys():
            continue
        try:
            if expression.columns & {later.id for later in order[index + 1 :]}:
                raise NotComputed("generated columns are made of each other")
            computed.append(Computed(column.id, _checked(expression, column, after)))
        except NotComputed as error:
            keeps = old is not None and _keeps(old.type, column.type)
            if same and keeps and not any(altered.get(i, False) for i in expression.columns):
                continue
            unknown.append((column, str(error) if expression.text is None else f"{expression}: {error}"))
        altered[column.id] = True
    return computed, unknown


def _is_computed(column: Column) -> bool:
    return column.generated and not column.auto_increment  # Debezium also calls those generated


def _in_order(schema: TableSchema, expressions: Mapping[int, Expression]) -> list[Column]:
    """Return the generated columns, each after the columns that it uses, unless they form a cycle."""
    generated = {column.id: column for column in schema.columns if _is_computed(column)}
    operands = {i: (expressions.get(i, _UNSTATED).columns - {i}) & generated.keys() for i in generated}
    try:
        order = [*TopologicalSorter(operands).static_order()]
    except CycleError:  # no server has such a table
        order = [*generated]
    return [generated[i] for i in order]


def _altered(before: TableSchema, after: TableSchema) -> dict[int, bool]:
    """Map the ids of columns that a statement changed to whether it may have changed their stored values."""
    altered = {}
    for column in after.columns:
        old = before.column(column.id)
        filled = old is not None and old.nullable and not column.nullable
        if old is not None and (filled or old.type != column.type):
            altered[column.id] = filled or not _keeps(old.type, column.type)
    return altered


def _keeps(old: ColumnType, new: ColumnType) -> bool:
    """Return whether every expression has the same value if a column has the new type instead of the old one."""
    if old == new:
        return True
    if (old.unsigned, old.scale, old.charset) != (new.unsigned, new.scale, new.charset):
        return False
    if old.name in _WHOLE and new.name in _WHOLE:
        return _WHOLE[old.name] <= _WHOLE[new.name]
    if old.name in _TEXTS and new.name in _TEXTS:
        return new.name != "varchar" or (old.name == "varchar" and (old.length or 0) <= (new.length or 0))
    if old.name == new.name == "enum":
        return new.labels[: len(old.labels)] == old.labels
    return old.name == new.name == "decimal" and (old.length or 10) <= (new.length or 10)


def _checked(expression: Expression, column: Column, schema: TableSchema) -> Formula:
    """Return the formula of a column; raise NotComputed if its types are not supported."""
    formula = expression.formula
    if formula is None:
        raise NotComputed(expression.reason)
    if column.id in expression.columns:
        raise NotComputed("it is made of itself")
    source = schema.column(formula.column_id) if isinstance(formula, ColumnValue) else None
    if source is not None and source.type == column.type:
        return formula
    _digits(formula, schema)
    if column.type.name not in (*_WHOLE, "decimal") or (column.type.length or 10) > _MOST_COLUMN_DIGITS:
        raise NotComputed(f"values of type {column.type} are not computed")
    return formula


class _Digits(NamedTuple):
    """Hold the largest number of digits of a value, in all and after the point.

    :param whole: whether the server computes it as a BIGINT, not as a DECIMAL.
    """

    all: int
    fraction: int
    whole: bool = False


_BIGINT = _Digits(20, 0, whole=True)


def _digits(formula: Formula, schema: TableSchema) -> _Digits:
    """Return the digits of a formula's values; raise NotComputed if they are not exact within MySQL's limits."""
    match formula:
        case Number():
            whole, point, fraction = formula.text.partition(".")
            digits = _Digits(len(whole) + len(fraction), len(fraction), not point)
        case ColumnValue():
            digits = _column_digits(schema.column(formula.column_id))
        case Arithmetic(left=None):
            digits = _digits(formula.right, schema)
        case Arithmetic(left=left):
            assert left is not None  # the case before
            first, second = _digits(left, schema), _digits(formula.right, schema)
            if first.whole and second.whole:
                return _BIGINT  # a larger result would have been an error at the source
            if formula.operator == "*":
                digits = _Digits(first.all + second.all + 1, first.fraction + second.fraction)
            else:
                decimals = max(first.fraction, second.fraction)
                digits = _Digits(max(first.all - first.fraction, second.all - second.fraction) + decimals + 1, decimals)
    if digits.all > _MOST_DIGITS or digits.fraction > _MOST_FRACTION_DIGITS:
        raise NotComputed("its numbers may have more digits than a DECIMAL")
    return digits


def _column_digits(column: Column | None) -> _Digits:
    if column is not None and column.type.name in _WHOLE:
        return _BIGINT
    if column is None or column.type.name != "decimal" or (column.type.length or 10) > _MOST_COLUMN_DIGITS:
        raise NotComputed("it has a column that is neither a whole number nor a DECIMAL of up to 38 digits")
    return _Digits(column.type.length or 10, column.type.scale or 0)


def _sum(reader: TokenReader, schema: TableSchema) -> Formula:
    formula = _product(reader, schema)
    while operator := reader.accept_any(("+", "-")):
        formula = Arithmetic("+" if operator == "+" else "-", formula, _product(reader, schema))
    return formula


def _product(reader: TokenReader, schema: TableSchema) -> Formula:
    formula = _operand(reader, schema)
    while reader.accept("*"):
        formula = Arithmetic("*", formula, _operand(reader, schema))
    return formula


def _operand(reader: TokenReader, schema: TableSchema) -> Formula:
    if reader.accept("("):
        formula = _sum(reader, schema)
        reader.expect(")")
        return formula
    if reader.accept("-"):
        return Arithmetic("-", None, _operand(reader, schema))
    token = reader.peek()
    if token.kind is Kind.NUMBER and _NUMBER.fullmatch(token.value):
        return _number(reader.take().value)
    if token.kind is Kind.DOUBLE_QUOTED:
        raise NotComputed("whether a text in double quotes is a name depends on sql_mode")
    name = reader.column_name()
    column = schema.named(name)
    if column is None:
        raise NotComputed(f"the table has no column {name!r}")
    return ColumnValue(column.id)


def _number(text: str) -> Number:
    """Return a literal; raise beyond BIGINT UNSIGNED, where MySQL reads a whole number as a DECIMAL."""
    whole, point, fraction = text.partition(".")
    if not point and int(whole) >= 1 << 64:
        raise NotComputed("a whole number is beyond BIGINT")
    return Number((whole or "0") + point + fraction)
