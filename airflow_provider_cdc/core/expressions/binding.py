# SPDX-License-Identifier: Apache-2.0
"""Check the types of an expression against those of columns, and choose the kernels that compute it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, NoReturn

import pyarrow as pa

from airflow_provider_cdc.core.expressions import kinds
from airflow_provider_cdc.core.expressions.casts import caster
from airflow_provider_cdc.core.expressions.errors import ExpressionError, nearest
from airflow_provider_cdc.core.expressions.functions import FUNCTIONS, Constant, Function, Parameter
from airflow_provider_cdc.core.expressions.kinds import is_decimal, is_number, is_text, is_whole, name_of
from airflow_provider_cdc.core.expressions.nodes import Call, Case, Cast, ColumnName, Literal, Node
from airflow_provider_cdc.core.expressions.nodes import Constant as Value
from airflow_provider_cdc.core.expressions.operators import OPERATORS
from airflow_provider_cdc.core.expressions.rows import Kernel
from airflow_provider_cdc.core.expressions.typed import (
    ConstantFails,
    Typed,
    choice,
    column,
    constant,
    lazy,
    strict,
)

_TRUTH = pa.bool_()


def bind(node: Node, text: str, columns: Mapping[str, pa.DataType]) -> Typed:
    """Return an expression that can be run.

    :param text: of the expression, for errors.
    :raises ExpressionError: a column is unknown, or types do not fit.
    """
    return Binder(text, columns).part(node)


def column_named(name: str, columns: Mapping[str, pa.DataType]) -> str | None:
    """Return the column of a name; an exact match wins over one in another case (MySQL folds column names)."""
    if name in columns:
        return name
    lower = name.lower()
    folded = [one for one in columns if one.lower() == lower]
    return folded[-1] if folded else None


class Binder:
    """Turn a tree into parts that can be run.

    :param text: of the expression, for errors.
    :param columns: types by name.
    """

    def __init__(self, text: str, columns: Mapping[str, pa.DataType]) -> None:
        self._text = text
        self._columns = columns

    def part(self, node: Node) -> Typed:
        """Return one part."""
        try:
            match node:
                case Literal():
                    return constant(node.position, _scalar(node.value))
                case ColumnName():
                    return self._column(node)
                case Cast():
                    return self._cast(node)
                case Case():
                    return self._case(node)
                case Call():
                    return self._call(node)
        except ConstantFails:
            self.refuse("this part fails on every row: a division by zero, or a value that does not fit", node.position)

    def refuse(self, message: str, position: int) -> NoReturn:
        """Raise the error of a place in the text."""
        raise ExpressionError(message, self._text, position) from None

    def _column(self, node: ColumnName) -> Typed:
        name = column_named(node.name, self._columns)
        if name is None:
            self.refuse(f"unknown column {node.name}{nearest(node.name, self._columns)}", node.position)
        return column(node.position, name, self._columns[name])

    def _cast(self, node: Cast) -> Typed:
        target = pa.decimal128(*node.digits) if node.digits else kinds.CAST_TYPES[node.type]
        return self.converted(self.part(node.operand), target, node.position)

    def converted(self, part: Typed, target: pa.DataType, position: int) -> Typed:
        """Return a part with another type."""
        if part.type == target:
            return part
        if part.type == pa.null():
            return constant(part.position, pa.scalar(None, target))
        kernel = caster(part.type, target)
        if kernel is None:
            self.refuse(f"{name_of(part.type)} does not become {name_of(target)}", position)
        try:
            return strict(position, target, kernel, [part])
        except ConstantFails:
            value = "" if part.constant is None else f" {part.constant.as_py()!r}"
            self.refuse(f"the value{value} does not become {name_of(target)}", part.position)

    def unified(self, parts: Sequence[Typed], purpose: str, *, exactly: bool = False) -> list[Typed]:
        """Return parts with one type; a literal text becomes a date or timestamp where the others are.

        :param purpose: end of the message if there is no such type.
        :param exactly: the type has room for all values, also with more digits than a column may have.
        """
        kind = kinds.common([part.type for part in parts])
        if kind is None and any(kinds.is_moment(part.type) for part in parts):
            parts = [self._as_moment(part) for part in parts]
            kind = kinds.common([part.type for part in parts])
        if kind is None:
            other = next(part for part in parts if kinds.common([parts[0].type, part.type]) is None)
            names = f"{name_of(parts[0].type)} and {name_of(other.type)}"
            self.refuse(f"{names} {purpose}{_hint(parts[0].type, other.type)}", other.position)
        if exactly and is_decimal(kind):
            kind = kinds.wide_decimal([part.type for part in parts])
        return [self.converted(part, kind, part.position) for part in parts]

    def _as_moment(self, part: Typed) -> Typed:
        if part.constant is None or not is_text(part.type):
            return part
        time = self.converted(part, kinds.TIMESTAMP, part.position)
        is_day = len(str(part.constant).strip()) == len("2024-01-31")
        return self.converted(time, pa.date32(), part.position) if is_day else time

    def condition(self, part: Typed) -> Typed:
        """Return a condition: a whole number is true if it is not zero, as MySQL has no other booleans."""
        if part.type in (_TRUTH, pa.null()) or is_whole(part.type):
            return self.converted(part, _TRUTH, part.position)
        self.refuse(f"a condition is expected here, and this is {name_of(part.type)}", part.position)

    def _case(self, node: Case) -> Typed:
        conditions = [self.condition(self.part(condition)) for condition, _ in node.branches]
        otherwise = constant(node.position, pa.scalar(None)) if node.otherwise is None else self.part(node.otherwise)
        results = [*(self.part(value) for _, value in node.branches), otherwise]
        *values, last = self.unified(results, "are not results of one CASE")
        run = choice([*zip(conditions, values, strict=True)], last)
        return lazy(node.position, last.type, run, [*conditions, *values, last])

    def _call(self, node: Call) -> Typed:
        function = FUNCTIONS.get(node.name)
        if function is not None:
            self._count(node, function)
            if function.kernel is not None:
                return self._function(node, function)
        return OPERATORS[node.name](self, node, [self.part(argument) for argument in node.arguments])

    def _count(self, node: Call, function: Function) -> None:
        count, most = len(node.arguments), len(function.parameters)
        least = most - function.optional
        if count < least or (count > most and not function.repeated):
            expected = f"{least} to {most}" if least < most else f"{least} or more" if function.repeated else str(most)
            noun = "argument" if expected == "1" else "arguments"
            self.refuse(f"{node.name} takes {expected} {noun}, not {count}", node.position)

    def _function(self, node: Call, function: Function) -> Typed:
        """Return the call of a function; the literals that it takes are bound to its kernel."""
        operands: list[Typed] = []
        arguments: list[Any] = []  # literals, and the types of operands
        for index, argument in enumerate(node.arguments):
            parameter = function.parameters[min(index, len(function.parameters) - 1)]
            if isinstance(parameter, Constant):
                arguments.append(self._literal(node.name, argument, parameter))
            else:
                operands.append(self._operand(node.name, self.part(argument), parameter))
                arguments.append(operands[-1].type)
        try:
            result = function.result(*arguments) if callable(function.result) else function.result
        except ValueError as error:
            self.refuse(str(error), node.position)
        return strict(node.position, result, _with_literals(function, arguments), operands)

    def _operand(self, name: str, part: Typed, parameter: Parameter) -> Typed:
        if part.type == pa.null():
            return self.converted(part, parameter.of_null, part.position)
        if not parameter.accepts(part.type):
            hint = "; write CAST(... AS STRING)" if parameter.of_null == pa.string() else ""
            self.refuse(f"{name} takes {parameter.what} here, not {name_of(part.type)}{hint}", part.position)
        return self.converted(part, parameter.converted(part.type), part.position)

    def _literal(self, name: str, node: Node, parameter: Constant) -> str | int:
        if isinstance(node, Literal) and type(node.value) is parameter.kind:
            try:
                if parameter.accepts(node.value):
                    return node.value
            except ValueError:
                pass
        self.refuse(f"{name} takes a literal here: {parameter.what}", node.position)


def _scalar(value: Value) -> pa.Scalar:
    """Return a literal with the least of the types that hold it."""
    if isinstance(value, bool) or value is None or isinstance(value, float | str):
        return pa.scalar(value)
    if isinstance(value, int):
        if -(1 << 31) <= value < 1 << 31:
            return pa.scalar(value, pa.int32())
        if -(1 << 63) <= value < 1 << 63:
            return pa.scalar(value, pa.int64())
        value = Decimal(value)
    digits, exponent = value.as_tuple().digits, int(value.as_tuple().exponent)
    return pa.scalar(value, pa.decimal128(max(len(digits), -exponent), -exponent))


def _hint(one: pa.DataType, other: pa.DataType) -> str:
    if any(map(is_number, (one, other))) and _TRUTH in (one, other):
        return "; TRUE and FALSE are not 1 and 0 here"
    if any(map(is_text, (one, other))):
        return f"; write CAST(... AS {name_of(other if is_text(one) else one)})"
    return ""


def _with_literals(function: Function, arguments: Sequence[Any]) -> Kernel:
    """Return the kernel of a function, of which the literals are known."""
    kernel = function.kernel
    assert kernel is not None

    def bound(*operands: Any) -> Any:
        rest = iter(operands)
        return kernel(*(next(rest) if isinstance(one, pa.DataType) else one for one in arguments))

    return kernel if all(isinstance(one, pa.DataType) for one in arguments) else bound
