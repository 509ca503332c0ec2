# SPDX-License-Identifier: Apache-2.0
"""A history as Debezium's PostgreSQL connector writes it with embedded schemas (docs/wire/debezium-postgres.md).

Tables have REPLICA IDENTITY DEFAULT: of a row before, the log has only the key.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.cross_format import debezium_json_writer
from tests.cross_format.connect_values import compact
from tests.cross_format.events import Ddl, Event, Message, Row

_FILLERS = {"string": "", "bytes": "AA==", "boolean": False}
_MILLIS, _MICROS = "io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp"


class Writer:
    """Write the rows that the MySQL connector's writer writes, with places in the WAL; the log has no DDL."""

    format = "debezium-json"
    options: Mapping[str, str] = {"connector": "postgresql"}
    creates = False

    def __init__(self) -> None:
        self._records = debezium_json_writer.Writer()

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the records of one event."""
        what = event.what
        if isinstance(what, Ddl):
            return []
        return [_translated(message, event, what) for message in self._records.write(event, partitions)]


def _translated(message: Message, event: Event, what: Row) -> Message:
    if message.value is None:
        return message
    record = json.loads(message.value)
    schema, payload = record["schema"], record["payload"]
    fields = schema["fields"][0]["fields"]
    millis = {field["field"] for field in fields if field.get("name") == _MILLIS}
    for field in (field for image in schema["fields"][:2] for field in image["fields"] if field["field"] in millis):
        field["name"] = _MICROS
    if payload["after"] is not None:
        times = {name: payload["after"][name] * 1000 for name in millis if payload["after"][name] is not None}
        payload["after"] |= times
    payload["before"] = _key_alone(payload["before"], fields, what) if payload["op"] == "d" else None
    payload["source"] = _source(event, what)
    order = {"total_order": 1, "data_collection_order": 1}
    payload["transaction"] = {"id": f"{event.transaction}:{_lsn(event)}", **order}
    return replace(message, value=compact(record).encode())


def _key_alone(before: Mapping[str, Any], fields: list[dict[str, Any]], what: Row) -> dict[str, Any]:
    """Return a deleted row: a filler stands in a column that is not of the key and may not be NULL."""
    rest = {f["field"]: None if f["optional"] else _FILLERS.get(f["type"], 0) for f in fields}
    return {**rest, **{column.name: before[column.name] for column in what.schema.key_columns}}


def _source(event: Event, what: Row) -> dict[str, Any]:
    lsn = _lsn(event)
    return {
        "version": "3.6.1.Final",
        "connector": "postgresql",
        "name": debezium_json_writer.SERVER,
        "ts_ms": event.time_ms,
        "snapshot": "false",
        "db": "bank",
        "sequence": f'["{lsn - 8}","{lsn}"]',
        "ts_us": event.time_ms * 1000,
        "ts_ns": event.time_ms * 1_000_000,
        "schema": what.database,
        "table": what.table,
        "txId": event.transaction,
        "lsn": lsn,
        "xmin": None,
    }


def _lsn(event: Event) -> int:
    return (event.file << 32) + event.pos
