# SPDX-License-Identifier: Apache-2.0
"""Sensors choose the time of a run as the sync does: scheduled, by hand, started by an asset, without logical date."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.common.compat.sdk import DAG, AirflowFailException, AirflowSensorTimeout, TaskDeferred

from airflow_provider_cdc import CdcAppliedSensor, CdcReceivedSensor
from airflow_provider_cdc.batch.window import choose_until
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.sensors.until import UntilSensor
from airflow_provider_cdc.watch.registry import open_condition
from tests.airflow.page_ledger import state

TEN, ELEVEN = (datetime(2026, 11, 20, hour, tzinfo=UTC) for hour in (10, 11))
EVENT = SimpleNamespace(extra={"pipeline": "other", "until": ELEVEN.isoformat()})
BY_HAND: dict[str, Any] = {"logical_date": None, "data_interval_end": None, "triggering_asset_events": {}}
SCHEDULED = {**BY_HAND, "logical_date": TEN, "data_interval_end": TEN}
STARTED = {**BY_HAND, "triggering_asset_events": {"tables": [EVENT]}}


EXAMPLES = sorted((Path(__file__).parents[2] / "example_dags").glob("*.py"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_a_run_that_waits_keeps_no_other_run_of_an_example_in_the_queue(file: Path) -> None:
    dags = [value for value in run_path(str(file)).values() if isinstance(value, DAG)]
    waiting = [dag.dag_id for dag in dags if any(isinstance(task, UntilSensor) for task in dag.tasks)]
    alone = [dag.dag_id for dag in dags if dag.max_active_runs == 1]
    assert set(waiting) & set(alone) == set()
    for task in (task for dag in dags for task in dag.tasks if isinstance(task, UntilSensor)):
        assert task.until is None, "the run decides"


def pipeline(folder: Path) -> CdcPipeline:
    source = {"topics": ["t"], "format": "canal-json", "connection": "kafka_gone"}
    sink = {"type": "delta", "root": str(folder / "lake")}
    ledger = f"sqlite:///{folder / 'ledger.db'}"
    return CdcPipeline.from_dict({"name": "shop", "source": source, "sink": sink, "ledger": ledger})


def sensor(kind: type[Any], folder: Path, **more: Any) -> Any:
    arguments = {"deferrable": False, "timeout": 0, "poke_interval": 0, **more}
    return kind(task_id="wait", pipeline=pipeline(folder).to_dict(), **arguments)


def commit(folder: Path, until: datetime | None, status: TableStatus = TableStatus.OK) -> None:
    ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
    with ledger.lease("shop", "a test") as lease:
        last = ledger.last("shop")
        start = last.end["t"][0] if last is not None else 0
        batch = ledger.plan(lease, {"t": {0: start}}, {"t": {0: start + 1}}, until)
        table = state("orders", status, version=batch.seq)
        ledger.commit(lease, batch.seq, {"status": "done"}, {table.table_id: table.document()})


@pytest.mark.parametrize("kind", [CdcReceivedSensor, CdcAppliedSensor])
@pytest.mark.parametrize(
    ("value", "context"),
    [(None, SCHEDULED), (None, BY_HAND), (None, {}), (None, STARTED), ("", STARTED), (ELEVEN, SCHEDULED),
     ("now", SCHEDULED), ("None", SCHEDULED)],
)  # fmt: skip
def test_a_sensor_waits_for_the_time_of_the_sync(
    kind: type[Any], value: object, context: dict[str, Any], tmp_path: Path
) -> None:
    assert sensor(kind, tmp_path, until=value).until_of_run(context) == choose_until(value, context)


@pytest.mark.parametrize("deferrable", [True, False])
@pytest.mark.parametrize(("until", "context"), [(None, BY_HAND), (None, {}), ("now", SCHEDULED)])
def test_what_is_in_kafka_now_needs_no_wait(
    until: str | None, context: dict[str, Any], tmp_path: Path, *, deferrable: bool
) -> None:
    waits = sensor(CdcReceivedSensor, tmp_path, until=until, deferrable=deferrable)
    assert waits.execute(context)["until"] is None


def test_what_is_applied_now_is_what_the_newest_batch_holds(tmp_path: Path) -> None:
    with pytest.raises(AirflowSensorTimeout, match="no batch is applied yet"):
        sensor(CdcAppliedSensor, tmp_path).execute(BY_HAND)
    commit(tmp_path, None)
    applied = sensor(CdcAppliedSensor, tmp_path).execute(BY_HAND)
    assert (applied["until"], applied["seq"], applied["versions"]) == (None, 1, {"shop.orders": 1})
    commit(tmp_path, TEN, TableStatus.PARKED)
    with pytest.raises(AirflowSensorTimeout, match=r"batch 2, but not to shop\.orders \(parked"):
        sensor(CdcAppliedSensor, tmp_path).execute(BY_HAND)


def test_a_run_that_an_asset_started_waits_for_the_time_of_its_event(tmp_path: Path) -> None:
    commit(tmp_path, TEN)
    assert sensor(CdcAppliedSensor, tmp_path).execute(SCHEDULED)["until"] == TEN.isoformat()
    with pytest.raises(AirflowSensorTimeout, match=f"not everything before {ELEVEN.isoformat()}".replace("+", "\\+")):
        sensor(CdcAppliedSensor, tmp_path).execute(STARTED)
    commit(tmp_path, ELEVEN)
    assert sensor(CdcAppliedSensor, tmp_path).execute(STARTED)["until"] == ELEVEN.isoformat()


@pytest.mark.parametrize(("context", "until"), [(STARTED, ELEVEN.isoformat()), (BY_HAND, None)])
def test_a_trigger_waits_for_what_the_first_look_chose(
    context: dict[str, Any], until: str | None, tmp_path: Path
) -> None:
    waits = sensor(CdcAppliedSensor, tmp_path, deferrable=True, timeout=timedelta(hours=1).total_seconds())
    with pytest.raises(TaskDeferred) as deferred:
        waits.execute(context)
    trigger = deferred.value.trigger
    _, arguments = trigger.serialize()
    assert arguments["until"] == until
    commit(tmp_path, ELEVEN)
    assert open_condition(trigger.condition, pipeline(tmp_path), **trigger.arguments).check().reached


@pytest.mark.parametrize("kind", [CdcReceivedSensor, CdcAppliedSensor])
@pytest.mark.parametrize("soft_fail", [True, False])
def test_what_is_not_a_time_fails(kind: type[Any], tmp_path: Path, *, soft_fail: bool) -> None:
    for value, problem in (("soon", "is not an ISO time"), ("{{ ds }}", "a template that was not rendered")):
        with pytest.raises(AirflowFailException, match=problem):
            sensor(kind, tmp_path, until=value, soft_fail=soft_fail).execute(SCHEDULED)
