# SPDX-License-Identifier: Apache-2.0
"""Convert the constant default of a DDL statement to the value that the server stores."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.fields import ConversionError, Field, Reason
from airflow_provider_cdc.core.values.scalar.to_target import fit
from airflow_provider_cdc.core.values.shared import calendar
from airflow_provider_cdc.core.values.types import GEOMETRIES


def constant(text: str | None, type: ColumnType, target: pa.DataType) -> pa.Scalar:
    """Return a DDL default's text as a value of the column.

    A TIMESTAMP is read as UTC: the statement does not state the session's time zone.

    :raises DataError: the default does not fit its column.
    """
    if text is None:
        return pa.scalar(None, target)
    try:
        field = Field(Encoded("", Encoding.TEXT), type, target)
        return pa.array([fit(_stored(text, type, target), field, Counter())], target)[0]
    except ConversionError as error:
        raise DataError(
            "values.constant", f"a default does not fit its column: {error.reason.value}", where={"type": str(type)}
        ) from None


def _stored(text: str, type: ColumnType, target: pa.DataType) -> Any:
    """Normalize a literal as the server does before it stores it."""
    if type.name == "enum":
        return _label(text, type.labels)
    if type.name == "set":
        present = {_label(member, type.labels) for member in text.split(",")} if text else set()
        return ",".join(label for label in type.labels if label in present)
    if type.name == "time":
        return calendar.time_text(calendar.duration(text), calendar.fraction_digits(type))
    if type.name in ("datetime", "timestamp"):
        return _datetime(text, type, target)
    if type.name in ("char", "varchar"):
        text = text.rstrip(" ") if type.name == "char" else text
        _short_enough(len(text), type)
    if type.name in GEOMETRIES and not text:
        return b""  # the value in rows that are older than a NOT NULL column
    if type.name == "varbinary":
        _short_enough(len(text.encode()), type)
    return text


def _label(text: str, labels: tuple[str, ...]) -> str:
    """Find a label; a statement that the server accepted may differ in case, if only one label then matches."""
    if text in labels:
        return text
    matches = [label for label in labels if label.casefold() == text.casefold()]
    if len(matches) != 1:
        raise ConversionError(Reason.RANGE)
    return matches[0]


def _datetime(text: str, type: ColumnType, target: pa.DataType) -> str:
    try:
        printed = calendar.datetime_text(calendar.parse_datetime(text), calendar.fraction_digits(type))
    except calendar.NotOnCalendar:
        return text
    return printed if pa.types.is_string(target) else text


def _short_enough(length: int, type: ColumnType) -> None:
    if length > (1 if type.length is None else type.length):
        raise ConversionError(Reason.LENGTH)
