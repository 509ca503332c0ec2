# SPDX-License-Identifier: Apache-2.0
"""Operators and example DAGs in Airflow, one step after the other in one process."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from deltalake import DeltaTable

from airflow_provider_cdc import CdcSyncOperator
from airflow_provider_cdc.demo.truth import differing, load
from tests.airflow.installed import has_airflow
from tests.canal.recorded_session import entries, session_of
from tests.canal.server import Canal, serving
from tests.services.rest_catalog import shared_catalog
from tests.system.verdict import doubled_commits

from .dag_runs import Ran, run_steps
from .dag_steps import Step
from .ddl_topics import DDL_TOPICS, send_ddl
from .example_steps import HOURLY, MINUTES, REPORTED, CatalogShop, example_steps, shop_of
from .operator_dags import DAGS
from .shop import DATA, ROOT, Shop, rows, until

if TYPE_CHECKING:
    from tests.services.broker import Broker

pytestmark = pytest.mark.airflow

HOUR = "2026-11-20T16:00:00+00:00"
EXAMPLES = [
    "canal_without_kafka",
    "shop_backfill_exact",
    "shop_events",
    "shop_tables",
    "shop_checked",
    "pipelines_folder",
]
EXAMPLES += ["shop_approval", "shop_decisions"] if has_airflow(3, 1) else []  # a person is asked since then


def day(number: int) -> str:
    return f"2026-11-{number:02}T00:00:00+00:00"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steps")


@pytest.fixture(scope="module")
def canal() -> Canal:
    return session_of(entries())


@pytest.fixture(scope="module")
def ran(filled: Broker, folder: Path, canal: Canal) -> dict[str, Ran]:
    """Run all steps, and return what came of them by name."""
    shop = Shop(folder, {"bootstrap.servers": filled.bootstrap})
    shop.file()
    torn = {**shop.document(), "name": "torn", "sink": {"type": "delta", "root": str(folder / "torn")}}
    (folder / "torn.yaml").write_text(yaml.safe_dump(torn))
    send_ddl(filled)
    ddl_topic, rows_topic = DDL_TOPICS
    own = {"name": "ddl", "source": {"topics": [rows_topic], "schema_topic": ddl_topic, "heartbeat_topic": None}}
    _write(folder / "ddl.yaml", shop, own)
    _write(folder / "away.yaml", shop, {"name": "away"})
    (folder / "pipelines").mkdir()
    for name in ("shop", "second"):
        _write(folder / "pipelines" / f"{name}.yaml", shop, {"name": name})
    stranger = folder / "torn" / "shop" / "customers"
    stranger.mkdir(parents=True)
    (stranger / "notes.txt").write_text("somebody else's")
    dags = folder / "dags"
    dags.mkdir()
    (dags / "dags.py").write_text(DAGS)
    (dags / "shop.yaml").write_text((folder / "shop.yaml").read_text().replace("name: shop", "name: {{ params.name }}"))
    examples = folder / "examples"
    examples.mkdir()
    for example in EXAMPLES:
        shutil.copy(ROOT / "example_dags" / f"{example}.py", examples)
    held = {"ledger": f"sqlite:///{shop.ledger}", "pipeline": "shop"}
    first, second = {"until": until(0)}, {"until": until(1)}
    steps = {
        "first": Step("events", day(1), first),
        "waits": Step("leased", day(1), second, {**held, "seconds": 4}),
        "second": Step("events", day(2), second),
        "clear of the first": Step("events", day(1), first),
        "clear of the second": Step("events", day(2), second),
        "late": Step("late", day(1), second, {**held, "seconds": 300}),
        "impatient": Step("impatient", day(1), second, {**held, "seconds": 300}),
        "parked fails": Step("parked_fail", day(1), second),
        "parked skips": Step("parked_skip", day(1), second),
        "parked warns": Step("parked_warn", day(1), second),
        "mapped": Step("mapped", day(1), second),
        "from a file": Step("from_a_file", day(1)),
        "plans": Step("plans", day(1)),
        "away": Step("away", day(1), second),
        "away again": Step("away", day(2), second),
        **{name: Step("shop_sync" if name == "shop_events" else name, HOUR, folder=str(examples)) for name in EXAMPLES},
    }
    (elsewhere := folder / "example of elsewhere").mkdir()
    shutil.copy(ROOT / "example_dags" / "shop_elsewhere.py", elsewhere)
    _write(folder / "elsewhere.yaml", shop, {"name": "elsewhere", "sink": {"root": str(folder / "else; where")}})
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"SHOP_PIPELINE": str(folder / "elsewhere.yaml"), "PATH": path}
    steps["elsewhere"] = Step("shop_elsewhere", REPORTED, folder=str(elsewhere), environment=own)
    pipelines = folder / "pipelines"
    variables = {
        "SHOP_FOLDER": str(folder),
        "SHOP_PIPELINE": str(pipelines / "shop.yaml"),
        "CDC_PIPELINES": str(pipelines),
        "PYTHON": sys.executable,
    }
    steps |= example_steps(folder, filled)
    with serving(canal) as port:
        conn = {"conn_type": "canal", "host": "127.0.0.1", "port": port, "login": "canal", "password": "canal"}
        variables |= {"AIRFLOW_CONN_CANAL_DEFAULT": json.dumps(conn), "SHOP_LAKE": str(folder / "canal")}
        return run_steps(folder, dags, steps, {**shop.env(), **variables})


def _write(path: Path, shop: Shop, changes: dict[str, Any]) -> None:
    """Write a pipeline with lake and ledger of its own."""
    lake = shop.folder / f"lake of {path.parent.name} {path.stem}"
    ledger = f"sqlite:///{lake}.db"
    own = Shop(shop.folder, shop.connection, {"sink": {"root": str(lake)}, "ledger": ledger, **changes})
    path.write_text(yaml.safe_dump(own.document()))


# ---- asset events (D1, D11)


def test_each_batch_sends_its_cut_and_each_changed_table_its_version(ran: dict[str, Ran]) -> None:
    first, second = ran["first"], ran["second"]
    (cut,) = first.extras("tables")
    assert first.extras("cdc://shop") == [cut]
    assert (cut["pipeline"], cut["seq"], cut["consistent"], cut["repeated"]) == ("shop", 1, True, False)
    assert cut["until"].startswith(until(0)[:19]) and cut["source_time"] and cut["position"]
    tables = {uri: extra for uri, extra in first.events if uri.count("/") == 4}
    assert set(tables) == {f"cdc://shop/{line['database']}/{line['table']}" for line in _changed(first)}
    customers = tables["cdc://shop/shop/customers"]
    assert (customers["version"], customers["table"], customers["seq"]) == (0, "shop.customers", 1)
    rows = customers["rows"] if has_airflow(3, 1) else json.loads(customers["rows"])  # 3.0 takes no dict
    assert rows == {"upserts": _line(first, "customers")["upserts"], "deletes": 0}
    assert [extra["seq"] for _, extra in second.events] == [2] * len(second.events) != []
    assert second.extras("cdc://shop/shop/customers")[0]["version"] == 1


def _changed(step: Ran) -> list[dict[str, Any]]:
    return [line for line in step.values["sync"]["tables"] if line["action"]]


def _line(step: Ran, table: str) -> dict[str, Any]:
    return next(line for line in step.values["sync"]["tables"] if line["table"] == table)


def test_a_clear_of_an_old_run_sends_nothing_and_says_which_batch_holds_it(ran: dict[str, Ran]) -> None:
    old = ran["clear of the first"]
    assert (old.tasks["sync"], old.events) == ("success", [])
    assert old.values["sync"]["repeated"] is True and old.values["sync"]["seq"] == 1
    assert "nothing to do: batch 1 (until " in old.log and "by task sync of DAG events" in old.log
    assert "batch 1 done" not in old.log


def test_a_clear_of_the_newest_run_repeats_its_event(ran: dict[str, Ran]) -> None:
    again = ran["clear of the second"]
    assert {(extra["seq"], extra["repeated"]) for _, extra in again.events} == {(2, True)}
    assert again.extras("cdc://shop/shop/customers")[0]["version"] == 1


def test_a_batch_of_a_task_without_outlets_is_announced_by_the_next_one_with_outlets(ran: dict[str, Ran]) -> None:
    assert ran["waits"].values["sync"]["seq"] == 2 and ran["waits"].events == []
    assert ran["second"].values["sync"]["repeated"] is True
    assert {extra["repeated"] for _, extra in ran["second"].events} == {False}


# ---- waiting for others (D3, D6)


def test_a_leased_pipeline_is_waited_for_in_the_triggerer_without_a_try(ran: dict[str, Ran]) -> None:
    step = ran["waits"]
    assert (step.tasks["sync"], step.tries["sync"], step.values["sync"]["status"]) == ("success", 1, "done")
    assert "the pipeline is taken by 'somebody else'" in step.log and "the pipeline is free" in step.log


@pytest.mark.parametrize(("name", "limit"), [("late", "execution_timeout"), ("impatient", "lease_wait")])
def test_waiting_ends_and_names_the_limit_and_the_holder(ran: dict[str, Ran], name: str, limit: str) -> None:
    step = ran[name]
    assert step.tasks["sync"] == "failed"
    assert f"waited too long ({limit}): the pipeline is leased by 'somebody else'" in step.log


# ---- parked tables (D4)


def test_a_parked_table_hides_no_result(ran: dict[str, Ran]) -> None:
    failed, skipped, warned = (ran[f"parked {name}"] for name in ("fails", "skips", "warns"))
    assert [step.tasks["sync"] for step in (failed, skipped, warned)] == ["failed", "skipped", "success"]
    for step in (failed, skipped, warned):
        result = step.values["sync"]
        assert (result["status"], [table["table"] for table in result["parked"]]) == ("parked", ["customers"])
        assert "shop.customers parked: [sink.not_ours]" in step.log
    assert failed.events == skipped.events == []


def test_the_other_tables_are_announced_although_one_is_parked(ran: dict[str, Ran]) -> None:
    step = ran["parked warns"]
    uris = {uri for uri, _ in step.events}
    assert "cdc://torn/shop/orders" in uris and "cdc://torn/shop/customers" not in uris
    assert step.extras("torn")[0]["consistent"] is False
    assert step.extras("cdc://torn") == [], "the cut is not consistent"


# ---- the argument pipeline (D10, D11)


def test_mapped_tasks_are_named_by_their_pipelines(ran: dict[str, Ran]) -> None:
    step = ran["mapped"]
    assert step.named == {"sync[0]": "shop", "sync[1]": "torn"}
    assert step.values["sync[0]"]["pipeline"] == "shop"


def test_a_template_may_name_a_file_next_to_the_dag_which_may_have_templates_itself(ran: dict[str, Ran]) -> None:
    step = ran["from a file"]
    assert (step.tasks["sync"], step.values["sync"]["pipeline"]) == ("success", "shop")
    assert "up to 2026-11-01T00:00:00+00:00 (the end of the run's data interval)" in step.log


# ---- other operators


def test_a_plan_names_the_schema_changes_to_come_by_their_kind_and_records_nothing(ran: dict[str, Ran]) -> None:
    step = ran["plans"]
    assert step.tasks == {"plan": "success", "refuse": "failed", "doctor": "success"}
    plan = step.values["plan"]
    assert (plan["status"], plan["seq"], plan["records"]) == ("new", 1, 7)
    assert [(change["kind"], change["text"].split()[-2]) for change in plan["ddl"]] == [
        ("mapping", "note"),
        ("barrier", "note"),
        ("destructive", "COLUMN"),
        ("unknown", "FROBNICATE"),
    ]
    assert {change["table"] for change in plan["ddl"]} == {"shop.things"}
    assert step.values["refuse"] == plan, "the result is in XCom although the task failed"
    assert "fail_on names: destructive: ALTER TABLE things DROP COLUMN note" in step.log
    assert {finding["check"] for finding in step.values["doctor"]} >= {"broker", "ledger", "sink", "format"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(ran: dict[str, Ran], name: str) -> None:
    step = ran[name]
    expected = dict.fromkeys(step.tasks, "success")
    if name == "shop_approval":
        expected["approve"] = "skipped"
    if name == "shop_checked":
        expected["shop.check"] = "failed"  # the recording is older than two hours
        passed = {result["check"]: result["passed"] for result in step.values["shop.check"]}
        assert passed == {"no_parked": True, "no_contradictions": True, "freshness": False}
    assert step.tasks == expected
    if name == "pipelines_folder":
        assert set(step.tasks) == {
            f"{group}.{task}" for group in ("shop", "second") for task in ("received", "sync", "check")
        }


def test_the_hourly_example_runs_and_a_second_run_of_the_hour_repeats_nothing(ran: dict[str, Ran]) -> None:
    first, second = ran["hourly"], ran["hourly again"]
    for run in (first, second):
        assert run.tasks == {"received": "success", "sync": "success"}
        assert run.values["received"]["until"] == HOURLY
    done, again = first.values["sync"], second.values["sync"]
    assert done["status"] == "done"
    assert {**again, "seconds": 0} == {**done, "seconds": 0, "repeated": True}


def test_a_run_without_a_logical_date_takes_what_is_there_now(ran: dict[str, Ran]) -> None:
    run = ran["hourly by hand"]
    assert run.tasks == {"received": "success", "sync": "success"}, run.log
    assert run.values["received"]["until"] is None and run.values["sync"]["until"] is None
    assert run.values["sync"]["status"] == "done" and run.values["sync"]["records"] > 0
    assert "neither a data interval nor an asset event" in run.log


def test_the_lag_alarm_fails_and_names_the_partitions_that_are_late(ran: dict[str, Ran]) -> None:
    assert ran["alarm"].tasks == {"lag": "failed"}


def test_another_dag_reads_the_tables_that_it_waited_for(ran: dict[str, Ran], folder: Path) -> None:
    run = ran["report"]
    assert run.tasks == {"applied": "success", "report": "success"}
    assert run.values["applied"]["versions"].keys() == {"shop.customers", "shop.orders"}
    for name, count in run.values["report"].items():
        assert count == len(rows(folder / "report" / "lake", "shop", name)) > 0


def test_the_iceberg_example_commits_all_tables_at_once_and_maintains_them(
    ran: dict[str, Ran], folder: Path, filled: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pyiceberg")
    run = ran["iceberg"]
    assert run.tasks == {"received": "success", "sync": "success"}
    done = run.values["sync"]
    assert (done["status"], done["cut"]["atomic"]) == ("done", True)
    from pyiceberg.catalog.rest import RestCatalog

    catalog = RestCatalog("cdc", uri=shared_catalog().uri)
    names = catalog.list_tables((CatalogShop(folder / "catalog", {}).namespace, "shop"))
    assert len(names) == len(done["tables"]) > 5
    counts = {name[-1]: catalog.load_table(name).scan().count() for name in names}
    day = ran["iceberg maintained"]
    assert day.tasks == {"maintain": "success"}
    assert {line["table"].removeprefix("shop.") for line in day.values["maintain"]["tables"]} == set(counts)
    shop = shop_of(tmp_path, filled)
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_KAFKA", shop.env()["AIRFLOW_CONN_SHOP_KAFKA"])
    CdcSyncOperator(task_id="sync", pipeline=shop.document(), until=MINUTES).execute({})
    assert counts == {name: len(rows(shop.lake, "shop", name)) for name in counts}


def test_the_example_of_modes_keeps_what_the_source_forgets(ran: dict[str, Ran], folder: Path) -> None:
    run = ran["modes"]
    assert run.tasks == {"sync": "success", "report": "success"}
    report = run.values["report"]
    mirror = {name: rows(folder / "report" / "lake", "shop", name) for name in ("products", "orders", "customers")}
    assert report["products"] == len(mirror["products"]) < report["versions"]
    assert report["changes of orders"] > len(mirror["orders"])
    stored = rows(folder / "modes" / "lake", "shop", "customers")
    there = [row for row in stored if not row["_cdc_deleted"]]
    assert report["deleted customers"] == len(stored) - len(there)
    digests = {row["id"]: sha256(f"a pinch{row['email']}".encode()).hexdigest() for row in mirror["customers"]}
    assert {row["id"]: row["email"] for row in there} == digests


def test_a_deferred_sensor_times_out_and_says_what_holds_it_back(ran: dict[str, Ran]) -> None:
    assert ran["overdue"].tasks == {"wait": "failed", "sync": "upstream_failed"}
    assert ran["overdue and soft"].tasks == {"wait": "skipped", "sync": "skipped"}


def test_the_example_without_kafka_reads_what_the_server_has(ran: dict[str, Ran], folder: Path, canal: Canal) -> None:
    assert ran["canal_without_kafka"].values["sync"]["records"] == 3
    assert canal.done == 3
    # of shop.a two rows were inserted and one deleted, and a column was added; of shop.b one row was inserted
    tables = {name: DeltaTable(str(folder / "canal" / "shop" / name)).to_pyarrow_table() for name in "ab"}
    assert {name: (table.num_rows, table.column_names) for name, table in tables.items()} == {
        "a": (1, ["id", "v", "w"]),
        "b": (1, ["id", "n", "bin"]),
    }


class SourceHook:
    """The source database, as a hook of common.sql counts in it.

    :param conn_type: ``mysql`` quotes names in its own way.
    """

    def __init__(self, connection: sqlite3.Connection, conn_type: str) -> None:
        self._connection, self.conn_type = connection, conn_type

    def get_first(self, sql: str) -> Any:
        return self._connection.execute(sql).fetchone()


@pytest.mark.parametrize("conn_type", ["mysql", "postgres"])
def test_rows_are_counted_at_the_source_and_in_the_version_of_the_batch(
    ran: dict[str, Ran], folder: Path, monkeypatch: pytest.MonkeyPatch, conn_type: str
) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException, BaseHook

    from airflow_provider_cdc import CdcCheckOperator, NoParked, RowCount

    source = sqlite3.connect(":memory:")
    source.execute("ATTACH ':memory:' AS shop")
    count = len(rows(folder / "lake", "shop", "customers"))
    source.execute("CREATE TABLE shop.customers (id)")
    source.executemany("INSERT INTO shop.customers VALUES (?)", [(number,) for number in range(count)])
    monkeypatch.setattr(BaseHook, "get_hook", lambda conn_id: SourceHook(source, conn_type))

    def check(*checks: Any, **more: Any) -> list[dict[str, Any]]:
        pipeline = str(folder / "shop.yaml")
        return list(CdcCheckOperator(task_id="check", pipeline=pipeline, checks=checks, **more).execute({}))

    of = {"tables": ["shop.customers"], "source_conn_id": "source"}
    passed = check(RowCount(), NoParked(), **of)
    assert [(result["check"], result["passed"]) for result in passed] == [("row_count", True), ("no_parked", True)]
    source.execute("DELETE FROM shop.customers WHERE id < 2")
    seen = f"shop.customers: {count} rows, {count - 2} at the source"
    with pytest.raises(AirflowFailException, match=seen):
        check(RowCount(tolerance=1), **of)
    assert check(RowCount(tolerance=2), **of)[0]["passed"]
    (warned,) = check(RowCount(), on_failure="warn", **of)
    assert (warned["passed"], warned["tables"]) == (False, ["shop.customers"])
    with pytest.raises(AirflowFailException, match=r"the pipeline has no table shop\.nothing"):
        check(NoParked(), tables=["shop.nothing"])
    with pytest.raises(AirflowFailException, match="source_conn_id"):
        check(RowCount())


def test_a_parked_table_fails_its_check_alone(ran: dict[str, Ran], folder: Path) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    from airflow_provider_cdc import CdcCheckOperator, NoParked

    def check(table: str) -> Any:
        torn = str(folder / "torn.yaml")
        return CdcCheckOperator(task_id="c", pipeline=torn, checks=[NoParked()], tables=[table]).execute({})

    assert check("shop.orders")[0]["passed"]
    with pytest.raises(AirflowFailException, match=r"no_parked: shop\.customers parked: \[sink\.not_ours\]"):
        check("shop.customers")


# ---- a batch that another provider's operator runs


def test_a_batch_that_another_operator_runs_is_equal_although_it_was_killed(ran: dict[str, Ran], folder: Path) -> None:
    away, lake = ran["away"], folder / f"lake of {folder.name} away"
    assert away.tasks == {"stage": "success", "run": "success", "publish": "success"} and away.tries["run"] == 2
    assert (away.values["publish"]["status"], away.values["publish"]["seq"]) == ("done", 1)
    for source in load(DATA / "source_at" / "1.jsonl.xz"):
        assert differing(source, DeltaTable(str(lake / source.database / source.table)).to_pyarrow_table()) == []
    assert doubled_commits(lake) == []
    (cut,) = away.extras("cdc://away")
    assert (cut["seq"], cut["consistent"]) == (1, True)
    tables = {f"cdc://away/{line['database']}/{line['table']}" for line in away.values["publish"]["tables"]}
    assert tables >= {uri for uri, _ in away.events if uri.count("/") == 4} != set()


def test_the_example_runs_its_batch_by_another_operator(ran: dict[str, Ran]) -> None:
    elsewhere = ran["elsewhere"]
    assert elsewhere.tasks == {"stage": "success", "run": "success", "publish": "success"}
    assert elsewhere.values["publish"]["status"] == "done" and len(elsewhere.extras("shop_tables")) == 1


def test_where_nothing_has_to_be_run_the_other_operator_is_skipped_and_the_result_is_there(ran: dict[str, Ran]) -> None:
    again = ran["away again"]
    assert again.tasks == {"stage": "success", "run": "skipped", "publish": "success"}
    assert (again.values["stage"]["status"], again.values["publish"]["repeated"]) == ("done", True)
