# SPDX-License-Identifier: Apache-2.0
"""Record planned and committed batches and lease pipelines, in SQLite or PostgreSQL."""

from __future__ import annotations

from airflow_provider_cdc.ledger.health import UnsettledTable
from airflow_provider_cdc.ledger.lease import Lease
from airflow_provider_cdc.ledger.owner import Owner, TaskTry
from airflow_provider_cdc.ledger.records import SYNC, Batch, LakeBatch, PastBatch, ProgressSample
from airflow_provider_cdc.ledger.store import Ledger

__all__ = [
    "SYNC",
    "Batch",
    "LakeBatch",
    "Lease",
    "Ledger",
    "Owner",
    "PastBatch",
    "ProgressSample",
    "TaskTry",
    "UnsettledTable",
]
