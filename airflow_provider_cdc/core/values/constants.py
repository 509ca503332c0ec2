"""The constant default of a DDL statement as the value that the server stores."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values import civil
from airflow_provider_cdc.core.values.field import Field, Misfit, Reason
from airflow_provider_cdc.core.values.fit import fit
from airflow_provider_cdc.core.values.types import GEOMETRIES


def constant(text: str | None, type: ColumnType, target: pa.DataType) -> pa.Scalar:
    """Return a DDL default's text as a value of the column; raises DataError when it does not fit.

    A TIMESTAMP is read as UTC: the statement does not tell the session's time zone.
    """
    if text is None:
        return pa.scalar(None, target)
    try:
        field = Field(Encoded("", Encoding.TEXT), type, target)
        return pa.array([fit(_stored(text, type, target), field, Counter())], target)[0]
    except Misfit as error:
        raise DataError(
            "values.constant", f"a default does not fit its column: {error.reason.value}", where={"type": str(type)}
        ) from None


def _stored(text: str, type: ColumnType, target: pa.DataType) -> Any:
    """Return what the server makes of a literal before it stores it."""
    if type.name == "enum":
        return _label(text, type.labels)
    if type.name == "set":
        chosen = {_label(member, type.labels) for member in text.split(",")} if text else set()
        return ",".join(label for label in type.labels if label in chosen)
    if type.name == "time":
        return civil.time_text(civil.duration(text), civil.fraction_digits(type))
    if type.name in ("datetime", "timestamp"):
        return _moment(text, type, target)
    if type.name in ("char", "varchar"):
        text = text.rstrip(" ") if type.name == "char" else text
        _short_enough(len(text), type)
    if type.name in GEOMETRIES and not text:
        return b""  # what rows get that are older than a NOT NULL column
    if type.name == "varbinary":
        _short_enough(len(text.encode()), type)
    return text


def _label(text: str, labels: tuple[str, ...]) -> str:
    """Find a label; a statement the server accepted may differ from it in case, if only one label is like it."""
    if text in labels:
        return text
    alike = [label for label in labels if label.casefold() == text.casefold()]
    if len(alike) != 1:
        raise Misfit(Reason.RANGE)
    return alike[0]


def _moment(text: str, type: ColumnType, target: pa.DataType) -> str:
    try:
        printed = civil.moment_text(civil.moment(text), civil.fraction_digits(type))
    except civil.NotOnCalendar:
        return text
    return printed if pa.types.is_string(target) else text


def _short_enough(length: int, type: ColumnType) -> None:
    if length > (1 if type.length is None else type.length):
        raise Misfit(Reason.LENGTH)
