# SPDX-License-Identifier: Apache-2.0
"""Read what the page shows."""

from __future__ import annotations

from typing import Any

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.plugins.batch_rows import batches


def shown(pipeline: CdcPipeline) -> Any:
    """Return what the page shows of how far the newest batch is."""
    with Database(pipeline.ledger, read_only=True).reading() as connection:
        return batches(connection, pipeline.name, (), before=None, limit=1)["batches"][0]["progress"]
