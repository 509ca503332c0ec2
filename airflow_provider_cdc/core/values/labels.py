"""ENUM and SET values that a tool writes as the numbers MySQL stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values.field import Field, Misfit, Reason
from airflow_provider_cdc.core.values.fit import integral

_SET_LIMIT = 64


def labels(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert numbers, or texts of numbers, to labels."""
    if not pa.types.is_string(field.target):
        raise Misfit(Reason.TARGET)
    text = label_of if field.encoded.encoding is Encoding.ENUM_INDEX else members_of
    counted = known(field)
    texts = {value: text(value, counted) for value in set(values) - {None}}
    return pa.array([None if value is None else texts[value] for value in values], pa.string())


def known(field: Field) -> tuple[str, ...]:
    """Return the labels that a record's numbers count."""
    counted = field.encoded.labels or field.type.labels
    if not counted:
        raise Misfit(Reason.LABELS)
    return counted


def label_of(index: Any, counted: tuple[str, ...]) -> str:
    """Return the label with this number from 1; 0 is the empty text that MySQL stores for an invalid value."""
    number = integral(index)
    if not 0 <= number <= len(counted):
        raise Misfit(Reason.RANGE)
    return counted[number - 1] if number else ""


def members_of(bits: Any, counted: tuple[str, ...]) -> str:
    """Return the members whose bits are set, the lowest bit first; of 64 bits the number may be written as signed."""
    number = integral(bits)
    if len(counted) == _SET_LIMIT and -(1 << _SET_LIMIT - 1) <= number < 0:
        number += 1 << _SET_LIMIT
    if not 0 <= number < 1 << len(counted):
        raise Misfit(Reason.RANGE)
    return ",".join(label for bit, label in enumerate(counted) if number >> bit & 1)
