# SPDX-License-Identifier: Apache-2.0
"""Rows of Debezium's PostgreSQL connector as Kafka Connect's JSON converter writes them, with and without schemas."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.postgres_histories.server import Column, Row, Structure

NAME, CONNECTOR, DATABASE = "pg", "postgresql", "shop"


@dataclass(frozen=True)
class Catalogue:
    """Hold what the connector looks up about a table when it learns of it, which may be much later than the change.

    :param key: names of the record's key, in its order.
    :param notnull: names of the columns that may not be NULL.
    """

    key: tuple[str, ...]
    notnull: frozenset[str]


def image(structure: Structure, row: Row, unchanged: frozenset[int], *, embedded: bool) -> dict[str, Any]:
    """Return a row as it stands in the JSON; long values that did not change are placeholders."""
    return {
        column.name: column.kind.unchanged
        if column.attnum in unchanged
        else column.kind.wired(row[column.attnum], embedded=embedded)
        for column in structure.columns
    }


def partial(
    structure: Structure, row: Row, there: tuple[int, ...], catalogue: Catalogue, *, embedded: bool
) -> dict[str, Any]:
    """Return a row of which the WAL has some columns only: others are null, or a filler where they may not be."""
    return {column.name: _partial(column, row, there, catalogue, embedded) for column in structure.columns}


def _partial(column: Column, row: Row, there: tuple[int, ...], catalogue: Catalogue, embedded: bool) -> Any:
    if column.attnum in there:
        return column.kind.wired(row[column.attnum], embedded=embedded)
    if column.name not in catalogue.notnull:
        return None
    value = column.default[0] if column.default and column.default[0] is not None else column.kind.filler
    return column.kind.wired(value, embedded=embedded)


def _field(column: Column, catalogue: Catalogue) -> dict[str, Any]:
    item = {**column.kind.schema, "optional": column.name not in catalogue.notnull}
    if column.default and column.default[0] is not None:
        item["default"] = column.kind.wire(column.default[0])
    return {**item, "field": column.name}


def _struct(fields: list[dict[str, Any]], name: str, *, optional: bool = False, **more: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": fields, "optional": optional, "name": name, **more}


_MARKS = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"


def _plain(field: str, kind: str, *, optional: bool = False) -> dict[str, Any]:
    return {"type": kind, "optional": optional, "field": field}


_SOURCE = [
    *(_plain(field, "string") for field in ("version", "connector", "name")),
    _plain("ts_ms", "int64"),
    {
        **_plain("snapshot", "string", optional=True),
        "name": "io.debezium.data.Enum",
        "version": 1,
        "parameters": {"allowed": _MARKS},
        "default": "false",
    },
    _plain("db", "string"),
    _plain("sequence", "string", optional=True),
    *(_plain(field, "int64", optional=True) for field in ("ts_us", "ts_ns")),
    *(_plain(field, "string") for field in ("schema", "table")),
    *(_plain(field, "int64", optional=True) for field in ("txId", "lsn", "xmin")),
    _plain("origin", "string", optional=True),
    _plain("origin_lsn", "int64", optional=True),
]
_TRANSACTION = [_plain("id", "string"), *(_plain(field, "int64") for field in ("total_order", "data_collection_order"))]


def envelope_schema(topic: str, structure: Structure, catalogue: Catalogue) -> str:
    """Return the schema of a table's row records, as text."""
    fields = [_field(column, catalogue) for column in structure.columns]
    parts = [
        _struct(fields, f"{topic}.Value", optional=True, field="before"),
        _struct(fields, f"{topic}.Value", optional=True, field="after"),
        _struct(_SOURCE, "io.debezium.connector.postgresql.Source", version=1, field="source"),
        _struct(_TRANSACTION, "event.block", optional=True, version=1, field="transaction"),
        _plain("op", "string"),
        *(_plain(field, "int64", optional=True) for field in ("ts_ms", "ts_us", "ts_ns")),
    ]
    return json.dumps(_struct(parts, f"{topic}.Envelope", version=2), separators=(",", ":"))


def key_schema(topic: str, structure: Structure, catalogue: Catalogue) -> str:
    """Return the schema of a table's record keys, as text."""
    fields = [_field(structure.named(part), catalogue) for part in catalogue.key]
    return json.dumps(_struct(fields, f"{topic}.Key"), separators=(",", ":"))


TRANSACTION_KEY = json.dumps(_struct([_plain("id", "string")], "io.debezium.connector.common.TransactionMetadataKey"))
_COLLECTION = _struct([_plain("data_collection", "string"), _plain("event_count", "int64")], "event.collection")
TRANSACTION_VALUE = json.dumps(
    _struct(
        [
            _plain("status", "string"),
            _plain("id", "string"),
            _plain("event_count", "int64", optional=True),
            {"type": "array", "items": _COLLECTION, "optional": True, "field": "data_collections"},
            _plain("ts_ms", "int64"),
        ],
        "io.debezium.connector.common.TransactionMetadataValue",
    )
)
HEARTBEAT_KEY = json.dumps(_struct([_plain("serverName", "string")], "io.debezium.connector.common.ServerNameKey"))
HEARTBEAT_VALUE = json.dumps(_struct([_plain("ts_ms", "int64")], "io.debezium.connector.common.Heartbeat"))
