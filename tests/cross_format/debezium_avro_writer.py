# SPDX-License-Identifier: Apache-2.0
"""A history as Debezium 3 writes it with an Avro converter and a schema registry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.cross_format import debezium_json_writer
from tests.cross_format.connect_avro import AvroConverter
from tests.cross_format.events import Ddl, Event, Message


class Writer:
    """Write what the JSON converter writes, in frames."""

    format = "debezium-avro"
    options: Mapping[str, str] = {}
    creates = False

    def __init__(self) -> None:
        self._records, self._converter = debezium_json_writer.Writer(), AvroConverter()

    @property
    def schemas(self) -> dict[int, dict[str, Any]]:
        """Return what the registry has."""
        return self._converter.schemas

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the records of one event."""
        table = "Schema" if isinstance(event.what, Ddl) else event.what.table
        return [self._framed(message, table) for message in self._records.write(event, partitions)]

    def _framed(self, message: Message, table: str) -> Message:
        key, value = (self._converter.framed(message.key, f"{table}_Key"), self._converter.framed(message.value, table))
        return replace(message, key=key, value=value)
