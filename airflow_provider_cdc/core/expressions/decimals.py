# SPDX-License-Identifier: Apache-2.0
"""Kernels of DECIMALs: exact, and rounded half away from zero only where SQL rounds.

Arrow overflows decimals of 128 bits in silence, so that what may need more than 38 digits is computed with 256 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal, localcontext
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.expressions.rows import Rows, Values, array_of, either, failing, mask_of
from airflow_provider_cdc.core.values.types import MAX_DIGITS

_WIDE = 76  # digits of decimal256
_LEAST_SCALE = 6  # of a quotient
_ENOUGH = 70  # digits of quotients, which leave room for carries
_SMALL = 10**18  # below it numbers are computed with 64 bits
_PRECISION = 200  # digits of Python's decimals, more than any operand needs
_DIVIDED = (
    9  # digits by which Arrow divides at once: a divisor of more than 32 bits gives wrong results for some values
)
_ROUNDED = "half_towards_infinity"  # a half goes away from zero


def sum_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of a sum or difference: Spark's, with all digits after the point."""
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    return pa.decimal128(min(MAX_DIGITS, whole + scale + 1), scale)


def product_type(left: pa.DataType, right: pa.DataType) -> pa.DataType | None:
    """Return the type of a product; None if it has too many digits after the point."""
    scale = left.scale + right.scale
    return None if scale > MAX_DIGITS else pa.decimal128(min(MAX_DIGITS, left.precision + right.precision + 1), scale)


def quotient_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of a quotient: Spark's, with as many digits after the point as those before it leave room for."""
    whole = left.precision - left.scale + right.scale
    scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
    scale = min(scale, max(_LEAST_SCALE, MAX_DIGITS - whole))
    return pa.decimal128(min(MAX_DIGITS, whole + scale), scale)


def remainder_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of a remainder."""
    scale = max(left.scale, right.scale)
    whole = min(left.precision - left.scale, right.precision - right.scale)
    return pa.decimal128(max(1, min(MAX_DIGITS, whole + scale)), scale)


def _sum(operate: Callable[[Values, Values], Any], left: Values, right: Values, target: pa.DataType) -> pa.Array | Rows:
    """Add or subtract; a result that has too many digits fails."""
    if target.precision < MAX_DIGITS:
        return operate(left, right)
    # with one label for both, whose result Arrow still has a label for
    wide = [_labelled(_wide(one).cast(pa.decimal256(_WIDE, target.scale)), _WIDE - 1) for one in (left, right)]
    return fitted(operate(*wide), target)


def _product(left: Values, right: Values, target: pa.DataType) -> pa.Array | Rows:
    """Multiply; a result that has too many digits fails."""
    if target.precision < MAX_DIGITS:
        return pc.multiply(left, right)
    wide = _labelled(_wide(right), min(right.type.precision, MAX_DIGITS - 1))  # so that both have 76 digits at most
    return fitted(pc.multiply(_wide(left), wide), target)


def fitted(values: pa.Array, target: pa.DataType) -> Rows:
    """Return decimals with another precision and scale, rounded; one that has too many digits fails."""
    source = values.type
    if target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale:
        return Rows(values if source == target else values.cast(target))
    wide = _wide(values)
    if target.scale < source.scale:
        # whether a half is reached shows in the first digit that falls away
        wide = pc.round(without_digits(values, pc.trunc, target.scale + 1), target.scale, _ROUNDED)
        source = wide.type
    whole = target.precision - target.scale
    failed = None
    if whole + 1 + source.scale <= _WIDE:  # else the cast raises, and it is searched where
        beyond = pc.greater_equal(pc.abs(wide), pa.scalar(Decimal(10) ** whole, pa.decimal256(_WIDE, source.scale)))
        wide, failed = (result := failing(wide, beyond)).values, result.failed
    return Rows(wide.cast(target), failed)


def quotient(left: Values, right: Values, target: pa.DataType) -> Rows:
    """Divide and round to the digits of a type."""
    shift = target.scale - left.type.scale + right.type.scale
    zero = is_zero(right)
    dividend, divisor = _small(left), _small(right, zero)
    if dividend is None or divisor is None or shift < 0 or int(np.abs(divisor).max(initial=1)) >= _SMALL // 10:
        result = _by_value(left, right, target, lambda a, b: a / b)
    else:
        values = _unscaled(_long_division(dividend, divisor, shift), target.scale)
        result = fitted(_where_known(values, left, right, zero), target)
    return Rows(result.values, either([result.failed, _by_zero(left, zero, len(result.values))]))


def remainder(left: Values, right: Values, target: pa.DataType) -> Rows:
    """Return what a division to a whole number leaves; it has the sign of the left operand."""
    zero = is_zero(right)
    dividend = _small(left, digits=target.scale - left.type.scale)
    divisor = _small(right, zero, target.scale - right.type.scale)
    if dividend is None or divisor is None:
        result = _by_value(left, right, target, lambda a, b: a % b)
    else:
        values = _unscaled(_of_numpy(np.fmod(dividend, divisor)), target.scale)
        result = fitted(_where_known(values, left, right, zero), target)
    return Rows(result.values, either([result.failed, _by_zero(left, zero, len(result.values))]))


def is_zero(values: Values) -> Any:
    """Return whether numbers are zero."""
    zero = Decimal(0) if pa.types.is_decimal(values.type) else 0
    return pc.equal(values, pa.scalar(zero, values.type))


def _by_zero(left: Values, zero: Any, count: int) -> BoolArray | None:
    """Return where a division by zero fails; NULL divided by zero is NULL."""
    fails = pc.and_(zero, pc.is_valid(left))
    return mask_of(array_of(fails, count)) if pc.any(fails).as_py() else None


def _where_known(values: pa.Array, left: Values, right: Values, zero: Any) -> pa.Array:
    known = pc.and_(pc.and_(pc.is_valid(left), pc.is_valid(right)), pc.invert(zero))
    return pc.if_else(known, values, pa.scalar(None, values.type))


def _small(values: Values, zero: Any = None, digits: int = 0) -> IntArray | None:
    """Return decimals without the point as numpy's integers, None if one of them has more than 18 digits.

    :param zero: where to return 1 instead; NULL is 1, too.
    :param digits: how many zeros to append.
    """
    if 10**digits >= _SMALL:
        return None
    known = values if isinstance(values, pa.Array) else array_of(values, 1)
    whole = known.view(pa.decimal128(MAX_DIGITS, 0))
    limit = pa.scalar(Decimal(_SMALL // 10**digits), whole.type)
    if not pc.all(pc.less(pc.abs(whole), limit), min_count=0).as_py():
        return None
    if zero is not None:
        whole = pc.if_else(zero, pa.scalar(None, whole.type), whole)
    numbers: IntArray = whole.cast(pa.int64()).fill_null(1).to_numpy(zero_copy_only=False)
    grown: IntArray = numbers * 10**digits
    return grown


def _long_division(dividend: IntArray, divisor: IntArray, digits: int) -> pa.Array:
    """Return quotients with so many digits after the point, without the point; Arrow's own are wrong for long ones."""
    negative = (dividend < 0) != (divisor < 0)
    divisor = np.abs(divisor)
    part, rest = np.divmod(np.abs(dividend), divisor)
    result = _of_numpy(part)
    at_once = 18 - len(str(divisor.max(initial=1)))
    while digits > 0:
        step = min(digits, at_once)
        part, rest = np.divmod(rest * 10**step, divisor)
        result = _labelled(pc.add(_times(result, 10**step), _of_numpy(part)), _ENOUGH)
        digits -= step
    result = pc.add(result, _of_numpy((2 * rest >= divisor).astype(np.int64)))
    return pc.if_else(pa.array(negative), pc.negate(result), result)


def _of_numpy(numbers: IntArray) -> pa.Array:
    return pa.array(numbers).cast(pa.decimal256(19, 0))


def _times(values: pa.Array, factor: int) -> pa.Array:
    """Multiply by a power of ten: as a scale that is taken away again."""
    scale = len(str(factor)) - 1
    return _viewed(_labelled(values, _ENOUGH - 19).cast(pa.decimal256(_ENOUGH, scale)), pa.decimal256(_ENOUGH, 0))


def _by_value(left: Values, right: Values, target: pa.DataType, operate: Callable[[Decimal, Decimal], Decimal]) -> Rows:
    """Compute one by one what does not fit 256 bits."""
    count = len(left) if isinstance(left, pa.Array) else len(right)
    pairs = zip(array_of(left, count).to_pylist(), array_of(right, count).to_pylist(), strict=True)
    with localcontext(prec=_PRECISION, rounding=ROUND_DOWN):
        results = [None if a is None or not b else operate(a, b) for a, b in pairs]
    return from_python(results, target)


def from_python(numbers: Sequence[Decimal | None], target: pa.DataType) -> Rows:
    """Return decimals of any length, rounded; one that has too many digits fails."""
    limit, unit = Decimal(10) ** (target.precision - target.scale), Decimal(1).scaleb(-target.scale)
    with localcontext(prec=_PRECISION):
        small = (None if one is None or abs(one) >= limit else one.quantize(unit, ROUND_HALF_UP) for one in numbers)
        fitting = [None if one is None or abs(one) >= limit else one for one in small]
    failed = np.array([was is not None and now is None for was, now in zip(numbers, fitting, strict=True)], bool)
    return Rows(pa.array(fitting, target), failed if failed.any() else None)


def _wide(values: Values) -> Values:
    return values.cast(pa.decimal256(values.type.precision, values.type.scale))


def _labelled(values: Values, digits: int) -> Values:
    """Return decimals of 256 bits as if they had so many digits; those that they have stay."""
    return _viewed(values, pa.decimal256(digits, values.type.scale))


def _unscaled(values: Values, scale: int) -> Values:
    """Return decimals of 256 bits with the point elsewhere."""
    return _viewed(values, pa.decimal256(_WIDE, scale))


def _viewed(values: Values, kind: pa.DataType) -> Values:
    if isinstance(values, pa.Scalar):
        return pa.array([values.as_py()], values.type).view(kind)[0]
    return values.view(kind)


def without_digits(values: pa.Array, operate: Callable[[pa.Array], Any], scale: int) -> pa.Array:
    """Return decimals of 256 bits with fewer digits after the point.

    :param operate: Arrow's function for digits that fall away: trunc, floor or ceil.
    """
    wide = _viewed(_wide(values), pa.decimal256(_WIDE, 0))
    over = max(0, values.type.scale - scale)
    while over > 0:
        step = min(over, _DIVIDED)
        wide = operate(_viewed(wide, pa.decimal256(_WIDE, step))).cast(pa.decimal256(_WIDE, 0))
        over -= step
    return _viewed(wide, pa.decimal256(_WIDE, min(scale, values.type.scale)))


TYPES: dict[str, Callable[[pa.DataType, pa.DataType], pa.DataType | None]] = {
    "+": sum_type,
    "-": sum_type,
    "*": product_type,
    "/": quotient_type,
    "%": remainder_type,
}
"""Types of results, by the sign of the operator."""

KERNELS: dict[str, Callable[..., pa.Array | Rows]] = {
    "+": partial(_sum, pc.add),
    "-": partial(_sum, pc.subtract),
    "*": _product,
    "/": quotient,
    "%": remainder,
}
"""Operators by their sign."""
