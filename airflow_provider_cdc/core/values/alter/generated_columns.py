# SPDX-License-Identifier: Apache-2.0
"""Compute the values of generated columns as MySQL and MariaDB compute them.

An operation on whole numbers gives a BIGINT, unsigned if one operand is; a result out of its range is an error at the
source. With a DECIMAL operand the result is an exact DECIMAL.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.formula import ColumnValue, Formula, Number
from airflow_provider_cdc.core.model.schema import Column, ColumnType
from airflow_provider_cdc.core.values.alter.convert import convert
from airflow_provider_cdc.core.values.alter.type_families import UncertainConversion, demand
from airflow_provider_cdc.core.values.types import INTEGERS, MAX_DIGITS

# the values of a column of the same rows, and its type
Operand = Callable[[int], tuple[pa.Array, ColumnType]]

_BIGINT = pa.decimal256(20, 0)
_OPERATIONS = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


@dataclass(frozen=True, slots=True)
class _Operands:
    """Hold the values of one part of a formula, one for each row.

    :param values: decimals of up to 76 digits.
    :param whole: whether their type at the server is BIGINT, not DECIMAL.
    """

    values: pa.Array
    whole: bool
    unsigned: bool


def computed(
    formula: Formula, operand: Operand, count: int, column: Column, target: pa.DataType, lost: Counter[str]
) -> pa.Array:
    """Return the values of a generated column.

    :param operand: returns a column that the formula names.
    :param count: rows.
    :param target: Arrow type of the generated column.
    :param lost: receives the count of values that did not fit the column's type.
    :raises DataError: ``values.computed_unknown``: it is not certain what the server computed.
    """
    try:
        if isinstance(formula, ColumnValue):
            values, operand_type = operand(formula.column_id)
            if operand_type == column.type and values.type == target:
                return _without_nulls(values, column)
        result = _evaluate(formula, operand, count)
        if result.whole:
            result_type = ColumnType("bigint", unsigned=result.unsigned)
            values = result.values.cast(pa.decimal128(_BIGINT.precision, 0))
        else:
            result_type = ColumnType("decimal", MAX_DIGITS, result.values.type.scale)
            values = result.values.cast(pa.decimal128(MAX_DIGITS, result.values.type.scale))
        return _without_nulls(convert(values, result_type, column.type, target, lost), column)
    except (UncertainConversion, pa.ArrowException) as error:
        reason = str(error) if isinstance(error, UncertainConversion) else "a number has too many digits"
        raise DataError(
            "values.computed_unknown",
            f"it is not certain what the server computed for stored rows: {reason}",
            where={"column": column.name},
            hint="TRUNCATE TABLE, or DROP TABLE and CREATE TABLE, at the source makes the table known again",
        ) from None


def _without_nulls(values: pa.Array, column: Column) -> pa.Array:
    if values.null_count and not column.nullable:
        raise UncertainConversion("NULL in a column that is NOT NULL")
    return values


def _evaluate(formula: Formula, operand: Operand, count: int) -> _Operands:
    if isinstance(formula, Number):
        return _literal(formula.text, count)
    if isinstance(formula, ColumnValue):
        return _column(*operand(formula.column_id))
    right = _evaluate(formula.right, operand, count)
    if formula.left is None:
        zero = pa.scalar(Decimal(0), pa.decimal256(1, 0))
        return _within(_Operands(pc.subtract(zero, right.values), right.whole, False))
    left = _evaluate(formula.left, operand, count)
    whole = left.whole and right.whole
    unsigned = left.unsigned or right.unsigned if whole else left.unsigned and right.unsigned
    values = _OPERATIONS[formula.operator](left.values, right.values)
    return _within(_Operands(values, whole, unsigned))


def _literal(text: str, count: int) -> _Operands:
    value = Decimal(text)
    whole = "." not in text
    arrow_type = _BIGINT if whole else pa.decimal256(len(text) - 1, -int(value.as_tuple().exponent))
    return _Operands(pa.repeat(pa.scalar(value, arrow_type), count), whole, whole and value >= 1 << 63)


def _column(values: pa.Array, column_type: ColumnType) -> _Operands:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_boolean(values.type):
        raise UncertainConversion("TINYINT(1) is stored as a boolean (tinyint1_as_boolean)")
    if column_type.name in INTEGERS:
        return _Operands(values.cast(_BIGINT), True, column_type.unsigned)
    decimals = values.cast(pa.decimal256(values.type.precision, values.type.scale))
    return _Operands(decimals, False, column_type.unsigned)


def _within(operands: _Operands) -> _Operands:
    """Raise for results that are errors at the source, or depend on NO_UNSIGNED_SUBTRACTION."""
    if operands.unsigned:
        demand(pc.greater_equal(operands.values, _scalar(0)), "a difference of unsigned numbers is negative")
    if not operands.whole:
        return operands
    low, high = (0, 1 << 64) if operands.unsigned else (-(1 << 63), 1 << 63)
    fits = pc.and_(pc.greater_equal(operands.values, _scalar(low)), pc.less(operands.values, _scalar(high)))
    demand(fits, "a number is beyond BIGINT")
    # cast back to its own width, so that formulas of any length stay within Arrow's digits
    return replace(operands, values=operands.values.cast(_BIGINT))


def _scalar(value: int) -> pa.Scalar:
    return pa.scalar(Decimal(value), _BIGINT)
