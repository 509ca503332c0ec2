# SPDX-License-Identifier: Apache-2.0
"""Decode Debezium's JSON, with and without embedded schema (docs/wire/debezium-dtle.md B1 to B4, B9 and B12)."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.formats.connect.connectors.registry import databases
from airflow_provider_cdc.core.formats.connect.debezium import DebeziumFormat
from airflow_provider_cdc.core.formats.connect.evidence import of_debezium
from airflow_provider_cdc.core.formats.connect.flat_rows import FlatRows
from airflow_provider_cdc.core.formats.connect.flattening import Flattening
from airflow_provider_cdc.core.formats.connect.json_messages import JsonMessages
from airflow_provider_cdc.core.formats.connect.messages import Source


class WireFormat(DebeziumFormat):
    """``debezium-json``: what Debezium writes with Kafka Connect's JSON converter."""

    name = "debezium-json"
    summary = f"Debezium JSON ({databases()}), with or without embedded schema"
    evidence = staticmethod(of_debezium)

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        super().__init__(options, _reader)


def _reader(source: type[Source], flat: Flattening | None) -> JsonMessages | FlatRows:
    return JsonMessages(source) if flat is None else FlatRows(source, flat)
