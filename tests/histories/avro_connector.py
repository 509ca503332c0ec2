# SPDX-License-Identifier: Apache-2.0
"""Write records in frames of Avro, under names that it can spell, as Debezium's connector does."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from airflow_provider_cdc.core.formats.connect.adjusted_names import underscored
from tests.cross_format.connect_avro import AvroConverter
from tests.histories.debezium_records import ddl, row
from tests.histories.records import Record

SOURCE_NAME = "__debezium.source.column.name"


@dataclass
class Connector:
    """Write records of :mod:`tests.histories.debezium_records` in frames.

    :param adjusted: its ``field.name.adjustment.mode``.
    :param propagates: its ``column.propagate.source.type``.
    """

    converter: AvroConverter
    adjusted: Callable[[str], str] = underscored
    propagates: bool = False

    def row(self, *arguments: Any, key: tuple[str, ...] = (), left_out: tuple[str, ...] = (), **options: Any) -> Record:
        """Return a row.

        :param left_out: columns that the connector excludes.
        """
        record = row(*arguments, key=key, **options)
        value = json.loads(record.value or b"")
        images = {name: self._without(value[name], left_out) for name in ("before", "after")}
        columns = [self._column(*item) for item in next(image for image in images.values() if image).items()]
        fields = [{"field": name, "type": "struct", "fields": columns} for name in images]
        value |= {name: image and self._adjusted(image) for name, image in images.items()}
        named = json.loads(record.key or b"{}")
        return replace(
            record,
            key=self._framed([self._column(*item) for item in named.items()], self._adjusted(named)) if key else None,
            value=self._framed(fields, value),
        )

    def ddl(self, text: str, pos: int) -> Record:
        """Return a statement."""
        record = ddl(text, pos)
        return replace(record, key=None, value=self._framed([], json.loads(record.value or b"")))

    def _framed(self, fields: list[dict[str, Any]], payload: Mapping[str, Any]) -> bytes | None:
        return self.converter.framed(json.dumps({"schema": {"fields": fields}, "payload": payload}).encode(), "Record")

    def _adjusted(self, cells: Mapping[str, Any]) -> dict[str, Any]:
        return {self.adjusted(name): cell for name, cell in cells.items()}

    def _column(self, name: str, cell: Any) -> dict[str, Any]:
        more = {"parameters": {SOURCE_NAME: name}} if self.propagates else {}
        kind = "string" if isinstance(cell, str) else "int32"
        return {"field": self.adjusted(name), "type": kind, "optional": True, **more}

    @staticmethod
    def _without(image: dict[str, Any] | None, left_out: tuple[str, ...]) -> dict[str, Any] | None:
        return image and {name: cell for name, cell in image.items() if name not in left_out}
