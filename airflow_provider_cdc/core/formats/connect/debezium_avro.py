# SPDX-License-Identifier: Apache-2.0
"""Decode Debezium's messages whose schemas a registry has, in Avro and in JSON (docs/wire/avro-registry.md)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.formats.connect import evidence
from airflow_provider_cdc.core.formats.connect.adjusted_names import can_spell, columns_of, spellings
from airflow_provider_cdc.core.formats.connect.connectors.registry import databases
from airflow_provider_cdc.core.formats.connect.debezium import DebeziumFormat
from airflow_provider_cdc.core.formats.connect.envelope import Origin
from airflow_provider_cdc.core.formats.connect.flat_rows import FlatRows
from airflow_provider_cdc.core.formats.connect.flattening import Flattening
from airflow_provider_cdc.core.formats.connect.frames import HEAD, schema_id
from airflow_provider_cdc.core.formats.connect.json_messages import demand_known
from airflow_provider_cdc.core.formats.connect.messages import Payload, Source, of_source
from airflow_provider_cdc.core.formats.connect.registered_schemas import RegisteredSchemas
from airflow_provider_cdc.core.formats.contract import Headers, Records
from airflow_provider_cdc.core.formats.evidence import Evidence
from airflow_provider_cdc.core.formats.near_misses import near_miss


class FrameReader:
    """Read messages with such a ``source`` from frames; keys may be JSON, for they have a converter of their own."""

    def __init__(self, source: type[Source]) -> None:
        self.schemas = RegisteredSchemas(of_source(source, Payload))
        self._ahead: dict[int, tuple[tuple[str, ...] | None, Payload]] = {}

    @contextmanager
    def ahead(self, values: Iterable[bytes | None]) -> Iterator[None]:
        """Read values together; :meth:`read` gives what they hold."""
        self._ahead = self.schemas.together(values)
        try:
            yield
        finally:
            self._ahead = {}

    def read(self, value: bytes, headers: Headers = None) -> tuple[tuple[str, ...] | None, Payload]:
        """Return a message behind the columns that its schema gives a row, None where it is none of a row.

        :raises ValueError: it is not a message, or its schema is not known.
        """
        known = self._ahead.pop(id(value), None)
        if known is None:
            schema = self.schemas.of(value)
            known = schema.columns, schema.read(value)
        if known[1].source is None:
            demand_known(self.schemas.of(value).json(value))
        return known

    def key(self, key: bytes | None) -> bytes | None:
        """Return a key in JSON: of a frame its schema alone, for the values are those of the row.

        :raises UnsupportedRecord: its schema is not known.
        """
        if not key or key[0] or len(key) < HEAD:
            return key
        return self.schemas.key_texts.get(key[:HEAD]) or self.schemas.of(key).key_text

    def near_miss(self, key: bytes | None, value: bytes) -> str | None:
        """Return what a record is that is not a message, in words for people; None where it is nothing known."""
        if schema_id(value) is None:
            return near_miss(key, value)
        try:
            return near_miss(None, self.schemas.of(value).json(value))
        except ValueError:
            return None

    def origin(self, value: bytes) -> Origin:
        """Return the members that name a message's table.

        :raises ValueError: it is not a message, or its schema is not known.
        """
        return self.schemas.of(value).origin(value)

    def may_delete(self, value: bytes) -> bool:
        """Return whether a record is a row's delete, or cannot be read."""
        try:
            return bool(self.schemas.of(value).op(value) == "d")
        except (ValueError, RecursionError):
            return True


class FlatFrameReader(FrameReader):
    """Read flattened rows from frames, as what the JSON converter writes with embedded schemas."""

    def __init__(self, source: type[Source], flat: Flattening) -> None:
        super().__init__(source)
        self._rows = FlatRows(source, flat)

    @contextmanager
    def ahead(self, values: Iterable[bytes | None]) -> Iterator[None]:
        """Read nothing: each row is read for itself."""
        yield

    def read(self, value: bytes, headers: Headers = None) -> tuple[tuple[str, ...] | None, Payload]:
        """Return a message behind the columns that its schema gives a row; as :meth:`FlatRows.read`.

        :raises ValueError: it is not a message, not flattened as the settings say, or its schema is not known.
        """
        return self._rows.read(self.schemas.of(value).enveloped(value), headers)

    def origin(self, value: bytes) -> Origin:
        """Return the members that name a row's table, as far as the row has them.

        :raises ValueError: it is not a message, or its schema is not known.
        """
        return self._rows.origin(self.schemas.of(value).enveloped(value))

    def may_delete(self, value: bytes) -> bool:
        """Return whether a record is a row's delete, or cannot be read."""
        try:
            return self._rows.may_delete(self.schemas.of(value).json(value))
        except ValueError:
            return True


class WireFormat(DebeziumFormat):
    """``debezium-avro``: what Debezium writes with a converter of Confluent or Apicurio and a schema registry."""

    name = "debezium-avro"
    summary = f"Debezium Avro ({databases()}) with a schema registry"
    columns_of = staticmethod(columns_of)
    can_spell = staticmethod(can_spell)
    spellings = staticmethod(spellings)
    adjusted_names_hint = (
        "a column whose name Avro cannot spell is known by its own name where the connector has "
        "column.propagate.source.type=.*"
    )

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        super().__init__(options, self._opened)

    def _opened(self, source: type[Source], flat: Flattening | None) -> FrameReader:
        self._frames = FrameReader(source) if flat is None else FlatFrameReader(source, flat)
        return self._frames

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        with self._frames.ahead(records.values):
            return super().decode(records)

    def missing(self, frames: Iterable[bytes | None]) -> set[int]:
        """Return the ids that keys and values name and that nothing was learned of."""
        return self._frames.schemas.missing(frames)

    def learn(self, schemas: Mapping[int, Mapping[str, Any] | None]) -> None:
        """Take schemas by their ids, as the registry answers."""
        self._frames.schemas.learn(schemas)

    def evidence(self, key: bytes | None, value: bytes, headers: Headers) -> Evidence | None:
        """Return what speaks for or against Debezium."""
        try:
            text = self._frames.schemas.of(value).json(value)
        except (ValueError, RecursionError):
            return None
        return evidence.of_debezium(key, text, headers)
