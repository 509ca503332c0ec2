# SPDX-License-Identifier: Apache-2.0
"""Decode Debezium's JSON, with and without embedded schema (docs/wire/debezium-dtle.md B1 to B4, B9 and B12)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.connect import flattening
from airflow_provider_cdc.core.formats.connect.debezium import DebeziumFormat
from airflow_provider_cdc.core.formats.connect.envelope import is_delete
from airflow_provider_cdc.core.formats.connect.evidence import of_debezium
from airflow_provider_cdc.core.formats.connect.flat_rows import FlatRows
from airflow_provider_cdc.core.formats.connect.json_messages import JsonMessages

_DELETED = re.compile(rb'"__deleted"\s*:\s*"true"')
_NO_TOMBSTONE = (
    "a record without a value, which a transform that is set to rewrite deletes never writes: its "
    "delete.tombstone.handling.mode is another one, and the row's place in the log is lost"
)


class WireFormat(DebeziumFormat):
    """``debezium-json``: what Debezium writes with Kafka Connect's JSON converter."""

    name = "debezium-json"
    summary = "Debezium JSON (MySQL, MariaDB, PostgreSQL), with or without embedded schema"
    evidence = staticmethod(of_debezium)
    options: Mapping[str, str] = {**DebeziumFormat.options, **flattening.OPTIONS}
    is_delete: Callable[[bytes], bool]  # where records without a value stand behind deletes

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        flat = self._flat = flattening.flattening_of(options or {})
        super().__init__(options, JsonMessages() if flat is None else FlatRows(flat))
        if flat is None:
            self.is_delete = is_delete
            return
        flat.demand(self._connector.place_members)
        self.reads_headers = bool(flat.headers)
        self.loses_truncates = True
        if flat.tombstones:
            self.is_delete = is_flat_delete

    def _without_value(self, out: ChangeBuilder, index: int) -> None:
        """Add the change of a record without a value; it is an error where deletes have none behind them."""
        if self._flat is None or self._flat.tombstones:
            super()._without_value(out, index)
        else:
            out.error(index, "record.tombstone_alone", _NO_TOMBSTONE)


def is_flat_delete(value: bytes) -> bool:
    """Return whether a record is the delete of a flattened row; quotes inside of its texts are escaped."""
    return _DELETED.search(value) is not None
