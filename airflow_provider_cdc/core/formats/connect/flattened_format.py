# SPDX-License-Identifier: Apache-2.0
"""Decode Debezium's messages whose rows may be flattened, whatever encoding they are read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.connect import flattening
from airflow_provider_cdc.core.formats.connect.connectors.registry import open_connector
from airflow_provider_cdc.core.formats.connect.debezium import DebeziumFormat
from airflow_provider_cdc.core.formats.connect.messages import MessageReader, Source

_NO_TOMBSTONE = (
    "a record without a value, which a transform that is set to rewrite deletes never writes: its "
    "delete.tombstone.handling.mode is another one, and the row's place in the log is lost"
)


class DeletesReader(MessageReader, Protocol):
    """Read messages in one encoding, and recognise deletes."""

    def may_delete(self, value: bytes) -> bool:
        """Return whether a record is a row's delete."""
        ...


R = TypeVar("R", bound=DeletesReader)


class FlattenableFormat(DebeziumFormat):
    """Rows in their envelopes, or flattened as the options say.

    :param reader_of: returns the encoding's reader of messages with such a ``source``, and of rows that are flattened
        so, None for those in their envelopes.
    """

    options: Mapping[str, str] = {**DebeziumFormat.options, **flattening.OPTIONS}
    may_delete: Callable[[bytes], bool]  # where records without a value stand behind deletes

    def __init__(
        self, options: Mapping[str, str] | None, reader_of: Callable[[type[Source], flattening.Flattening | None], R]
    ) -> None:
        flat = self._flat = flattening.flattening_of(options or {})
        connector = open_connector(options or {})
        reader = reader_of(connector.source, flat)
        super().__init__(connector, reader)
        if flat is None or flat.tombstones:
            self.may_delete = reader.may_delete
        if flat is not None:
            flat.demand(connector.place_members)
            self.reads_headers = bool(flat.headers)
            self.loses_truncates = True

    def _without_value(self, out: ChangeBuilder, index: int) -> None:
        """Add the change of a record without a value; it is an error where deletes have none behind them."""
        if self._flat is None or self._flat.tombstones:
            super()._without_value(out, index)
        else:
            out.error(index, "record.tombstone_alone", _NO_TOMBSTONE)
