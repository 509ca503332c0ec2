# SPDX-License-Identifier: Apache-2.0
"""Hold parts of an expression whose types are known, ready to run; compute those that no column changes once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import BoolArray
from airflow_provider_cdc.core.expressions.rows import Batch, Kernel, Rows, array_of, either, failing, mask_of, run

Run = Callable[[Batch], Rows]


class ConstantFails(ValueError):
    """Signal a part without columns that fails, so that it would fail on every row."""


@dataclass(frozen=True, slots=True)
class Typed:
    """Hold a part of an expression.

    :param position: in the text.
    :param type: of its values.
    :param run: evaluates it.
    :param constant: its value, if no column changes it.
    """

    position: int
    type: pa.DataType
    run: Run
    constant: pa.Scalar | None = None


def constant(position: int, value: pa.Scalar) -> Typed:
    """Return a part that has one value."""
    return Typed(position, value.type, lambda batch: Rows(value), value)


def column(position: int, name: str, kind: pa.DataType) -> Typed:
    """Return a part that is a column's value."""
    return Typed(position, kind, lambda batch: Rows(batch.columns[name]))


def strict(position: int, kind: pa.DataType, kernel: Kernel, operands: Sequence[Typed]) -> Typed:
    """Return a part that a kernel computes from all operands.

    :raises ConstantFails: it has no columns, and fails.
    """

    def evaluate(batch: Batch) -> Rows:
        result = run(kernel, [operand.run(batch) for operand in operands], batch.count)
        unknown = result.values.type == pa.null()  # it failed on all rows
        return replace(result, values=pa.nulls(batch.count, kind)) if unknown else result

    return _folded(Typed(position, kind, evaluate), operands)


def lazy(position: int, kind: pa.DataType, evaluate: Run, operands: Sequence[Typed]) -> Typed:
    """Return a part that decides itself which failures of its operands matter.

    :raises ConstantFails: it has no columns, and fails.
    """
    return _folded(Typed(position, kind, evaluate), operands)


def _folded(part: Typed, operands: Sequence[Typed]) -> Typed:
    if any(operand.constant is None for operand in operands):
        return part
    rows = part.run(Batch({}, 1))
    if rows.failed is not None:
        raise ConstantFails
    return constant(part.position, array_of(rows.values, 1)[0])


def connective(operands: Sequence[Typed], conjunction: bool) -> Run:
    """Return AND or OR of conditions, from left to right: what decides hides the failures that follow."""
    operate = pc.and_kleene if conjunction else pc.or_kleene

    def evaluate(batch: Batch) -> Rows:
        result = operands[0].run(batch)
        for operand in operands[1:]:
            right = operand.run(batch)
            failed = right.failed
            if failed is not None:
                left = array_of(result.values, batch.count)
                failed = failed & ~mask_of(pc.invert(left) if conjunction else left)
            values = operate(result.values, right.values)
            result = _rows(values, either([result.failed, failed]), batch)
        return result

    return evaluate


def choice(branches: Sequence[tuple[Typed, Typed]], otherwise: Typed) -> Run:
    """Return CASE: on each row only the conditions up to the first that is true, and its value, may fail."""

    def evaluate(batch: Batch) -> Rows:
        conditions = [condition.run(batch) for condition, _ in branches]
        values = [value.run(batch) for _, value in branches]
        last = otherwise.run(batch)
        result = last.values
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            is_chosen = array_of(condition.values, batch.count).fill_null(False)
            result = pc.if_else(is_chosen, value.values, result)
        if all(rows.failed is None for rows in [*conditions, *values, last]):
            return Rows(result)
        return _rows(result, _failed_choice(conditions, values, last, batch.count), batch)

    return evaluate


def _failed_choice(conditions: Sequence[Rows], values: Sequence[Rows], last: Rows, count: int) -> BoolArray:
    failed, undecided = np.zeros(count, bool), np.ones(count, bool)
    for condition, value in zip(conditions, values, strict=True):
        is_chosen = undecided & mask_of(array_of(condition.values, count))
        for rows, reached in ((condition, undecided), (value, is_chosen)):
            if rows.failed is not None:
                failed |= reached & rows.failed
        undecided &= ~is_chosen
    return failed if last.failed is None else failed | (undecided & last.failed)


def first_known(operands: Sequence[Typed]) -> Run:
    """Return COALESCE: on each row only the operands up to the first that is not NULL may fail."""

    def evaluate(batch: Batch) -> Rows:
        parts = [operand.run(batch) for operand in operands]
        values = pc.coalesce(*[rows.values for rows in parts])
        failed, unknown = None, np.ones(batch.count, bool)
        for rows in parts:
            if rows.failed is not None:
                failed = either([failed, unknown & rows.failed])
            unknown &= mask_of(pc.is_null(array_of(rows.values, batch.count)))
        return _rows(values, failed, batch)

    return evaluate


def _rows(values: Any, failed: BoolArray | None, batch: Batch) -> Rows:
    return Rows(values) if failed is None else failing(array_of(values, batch.count), failed)
