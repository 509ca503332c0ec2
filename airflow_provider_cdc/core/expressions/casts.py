# SPDX-License-Identifier: Apache-2.0
"""Kernels of CAST and of implicit conversions: a value that its new type cannot hold fails."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.expressions import decimals, kinds, moments, numbers
from airflow_provider_cdc.core.expressions.rows import Kernel, Rows, either, failing, mask_of
from airflow_provider_cdc.core.values.shared.numbers import plain
from airflow_provider_cdc.core.values.types import MAX_DIGITS

_EXACT_IN_DOUBLE = 1 << 53
_RANGES = {pa.int8(): 7, pa.int16(): 15, pa.int32(): 31, pa.int64(): 63}
_WHOLE = r"\A[+-]?[0-9]+\z"
_NUMBER = r"\A[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?\z"
_PLAIN_NUMBER = r"\A[+-]?([0-9]{1,38}(\.[0-9]{0,38})?|\.[0-9]{1,38})\z"
_YEAR = "([1-9][0-9]{3}|0[1-9][0-9]{2}|00[1-9][0-9]|000[1-9])"  # there is no year 0
_DAY = _YEAR + "-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_HOURS = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_MOMENT = rf"\A{_DAY}([ T]{_HOURS})?\z"
_BOOLEANS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}


def caster(source: pa.DataType, target: pa.DataType) -> Kernel | None:
    """Return the kernel that converts one type to another, None if no value can be converted."""
    kernel = _KERNELS.get((_family(source), _family(target)))
    return None if kernel is None else partial(kernel, target=target)


def _family(kind: pa.DataType) -> str:
    for name, belongs in _FAMILIES.items():
        if belongs(kind):
            return name
    return ""


def _then(first: Rows, convert: Callable[[pa.Array], pa.Array | Rows]) -> Rows:
    """Convert on; a row fails where one of the conversions does."""
    second = convert(first.values)
    if not isinstance(second, Rows):
        second = Rows(second)
    return Rows(second.values, either([first.failed, second.failed]))


def _whole_to_whole(values: pa.Array, target: pa.DataType) -> Rows:
    bits = _RANGES[target]
    if bits >= _RANGES[values.type]:
        return Rows(values.cast(target))
    beyond = pc.or_(pc.greater_equal(values, 1 << bits), pc.less(values, -(1 << bits)))
    return _then(failing(values, beyond), lambda inside: inside.cast(target))


def _whole_to_decimal(values: pa.Array, target: pa.DataType) -> Rows:
    return decimals.fitted(values.cast(kinds.as_decimal(values.type)), target)


def _whole_to_float(values: pa.Array, target: pa.DataType) -> Rows:
    if values.type != pa.int64():
        return Rows(values.cast(target))
    beyond = pc.or_(pc.greater(values, _EXACT_IN_DOUBLE), pc.less(values, -_EXACT_IN_DOUBLE))
    return _then(failing(values, beyond), lambda inside: inside.cast(target))


def _by_arrow(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(target)


def _to_boolean(values: pa.Array, target: pa.DataType) -> pa.Array:
    return pc.invert(decimals.is_zero(values))


def _decimal_to_whole(values: pa.Array, target: pa.DataType) -> Rows:
    whole = decimals.fitted(decimals.without_digits(values, pc.trunc, 0), pa.decimal128(MAX_DIGITS, 0))
    limit = Decimal(1 << _RANGES[target])
    beyond = pc.or_(pc.greater_equal(whole.values, pa.scalar(limit)), pc.less(whole.values, pa.scalar(-limit)))
    return _then(failing(whole.values, beyond), lambda inside: inside.cast(target))


def _decimal_to_decimal(values: pa.Array, target: pa.DataType) -> Rows:
    return decimals.fitted(values, target)


def _decimal_to_float(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(pa.string()).cast(target)  # to the nearest, which a cast without the text is not


def _decimal_to_text(values: pa.Array, target: pa.DataType) -> pa.Array:
    texts = values.cast(target)
    if not pc.any(pc.match_substring(texts, "E")).as_py():
        return texts
    scale = values.type.scale  # Arrow writes 1E-7 where SQL writes 0.0000001
    return pa.array([None if one is None else plain(one, scale) for one in values.to_pylist()], target)


def _float_to_whole(values: pa.Array, target: pa.DataType) -> Rows:
    whole = numbers.doubles_to_bigint(pc.trunc(values.cast(pa.float64())))
    return _then(whole, lambda inside: _whole_to_whole(inside, target))


def _float_to_decimal(values: pa.Array, target: pa.DataType) -> Rows:
    return _text_to_decimal(_float_to_text(values, pa.string()), target)


def _float_to_float(values: pa.Array, target: pa.DataType) -> pa.Array:
    return values.cast(target)


def _float_to_text(values: pa.Array, target: pa.DataType) -> pa.Array:
    """Write the shortest digits that identify the number, without an exponent, and at least one after the point."""
    numbers = values.fill_null(0).to_numpy(zero_copy_only=False)
    if numbers.dtype == np.float32:
        texts = [_spelt(np.format_float_positional(one, trim="0")) for one in numbers]
    else:
        texts = [_spelt(f"{Decimal(repr(one)):f}") for one in numbers.tolist()]
    return pa.array(texts, target, mask=mask_of(pc.is_null(values)))


def _spelt(text: str) -> str:
    if text[-1:].isdigit():
        return text if "." in text else f"{text}.0"
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(text, text)


def _matching(values: pa.Array, regex: str) -> Rows:
    """Return texts without white space around them; others than a regular expression matches fail."""
    trimmed = pc.ascii_trim_whitespace(values)
    return failing(trimmed, pc.invert(pc.match_substring_regex(trimmed, regex)))


def _text_to_whole(values: pa.Array, target: pa.DataType) -> Rows:
    digits = _matching(values, _WHOLE)
    return _then(digits, lambda texts: pc.utf8_ltrim(texts, characters="+").cast(target))


def _text_to_decimal(values: pa.Array, target: pa.DataType) -> Rows:
    return _then(_matching(values, _NUMBER), lambda texts: _number_to_decimal(texts, target))


def _number_to_decimal(texts: pa.Array, target: pa.DataType) -> Rows:
    """Parse numbers; Arrow loses digits of long ones in silence."""
    if pc.all(pc.match_substring_regex(texts, _PLAIN_NUMBER)).as_py() is not False:
        return decimals.fitted(texts.cast(pa.decimal256(76, MAX_DIGITS)), target)
    return decimals.from_python([None if one is None else Decimal(one) for one in texts.to_pylist()], target)


def _text_to_float(values: pa.Array, target: pa.DataType) -> Rows:
    doubles = _then(_matching(values, _NUMBER), lambda texts: pc.utf8_ltrim(texts, characters="+").cast(target))
    return _then(doubles, lambda inside: failing(inside, pc.is_inf(inside)))


def _text_to_boolean(values: pa.Array, target: pa.DataType) -> Rows:
    words = pc.ascii_lower(pc.ascii_trim_whitespace(values))
    index = pc.index_in(words, value_set=pa.array(_BOOLEANS))
    return failing(pa.array(_BOOLEANS.values()).take(index), pc.and_(pc.is_null(index), pc.is_valid(values)))


def _text_to_date(values: pa.Array, target: pa.DataType) -> Rows:
    return _then(_text_to_time(values, kinds.TIMESTAMP), moments.to_date)


def _text_to_time(values: pa.Array, target: pa.DataType) -> Rows:
    return _then(_matching(values, _MOMENT), lambda texts: moments.to_time(texts.cast(kinds.TIMESTAMP), target))


def _to_time(values: pa.Array, target: pa.DataType) -> pa.Array:
    return moments.to_time(values, target)


def _time_to_date(values: pa.Array, target: pa.DataType) -> pa.Array:
    return moments.to_date(values)


def _time_to_text(values: pa.Array, target: pa.DataType) -> pa.Array:
    return pc.replace_substring_regex(moments.wall_clock(values).cast(target), r"\.?0+\z", "")


_FAMILIES: dict[str, Callable[[pa.DataType], bool]] = {
    "whole": kinds.is_whole,
    "decimal": kinds.is_decimal,
    "float": kinds.is_float,
    "text": kinds.is_text,
    "date": lambda kind: kind == pa.date32(),
    "time": kinds.is_time,
    "boolean": lambda kind: kind == pa.bool_(),
}
_KERNELS: dict[tuple[str, str], Callable[..., pa.Array | Rows]] = {
    ("whole", "whole"): _whole_to_whole,
    ("whole", "decimal"): _whole_to_decimal,
    ("whole", "float"): _whole_to_float,
    ("whole", "text"): _by_arrow,
    ("whole", "boolean"): _to_boolean,
    ("decimal", "whole"): _decimal_to_whole,
    ("decimal", "decimal"): _decimal_to_decimal,
    ("decimal", "float"): _decimal_to_float,
    ("decimal", "text"): _decimal_to_text,
    ("decimal", "boolean"): _to_boolean,
    ("float", "whole"): _float_to_whole,
    ("float", "decimal"): _float_to_decimal,
    ("float", "float"): _float_to_float,
    ("float", "text"): _float_to_text,
    ("float", "boolean"): _to_boolean,
    ("text", "whole"): _text_to_whole,
    ("text", "decimal"): _text_to_decimal,
    ("text", "float"): _text_to_float,
    ("text", "text"): _by_arrow,
    ("text", "date"): _text_to_date,
    ("text", "time"): _text_to_time,
    ("text", "boolean"): _text_to_boolean,
    ("date", "date"): lambda values, target: values,
    ("date", "time"): _to_time,
    ("date", "text"): _by_arrow,
    ("time", "time"): _to_time,
    ("time", "date"): _time_to_date,
    ("time", "text"): _time_to_text,
    ("boolean", "boolean"): lambda values, target: values,
    ("boolean", "whole"): _by_arrow,
    ("boolean", "text"): _by_arrow,
}
