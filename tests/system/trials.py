# SPDX-License-Identifier: Apache-2.0
"""Take sites through kills: batch after batch, each killed and run again, with nothing to be seen of it afterwards."""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from pathlib import Path

from airflow_provider_cdc.engine.cache import cache_folder
from airflow_provider_cdc.engine.jars import jar_cache
from tests.airflow.shop import PHASES
from tests.services.broker import Broker
from tests.system import processes
from tests.system.killing import Executioner, Hit, Kill
from tests.system.site import Site, error_of, feed, source
from tests.system.verdict import doubled_commits, ledger_faults, unequal

LEASE_SECONDS = 5


class KilledSite(Site):
    """A site with a cache of its own: a kill deletes the archive of Spark's classes that it used.

    The archives are linked again for each command: else the next starts, of other tests too, would be without one.
    """

    def env(self) -> dict[str, str]:
        own, common = self.folder / "cache", cache_folder()
        for folder in (own, own / "classes"):
            folder.mkdir(mode=0o700, exist_ok=True)
        if not (own / "jars").is_symlink():
            (own / "jars").symlink_to(jar_cache())
        for archive in (common / "classes").glob("*.jsa"):
            with contextlib.suppress(OSError):  # there already, or on another disk
                os.link(archive, own / "classes" / archive.name)
        return {**super().env(), "AIRFLOW_CDC_CACHE": str(own)}


def site_of(
    folder: Path, broker: Broker, engine: str, prefix: str = "shopdb", kind: type[Site] = Site, **policy: object
) -> Site:
    """Return a pipeline of its own in a folder.

    :param prefix: of the topics that it reads.
    """
    folder.mkdir(exist_ok=True)
    site = kind(folder, {"bootstrap.servers": broker.bootstrap}, {"source": source(prefix)})
    site.changes |= {"policy": {"engine": engine, "lease_seconds": LEASE_SECONDS, **policy}}
    return site


def ordeal(site: Site, phase: int, batches: int, planned: list[Kill]) -> list[Hit]:
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


def trials(
    sites: list[tuple[Site, list[Kill]]], broker: Broker, prefix: str, first: int = 0, last: int = len(PHASES) - 1
) -> list[Hit]:
    """Take every site through some of the shop's phases, one kill in each and all that are left in the last.

    :param prefix: of the topics that the sites read.
    :param first: phase up to which all is one batch.
    """
    hits: list[Hit] = []
    for phase in range(first, last + 1):
        feed(broker, phase if phase > first else 0, phase, prefix)
        for site, plan in sites:
            due = plan[phase - first : None if phase == last else phase - first + 1]
            hits += ordeal(site, phase, phase - first + 1, due)
    _sum_up(hits)
    for site, _ in sites:
        assert left(site) == [], "nothing of a killed command goes on running"
        printed = site.run("ledger", "--json").json
        assert [(b["seq"], b["start"], b["end"]) for b in printed] == [
            (b["seq"], b["start"], b["end"]) for b in site.batches()
        ]
    return hits


def assert_kills_met_batches(hits: list[Hit], least: int) -> None:
    """Demand that kills met running batches, at several moments where they are several: that depends on the speed."""
    assert len(hits) >= least
    assert len({hit.reached for hit in hits}) >= min(2, least)


def left(site: Site) -> list[str]:
    """Return what still runs of any command of a site."""
    marks = {file.name.split(".")[1] for file in site.folder.glob("sync.*.err")}
    deadline = time.monotonic() + 90
    while left := [pid for mark in marks for pid in processes.marked(mark)]:
        if time.monotonic() > deadline:
            break
        time.sleep(0.1)
    return [f"{pid}: {processes.command(pid)}" for pid in left]
