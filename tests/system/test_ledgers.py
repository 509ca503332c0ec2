# SPDX-License-Identifier: Apache-2.0
"""The lake is the truth: a ledger that is lost, new, restored or of another host loses and doubles nothing."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from tests.airflow.shop import Answer, demand_data
from tests.sample import ALL
from tests.services.broker import Broker
from tests.system import processes
from tests.system.site import Site, demand_refused, feed, source
from tests.system.verdict import doubled_commits, unequal

pytestmark = pytest.mark.system
_TAKEN = "the ledger did not know"
BATCHES = 4 if ALL else 3


class Hosts:
    """One lake and one log, and the hosts that work on them with a ledger each."""

    def __init__(self, folder: Path, broker: Broker) -> None:
        self._folder, self._broker = folder, broker
        self._prefix = f"shop{folder.name}"
        self.lake = folder / "lake"
        self.lake.mkdir()

    def feed(self, phase: int) -> None:
        """Bring the records of one phase into the log."""
        feed(self._broker, phase, phase, self._prefix)

    def host(self, name: str) -> Site:
        """Return the pipeline as a host sees it."""
        folder = self._folder / name
        folder.mkdir()
        (folder / "lake").symlink_to(self.lake)
        changes = {"source": source(self._prefix), "sink": {"root": str(self.lake)}}
        return Site(folder, {"bootstrap.servers": self._broker.bootstrap}, changes)

    def log(self, seq: int) -> Path:
        """Return the folder of a batch's part of the change log."""
        return self.lake / "_cdc" / "shop" / "log" / f"{seq:08d}"

    def demand_equal(self, host: Site, phase: int) -> None:
        """Demand that the lake equals the source, and that a host's ledger says so."""
        assert unequal(host, phase) == {}
        assert doubled_commits(self.lake) == []


@pytest.fixture
def hosts(broker: Broker, tmp_path: Path) -> Hosts:
    demand_data()
    return Hosts(tmp_path, broker)


def _demand_done(answer: Answer, taken: int = 0) -> None:
    """Demand that a batch is done and that one line says so where the ledger took batches over."""
    assert (answer.code, answer.err.count(_TAKEN)) == (0, taken), answer.err


def test_a_lost_ledger_is_rebuilt_from_the_lake(hosts: Hosts) -> None:
    site = hosts.host("a")
    for phase in (0, 1):
        hosts.feed(phase)
        _demand_done(site.sync())
    site.ledger.unlink()
    hosts.feed(2)
    _demand_done(site.sync(), taken=1)
    hosts.demand_equal(site, 2)
    assert [(b["seq"], b["status"]) for b in site.batches()] == [(n, "committed") for n in (1, 2, 3)]


def test_a_restored_ledger_catches_up_with_the_lake(hosts: Hosts) -> None:
    site, backup = hosts.host("a"), hosts.lake.parent / "backup.db"
    hosts.feed(0)
    _demand_done(site.sync())
    shutil.copy(site.ledger, backup)
    hosts.feed(1)
    _demand_done(site.sync())
    shutil.copy(backup, site.ledger)
    hosts.feed(2)
    _demand_done(site.sync(), taken=1)
    hosts.demand_equal(site, 2)


def test_each_run_may_start_with_an_empty_home(hosts: Hosts) -> None:
    """As pods do whose default ledger is a file of a home that ends with them."""
    for phase in range(BATCHES - (not ALL)):
        pod = hosts.host(f"pod{phase}")
        hosts.feed(phase)
        _demand_done(pod.sync(), taken=int(phase > 0))
        hosts.demand_equal(pod, phase)


def test_two_hosts_with_a_ledger_each_work_in_turn(hosts: Hosts) -> None:
    both = [hosts.host("a"), hosts.host("b")]
    for phase in range(BATCHES):
        hosts.feed(phase)
        _demand_done(both[phase % 2].sync(), taken=int(phase > 0))
        hosts.demand_equal(both[phase % 2], phase)


def test_a_host_finishes_the_batch_of_another_that_died(hosts: Hosts) -> None:
    first, second = hosts.host("a"), hosts.host("b")
    hosts.feed(0)
    _demand_done(first.sync())
    hosts.feed(1)
    running = first.launch()
    assert running.until(lambda _: (hosts.log(2) / "manifest.json").exists())
    running.process.kill()
    running.process.wait()
    assert running.left() == []
    hosts.feed(2)
    answer = second.sync()  # finishes batch 2
    _demand_done(answer, taken=1)
    assert "batch 2 is unfinished and comes first" in answer.err
    _demand_done(second.sync())
    hosts.demand_equal(second, 2)


def test_a_host_that_was_halted_carries_out_its_own_job(hosts: Hosts) -> None:
    """Not the one that another host wrote meanwhile for the same batch number."""
    first, second = hosts.host("a"), hosts.host("b")
    hosts.feed(0)
    halted = first.launch()
    assert halted.until(lambda _: any(file.stat().st_size for file in hosts.lake.glob("_cdc/shop/jobs/**/job.json")))
    members = processes.halt(halted.mark)
    assert not hosts.log(1).exists()
    hosts.feed(1)
    _demand_done(second.sync())
    for pid in members:
        processes.kill(pid, signal.SIGCONT)
    if halted.answer().code:
        _demand_done(first.sync_patiently()[0])
    assert first.batches()[0]["end"] == second.batches()[0]["end"]
    hosts.demand_equal(first, 1)


def test_two_hosts_at_once_apply_nothing_twice(hosts: Hosts) -> None:
    both = [hosts.host("a"), hosts.host("b")]
    batches = 3 if ALL else 1
    for phase in range(batches):
        hosts.feed(phase)
        answers = [one.answer() for one in [host.launch() for host in both]]
        assert 0 in {answer.code for answer in answers}, [(answer.out, answer.err) for answer in answers]
        for host, answer in zip(both, answers, strict=True):
            again = answer if answer.code == 0 else host.sync_patiently()[0]
            assert again.code == 0, again.err
            assert doubled_commits(hosts.lake) == []
    _demand_done(both[0].sync(), taken=0)
    hosts.demand_equal(both[0], batches - 1)


def test_a_cut_off_document_of_an_unfinished_batch_is_that_step_again(hosts: Hosts) -> None:
    """As a power loss may leave them: an empty claim, an empty manifest, an empty result."""
    site = hosts.host("a")
    hosts.feed(0)
    _demand_done(site.sync())
    hosts.log(2).mkdir(parents=True)
    for name in ("claim", "manifest", "result"):
        (hosts.log(2) / f"{name}.json").write_text("")
    hosts.feed(1)
    _demand_done(site.sync())
    hosts.demand_equal(site, 1)


def test_a_damaged_document_of_an_ended_batch_is_named(hosts: Hosts) -> None:
    site = hosts.host("a")
    hosts.feed(0)
    _demand_done(site.sync())
    path = hosts.log(1) / "result.json"
    undamaged = path.read_bytes()
    path.write_text('{"pipeline"')
    hosts.feed(1)
    demand_refused(site.sync(), 3, "log.damaged", str(path))
    assert unequal(site, 0) == {}, "nothing was applied"
    path.write_bytes(undamaged)
    _demand_done(site.sync())
    hosts.demand_equal(site, 1)
