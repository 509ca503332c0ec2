"""What an ALTER makes of the values that are stored: done where it is certain, refused where it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import pyarrow as pa

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values import from_numbers, from_temporal, from_text
from airflow_provider_cdc.core.values.certain import Step, Uncertain, family
from airflow_provider_cdc.core.values.field import Misfit

_STEPS: dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]] = {
    **from_numbers.STEPS,
    **from_text.STEPS,
    **from_temporal.STEPS,
}


def convert(
    column: pa.ChunkedArray | pa.Array,
    old: ColumnType,
    new: ColumnType,
    target: pa.DataType,
    *,
    fractions: Literal["round", "truncate"] = "round",
) -> pa.Array:
    """Convert stored values as a strict-mode ALTER converts them; DataError ``values.conversion_unknown`` if unsure.

    :param column: values of type ``arrow_type(old)``.
    :param target: ``arrow_type(new)``.
    :param fractions: what the source does with fraction digits of a second: MySQL rounds, MariaDB truncates.
    """
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if values.null_count == len(values):
        return pa.nulls(len(values), target)
    if old == new and values.type == target:
        return values
    step = _STEPS.get((family(old), family(new)))
    try:
        if step is None:
            raise Uncertain("the database decides how these types convert")
        return step(values, Step(old, new, target, fractions)).cast(target)
    except (Uncertain, Misfit, pa.ArrowException, OverflowError) as error:
        reason = str(error) if isinstance(error, Uncertain) else "a stored value does not fit"
        raise DataError(
            "values.conversion_unknown",
            f"the result of a type change is not certain: {reason}",
            where={"from": str(old), "to": str(new)},
            hint="rebuild the table from the source",
        ) from None
