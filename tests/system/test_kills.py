# SPDX-License-Identifier: Apache-2.0
"""Kill -9 of any process at any moment, then the same command again: equal tables, no doubled batch."""

from __future__ import annotations

import json
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.airflow.shop import PHASES, demand_data
from tests.services.broker import Broker
from tests.system import processes
from tests.system.killing import Executioner, Hit, Kill, inline_kills, spark_kills, staged_kills
from tests.system.site import Site, error_of, feed
from tests.system.verdict import doubled_commits, ledger_faults, unequal

pytestmark = pytest.mark.system

LEASE_SECONDS = 5
_PIPELINES = "cdc_pipelines"


@pytest.fixture
def empty() -> Iterator[Broker]:
    """Return a broker of its own: what is in it is what a batch takes."""
    demand_data()
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def filled() -> Iterator[Broker]:
    """Return a broker with the shop's first phase."""
    demand_data()
    with Broker() as running:
        feed(running, 0, 0)
        yield running


def _site(folder: Path, broker: Broker, engine: str, **policy: object) -> Site:
    folder.mkdir(exist_ok=True)
    site = Site(folder, {"bootstrap.servers": broker.bootstrap})
    site.changes = {"policy": {"engine": engine, "lease_seconds": LEASE_SECONDS, **policy}}
    if engine == "spark":
        site.changes["spark"] = {"connection": "two"}
        site.environment = {"AIRFLOW_CONN_TWO": '{"conn_type": "spark", "host": "local[2]"}'}
    return site


def _ordeal(site: Site, phase: int, batches: int, planned: list[Kill]) -> list[Hit]:
    """Carry out one batch through kills, and demand that nothing of them is to be seen afterwards."""
    hits = []
    for kill in planned:
        hit = Executioner(site, phase).carry_out(kill)
        hits += [hit] if hit else []
        print(f"{site.folder.name} phase {phase}: {hit or f'done in spite of {kill}'}", flush=True)
    died = time.monotonic()
    last, before = site.sync_patiently()
    description = f"phase {phase}, {[(hit.kill, hit.reached) for hit in hits]}"
    assert last.code == 0, f"{description}: {last.err[-1500:]}"
    assert last.json["status"] in ("done", "nothing_to_do"), description
    print(f"  repeat: {time.monotonic() - died:.1f} s, {len(before)} times asked to wait", flush=True)
    assert {error_of(answer)["code"] for answer in before} <= {
        "ledger.busy",
        "ledger.lease_lost",
        "sink.commit_conflict",
        "sink.write_failed",
    }, description
    assert unequal(site, phase) == {}, description
    assert ledger_faults(site, batches) == [], description
    assert doubled_commits(site.lake) == [], description
    return hits


def _sum_up(hits: list[Hit]) -> None:
    reached, targets = Counter(hit.reached for hit in hits), Counter(hit.kill.target for hit in hits)
    print(f"{len(hits)} kills, reached {dict(reached)}, of {dict(targets)}", flush=True)


def _trials(sites: list[tuple[Site, list[Kill]]], broker: Broker, first: int = 0) -> list[Hit]:
    """Take every site through the shop's phases, one kill in each and all that are left in the last.

    :param first: phase up to which all is one batch.
    """
    hits: list[Hit] = []
    for phase in range(first, len(PHASES)):
        feed(broker, phase if phase > first else 0, phase)
        for site, plan in sites:
            due = plan[phase - first : None if phase == len(PHASES) - 1 else phase - first + 1]
            hits += _ordeal(site, phase, phase - first + 1, due)
    _sum_up(hits)
    for site, _ in sites:
        assert _left(site) == [], "nothing of a killed command goes on running"
        printed = site.run("ledger", "--json").json
        assert [(b["seq"], b["start"], b["end"]) for b in printed] == [
            (b["seq"], b["start"], b["end"]) for b in site.batches()
        ]
    return hits


def _assert_kills_met_batches(hits: list[Hit], least: int) -> None:
    """Demand that kills met running batches at several moments; how many depends on the machine's speed."""
    assert len(hits) >= least
    assert len({hit.reached for hit in hits}) >= 2


def test_kills_with_the_inline_engine(empty: Broker, tmp_path: Path) -> None:
    sites = [(_site(tmp_path / name, empty, "inline"), inline_kills(8, seed)) for seed, name in enumerate("ab")]
    hits = _trials(sites, empty)
    _assert_kills_met_batches(hits, 8)
    assert {hit.kill.target for hit in hits} == {"command", "engine"}


@pytest.mark.spark
def test_kills_with_spark(empty: Broker, tmp_path: Path) -> None:
    hits = _trials([(_site(tmp_path / "s", empty, "spark"), spark_kills(3))], empty, first=1)
    _assert_kills_met_batches(hits, 3)


@pytest.mark.spark
def test_kills_between_staging_and_merge_of_the_spark_writer(filled: Broker, tmp_path: Path) -> None:
    # key buckets are staged too, in folders of their own
    site = _site(tmp_path / "w", filled, "spark", writer="spark", bucket_rows=50)
    hits = _ordeal(site, 0, 1, staged_kills(5))
    _assert_kills_met_batches(hits, 2)
    assert _left(site) == []


@pytest.mark.spark
def test_kills_where_the_writer_follows_from_what_a_merge_touches(empty: Broker, tmp_path: Path) -> None:
    site = _site(tmp_path / "c", empty, "spark", spark_writer_bytes=1, bucket_rows=50)
    for phase in (0, 1):  # the second batch merges first: the next ones start Spark with its writer
        feed(empty, phase, phase)
        assert {table.get("writer") for table in site.sync().json["tables"]} <= {"task", None}
    feed(empty, 2, 2)
    hits = _ordeal(site, 2, 3, staged_kills(6))
    _assert_kills_met_batches(hits, 2)
    logs = [log for log in site.lake.rglob("_delta_log") if "_cdc" not in log.parts]
    commits = [entry for log in logs for entry in DeltaTable(str(log.parent)).history()]
    writers = [json.loads(text)["writer"] for entry in commits if (text := entry.get("userMetadata"))]
    assert writers and all(one["name"] == "spark" and "the merge touches" in one["reason"] for one in writers)
    assert _left(site) == []


def _left(site: Site) -> list[str]:
    """Return what still runs of any command of a site."""
    marks = {file.name.split(".")[1] for file in site.folder.glob("sync.*.err")}
    deadline = time.monotonic() + 90
    while left := [pid for mark in marks for pid in processes.marked(mark)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return [f"{pid}: {processes.command(pid)}" for pid in left]


def test_a_pipeline_is_free_within_a_minute_after_its_holders_death(filled: Broker, tmp_path: Path) -> None:
    site = _site(tmp_path, filled, "inline")
    del site.changes["policy"]["lease_seconds"]
    hit = Executioner(site, 0).carry_out(Kill("landing", "command", 0.0))
    died = datetime.now(UTC)
    assert hit is not None
    refused = site.sync()
    assert (refused.code, error_of(refused)["code"]) == (5, "ledger.busy")
    with sqlite3.connect(site.ledger) as ledger:
        (until,) = ledger.execute(f"SELECT lease_until FROM {_PIPELINES}").fetchone()
        free = datetime.fromisoformat(until)
        assert free <= died + timedelta(seconds=60)
        # the clock's place: as if that minute had passed
        ledger.execute(f"UPDATE {_PIPELINES} SET lease_until = '2000' || substr(lease_until, 5)")
    taken = site.sync()
    assert (taken.code, taken.json["status"]) == (0, "done"), taken.err
    assert unequal(site, 0) == {}
    assert ledger_faults(site, 1) == []


def test_a_holder_that_slept_through_its_lease_commits_nothing_twice(filled: Broker, tmp_path: Path) -> None:
    site = _site(tmp_path, filled, "inline", lease_seconds=4)
    sleeper = site.launch()
    assert sleeper.until(lambda run: run.said("apply: "))
    asleep = processes.stop(sleeper.process.pid, site.ledger)
    taken, _ = site.sync_patiently()
    assert taken.code == 0, taken.err
    for pid in reversed(asleep):
        processes.kill(pid, signal.SIGCONT)
    woken = sleeper.answer()
    assert woken.code == 5, woken.err
    # it meets the other's commits, or finds its lease gone
    assert error_of(woken)["code"] in ("ledger.lease_lost", "sink.commit_conflict", "sink.write_failed"), woken.err
    assert unequal(site, 0) == {}
    assert ledger_faults(site, 1) == []
    assert doubled_commits(site.lake) == []
    assert sleeper.left() == []
