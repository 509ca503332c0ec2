# SPDX-License-Identifier: Apache-2.0
"""Decode Debezium's JSON, with and without embedded schema (docs/wire/debezium-dtle.md B1 to B4 and B9)."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_cdc.core.formats.connect.debezium import DebeziumFormat
from airflow_provider_cdc.core.formats.connect.envelope import EnvelopeReader, is_delete
from airflow_provider_cdc.core.formats.connect.evidence import of_debezium
from airflow_provider_cdc.core.formats.connect.messages import Payload


class WireFormat(DebeziumFormat):
    """``debezium-json``: what Debezium writes with Kafka Connect's JSON converter."""

    name = "debezium-json"
    summary = "Debezium JSON (MySQL, MariaDB, PostgreSQL), with or without embedded schema"
    evidence = staticmethod(of_debezium)
    is_delete = staticmethod(is_delete)

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        super().__init__(options, EnvelopeReader(Payload))
