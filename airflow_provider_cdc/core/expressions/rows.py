# SPDX-License-Identifier: Apache-2.0
"""Hold the values of a part of an expression, with the rows on which it fails; run kernels on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import BoolArray

Values: TypeAlias = pa.Array | pa.Scalar


@dataclass(frozen=True, slots=True)
class Batch:
    """Hold rows whose expressions are evaluated.

    :param columns: one array each, under the names that the expression found.
    :param count: rows.
    """

    columns: Mapping[str, pa.Array]
    count: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Hold one value for each row, or one for all.

    :param values: NULL where it fails.
    :param failed: rows on which it fails; None if there are none.
    """

    values: Values
    failed: BoolArray | None = None


Kernel = Callable[..., pa.Array | Rows]
"""Computes from values of all rows; at least one operand is an array. An Arrow error is one of some row."""


def mask_of(condition: pa.Array) -> BoolArray:
    """Return where a condition is true; NULL is not."""
    if condition.null_count:
        condition = condition.fill_null(False)
    mask: BoolArray = condition.to_numpy(zero_copy_only=False)
    return mask


def array_of(values: Values, count: int) -> pa.Array:
    """Return one value for each row."""
    return pa.repeat(values, count) if isinstance(values, pa.Scalar) else values


def either(masks: Sequence[BoolArray | None]) -> BoolArray | None:
    """Return where one of the masks is set; None if none is."""
    known = [mask for mask in masks if mask is not None]
    return reduce(np.logical_or, known) if known else None


def failing(values: pa.Array, fails: pa.Array | BoolArray) -> Rows:
    """Return values that fail where a condition is true.

    :param values: what they are there does not matter.
    """
    mask = fails if isinstance(fails, np.ndarray) else mask_of(fails)
    if not mask.any():
        return Rows(values)
    return Rows(pc.if_else(pa.array(mask), pa.scalar(None, values.type), values), mask)


def run(kernel: Kernel, operands: Sequence[Rows], count: int) -> Rows:
    """Run a kernel that needs all its operands: a row on which one of them fails, fails."""
    arguments = [operand.values for operand in operands]
    if not any(isinstance(values, pa.Array) for values in arguments):
        arguments[0] = array_of(arguments[0], count)
    result = _run(kernel, arguments, count)
    before = either([operand.failed for operand in operands])
    if before is None:
        return result
    return Rows(failing(result.values, before).values, either([before, result.failed]))


def _run(kernel: Kernel, arguments: Sequence[Values], count: int) -> Rows:
    """Run a kernel; where Arrow raises, on ever smaller parts, until it is known on which rows."""
    try:
        result = kernel(*arguments)
    except pa.ArrowCapacityError:
        raise
    except pa.ArrowInvalid:
        if count <= 1:
            if any(pc.is_null(array_of(one, 1))[0].as_py() for one in arguments):
                raise  # NULL fails nowhere: the kernel is wrong
            return Rows(pa.nulls(count), np.ones(count, bool))
        half = count // 2
        parts = [_run(kernel, _cut(arguments, at, size), size) for at, size in ((0, half), (half, count - half))]
        return _joined(parts, (half, count - half))
    return result if isinstance(result, Rows) else Rows(result)


def _cut(arguments: Sequence[Values], begin: int, count: int) -> list[Values]:
    return [one if isinstance(one, pa.Scalar) else one.slice(begin, count) for one in arguments]


def _joined(parts: Sequence[Rows], counts: Sequence[int]) -> Rows:
    """Join parts; one that failed as a whole has no type yet."""
    kind = next((part.values.type for part in parts if part.values.type != pa.null()), pa.null())
    arrays = [part.values if part.values.type == kind else part.values.cast(kind) for part in parts]
    masks = [np.zeros(n, bool) if part.failed is None else part.failed for part, n in zip(parts, counts, strict=True)]
    failed: Any = np.concatenate(masks)
    return Rows(pa.concat_arrays(arrays), failed)
