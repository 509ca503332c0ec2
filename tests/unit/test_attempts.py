# SPDX-License-Identifier: Apache-2.0
"""An attempt that fails before it has a batch leaves a trace in the ledger."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException, AirflowTaskTimeout
from sqlalchemy import select

from airflow_provider_cdc import CdcReceivedSensor, CdcSyncOperator
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


# ---- tasks that fail before a batch is tried


class Ti:
    """A task instance of run ``r1``."""

    dag_id, run_id, task_id, map_index, try_number = "shop_hourly", "r1", "sync", -1, 2

    def xcom_push(self, key: str, value: object) -> None:
        """Take what a link sets."""


def task(kind: type[Any], folder: Path, **more: Any) -> Any:
    return kind(task_id="sync", pipeline=pipeline(folder).to_dict(), deferrable=False, **more)


def test_an_argument_that_is_refused_is_seen(tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException, match="needs the arguments after and until"):
        task(CdcSyncOperator, tmp_path, window="exact").execute({"ti": Ti()})
    assert attempts(tmp_path) == [("shop", "configuration", "r1")]


def test_a_sync_that_waited_too_long_for_another_run_is_seen_and_its_end_too(tmp_path: Path) -> None:
    ledger = Ledger(f"sqlite:///{tmp_path / 'ledger.db'}")
    sync = task(CdcSyncOperator, tmp_path, lease_wait=timedelta(0))
    with ledger.lease("shop", "ann on host"), pytest.raises(AirflowException, match=r"waited too long.*ann on host"):
        sync.execute({"ti": Ti()})
    assert attempts(tmp_path) == [("shop", "ledger.busy", "r1")]
    ledger.record_attempt("shop", "", None)
    event = {"status": "timeout", "limit": "lease_wait", "message": "held by ann"}
    with pytest.raises(AirflowException, match="held by ann"):
        sync.resume({"ti": Ti()}, 0, event)
    assert attempts(tmp_path) == [("shop", "ledger.busy", "r1")]


def test_a_batch_that_fails_keeps_its_code(tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException) as failed:
        task(CdcSyncOperator, tmp_path).execute({"ti": Ti()})
    ((_, code, _),) = attempts(tmp_path)
    assert f"[{code}]" in str(failed.value)


@pytest.mark.parametrize(
    ("event", "code"),
    [
        ({"status": "timeout", "limit": "timeout", "code": "kafka.unavailable"}, "kafka.unavailable"),
        ({"status": "timeout", "limit": "timeout", "code": ""}, "AirflowSensorTimeout"),
        ({"status": "timeout", "limit": "execution_timeout"}, "AirflowTaskTimeout"),
        ({"status": "failed", "configuration": True, "code": "kafka.topic_unknown"}, "kafka.topic_unknown"),
    ],
)
def test_a_sensor_that_keeps_the_sync_from_running_is_seen(tmp_path: Path, event: dict[str, Any], code: str) -> None:
    sensor = task(CdcReceivedSensor, tmp_path, until="2026-11-20T10:00:00+00:00")
    with pytest.raises(AirflowFailException):
        sensor.execute({"ti": Ti()})
    ((_, missing, run),) = attempts(tmp_path)
    assert (missing, run) == ("configuration", "r1")
    with pytest.raises((AirflowException, AirflowTaskTimeout)):
        sensor.resume_execution("execute_complete", {"event": {**event, "message": "why"}}, {"ti": Ti()})
    assert attempts(tmp_path) == [("shop", code, "r1")]
