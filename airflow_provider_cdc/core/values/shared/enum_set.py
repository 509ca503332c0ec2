# SPDX-License-Identifier: Apache-2.0
"""Convert ENUM and SET values that a tool writes as the integers MySQL stores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values.fields import ConversionError, Field, Reason
from airflow_provider_cdc.core.values.shared.numbers import integral

_SET_LIMIT = 64


def labels(values: Sequence[Any], field: Field) -> pa.Array:
    """Convert integers, or texts of integers, to labels."""
    if not pa.types.is_string(field.target):
        raise ConversionError(Reason.TARGET)
    text = label_of if field.encoded.encoding is Encoding.ENUM_INDEX else members_of
    members = known_labels(field)
    texts = {value: text(value, members) for value in set(values) - {None}}
    return pa.array([None if value is None else texts[value] for value in values], pa.string())


def known_labels(field: Field) -> tuple[str, ...]:
    """Return the labels that a record's integers refer to: the record's own, else the column's."""
    members = field.encoded.labels or field.type.labels
    if not members:
        raise ConversionError(Reason.LABELS)
    return members


def label_of(index: Any, members: tuple[str, ...]) -> str:
    """Return the label with a number from 1; 0 is the empty text that MySQL stores for an invalid value."""
    index = integral(index)
    if not 0 <= index <= len(members):
        raise ConversionError(Reason.RANGE)
    return members[index - 1] if index else ""


def members_of(bits: Any, members: tuple[str, ...]) -> str:
    """Return the members whose bits are set, lowest bit first; an integer of 64 bits may be written as signed."""
    bits = integral(bits)
    if len(members) == _SET_LIMIT and -(1 << _SET_LIMIT - 1) <= bits < 0:
        bits += 1 << _SET_LIMIT
    if not 0 <= bits < 1 << len(members):
        raise ConversionError(Reason.RANGE)
    return ",".join(label for bit, label in enumerate(members) if bits >> bit & 1)


@lru_cache(maxsize=1024)
def spellings(labels: tuple[str, ...]) -> dict[str, str]:
    """Map the spellings of some tools to ENUM labels: a backslash before a comma, or no quotes (dtle)."""
    labels_by_spelling: dict[str, list[str]] = {}
    for label in labels:
        for spelling in {label.replace(",", "\\,"), label.replace("'", "")} - {*labels}:
            labels_by_spelling.setdefault(spelling, []).append(label)
    return {spelling: matches[0] for spelling, matches in labels_by_spelling.items() if len(matches) == 1}
