"""Values of generated columns, computed as MySQL and MariaDB compute them.

Whole numbers are BIGINT, unsigned if one of both operands is; a result beyond it is an error at the source. With a
DECIMAL the result is an exact DECIMAL.
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
from airflow_provider_cdc.core.values.certain import Uncertain, demand
from airflow_provider_cdc.core.values.conversion import convert
from airflow_provider_cdc.core.values.types import INTEGERS, MAX_DIGITS

# the values of a column of the same rows, and its type
Operand = Callable[[int], tuple[pa.Array, ColumnType]]

_BIGINT = pa.decimal256(20, 0)
_OPERATIONS = {"+": pc.add, "-": pc.subtract, "*": pc.multiply}


@dataclass(frozen=True, slots=True)
class _Numbers:
    """What a part of a formula gives for each row.

    :param values: decimals of up to 76 digits.
    :param whole: whether the server has them as BIGINT, and not as DECIMAL.
    """

    values: pa.Array
    whole: bool
    unsigned: bool


def computed(
    formula: Formula, operand: Operand, count: int, column: Column, target: pa.DataType, lost: Counter[str]
) -> pa.Array:
    """Return the values of a generated column.

    :param operand: gives the columns that the formula names.
    :param count: rows.
    :param target: Arrow type of the generated column.
    :param lost: takes the count of values that did not fit the column's type.
    :raises DataError: ``values.computed_unknown`` where it is not certain what the server computed.
    """
    try:
        if isinstance(formula, ColumnValue):
            values, kind = operand(formula.column_id)
            if kind == column.type and values.type == target:
                return _without_nulls(values, column)
        found = _numbers(formula, operand, count)
        if found.whole:
            kind = ColumnType("bigint", unsigned=found.unsigned)
            values = found.values.cast(pa.decimal128(_BIGINT.precision, 0))
        else:
            kind = ColumnType("decimal", MAX_DIGITS, found.values.type.scale)
            values = found.values.cast(pa.decimal128(MAX_DIGITS, found.values.type.scale))
        return _without_nulls(convert(values, kind, column.type, target, lost), column)
    except (Uncertain, pa.ArrowException) as error:
        reason = str(error) if isinstance(error, Uncertain) else "a number has too many digits"
        raise DataError(
            "values.computed_unknown",
            f"it is not certain what the server computed for stored rows: {reason}",
            where={"column": column.name},
            hint="TRUNCATE TABLE, or DROP TABLE and CREATE TABLE, at the source makes the table known again",
        ) from None


def _without_nulls(values: pa.Array, column: Column) -> pa.Array:
    if values.null_count and not column.nullable:
        raise Uncertain("NULL in a column that is NOT NULL")
    return values


def _numbers(formula: Formula, operand: Operand, count: int) -> _Numbers:
    if isinstance(formula, Number):
        return _literal(formula.text, count)
    if isinstance(formula, ColumnValue):
        return _column(*operand(formula.column_id))
    right = _numbers(formula.right, operand, count)
    if formula.left is None:
        zero = pa.scalar(Decimal(0), pa.decimal256(1, 0))
        return _within(_Numbers(pc.subtract(zero, right.values), right.whole, False))
    left = _numbers(formula.left, operand, count)
    whole = left.whole and right.whole
    unsigned = left.unsigned or right.unsigned if whole else left.unsigned and right.unsigned
    values = _OPERATIONS[formula.operator](left.values, right.values)
    return _within(_Numbers(values, whole, unsigned))


def _literal(text: str, count: int) -> _Numbers:
    number = Decimal(text)
    whole = "." not in text
    kind = _BIGINT if whole else pa.decimal256(len(text) - 1, -int(number.as_tuple().exponent))
    return _Numbers(pa.repeat(pa.scalar(number, kind), count), whole, whole and number >= 1 << 63)


def _column(values: pa.Array, kind: ColumnType) -> _Numbers:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_boolean(values.type):
        raise Uncertain("TINYINT(1) is stored as a boolean (tinyint1_as_boolean)")
    if kind.name in INTEGERS:
        return _Numbers(values.cast(_BIGINT), True, kind.unsigned)
    decimals = values.cast(pa.decimal256(values.type.precision, values.type.scale))
    return _Numbers(decimals, False, kind.unsigned)


def _within(numbers: _Numbers) -> _Numbers:
    """Refuse results that are errors at the source, or depend on NO_UNSIGNED_SUBTRACTION."""
    if numbers.unsigned:
        demand(pc.greater_equal(numbers.values, _scalar(0)), "a difference of unsigned numbers is negative")
    if not numbers.whole:
        return numbers
    low, high = (0, 1 << 64) if numbers.unsigned else (-(1 << 63), 1 << 63)
    fits = pc.and_(pc.greater_equal(numbers.values, _scalar(low)), pc.less(numbers.values, _scalar(high)))
    demand(fits, "a number is beyond BIGINT")
    # at its own width again, so that formulas of any length stay within Arrow's digits
    return replace(numbers, values=numbers.values.cast(_BIGINT))


def _scalar(number: int) -> pa.Scalar:
    return pa.scalar(Decimal(number), _BIGINT)
