# SPDX-License-Identifier: Apache-2.0
"""Read and write exact numbers: integers, decimals, and the texts of a DECIMAL column."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

from airflow_provider_cdc.core.values.fields import ConversionError, Field, Reason

INTEGER = re.compile(r"[+-]?[0-9]+")
DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,4})?")
_MAX_EXPONENT = 400  # larger than any MySQL number has; without a bound 1e9999 would make 10 000 digits


def integral(value: Any) -> int:
    """Return an integer exactly; raise if the value has a fraction."""
    if isinstance(value, (bool, int)):
        return int(value)
    if isinstance(value, str) and len(value) < 100 and INTEGER.fullmatch(value):
        return int(value)
    number = exact(value)
    if number != number.to_integral_value():
        raise ConversionError(Reason.FRACTION)
    return int(number)


def exact(value: Any) -> Decimal:
    """Return a number as an exact decimal."""
    if isinstance(value, Decimal):
        return value
    if isinstance(value, (bool, int)):
        return Decimal(int(value))
    if not isinstance(value, str):
        raise ConversionError(Reason.TARGET)
    if not DECIMAL.fullmatch(value):
        raise ConversionError(Reason.NUMBER)
    number = Decimal(value)
    if number and not -_MAX_EXPONENT <= number.adjusted() <= _MAX_EXPONENT:
        raise ConversionError(Reason.RANGE)
    return number if number else Decimal(0)


def unscaled_of(number: Decimal, scale: int) -> int:
    """Return ``number`` x 10^``scale``; raise if that is not an integer."""
    sign, digits, exponent = number.as_tuple()
    shift = int(exponent) + scale
    unscaled = int("".join(map(str, digits)) or "0")
    power: int = 10 ** abs(shift)
    whole, beyond = (unscaled * power, 0) if shift >= 0 else divmod(unscaled, power)
    if beyond:
        raise ConversionError(Reason.FRACTION)
    return -whole if sign else whole


def scaled(unscaled: int, scale: int) -> Decimal:
    """Return ``unscaled`` / 10^``scale`` exactly, however many digits it has."""
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -scale))


def plain(number: Decimal, scale: int) -> str:
    """Write a number with exactly ``scale`` fraction digits."""
    unscaled = unscaled_of(number, scale)
    digits = str(abs(unscaled)).rjust(scale + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale else digits
    return f"-{text}" if unscaled < 0 else text


def plain_digits(unscaled: int, scale: int) -> str:
    """Write ``unscaled`` / 10^``scale``, however many thousands of digits it has."""
    digits = "".join(map(str, Decimal(abs(unscaled)).as_tuple().digits)) + "0" * max(-scale, 0)
    digits = digits.lstrip("0").rjust(max(scale, 0) + 1, "0")
    text = f"{digits[:-scale]}.{digits[-scale:]}" if scale > 0 else digits
    return f"-{text}" if unscaled < 0 else text


def plain_decimal(number: Decimal, field: Field) -> str:
    """Write a number as its column prints it."""
    text = plain(number, scale_of(field))
    if field.type.name == "decimal" and len(text.lstrip("-0.").replace(".", "")) > (field.type.length or 10):
        raise ConversionError(Reason.RANGE)
    return text


def scale_of(field: Field) -> int:
    """Return the fraction digits of a DECIMAL written as text."""
    scale = field.type.scale if field.type.name == "decimal" else None
    return scale if scale is not None else field.encoded.scale or 0
