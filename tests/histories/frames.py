# SPDX-License-Identifier: Apache-2.0
"""A history as Debezium sends it with an Avro converter: the records of the JSON converter, in frames of a registry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from airflow_provider_cdc.core.formats.connect.adjusted_names import underscored
from airflow_provider_cdc.core.formats.contract import Format, Registered
from tests.cross_format.connect_avro import AvroConverter
from tests.histories.records import Record, Sending, Unit
from tests.histories.source import Statement
from tests.histories.wire import DebeziumWriter
from tests.services.registered_schemas import ServedSchemas


class FramedWriter(DebeziumWriter):
    """Turns statements into units; columns are called as ``field.name.adjustment.mode=avro`` writes them."""

    def __post_init__(self) -> None:
        self.style = replace(self.style, embedded=True)
        super().__post_init__()

    def units(self, statements: Sequence[Statement]) -> Iterator[Unit]:
        """Return everything the connector sends."""
        for unit in super().units(statements):
            yield replace(unit, write=_Framed(unit))


CONNECTORS: Mapping[str, type[DebeziumWriter]] = {"debezium-json": DebeziumWriter, "debezium-avro": FramedWriter}
"""How Debezium's connector sends a history, by format."""


@dataclass(frozen=True)
class _Framed:
    unit: Unit

    def __call__(self, why: Sending) -> list[Record]:
        return [framed(record) for record in self.unit.write(why)]


def registry_of(format: str) -> dict[str, str]:
    """Return the settings of the registry of a format's records, empty where they name no schemas."""
    return {"url": _served().url, "timeout": "30"} if CONNECTORS.get(format) is FramedWriter else {}


def teach(wire: Format) -> None:
    """Let a format know the schemas of all frames that were written so far."""
    if isinstance(wire, Registered):
        wire.learn(_converter().schemas)


@cache
def _converter() -> AvroConverter:
    return AvroConverter()


@cache
def _served() -> ServedSchemas:
    """Return the registry of all histories of this process: an id means one schema for ever."""
    return ServedSchemas(_converter().schemas)


def framed(record: Record) -> Record:
    """Return a record of the JSON converter as an Avro converter writes it."""
    subject = re.sub(r"\W", "_", record.topic, flags=re.ASCII)
    key = None if record.key is None else _key(_message(record.key))
    value = None if record.value is None else _value(_message(record.value))
    frame = _converter().framed
    return replace(record, key=frame(key, f"{subject}_Key"), value=frame(value, f"{subject}_Envelope"))


def _message(text: bytes) -> dict[str, Any]:
    """Return a record with its embedded schema, an empty one where it has none."""
    message: dict[str, Any] = json.loads(text)
    enveloped = message.keys() == {"schema", "payload"}
    return message if enveloped else {"schema": {"fields": []}, "payload": message}


def _key(message: Mapping[str, Any]) -> bytes:
    fields = _renamed(message["schema"]["fields"])
    return json.dumps({"schema": {"fields": fields}, "payload": _row(message["payload"])}).encode()


def _value(message: dict[str, Any]) -> bytes:
    for field in message["schema"]["fields"]:
        if field["field"] in ("before", "after"):
            field["fields"] = _renamed(field["fields"])
            message["payload"][field["field"]] = _row(message["payload"][field["field"]])
    return json.dumps(message).encode()


def _renamed(fields: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**field, "field": underscored(field["field"])} for field in fields]


def _row(cells: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if cells is None else {underscored(name): cell for name, cell in cells.items()}
