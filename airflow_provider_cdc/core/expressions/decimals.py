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

from airflow_provider_cdc.core.arrays import BoolArray
from airflow_provider_cdc.core.expressions.rows import Rows, Values, array_of, either, failing, mask_of
from airflow_provider_cdc.core.values.types import MAX_DIGITS

_WIDE = 76  # digits of decimal256
_ENOUGH = 70  # digits that leave room for the four which Arrow adds to a quotient
_PRECISION = 200  # digits of Python's decimals, more than any operand needs
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
    """Return the type of a quotient: Spark's, where no digit before the point may be lost."""
    whole = min(MAX_DIGITS, left.precision - left.scale + right.scale)
    scale = min(MAX_DIGITS, max(6, left.scale + right.precision + 1))
    over = whole + scale - MAX_DIGITS
    if over > 0:
        scale -= over // 2 + 1
        whole = MAX_DIGITS - scale
    return pa.decimal128(whole + scale, scale)


def remainder_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    """Return the type of a remainder."""
    scale = max(left.scale, right.scale)
    whole = min(left.precision - left.scale, right.precision - right.scale)
    return pa.decimal128(max(1, min(MAX_DIGITS, whole + scale)), scale)


def _calculate(
    operate: Callable[[Values, Values], Any], left: Values, right: Values, target: pa.DataType
) -> pa.Array | Rows:
    """Add, subtract or multiply; a result that has too many digits fails."""
    if target.precision < MAX_DIGITS:
        return operate(left, right)
    return fitted(operate(_wide(left), _labelled(_wide(right), min(right.type.precision, MAX_DIGITS - 1))), target)


def fitted(values: pa.Array, target: pa.DataType) -> Rows:
    """Return decimals with another precision and scale, rounded; one that has too many digits fails."""
    source = values.type
    if target.scale >= source.scale and target.precision - target.scale >= source.precision - source.scale:
        return Rows(values if source == target else values.cast(target))
    wide = _wide(values)
    if target.scale < source.scale:
        wide = pc.round(_labelled(wide, min(_WIDE, source.precision + 1)), target.scale, _ROUNDED)
    whole = target.precision - target.scale
    failed = None
    if whole + 1 + source.scale <= _WIDE:  # else the cast raises, and it is searched where
        beyond = pc.greater_equal(pc.abs(wide), pa.scalar(Decimal(10) ** whole, pa.decimal256(_WIDE, source.scale)))
        wide, failed = (result := failing(wide, beyond)).values, result.failed
    return Rows(wide.cast(target), failed)


def quotient(left: Values, right: Values, target: pa.DataType) -> Rows:
    """Divide and round to the digits of a type."""
    shift = target.scale - left.type.scale + right.type.scale
    digits = (left.type.precision + max(0, shift), right.type.precision + max(0, -shift))
    zero = is_zero(right)
    if max(digits) > _ENOUGH:
        result = _by_value(left, right, target, lambda a, b: a / b)
        return Rows(result.values, either([result.failed, _fails(left, zero)]))
    whole = pc.round(_divided(_scaled(left, shift), _scaled(right, -shift), zero), 0, _ROUNDED)
    result = fitted(_unscaled(whole.cast(pa.decimal256(_WIDE, 0)), target.scale), target)
    return Rows(result.values, either([result.failed, _fails(left, zero)]))


def remainder(left: Values, right: Values, target: pa.DataType) -> Rows:
    """Return what a division to a whole number leaves; it has the sign of the left operand."""
    shifts = (target.scale - left.type.scale, target.scale - right.type.scale)
    zero = is_zero(right)
    if max(left.type.precision + shifts[0], right.type.precision + shifts[1]) > _ENOUGH:
        result = _by_value(left, right, target, lambda a, b: a % b)
        return Rows(result.values, either([result.failed, _fails(left, zero)]))
    a, b = _scaled(left, shifts[0]), _scaled(right, shifts[1])
    times = pc.trunc(_divided(a, b, zero)).cast(pa.decimal256(_WIDE, 0))
    product = pc.multiply(_labelled(times, MAX_DIGITS), _labelled(b, MAX_DIGITS - 1))
    rest = pc.subtract(_labelled(a, _ENOUGH), _labelled(product, _ENOUGH))
    result = fitted(_unscaled(rest, target.scale), target)
    return Rows(result.values, either([result.failed, _fails(left, zero)]))


def is_zero(values: Values) -> Any:
    """Return whether numbers are zero."""
    zero = Decimal(0) if pa.types.is_decimal(values.type) else 0
    return pc.equal(values, pa.scalar(zero, values.type))


def _fails(left: Values, zero: Any) -> BoolArray | None:
    """Return where a division by zero fails; NULL divided by zero is NULL."""
    fails = pc.and_(zero, pc.is_valid(left))
    return mask_of(fails) if isinstance(fails, pa.Array) and pc.any(fails).as_py() else None


def _divided(left: Values, right: Values, zero: Any) -> pa.Array:
    """Divide whole decimals; the quotient has some digits after the point, cut."""
    divisor = pc.if_else(zero, pa.scalar(None, right.type), right)
    # By the operands' types Arrow chooses the digits of a quotient. These make it four after the point.
    quotient = pc.divide(_labelled(left, _ENOUGH - 10), _labelled(divisor, 1))
    return _labelled(quotient, _WIDE)


def _scaled(values: Values, digits: int) -> Values:
    """Return decimals, multiplied by a power of ten if it is one of at least 1, as whole ones."""
    kind = values.type
    digits = max(0, digits)
    return _unscaled(values.cast(pa.decimal256(kind.precision + digits, kind.scale + digits)), 0)


def _by_value(left: Values, right: Values, target: pa.DataType, operate: Callable[[Decimal, Decimal], Decimal]) -> Rows:
    """Compute one by one what does not fit 256 bits."""
    count = len(left) if isinstance(left, pa.Array) else len(right)
    pairs = zip(array_of(left, count).to_pylist(), array_of(right, count).to_pylist(), strict=True)
    with localcontext(prec=_PRECISION, rounding=ROUND_DOWN):
        results = [None if a is None or not b else operate(a, b) for a, b in pairs]
    return from_python(results, target)


def from_python(numbers: Sequence[Decimal | None], target: pa.DataType) -> Rows:
    """Return decimals of any length, rounded; one that has too many digits fails."""
    whole, unit = target.precision - target.scale, Decimal(1).scaleb(-target.scale)
    with localcontext(prec=_PRECISION):
        small = [
            None if one is None or one.adjusted() >= whole else one.quantize(unit, ROUND_HALF_UP) for one in numbers
        ]
        fitting = [None if one is None or one.adjusted() >= whole else one for one in small]
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


def widened(values: pa.Array) -> pa.Array:
    """Return decimals with room for another digit, which rounding may need."""
    wide = _wide(values)
    return _labelled(wide, values.type.precision + 1)


TYPES: dict[str, Callable[[pa.DataType, pa.DataType], pa.DataType | None]] = {
    "+": sum_type,
    "-": sum_type,
    "*": product_type,
    "/": quotient_type,
    "%": remainder_type,
}
"""Types of results, by the sign of the operator."""

KERNELS: dict[str, Callable[..., pa.Array | Rows]] = {
    "+": partial(_calculate, pc.add),
    "-": partial(_calculate, pc.subtract),
    "*": partial(_calculate, pc.multiply),
    "/": quotient,
    "%": remainder,
}
"""Operators by their sign."""
