# SPDX-License-Identifier: Apache-2.0
"""`airflow-cdc serve`: pipelines follow their source until it is stopped, whatever is killed meanwhile."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.airflow.shop import demand_data
from tests.services.broker import Broker
from tests.system import processes
from tests.system.serving import Folder, done, lines, writing
from tests.system.site import Running, Site, feed
from tests.system.trials import site_of
from tests.system.verdict import doubled_commits, unequal

pytestmark = pytest.mark.system


def kill_batch(running: Running, lake: Path) -> bool:
    """Kill the processes of batches that write, and return whether there was one."""
    killed = writing(running, lake)
    for pid in killed:
        processes.kill(pid)
    return bool(killed)


@pytest.fixture
def site(broker: Broker, tmp_path: Path) -> Site:
    demand_data()
    return site_of(tmp_path / "shop", broker, "inline", f"served{tmp_path.name}", lease_seconds=5)


def grow(site: Site, broker: Broker, phase: int) -> None:
    feed(broker, phase, phase, str(site.changes["source"]["topics"]).partition(r"\.")[0])


def test_pipelines_follow_their_source_until_it_is_stopped(site: Site, broker: Broker) -> None:
    (site.folder / "torn.yaml").write_text("name: [")
    grow(site, broker, 0)
    running = Folder(site.folder, site.connection, site.changes).launch("serve", "--every", "1")
    assert running.until(done)
    read = sum(line.get("records") or 0 for line in lines(running))
    grow(site, broker, 1)
    assert running.until(lambda run: done(run, read + 1) and unequal(site, 1) == {})
    running.process.send_signal(signal.SIGTERM)
    assert (running.answer().code, running.left()) == (0, [])
    failed = [line for line in lines(running) if line["status"] == "failed"]
    assert {(Path(line["file"]).name, line["error"]["code"]) for line in failed} == {("torn.yaml", "configuration")}
    assert site.sync().code == 0, "the lease was given back"


def test_a_server_that_is_stopped_ends_its_batch_and_gives_the_lease_back(site: Site, broker: Broker) -> None:
    site.changes["policy"]["lease_seconds"] = 600
    grow(site, broker, 0)
    running = site.launch("serve", "--every", "1")
    assert running.until(lambda run: writing(run, site.lake) != [])
    running.process.send_signal(signal.SIGTERM)
    assert (running.answer().code, running.left()) == (0, [])
    assert lines(running) == [], "the batch was running"
    assert site.sync().code == 0
    assert (unequal(site, 0), doubled_commits(site.lake)) == ({}, [])


def test_a_batch_that_is_killed_is_finished_in_a_later_turn(site: Site, broker: Broker) -> None:
    grow(site, broker, 0)
    running = site.launch("serve", "--every", "1")
    assert running.until(lambda run: kill_batch(run, site.lake))
    assert running.until(done)
    codes = [line["error"]["code"] for line in lines(running) if line["status"] == "failed"]
    assert codes[:1] == ["engine.crashed"] and {*codes[1:]} <= {"ledger.busy"}
    running.process.kill()
    running.process.wait()
    assert running.left() == [], "nothing outlives it"
    assert (unequal(site, 0), doubled_commits(site.lake)) == ({}, [])
