"""What an ALTER makes of the values that are stored: done where it is certain, refused where it is not.

An ALTER in the source's log succeeded. A value that does not fit was therefore converted by a server without strict
mode, in the way that MySQL's manual documents; such values are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values import from_numbers, from_temporal, from_text
from airflow_provider_cdc.core.values.certain import Step, Uncertain, family
from airflow_provider_cdc.core.values.constants import constant
from airflow_provider_cdc.core.values.field import NULL_REPLACED, Misfit

_STEPS: dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]] = {
    **from_numbers.STEPS,
    **from_text.STEPS,
    **from_temporal.STEPS,
}
# families whose NULL becomes what an INSERT without a value stores; of others servers differ, or it is the time
_WITH_IMPLICIT_DEFAULT = frozenset(
    {"integer", "bit", "year", "decimal", "float", "text", "bytes", "set", "date", "datetime", "time"}
)


def convert(
    column: pa.ChunkedArray | pa.Array,
    old: ColumnType,
    new: ColumnType,
    target: pa.DataType,
    lost: Counter[str] | None = None,
    server: str | None = None,
) -> pa.Array:
    """Convert stored values as the ALTER converted them; DataError ``values.conversion_unknown`` if unsure.

    :param column: values of type ``arrow_type(old)``.
    :param target: ``arrow_type(new)``.
    :param lost: takes the counts of values that did not fit, by kind of loss.
    :param server: ``mysql`` or ``mariadb``, None where it is not known.
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
        counts = Counter[str]()
        result = step(values, Step(old, new, target, server, counts)).cast(target)
    except (Uncertain, Misfit, pa.ArrowException, OverflowError) as error:
        reason = str(error) if isinstance(error, Uncertain) else "a stored value does not fit"
        raise _unknown(reason, old, new) from None
    if lost is not None:
        lost.update(counts)
    return result


def without_nulls(column: pa.ChunkedArray | pa.Array, kind: ColumnType, lost: Counter[str] | None = None) -> pa.Array:
    """Replace NULL in a column that became NOT NULL; DataError ``values.conversion_unknown`` if unsure.

    :param lost: takes the count of values replaced.
    """
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not values.null_count:
        return values
    if family(kind) not in _WITH_IMPLICIT_DEFAULT:
        raise _unknown("the database decides what NULL becomes", kind, kind)
    default = constant(kind.implicit_default, kind, values.type)
    if default.is_valid and lost is not None:
        lost[NULL_REPLACED] += values.null_count
    return values.fill_null(default) if default.is_valid else values  # a zero date is kept as NULL


def _unknown(reason: str, old: ColumnType, new: ColumnType) -> DataError:
    return DataError(
        "values.conversion_unknown",
        f"the result of a type change is not certain: {reason}",
        where={"from": str(old), "to": str(new)},
        hint="rebuild the table from the source",
    )
