"""What was planned and done, and who may work on a pipeline now; kept in SQLite or PostgreSQL."""

from __future__ import annotations

from airflow_provider_cdc.core.ledger.lease import Lease
from airflow_provider_cdc.core.ledger.records import SYNC, Batch, LakeBatch, Offsets
from airflow_provider_cdc.core.ledger.store import Ledger

__all__ = ["SYNC", "Batch", "LakeBatch", "Lease", "Ledger", "Offsets"]
