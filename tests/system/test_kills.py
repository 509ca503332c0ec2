"""Kill -9 of any process at any moment, then the same command again: equal tables, no doubled batch."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.airflow.shop import PHASES, demand_data
from tests.stack.broker import Broker
from tests.system import processes
from tests.system.killing import Executioner, Hit, Kill, kills
from tests.system.site import Site, error_of, feed
from tests.system.verdict import doubled_commits, ledger_faults, unequal

pytestmark = pytest.mark.system

LEASE_SECONDS = 5
_PIPELINES = "cdc_pipelines"


@pytest.fixture
def empty() -> Iterator[Broker]:
    """A broker of its own: what is in it is what a batch takes."""
    demand_data()
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def filled() -> Iterator[Broker]:
    """A broker with the shop's first phase."""
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


def _ordeal(site: Site, phase: int, planned: list[Kill]) -> list[Hit]:
    """Carry out one batch through kills, and demand that nothing of them is to be seen afterwards."""
    hits = []
    for kill in planned:
        hit = Executioner(site, phase).carry_out(kill)
        hits += [hit] if hit else []
        print(f"{site.folder.name} phase {phase}: {hit or f'done before {kill}'}", flush=True)
    died = time.monotonic()
    last, before = site.sync_patiently()
    told = f"phase {phase}, {[(hit.kill, hit.reached) for hit in hits]}"
    assert last.code == 0, f"{told}: {last.err[-1500:]}"
    assert last.json["status"] in ("done", "nothing_to_do"), told
    print(f"  repeat: {time.monotonic() - died:.1f} s, {len(before)} times told to wait", flush=True)
    assert {error_of(answer)["code"] for answer in before} <= {
        "ledger.busy",
        "sink.commit_conflict",
        "sink.write_failed",
    }, told
    assert unequal(site, phase) == {}, told
    assert ledger_faults(site, phase + 1) == [], told
    assert doubled_commits(site.lake) == [], told
    return hits


def _sum_up(hits: list[Hit]) -> None:
    reached, targets = Counter(hit.reached for hit in hits), Counter(hit.kill.target for hit in hits)
    print(f"{len(hits)} kills, reached {dict(reached)}, of {dict(targets)}", flush=True)


def test_fifteen_kills_with_the_inline_engine(empty: Broker, tmp_path: Path) -> None:
    sites = [_site(tmp_path / name, empty, "inline") for name in ("a", "b")]
    plans = [kills("inline", 8, seed) for seed in (20260401, 7)]
    hits: list[Hit] = []
    for phase in range(len(PHASES)):
        feed(empty, phase, phase)
        for site, plan in zip(sites, plans, strict=True):
            # in the last phase the repeat is killed as well
            hits += _ordeal(site, phase, plan[phase:] if phase == len(PHASES) - 1 else [plan[phase]])
    _sum_up(hits)
    assert [line for site in sites for line in _left(site)] == []
    assert len(hits) >= 14
    assert len({hit.reached for hit in hits}) >= 5
    assert {hit.kill.target for hit in hits} == {"command", "engine"}


@pytest.mark.spark
def test_six_kills_with_spark(empty: Broker, tmp_path: Path) -> None:
    site = _site(tmp_path / "s", empty, "spark")
    planned = _spark_kills()
    hits: list[Hit] = []
    for phase, kill in enumerate(planned):
        feed(empty, phase, phase)
        hits += _ordeal(site, phase, [kill])
    _sum_up(hits)
    assert _left(site) == []
    assert len(hits) >= 6
    assert len({hit.reached for hit in hits}) >= 4
    assert {hit.kill.target for hit in hits} == {"command", "jvm", "driver", "worker"}


def _spark_kills() -> list[Kill]:
    """Return a kill for each phase, every process among them."""
    chance = random.Random(11)
    fixed = [
        ("starting", "command", 4.0),
        ("starting", "jvm", 4.0),
        ("landing", "worker", 0.3),
        ("applying", "driver", 0.2),
        ("committing", "worker", 0.3),
        ("committing", "jvm", 0.3),
        ("between", "command", 0.003),
    ]
    chance.shuffle(fixed)
    return [Kill(moment, target, chance.uniform(0, longest)) for moment, target, longest in fixed]


def _left(site: Site) -> list[str]:
    """Return what still runs of any command of a site."""
    marks = {file.name.split(".")[1] for file in site.folder.glob("sync.*.err")}
    deadline = time.monotonic() + 30
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
    site = _site(tmp_path, filled, "inline", lease_seconds=2)
    sleeper = site.launch()
    assert sleeper.until(lambda run: run.said("apply: "))
    asleep = [sleeper.process.pid, *sleeper.watch()]
    for pid in asleep:
        processes.kill(pid, signal.SIGSTOP)
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
