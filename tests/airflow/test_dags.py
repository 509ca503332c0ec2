# SPDX-License-Identifier: Apache-2.0
"""The example DAGs run in Airflow over the recorded hours; what operator and sensor do when something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from pyiceberg.catalog.rest import RestCatalog

from airflow_provider_cdc.batch.result import BatchResult, UnsettledTable
from airflow_provider_cdc.core.model.status import ResultStatus
from tests.services.rest_catalog import shared_catalog
from tests.system import processes

from .dags_of_tests import MARK
from .shop import PHASES, ROOT, Shop, rows

if TYPE_CHECKING:
    pass

pytestmark = pytest.mark.airflow


def dag_runs(shop: Shop, folder: Path, dag_id: str, *dates: str) -> dict[str, Any]:
    """Run a DAG in a process of its own."""
    environment = {
        **shop.env(),
        "AIRFLOW__CORE__DAGS_FOLDER": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "SHOP_PIPELINE": str(shop.file()),
    }
    script = Path(__file__).with_name("dags_of_tests.py")
    run = subprocess.run(
        [sys.executable, str(script), str(folder), dag_id, *dates],
        env=environment, cwd=shop.folder, capture_output=True, text=True, timeout=400,
    )  # fmt: skip
    lines = [line for line in run.stdout.splitlines() if line.startswith(MARK)]
    assert lines, run.stdout[-3000:] + run.stderr[-3000:]
    return dict(json.loads(lines[-1].removeprefix(MARK)))


# ---- whole DAGs


def test_the_hourly_example_runs_and_a_second_run_of_the_hour_repeats_nothing(shop: Shop) -> None:
    ends = "2026-11-20T16:00:00+00:00"
    seen = dag_runs(shop, ROOT / "example_dags", "shop_hourly", ends, ends)
    assert seen["import_errors"] == {}
    first, second = seen["runs"]
    for run in (first, second):
        assert run["tasks"] == {"received": "success", "sync": "success"}
        assert run["values"]["received"]["until"] == ends
    done, again = first["values"]["sync"], second["values"]["sync"]
    assert done["status"] == "done"
    assert {**again, "seconds": 0} == {**done, "seconds": 0, "repeated": True}


def test_the_lag_alarm_fails_and_names_the_partitions_that_are_late(shop: Shop) -> None:
    seen = dag_runs(shop, ROOT / "example_dags", "shop_lag_alarm", "2026-11-20T16:00:00+00:00")
    assert seen["import_errors"] == {}
    assert [run["tasks"] for run in seen["runs"]] == [{"lag": "failed"}]


def test_another_dag_reads_the_tables_that_it_waited_for(shop: Shop) -> None:
    hour = "2026-11-20T17:00:00+00:00"
    operator(shop, until=hour).execute({})
    (run,) = dag_runs(shop, ROOT / "example_dags", "shop_table_report", hour)["runs"]
    assert run["tasks"] == {"applied": "success", "report": "success"}
    assert run["values"]["applied"]["versions"].keys() == {"shop.customers", "shop.orders"}
    for name, count in run["values"]["report"].items():
        assert count == len(rows(shop.lake, "shop", name)) > 0


class CatalogShop(Shop):
    """The shop's pipeline with Iceberg tables of the REST catalog."""

    @property
    def namespace(self) -> str:
        return f"dags{abs(hash(self.folder))}"

    def document(self) -> dict[str, Any]:
        example = yaml.safe_load((ROOT / "example_dags" / "shop_iceberg.yaml").read_text())
        mine = {name: super(CatalogShop, self).document()[name] for name in ("source", "policy", "ledger")}
        sink = {**example["sink"], "namespace": self.namespace}
        return {**example, **mine, "sink": sink, "lake": {"root": str(self.lake)}}

    def env(self) -> dict[str, str]:
        catalog = {"conn_type": "iceberg", "host": shared_catalog().uri}
        return {**super().env(), "AIRFLOW_CONN_LAKEHOUSE": json.dumps(catalog)}


def test_the_iceberg_example_commits_all_tables_at_once_and_maintains_them(shop: Shop) -> None:
    in_catalog, moment = CatalogShop(shop.folder, shop.connection), "2026-11-20T16:21:00+00:00"
    dags = shop.folder / "dags"
    dags.mkdir()
    example = (ROOT / "example_dags" / "shop_iceberg.py").read_text()
    # the log is of some minutes
    (dags / "shop_iceberg.py").write_text(example.replace('"@hourly"', '"* * * * *"'))
    seen = dag_runs(in_catalog, dags, "shop_iceberg", moment)
    assert seen["import_errors"] == {}
    (run,) = seen["runs"]
    assert run["tasks"] == {"received": "success", "sync": "success"}
    done = run["values"]["sync"]
    assert (done["status"], done["cut"]["atomic"]) == ("done", True)
    catalog = RestCatalog("cdc", uri=shared_catalog().uri)
    names = catalog.list_tables((in_catalog.namespace, "shop"))
    assert len(names) == len(done["tables"]) > 5
    counts = {name[-1]: catalog.load_table(name).scan().count() for name in names}
    (day,) = dag_runs(in_catalog, dags, "shop_iceberg_maintain", moment)["runs"]
    assert day["tasks"] == {"maintain": "success"}
    assert {line["table"].removeprefix("shop.") for line in day["values"]["maintain"]["tables"]} == set(counts)
    operator(shop, until=moment).execute({})
    assert counts == {name: len(rows(shop.lake, "shop", name)) for name in counts}


DAG = """
from datetime import datetime
from airflow.sdk import DAG, Asset
from airflow_provider_cdc import CdcReceivedSensor, CdcSyncOperator
import os
with DAG("whole", schedule=None, start_date=datetime(2026, 1, 1)):
    given = dict(pipeline=os.environ["SHOP_PIPELINE"], until="{until}")
    wait = CdcReceivedSensor(task_id="wait", deferrable={deferrable}, poke_interval=1, timeout=3{more}, **given)
    sync = CdcSyncOperator(task_id="sync", outlets=[Asset("tables")], **given)
    wait >> sync
"""


def write_dag(folder: Path, **values: Any) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "whole.py").write_text(DAG.format(**{"deferrable": True, "more": "", **values}))
    return folder


def test_a_deferred_sensor_times_out_and_says_what_holds_it_back(shop: Shop) -> None:
    folder = write_dag(shop.folder / "dags", until="2030-01-01T00:00:00+00:00")
    (run,) = dag_runs(shop, folder, "whole", "2026-11-20T17:00:00+00:00")["runs"]
    assert run["tasks"] == {"wait": "failed", "sync": "upstream_failed"}
    folder = write_dag(shop.folder / "dags2", until="2030-01-01T00:00:00+00:00", more=", soft_fail=True")
    (run,) = dag_runs(shop, folder, "whole", "2026-11-20T17:00:00+00:00")["runs"]
    assert run["tasks"] == {"wait": "skipped", "sync": "skipped"}


def shop_time(phase: int) -> Any:
    from datetime import datetime

    return datetime.fromisoformat(PHASES[phase]["window_end"])


# ---- the operator by itself


def operator(shop: Shop, **more: Any) -> Any:
    from airflow_provider_cdc import CdcSyncOperator

    return CdcSyncOperator(task_id="sync", pipeline=shop.document(), **more)


def test_every_template_field_is_an_attribute(shop: Shop) -> None:
    from airflow_provider_cdc import CdcReceivedSensor

    sensor = CdcReceivedSensor(task_id="wait", pipeline=shop.document(), until="{{ data_interval_end }}")
    for task in (operator(shop), sensor):
        assert all(hasattr(task, name) for name in task.template_fields)


def test_construction_looks_at_nothing(tmp_path: Path) -> None:
    from airflow_provider_cdc import CdcSyncOperator

    task = CdcSyncOperator(task_id="sync", pipeline=str(tmp_path / "not there.yaml"), until="{{ nonsense }}")
    assert task.until == "{{ nonsense }}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("empty", [None, "", "None"])
def test_no_time_means_now(shop: Shop, empty: str | None) -> None:
    result = operator(shop, until=empty).execute({})
    assert (result["status"], result["records"] > 3000) == ("done", True)


def test_what_stays_wrong_fails_without_retry_and_what_passes_is_retried(shop: Shop) -> None:
    from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

    shop.changes = {"source": {"topics": "nowhere"}}
    with pytest.raises(AirflowFailException, match=r"kafka\.topic_unknown"):
        operator(shop).execute({})
    with pytest.raises(AirflowFailException, match="is not an ISO time"):
        operator(shop, until="soon").execute({})
    shop.changes = {}
    from airflow_provider_cdc.ledger import Ledger

    with (
        Ledger(f"sqlite:///{shop.ledger}").lease("shop", "somebody else"),
        pytest.raises(AirflowException, match="somebody else") as busy,
    ):
        operator(shop, lease_wait=timedelta(0)).execute({})
    assert not isinstance(busy.value, AirflowFailException)


def test_parked_tables_fail_after_the_others_are_committed(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException, AirflowSkipException

    parked = [UnsettledTable("shop", "orders", "needs rebuild")]
    result = BatchResult("shop", 4, ResultStatus.PARKED, 9, seconds=1.0, parked=parked)
    monkeypatch.setattr("airflow_provider_cdc.batch.runner.run_batch", lambda *_, **__: result)
    with pytest.raises(AirflowFailException, match=r"batch 4 is committed.*shop\.orders: needs rebuild"):
        operator(shop).execute({})
    assert operator(shop, on_parked="warn").execute({})["status"] == "parked"
    with pytest.raises(AirflowSkipException, match=r"shop\.orders: needs rebuild"):
        operator(shop, on_parked="skip").execute({})


def test_waiting_tables_fail_with_retry_after_the_others_are_committed(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException

    waiting = [UnsettledTable("shop", "orders", "a schema change is still missing")]
    result = BatchResult("shop", 4, ResultStatus.WAITING, 9, seconds=1.0, parked=[], waiting=waiting)
    monkeypatch.setattr("airflow_provider_cdc.batch.runner.run_batch", lambda *_, **__: result)
    with pytest.raises(AirflowException, match=r"batch 4 .*shop\.orders: a schema change is still missing") as error:
        operator(shop).execute({})
    assert not isinstance(error.value, AirflowFailException)


def test_a_killed_task_stops_its_engine(shop: Shop) -> None:
    import threading

    from airflow.providers.common.compat.sdk import AirflowException

    task = operator(shop)

    def kill_when_it_works() -> None:
        while not any("launch/run.py" in processes.command(pid) for pid in processes.descendants(os.getpid())):
            time.sleep(0.002)
        task.on_kill()

    threading.Thread(target=kill_when_it_works, daemon=True).start()
    started = time.monotonic()
    with pytest.raises(AirflowException, match="the task was killed"):
        task.execute({})
    assert time.monotonic() - started < 60
    assert operator(shop).execute({})["status"] == "done"
