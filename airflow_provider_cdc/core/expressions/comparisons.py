# SPDX-License-Identifier: Apache-2.0
"""Kernels of comparisons; NaN equals itself and is greater than all other numbers, as in Spark and PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.expressions.kinds import is_float
from airflow_provider_cdc.core.expressions.rows import Values


def equal(left: Values, right: Values) -> Any:
    """Return whether values are equal."""
    result = pc.equal(left, right)
    return pc.or_(result, pc.and_(pc.is_nan(left), pc.is_nan(right))) if is_float(left.type) else result


def less(left: Values, right: Values) -> Any:
    """Return whether the left value is less."""
    result = pc.less(left, right)
    if not is_float(left.type):
        return result
    return pc.or_(result, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))


COMPARISONS: dict[str, Callable[[Values, Values], Any]] = {
    "=": equal,
    "<>": lambda left, right: pc.invert(equal(left, right)),
    "<": less,
    ">": lambda left, right: less(right, left),
    "<=": lambda left, right: pc.invert(less(right, left)),
    ">=": lambda left, right: pc.invert(less(left, right)),
}
"""Operators by their sign; both operands have one type."""


def is_among(value: Values, *items: Values) -> pa.Array:
    """Return whether a value is equal to one of several; NULL if it is to none and one of them is NULL."""
    result = equal(value, items[0])
    for item in items[1:]:
        result = pc.or_kleene(result, equal(value, item))
    return result


def is_among_constants(value: pa.Array, items: pa.Array) -> pa.Array:
    """Return the same for items that are equal on all rows."""
    known = items.drop_null()
    matches = pc.is_in(value, value_set=known)
    if known.null_count == items.null_count:
        return pc.if_else(pc.is_null(value), pa.scalar(None, pa.bool_()), matches)
    return pc.if_else(pc.and_(matches, pc.is_valid(value)), True, pa.scalar(None, pa.bool_()))
