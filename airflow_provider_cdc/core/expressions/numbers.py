# SPDX-License-Identifier: Apache-2.0
"""Kernels of numbers: BIGINT and DOUBLE. A result that is too large fails, and so does a division by zero."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.expressions import decimals
from airflow_provider_cdc.core.expressions.kinds import is_decimal, is_float, is_whole
from airflow_provider_cdc.core.expressions.rows import Rows, Values, array_of, either, failing, mask_of
from airflow_provider_cdc.core.values.types import MAX_DIGITS

_HALF_UP = "half_towards_infinity"  # a half goes away from zero
_BEYOND_BIGINT = float(1 << 63)


def of_doubles(operate: Callable[[Values, Values], Any]) -> Callable[[Values, Values], Rows]:
    """Return a kernel of DOUBLEs: finite numbers whose result is not finite fail."""

    def kernel(left: Values, right: Values) -> Rows:
        result = operate(left, right)
        beyond = pc.invert(pc.is_finite(result))
        if not pc.any(beyond).as_py():
            return Rows(result)
        return failing(result, pc.and_(beyond, pc.and_(pc.is_finite(left), pc.is_finite(right))))

    return kernel


def quotient(left: Values, right: Values) -> Rows:
    """Divide DOUBLEs."""
    result = of_doubles(pc.divide)(left, right)
    zero = pc.and_(decimals.is_zero(right), pc.is_valid(left))
    if not pc.any(zero).as_py():
        return result
    by_zero = failing(result.values, array_of(zero, len(result.values)))
    return Rows(by_zero.values, either([result.failed, by_zero.failed]))


def remainder(left: Values, right: Values) -> Rows:
    """Return what a division of BIGINTs or DOUBLEs leaves; it has the sign of the left operand."""
    count = len(left) if isinstance(left, pa.Array) else len(right)
    a, b = array_of(left, count), array_of(right, count)
    zero = decimals.is_zero(b)
    divisor = pc.if_else(zero, pa.scalar(1, b.type), b)
    with np.errstate(all="ignore"):  # Arrow has no remainder
        rest = np.fmod(_numbers(a), _numbers(divisor))
    values = pa.array(rest, a.type, mask=mask_of(pc.or_(pc.is_null(a), pc.is_null(b))))
    return failing(values, pc.and_(zero, pc.is_valid(a)))


def _numbers(values: pa.Array) -> Any:
    return values.fill_null(1).to_numpy(zero_copy_only=False)


def negative(value: pa.Array) -> Any:
    """Return a number with the other sign."""
    return pc.negate_checked(value) if is_whole(value.type) else pc.negate(value)


def absolute(value: pa.Array) -> Any:
    """Return a number without its sign."""
    return pc.abs_checked(value) if is_whole(value.type) else pc.abs(value)


def rounded(value: pa.Array, digits: int = 0) -> pa.Array | Rows:
    """Round to some digits after the point; a half goes away from zero."""
    if is_decimal(value.type):
        return decimals.fitted(value, rounded_type(value.type, digits))
    return pc.round(value, 0, _HALF_UP) if is_float(value.type) else value


def rounded_type(kind: pa.DataType, digits: int = 0) -> pa.DataType:
    """Return the type of a rounded number: Spark's.

    :raises ValueError: it is not certain to which digits a DOUBLE is rounded.
    """
    if is_float(kind) and digits:
        raise ValueError(
            "ROUND of a DOUBLE has no digits after the point; write ROUND(CAST(... AS DECIMAL(p, s)), digits)"
        )
    if not is_decimal(kind) or digits >= kind.scale:
        return kind
    return pa.decimal128(min(MAX_DIGITS, kind.precision - kind.scale + digits + 1), digits)


def floor(value: pa.Array) -> pa.Array | Rows:
    """Return the greatest whole number that is not greater."""
    return _to_whole(value, pc.floor)


def ceiling(value: pa.Array) -> pa.Array | Rows:
    """Return the least whole number that is not less."""
    return _to_whole(value, pc.ceil)


def whole_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of FLOOR and CEIL: Spark's."""
    return pa.int64() if is_float(kind) else rounded_type(kind)


def _to_whole(value: pa.Array, operate: Callable[[Values], Any]) -> pa.Array | Rows:
    if is_decimal(value.type):
        return decimals.fitted(decimals.without_digits(value, operate, 0), whole_type(value.type))
    return doubles_to_bigint(operate(value)) if is_float(value.type) else value


def doubles_to_bigint(values: pa.Array) -> Rows:
    """Return DOUBLEs without digits after the point as BIGINT; others than BIGINT holds fail."""
    inside = pc.and_(pc.less(values, _BEYOND_BIGINT), pc.greater_equal(values, -_BEYOND_BIGINT))
    result = failing(values, pc.invert(inside))
    return Rows(result.values.cast(pa.int64(), safe=False), result.failed)


WHOLE: dict[str, Callable[[Values, Values], Any]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "%": remainder,
}
"""Operators of BIGINTs by their sign."""

DOUBLES: dict[str, Callable[[Values, Values], Any]] = {
    "+": of_doubles(pc.add),
    "-": of_doubles(pc.subtract),
    "*": of_doubles(pc.multiply),
    "/": quotient,
    "%": remainder,
}
"""Operators of DOUBLEs by their sign."""
