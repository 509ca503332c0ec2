# SPDX-License-Identifier: Apache-2.0
"""Make jobs that land a topic."""

from __future__ import annotations

from pathlib import Path

from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.model.offsets import OffsetRange
from tests.services.broker import Broker


def job(broker: Broker, root: Path, *chunks: OffsetRange) -> JobDocument:
    policy = RunPolicy(land_deadline_seconds=10)
    return JobDocument(
        "readers",
        1,
        "2026-01-01T00:00:00+00:00",
        str(root),
        "debezium-json",
        {},
        "none",
        {"bootstrap.servers": broker.bootstrap},
        list(chunks),
        policy,
        TableRules(),
        [],
        [],
        [],
    )
