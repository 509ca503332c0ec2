# SPDX-License-Identifier: Apache-2.0
"""The sync operator in Airflow: events, waits, parked tables and names, one step after the other in one process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from . import dag_steps
from .dag_steps import Step
from .shop import Shop, demand_data, feed, until

if TYPE_CHECKING:
    from tests.services.broker import Broker

pytestmark = pytest.mark.airflow

DAGS = """
import os
from datetime import datetime, timedelta
from pathlib import Path
from airflow.sdk import DAG, Asset, AssetAlias
from airflow_provider_cdc import CdcPipeline, CdcSyncOperator, cdc_asset

folder = Path(os.environ["SHOP_FOLDER"])
shop, torn = (CdcPipeline.from_yaml(folder / f"{name}.yaml") for name in ("shop", "torn"))
outlets = [Asset("tables"), cdc_asset(shop), AssetAlias("each table")]
args = dict(schedule=None, start_date=datetime(2026, 1, 1))
at = "{{ dag_run.conf['until'] }}"

with DAG("events", **args):
    CdcSyncOperator(task_id="sync", pipeline=shop, until=at, outlets=outlets)
with DAG("leased", **args):
    CdcSyncOperator(task_id="sync", pipeline=shop, until=at, deferrable=True, poll_interval=0.5)
with DAG("late", **args):
    CdcSyncOperator(task_id="sync", pipeline=shop, until=at, deferrable=True, poll_interval=0.5,
                    execution_timeout=timedelta(seconds=2))
with DAG("impatient", **args):
    CdcSyncOperator(task_id="sync", pipeline=shop, until=at, deferrable=True, poll_interval=0.5,
                    lease_wait=timedelta(seconds=1))
for on_parked in ("fail", "skip", "warn"):
    with DAG(f"parked_{on_parked}", **args):
        CdcSyncOperator(task_id="sync", pipeline=torn, until=at, on_parked=on_parked,
                        outlets=[Asset("torn"), cdc_asset(torn), AssetAlias("each torn table")])
with DAG("mapped", **args):
    CdcSyncOperator.partial(task_id="sync", until=at).expand(pipeline=[str(folder / "shop.yaml"), torn.to_dict()])
with DAG("from_a_file", params={"name": "shop"}, **args):
    CdcSyncOperator(task_id="sync", pipeline="{{ params.name }}.yaml")
"""


@dataclass(frozen=True)
class Ran:
    """What came of a step.

    :param log: everything that was logged meanwhile.
    """

    log: str
    state: str
    tasks: dict[str, str]
    tries: dict[str, int]
    named: dict[str, str | None]
    values: dict[str, Any]
    events: list[list[Any]]

    def extras(self, uri: str) -> list[dict[str, Any]]:
        """Return the extras of an asset's events; of a pipeline's asset with and without its slash."""
        return [extra for of, extra in self.events if of.rstrip("/") == uri]


@pytest.fixture(scope="module")
def filled() -> Iterator[Broker]:
    demand_data()
    from tests.services.broker import Broker

    with Broker() as running:
        feed(running, 0, 1)
        yield running


FIRST, SECOND = "2026-11-20T16:00:00+00:00", "2026-11-20T17:00:00+00:00"


def day(number: int) -> str:
    return f"2026-11-{number:02}T00:00:00+00:00"


@pytest.fixture(scope="module")
def ran(filled: Broker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ran]:
    """Run all steps, and return what came of them by name."""
    folder = tmp_path_factory.mktemp("steps")
    shop = Shop(folder, {"bootstrap.servers": filled.bootstrap})
    shop.file()
    torn = {**shop.document(), "name": "torn", "sink": {"type": "delta", "root": str(folder / "torn")}}
    (folder / "torn.yaml").write_text(yaml.safe_dump(torn))
    stranger = folder / "torn" / "shop" / "customers"
    stranger.mkdir(parents=True)
    (stranger / "notes.txt").write_text("somebody else's")
    dags = folder / "dags"
    dags.mkdir()
    (dags / "dags.py").write_text(DAGS)
    (dags / "shop.yaml").write_text((folder / "shop.yaml").read_text().replace("name: shop", "name: {{ params.name }}"))
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
    }
    return run_steps(shop, dags, steps)


def run_steps(shop: Shop, dags: Path, steps: dict[str, Step]) -> dict[str, Ran]:
    """Run steps in a process of its own."""
    environment = {
        **shop.env(),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "SHOP_FOLDER": str(shop.folder),
    }
    file = dag_steps.write(shop.folder / "steps.json", list(steps.values()))
    run = subprocess.run(
        [sys.executable, str(Path(dag_steps.__file__)), str(dags), str(file)],
        env=environment, cwd=shop.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=590,
    )  # fmt: skip
    head, *parts = run.stdout.split(f"\n{dag_steps.MARK}")
    results = [_result(part) for part in parts]
    assert len(results) == len(steps), run.stdout[-5000:]
    assert '"import_errors": {}' in head, head[-3000:]
    return dict(zip(steps, results, strict=True))


def _result(part: str) -> Ran:
    log, _, result = part.rpartition(dag_steps.RESULT)
    assert log, part[-5000:]
    return Ran(log=log, **json.loads(result.splitlines()[0]))


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
    assert customers["rows"] == {"upserts": _line(first, "customers")["upserts"], "deletes": 0}
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


def test_a_batch_of_a_task_without_outlets_is_told_of_by_the_next_one_with_outlets(ran: dict[str, Ran]) -> None:
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
        told = step.values["sync"]
        assert (told["status"], [table["table"] for table in told["parked"]]) == ("parked", ["customers"])
        assert "shop.customers parked: [sink.not_ours]" in step.log
    assert failed.events == skipped.events == []


def test_the_other_tables_are_told_of_although_one_is_parked(ran: dict[str, Ran]) -> None:
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


def test_a_template_may_name_a_file_beside_the_dag_which_may_have_templates_itself(ran: dict[str, Ran]) -> None:
    step = ran["from a file"]
    assert (step.tasks["sync"], step.values["sync"]["pipeline"]) == ("success", "shop")
    assert "up to 2026-11-01T00:00:00+00:00 (the end of the run's data interval)" in step.log
