# SPDX-License-Identifier: Apache-2.0
"""An attempt that fails before it has a batch leaves a trace in the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from airflow_provider_cdc.batch.attempts import recorded
from airflow_provider_cdc.batch.result import BatchResult
from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import BusyError, ConfigurationError
from airflow_provider_cdc.ledger import Ledger, TaskTry, schema


def pipeline(folder: Path) -> CdcPipeline:
    document = {
        "name": "shop",
        "source": {"connection": "kafka_gone", "topics": ["t"], "format": "canal-json"},
        "sink": {"type": "delta", "root": str(folder / "lake")},
        "ledger": f"sqlite:///{folder / 'ledger.db'}",
    }
    return CdcPipeline.from_dict(document)


def attempts(folder: Path) -> list[tuple[str, str, str | None]]:
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    c = schema.attempts.c
    with ledger._database.reading() as connection:
        return [tuple(row) for row in connection.execute(select(c.pipeline, c.code, c.run_id))]  # type: ignore[misc]


def test_a_missing_connection_is_seen(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as missing:
        run_batch(pipeline(tmp_path), owner=TaskTry("d", "r1", "sync"))
    assert attempts(tmp_path) == [("shop", missing.value.code, "r1")]


@pytest.mark.parametrize("error", [KeyError("x"), BusyError("ledger.busy", "held")])
def test_a_fault_is_seen_and_a_busy_pipeline_is_not(error: Exception, tmp_path: Path) -> None:
    @recorded
    def fail(pipeline: CdcPipeline) -> BatchResult:
        raise error

    with pytest.raises(type(error)):
        fail(pipeline(tmp_path))
    assert [code for _, code, _ in attempts(tmp_path)] == (["KeyError"] if isinstance(error, KeyError) else [])


def test_a_ledger_that_cannot_be_written_hides_no_error(tmp_path: Path) -> None:
    (tmp_path / "ledger.db").write_text("no database")
    with pytest.raises(Exception, match=r"ledger|database"):
        run_batch(pipeline(tmp_path))
