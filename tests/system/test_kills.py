# SPDX-License-Identifier: Apache-2.0
"""Kill -9 of any process of an inline batch at any moment, then the same command again; leases of the dead."""

from __future__ import annotations

import signal
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.airflow.shop import demand_data
from tests.sample import ALL
from tests.services.broker import Broker
from tests.system import processes
from tests.system.killing import Executioner, Kill, inline_kills
from tests.system.site import error_of
from tests.system.trials import assert_kills_met_batches, site_of, trials
from tests.system.verdict import doubled_commits, ledger_faults, unequal

pytestmark = pytest.mark.system

_PIPELINES = "cdc_pipelines"


def test_kills_with_the_inline_engine(broker: Broker, tmp_path: Path) -> None:
    demand_data()
    names, topics = "ab" if ALL else "a", "killed"
    kills = 8 if ALL else 6
    sites = [
        (site_of(tmp_path / name, broker, "inline", topics), inline_kills(kills, seed))
        for seed, name in enumerate(names)
    ]
    hits = trials(sites, broker, topics, first=2) if ALL else trials(sites, broker, topics, first=1, last=2)
    assert_kills_met_batches(hits, kills // 2 * len(names))
    assert {hit.kill.target for hit in hits} == {"command", "engine"}


def test_a_pipeline_is_free_within_a_minute_after_its_holders_death(filled: Broker, tmp_path: Path) -> None:
    site = site_of(tmp_path, filled, "inline")
    del site.changes["policy"]["lease_seconds"]
    hit = Executioner(site, 1).carry_out(Kill("landing", "command", 0.0))
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
    assert unequal(site, 1) == {}
    assert ledger_faults(site, 1) == []


def test_a_holder_that_slept_through_its_lease_commits_nothing_twice(filled: Broker, tmp_path: Path) -> None:
    site = site_of(tmp_path, filled, "inline", lease_seconds=4)
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
    assert unequal(site, 1) == {}
    assert ledger_faults(site, 1) == []
    assert doubled_commits(site.lake) == []
    assert sleeper.left() == []
