# SPDX-License-Identifier: Apache-2.0
"""Find the encodings of dtle's values (docs/wire/debezium-dtle.md A3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.connect import columns as connect_columns
from airflow_provider_cdc.core.formats.connect import debezium_columns
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from airflow_provider_cdc.core.values.types import GEOMETRIES

_MODES = {name: default for name, (default, _) in debezium_columns.MODES.items()}
_TEXTS = frozenset({"tinytext", "text", "mediumtext", "longtext", "json"})


def encoding(
    name: str, column: ColumnType, detail: Mapping[str, Any] | None, zone: str | None, text_as_base64: bool
) -> Encoded:
    """Return how a column stands in the images.

    :param detail: the column in the record's schema, with ``snapshot``.
    :param zone: time zone of the local times that DATETIME's numbers were made from, None is UTC.
    :param text_as_base64: whether TEXT and JSON of binlog rows are base64.
    :raises DataError: dtle writes no usable values of this type.
    """
    kind = column.name
    snapshot = detail is not None and detail["snapshot"]
    if kind in GEOMETRIES:
        raise DataError(
            "format.type_unknown",
            f"dtle does not say how it writes a {kind}",
            where={"column": name},
            hint="keep the column out of the dtle job, or the table out of the pipeline",
        )
    if kind == "time":
        return Encoded(name, Encoding.TIME_MICROS_UNSCALED)
    if kind == "year" and snapshot:
        return Encoded(name, Encoding.YEAR_SINCE_1900)
    if kind == "datetime":
        return Encoded(name, Encoding.EPOCH_MILLIS, zone=zone)
    if kind in _TEXTS and text_as_base64 and not snapshot:
        # a JSON document is UTF-8 whatever the table's character set
        return Encoded(name, Encoding.CHARSET_BYTES, charset="utf8mb4" if kind == "json" else column.charset)
    # from here on dtle is Debezium with the defaults of its handling modes
    if detail is not None:
        return debezium_columns.described_encoding(name, column, detail, _MODES)
    return debezium_columns.assumed_encoding(name, column, _MODES)


def inferred_schema(description: Description) -> TableSchema | None:
    """Return a schema made from the record's types; None without its key, or where a column has none: a geometry."""
    details = description.details or {}
    if description.key is None or not details or any(not detail["type"] for detail in details.values()):
        return None
    schema = connect_columns.inferred_schema(description)
    if schema is None:
        return None
    # a TIME's fraction is read with the declared digits only, which the record does not state: one that has some fails
    columns = tuple(
        replace(column, type=ColumnType("time")) if column.type.name == "time" else column for column in schema.columns
    )
    return TableSchema(columns, schema.key)
