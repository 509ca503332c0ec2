"""ENUM and SET values that a tool writes as the numbers MySQL stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.field import Field, Misfit, Reason
from airflow_provider_cdc.core.values.fit import integral

_SET_LIMIT = 64


def labels(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert numbers, or texts of numbers, to labels."""
    if not pa.types.is_string(field.target):
        raise Misfit(Reason.TARGET)
    text = label_of if field.encoded.encoding is Encoding.ENUM_INDEX else members_of
    texts = {value: text(value, field.type) for value in set(values) - {None}}
    return pa.array([None if value is None else texts[value] for value in values], pa.string())


def label_of(index: Any, column: ColumnType) -> str:
    """Return the label with this number from 1; 0 is the empty text that MySQL stores for an invalid value."""
    number = _number(index, column)
    if not 0 <= number <= len(column.labels):
        raise Misfit(Reason.RANGE)
    return column.labels[number - 1] if number else ""


def members_of(bits: Any, column: ColumnType) -> str:
    """Return the members whose bits are set, the lowest bit first; of 64 bits the number may be written as signed."""
    number = _number(bits, column)
    if number < 0 and len(column.labels) == _SET_LIMIT:
        number += 1 << _SET_LIMIT
    if not 0 <= number < 1 << len(column.labels):
        raise Misfit(Reason.RANGE)
    return ",".join(label for bit, label in enumerate(column.labels) if number >> bit & 1)


def _number(value: Any, column: ColumnType) -> int:
    if not column.labels:
        raise Misfit(Reason.LABELS)
    return integral(value)
