# SPDX-License-Identifier: Apache-2.0
"""Links, notifier, retries, table states and settings: what surrounds a batch in Airflow."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import BusyError, ConfigurationError, DataError, UnavailableError
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, ProgressSample
from airflow_provider_cdc.observability.remedies import remedy_of
from tests.airflow.installed import has_airflow, needs_airflow

pytestmark = pytest.mark.airflow

TEN = datetime(2026, 11, 20, 10, tzinfo=UTC)


class Pulled:
    """A task instance that remembers what was pushed."""

    dag_id, run_id, task_id, map_index, try_number = "shop_hourly", "run 1", "state", -1, 1

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.values[key] = value


@pytest.fixture
def pipeline(tmp_path: Path) -> dict[str, Any]:
    return {
        "name": "shop",
        "source": {"topics": ["t"], "format": "canal-json"},
        "sink": {"type": "delta", "root": str(tmp_path / "lake")},
        "ledger": f"sqlite:///{tmp_path / 'ledger.db'}",
    }


def commit(pipeline: Mapping[str, Any], result: Mapping[str, Any] | None = None, **states: TableStatus) -> None:
    """Commit a batch after which tables of the database ``db`` have these states."""
    ledger = Ledger(pipeline["ledger"])
    documents = {
        f"id-{name}": TableState(
            f"id-{name}", "db", name, f"/lake/{name}", 1, state=state, reason="" if state == "ok" else f"{name} why"
        ).document()
        for name, state in states.items()
    }
    with ledger.lease("shop", "a test") as lease:
        batch = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 10}}, TEN)
        ledger.commit(lease, batch.seq, {"status": "done", **(result or {})}, documents)
    ledger.record_progress("shop", ProgressSample(TEN, TEN, TEN, 61.4, 7))


# ---- links


@needs_airflow(3, 1)
@pytest.mark.parametrize(("base", "folder"), [("", ""), ("https://host/air/flow/", "/air/flow")])
def test_links_lead_to_the_page_below_the_path_of_the_ui(
    pipeline: dict[str, Any], monkeypatch: pytest.MonkeyPatch, base: str, folder: str
) -> None:
    from airflow_provider_cdc import CdcBatchLink, CdcPipelineLink, CdcSyncOperator

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base)
    sync = CdcSyncOperator(task_id="sync", pipeline={**pipeline, "name": "shop.eu-1"})
    key: Any = None
    assert CdcPipelineLink().get_link(sync, ti_key=key) == f"{folder}/plugin/cdc?pipeline=shop.eu-1"
    assert CdcBatchLink().get_link(sync, ti_key=key) == "", "no batch yet"
    sync.batch_seq = 7
    assert CdcBatchLink().get_link(sync, ti_key=key) == f"{folder}/plugin/cdc?pipeline=shop.eu-1&seq=7"
    monkeypatch.setenv("AIRFLOW__CDC__PAGE_ENABLED", "False")
    assert CdcPipelineLink().get_link(sync, ti_key=key) == "", "there is no page"
    monkeypatch.setenv("AIRFLOW__CDC__PAGE_ENABLED", "True")
    invalid = CdcSyncOperator(task_id="wrong", pipeline={"name": "x"})
    assert CdcPipelineLink().get_link(invalid, ti_key=key) == ""


def test_there_is_no_link_where_airflow_has_no_pages_of_plugins(
    pipeline: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Airflow 3.0 has none."""
    from airflow.providers.common.compat.sdk import AirflowPlugin

    from airflow_provider_cdc import CdcPipelineLink, CdcSyncOperator

    monkeypatch.delattr(AirflowPlugin, "react_apps", raising=False)
    key: Any = None
    assert CdcPipelineLink().get_link(CdcSyncOperator(task_id="sync", pipeline=pipeline), ti_key=key) == ""


def test_the_provider_lists_every_link_of_its_operators_and_sensors() -> None:
    import airflow_provider_cdc as cdc
    from airflow_provider_cdc.get_provider_info import get_provider_info

    classes = [getattr(cdc, name) for name in cdc.__all__ if name.endswith(("Operator", "Sensor"))]
    used = {type(link) for kind in classes for link in kind.operator_extra_links}
    listed: Any = get_provider_info()["extra-links"]
    assert set(listed) == {f"{kind.__module__}.{kind.__qualname__}" for kind in used}


@needs_airflow(3, 1)
def test_a_task_has_its_link_before_it_fails(pipeline: dict[str, Any]) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSensorTimeout

    from airflow_provider_cdc import CdcHealthSensor, CdcTableStateOperator

    commit(pipeline, orders=TableStatus.PARKED)
    address = "/plugin/cdc?pipeline=shop"
    for task in (CdcTableStateOperator(task_id="state", pipeline=pipeline),
                 CdcHealthSensor(task_id="health", pipeline=pipeline, timeout=0, poke_interval=0.01)):  # fmt: skip
        ti = Pulled()
        with pytest.raises((AirflowFailException, AirflowSensorTimeout)):
            task.execute({"ti": ti})  # type: ignore[typeddict-item]
        assert ti.values["_link_CdcPipelineLink"].endswith(address)


# ---- sensors' pipeline


def test_a_sensor_reads_its_pipeline_from_a_templated_file(pipeline: dict[str, Any], tmp_path: Path) -> None:
    from airflow_provider_cdc import CdcHealthSensor

    commit(pipeline, orders=TableStatus.OK)
    (tmp_path / "shop.yaml").write_text(json.dumps({**pipeline, "name": "{{ params.name }}"}) + "\n")
    sensor = CdcHealthSensor(task_id="health", pipeline=str(tmp_path / "{{ params.file }}.yaml"))
    sensor.render_template_fields({"params": {"name": "shop", "file": "shop"}})  # type: ignore[typeddict-item]
    assert "name: shop" in str(sensor.pipeline), "the rendered view shows the whole pipeline"
    assert sensor.execute({})["seq"] == 1


# ---- states of tables


def test_settled_tables_pass(pipeline: dict[str, Any]) -> None:
    from airflow_provider_cdc import CdcTableStateOperator

    commit(pipeline, orders=TableStatus.OK, items=TableStatus.OK, old=TableStatus.DROPPED)
    answer = CdcTableStateOperator(task_id="state", pipeline=pipeline).execute({})
    assert answer == {"state": "ok", "counts": {"parked": 0, "waiting": 0, "dropped": 0, "ok": 2}, "tables": {}}


def test_a_table_that_is_not_ok_fails_the_task_with_its_reason(pipeline: dict[str, Any]) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    from airflow_provider_cdc import CdcTableStateOperator

    commit(pipeline, orders=TableStatus.PARKED, items=TableStatus.WAITING, notes=TableStatus.OK)
    ti = Pulled()
    with pytest.raises(AirflowFailException, match=r"db\.orders is parked: orders why"):
        CdcTableStateOperator(task_id="state", pipeline=pipeline).execute({"ti": ti})  # type: ignore[typeddict-item]
    assert ti.values["return_value"]["state"] == "parked"
    assert ti.values["return_value"]["tables"]["db.items"] == {"state": "waiting", "reason": "items why"}
    named = CdcTableStateOperator(task_id="named", pipeline=pipeline, tables=["db.notes"])
    assert named.execute({})["state"] == "ok", "only the named tables count"


@pytest.mark.parametrize(("tables", "expected"), [(["db.orders", "db.items"], "repair"), (["db.items"], "wait")])
def test_the_worst_state_chooses_the_branch(pipeline: dict[str, Any], tables: list[str], expected: str) -> None:
    from airflow_provider_cdc import CdcTableStateOperator

    commit(pipeline, orders=TableStatus.PARKED, items=TableStatus.WAITING)
    task = CdcTableStateOperator(
        task_id="state", pipeline=pipeline, tables=tables, branches={"parked": "repair", "waiting": ["wait"]}
    )
    task_ids: list[Any] = []
    task.do_branch = lambda context, ids: task_ids.append(ids)  # type: ignore[method-assign,assignment]
    task.execute({})
    assert task_ids == [[expected]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"tables": ["db.none"]}, "the pipeline has no table db.none"), ({"branches": {"bad": "x"}}, "branches: bad")],
)
def test_wrong_arguments_are_named(pipeline: dict[str, Any], arguments: dict[str, Any], message: str) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    from airflow_provider_cdc import CdcTableStateOperator

    commit(pipeline, orders=TableStatus.OK)
    with pytest.raises(AirflowFailException, match=message):
        CdcTableStateOperator(task_id="state", pipeline=pipeline, **arguments).execute({})


# ---- notifier


def test_a_notification_says_what_is_wrong(pipeline: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_cdc import CdcNotifier

    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://host/air")
    of_orders = {"topic": "t", "partition": 0, "database": "db", "table": "orders"}
    entries = [
        {**of_orders, "offset": 4, "error_code": "record.json_invalid", "error": "row value"},
        {**of_orders, "offset": 5, "column": "price", "reason": "number_invalid"},
    ]
    commit(pipeline, {"quarantined": 2, "quarantine": entries}, orders=TableStatus.PARKED, items=TableStatus.OK)
    sent: list[str] = []
    CdcNotifier(pipeline, sent.append)({"ti": Pulled(), "dag": None, "exception": ValueError("it failed")})
    lines = sent[0].splitlines()
    (lag,) = [line for line in lines if line.startswith("Lag")]
    assert lag.startswith("Lag: unknown, last seen ")
    assert lag.endswith(" ago. Lag at 2026-11-20T10:00:00+00:00: 61 s, 7 records")
    assert lines[:2] == [
        "Task state of DAG shop_hourly, run run 1: it failed",
        "Pipeline shop: 2 tables, last batch 1",
    ]
    assert lines[2].startswith("db.orders parked since 20") and lines[2].endswith("Z: orders why")
    remedy = remedy_of("", "orders why")
    assert lines[3 : lines.index(lag)] == [
        f"  {remedy.means}",
        f"  {remedy.do}",
        "    airflow-cdc sync shop.yaml",
        '  In a DAG: CdcSyncOperator(task_id="sync", pipeline="shop.yaml")',
    ]
    assert lines[lines.index(lag) + 1 :] == [
        "Batch 1 put 2 records into quarantine",
        "t/0:4 of db.orders: record.json_invalid",
        "t/0:5 of db.orders, column price: number_invalid",
        *(["https://host/air/plugin/cdc?pipeline=shop"] if has_airflow(3, 1) else []),
    ]


def test_a_notification_goes_through_another_notifier_also_without_a_ledger(pipeline: dict[str, Any]) -> None:
    from airflow.sdk import BaseNotifier

    from airflow_provider_cdc import CdcNotifier

    sent: list[str] = []

    class Mail(BaseNotifier):
        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

        def notify(self, context: Any) -> None:
            sent.append(self.text)

    pipeline["ledger"] = "postgresql://cdc@127.0.0.1:1/none"
    CdcNotifier(pipeline, Mail)({"dag": None, "exception": ValueError("it failed")})
    assert sent[0].splitlines()[0] == "A task: it failed"
    assert "The state of the pipeline is not known: [ledger.unavailable]" in sent[0]


# ---- retries


def test_a_retry_policy_says_which_airflow_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_cdc.surface import retries

    monkeypatch.setattr(retries, "RetryDecision", None)
    with pytest.raises(ConfigurationError, match=r"needs Airflow 3\.3: leave retry_policy out"):
        retries.CdcRetryPolicy()


@needs_airflow(3, 3)
def test_the_delay_of_a_retry_follows_the_cause() -> None:
    from airflow.sdk import RetryAction

    from airflow_provider_cdc import CdcRetryPolicy
    from airflow_provider_cdc.operators.pipeline import airflow_errors

    policy = CdcRetryPolicy(busy=timedelta(seconds=5), first=timedelta(seconds=10), longest=timedelta(seconds=60))

    def decision(error: BaseException, number: int) -> tuple[RetryAction, timedelta | None]:
        with pytest.raises(Exception) as caught, airflow_errors():
            raise error
        decided = policy.evaluate(caught.value, number, 9)
        return decided.action, decided.retry_delay

    assert decision(BusyError("ledger.busy", "x"), 3) == (RetryAction.RETRY, timedelta(seconds=5))
    delays = [decision(UnavailableError("kafka.unavailable", "x"), number)[1] for number in (1, 2, 3, 4, 99)]
    assert delays == [timedelta(seconds=seconds) for seconds in (10, 20, 40, 60, 60)]
    assert decision(DataError("land.memory", "x"), 1)[0] == RetryAction.FAIL
    assert decision(ValueError("x"), 1) == (RetryAction.DEFAULT, None)
    assert CdcRetryPolicy.deserialize(json.loads(json.dumps(policy.serialize()))).serialize() == policy.serialize()


# ---- settings


def test_settings_change_the_defaults(pipeline: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_cdc import CdcSyncOperator
    from airflow_provider_cdc.connections.lookup import ledger_url

    assert CdcSyncOperator(task_id="a", pipeline=pipeline).lease_wait == timedelta(minutes=15)
    monkeypatch.setenv("AIRFLOW__CDC__LEASE_WAIT", "60")
    assert CdcSyncOperator(task_id="b", pipeline=pipeline).lease_wait == timedelta(minutes=1)
    monkeypatch.setenv("AIRFLOW__CDC__LEDGER", "postgresql://cdc@db/cdc")
    assert ledger_url("default") == "postgresql://cdc@db/cdc"
    assert ledger_url("sqlite:////l.db") == "sqlite:////l.db", "a pipeline that names its ledger keeps it"


def test_the_command_line_reads_the_ledger_of_the_same_file(tmp_path: Path) -> None:
    import os
    import subprocess
    import sys

    (tmp_path / "airflow.cfg").write_text("[cdc]\nledger = postgresql://cdc@db/cdc\n")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AIRFLOW")}
    root = str(Path(__file__).parents[2])
    code = "from airflow_provider_cdc.connections.lookup import ledger_url; print(ledger_url('default'))"
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120,
        env={**environment, "AIRFLOW_HOME": str(tmp_path), "PYTHONPATH": root},
    )  # fmt: skip
    assert run.stdout.split()[-1:] == ["postgresql://cdc@db/cdc"], run.stderr
