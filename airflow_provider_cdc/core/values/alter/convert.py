# SPDX-License-Identifier: Apache-2.0
"""Convert stored values as an ALTER TABLE does; raise if the result is not certain.

An ALTER in the source's log succeeded. So a server without strict mode converted the values that do not fit, in the way
that MySQL's manual documents. Such values are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pyarrow as pa

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.alter import from_numbers, from_temporal, from_text
from airflow_provider_cdc.core.values.alter.default_values import constant
from airflow_provider_cdc.core.values.alter.type_families import Step, UncertainConversion, family
from airflow_provider_cdc.core.values.fields import NULL_REPLACED, ConversionError

_STEPS: dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]] = {
    **from_numbers.STEPS,
    **from_text.STEPS,
    **from_temporal.STEPS,
}
# families whose NULL becomes the type's zero, measured; a TIMESTAMP's becomes the time, a VECTOR's was not measured
_WITH_IMPLICIT_DEFAULT = frozenset(
    {"integer", "bit", "year", "decimal", "float", "text", "bytes", "enum", "set", "date", "datetime", "time"}
    | {"uuid", "inet4", "inet6", "json", "geometry"}
)


def convert(
    column: pa.ChunkedArray | pa.Array,
    old: ColumnType,
    new: ColumnType,
    target: pa.DataType,
    lost: Counter[str] | None = None,
    server: str | None = None,
) -> pa.Array:
    """Convert stored values as the ALTER converted them.

    :param column: values of type ``arrow_type(old)``.
    :param target: ``arrow_type(new)``.
    :param lost: receives the counts of values that did not fit, by kind of loss.
    :param server: ``mysql`` or ``mariadb``, None if unknown.
    :raises DataError: ``values.conversion_unknown``: the result is not certain.
    """
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if values.null_count == len(values):
        return pa.nulls(len(values), target)
    if old == new and values.type == target:
        return values
    step = _STEPS.get((family(old), family(new)))
    try:
        if step is None:
            raise UncertainConversion("the database decides how these types convert")
        counts = Counter[str]()
        result = step(values, Step(old, new, target, server, counts)).cast(target)
    except (UncertainConversion, ConversionError, pa.ArrowException, OverflowError) as error:
        reason = str(error) if isinstance(error, UncertainConversion) else "a stored value does not fit"
        raise _unknown(reason, old, new) from None
    if lost is not None:
        lost.update(counts)
    return result


def without_nulls(
    column: pa.ChunkedArray | pa.Array,
    column_type: ColumnType,
    lost: Counter[str] | None = None,
    server: str | None = None,
) -> pa.Array:
    """Replace NULL in a column that became NOT NULL.

    :param lost: receives the count of replaced values.
    :param server: ``mysql`` or ``mariadb``, None if unknown.
    :raises DataError: ``values.conversion_unknown``: the result is not certain.
    """
    values = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not values.null_count:
        return values
    if family(column_type) not in _WITH_IMPLICIT_DEFAULT or (server is None and column_type.name == "json"):
        raise _unknown("the database decides what NULL becomes", column_type, column_type)
    if column_type.name == "enum":  # the empty text, and not the first label as in an added column
        default = pa.scalar("", values.type)
    else:
        default = constant(column_type.implicit_default(server), column_type, values.type)
    if default.is_valid and lost is not None:
        lost[NULL_REPLACED] += values.null_count
    return values.fill_null(default) if default.is_valid else values  # a zero date stays NULL


def _unknown(reason: str, old: ColumnType, new: ColumnType) -> DataError:
    return DataError(
        "values.conversion_unknown",
        f"the result of a type change is not certain: {reason}",
        where={"from": str(old), "to": str(new)},
        hint="take a new snapshot of the table",
    )
