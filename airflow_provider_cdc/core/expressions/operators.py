# SPDX-License-Identifier: Apache-2.0
"""Check the operands of operators, and of functions that are like them, and choose their kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.expressions import comparisons, decimals, kinds, numbers, texts
from airflow_provider_cdc.core.expressions.kinds import is_float, is_number, is_text, is_whole, name_of
from airflow_provider_cdc.core.expressions.nodes import Call
from airflow_provider_cdc.core.expressions.typed import (
    Typed,
    choice,
    connective,
    constant,
    first_known,
    lazy,
    strict,
)
from airflow_provider_cdc.core.values.types import MAX_DIGITS

if TYPE_CHECKING:
    from airflow_provider_cdc.core.expressions.binding import Binder

_TRUTH = pa.bool_()


def _connective(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    conditions = [binder.condition(part) for part in parts]
    return lazy(node.position, _TRUTH, connective(conditions, node.name == "AND"), conditions)


def _not(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    return strict(node.position, _TRUTH, pc.invert, [binder.condition(parts[0])])


def _is_null(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    return strict(node.position, _TRUTH, pc.is_null, parts)


def _comparable(binder: Binder, parts: Sequence[Typed]) -> list[Typed]:
    for part in parts:
        if part.type != pa.null() and not kinds.is_ordered(part.type):
            binder.refuse(f"{name_of(part.type)} cannot be compared", part.position)
    return binder.unified(parts, "cannot be compared", exactly=True)


def _comparison(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    operands = _comparable(binder, parts)
    if operands[0].type == pa.null():
        return constant(node.position, pa.scalar(None, _TRUTH))
    return strict(node.position, _TRUTH, comparisons.COMPARISONS[node.name], operands)


def _in(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    value, *items = _comparable(binder, parts)
    known = [item.constant for item in items if item.constant is not None]
    if value.type == pa.null():
        return constant(node.position, pa.scalar(None, _TRUTH))
    if len(known) < len(items) or is_float(value.type) or value.constant is not None:
        return strict(node.position, _TRUTH, comparisons.is_among, [value, *items])
    among = pa.array([item.as_py() for item in known], value.type)
    return strict(node.position, _TRUTH, partial(comparisons.is_among_constants, items=among), [value])


def _like(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    value, *patterns = parts
    pattern, escape = str(patterns[0].constant), str(patterns[1].constant) if len(patterns) > 1 else "\\"
    if len(escape) != 1:
        binder.refuse("ESCAPE takes one character", patterns[1].position)
    try:
        texts.like_parts(pattern, escape)
    except ValueError as error:
        binder.refuse(str(error), patterns[0].position)
    if value.type != pa.null() and not is_text(value.type):
        binder.refuse(f"LIKE takes a text, not {name_of(value.type)}; write CAST(... AS STRING)", value.position)
    kernel = partial(texts.like, pattern=pattern, escape=escape)
    return strict(node.position, _TRUTH, kernel, [binder.converted(value, pa.string(), value.position)])


def _arithmetic(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    sign = "%" if node.name == "MOD" else node.name
    operands = [_number(binder, node, part) for part in parts]
    if any(is_float(part.type) for part in operands):
        kind, kernels = pa.float64(), numbers.DOUBLES
    elif all(is_whole(part.type) for part in operands) and sign != "/":
        kind, kernels = pa.int64(), numbers.WHOLE
    else:
        return _of_decimals(binder, node, sign, operands)
    operands = [binder.converted(part, kind, part.position) for part in operands]
    kernel = numbers.negative if len(operands) == 1 else kernels[sign]
    return strict(node.position, kind, kernel, operands)


def _number(binder: Binder, node: Call, part: Typed) -> Typed:
    if part.type == pa.null():
        return binder.converted(part, pa.int32(), part.position)
    if not is_number(part.type):
        hint = "; write CONCAT" if node.name == "+" and is_text(part.type) else ""
        binder.refuse(f"{node.name} takes numbers, not {name_of(part.type)}{hint}", part.position)
    return part


def _of_decimals(binder: Binder, node: Call, sign: str, parts: list[Typed]) -> Typed:
    if len(parts) == 1:
        return strict(node.position, parts[0].type, numbers.negative, parts)
    left, right = (binder.converted(part, kinds.as_decimal(part.type), part.position) for part in parts)
    kind = decimals.TYPES[sign](left.type, right.type)
    if kind is None:
        scale = left.type.scale + right.type.scale
        message = f"the result would have {scale} digits after the point, of {MAX_DIGITS} that are possible"
        binder.refuse(f"{message}; CAST the operands to fewer", node.position)
    return strict(node.position, kind, partial(decimals.KERNELS[sign], target=kind), [left, right])


def _coalesce(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    operands = binder.unified(parts, "are not operands of one COALESCE")
    return lazy(node.position, operands[0].type, first_known(operands), operands)


def _null_if(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    same = _comparison(binder, Call(node.position, "=", node.arguments), parts)
    unknown = constant(node.position, pa.scalar(None, parts[0].type))
    return lazy(node.position, parts[0].type, choice([(same, unknown)], parts[0]), [same, parts[0]])


def _date(binder: Binder, node: Call, parts: list[Typed]) -> Typed:
    return binder.converted(parts[0], pa.date32(), node.position)


OPERATORS: dict[str, Callable[[Binder, Call, list[Typed]], Typed]] = {
    "AND": _connective,
    "OR": _connective,
    "NOT": _not,
    "IS NULL": _is_null,
    "IN": _in,
    "LIKE": _like,
    **dict.fromkeys(comparisons.COMPARISONS, _comparison),
    **dict.fromkeys(("+", "-", "*", "/", "%", "MOD"), _arithmetic),
    "COALESCE": _coalesce,
    "NULLIF": _null_if,
    "DATE": _date,
}
"""Operators, and functions without a kernel, by name."""
