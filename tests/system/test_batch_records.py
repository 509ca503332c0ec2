# SPDX-License-Identifier: Apache-2.0
"""A large request is a sequence of bounded batches, and a stop between two of them loses nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from airflow_provider_cdc.batch.window import ExactWindow
from airflow_provider_cdc.core.ledger import Ledger
from airflow_provider_cdc.core.ledger.records import time_text
from tests.airflow.shop import PHASES, demand_data, until
from tests.services.broker import Broker
from tests.system.site import Site, feed, source
from tests.system.verdict import doubled_commits, ledger_faults, unequal, versions

pytestmark = pytest.mark.system

LAST = len(PHASES) - 1
MOST = 1500
"""Far fewer than the log has, and more than came at one time."""


@pytest.fixture(scope="module")
def filled() -> Iterator[Broker]:
    """Return a broker with the shop's whole log."""
    demand_data()
    with Broker() as running:
        feed(running, 0, LAST)
        yield running


def _site(folder: Path, broker: Broker, most: int = MOST) -> Site:
    policy = {"engine": "inline", "batch_records": most}
    return Site(folder, {"bootstrap.servers": broker.bootstrap}, {"policy": policy})


def _row_records(batch: dict[str, dict[str, dict[str, int]]]) -> int:
    """Return the number of a batch's offsets in topics of rows."""
    return sum(
        end - batch["start"][topic][partition]
        for topic, partitions in batch["end"].items()
        if topic not in (source("shopdb")["schema_topic"], source("shopdb")["heartbeat_topic"])
        for partition, end in partitions.items()
    )


def _end_lease(site: Site) -> None:
    """Let the dead holder's lease end, as time would."""
    with sqlite3.connect(site.ledger) as ledger:
        ledger.execute("UPDATE cdc_pipelines SET lease_until = '2000' || substr(lease_until, 5)")


def test_a_request_is_a_sequence_of_bounded_batches_and_the_tables_are_equal(filled: Broker, tmp_path: Path) -> None:
    site = _site(tmp_path, filled)
    asked = datetime.fromisoformat(until(LAST))
    answer = site.sync("--until", until(LAST))
    assert answer.code == 0, answer.err
    batches = [batch for batch in site.batches() if batch["start"] != batch["end"]]
    rows = [_row_records(batch) for batch in batches]
    assert len(batches) > 2 and all(0 < count <= MOST for count in rows), rows
    assert answer.json["batches"] == len(batches) and answer.json["records"] >= sum(rows)
    assert [batch["until"] for batch in batches] == [None] * (len(batches) - 1) + [time_text(asked)]
    cuts = [batch["cut_at"] for batch in batches]
    assert cuts[-1] is None and cuts[:-1] == sorted(cuts[:-1])
    assert ledger_faults(site, len(batches)) == []
    assert unequal(site, LAST) == {} and doubled_commits(site.lake) == []
    before = versions(site.lake)
    again = site.sync("--until", until(LAST))
    assert (again.code, again.json["repeated"], again.json["seq"]) == (0, True, batches[-1]["seq"]), again.err
    assert (versions(site.lake), len(site.batches())) == (before, batches[-1]["seq"])


def test_a_request_without_a_time_that_is_killed_between_two_batches_goes_on(filled: Broker, tmp_path: Path) -> None:
    site = _site(tmp_path, filled)
    for part in (1, 2):
        running = site.launch()
        assert running.until(lambda run: run.said("continuing with the next part"))
        running.process.kill()
        running.answer()
        running.left()
        assert site.next_seq() > part, "the parts before the kill are committed"
        _end_lease(site)
    done = site.sync()
    assert done.code == 0, done.err
    full = [batch for batch in site.batches() if batch["start"] != batch["end"]]
    assert len(full) > 3 and full[-1]["cut_at"] is None
    assert ledger_faults(site, len(full)) == []
    assert unequal(site, LAST) == {} and doubled_commits(site.lake) == []


def test_an_exact_window_is_complete_only_with_its_last_batch(filled: Broker, tmp_path: Path) -> None:
    site = _site(tmp_path, filled)
    end = datetime.fromisoformat(until(LAST))
    mine, next_one = ExactWindow(end - timedelta(days=999), end), ExactWindow(end, end + timedelta(hours=1))
    running = site.launch("sync", "--until", until(LAST))
    assert running.until(lambda run: run.said("continuing with the next part"))
    running.process.kill()
    running.answer()
    running.left()
    ledger = Ledger(f"sqlite:///{site.ledger}")
    assert ledger.covering("shop", end) is None
    assert "waits for everything before" in next_one.holds_back(ledger, "shop")
    _end_lease(site)
    assert site.sync("--until", until(LAST)).code == 0
    assert mine.holds_back(ledger, "shop") == next_one.holds_back(ledger, "shop") == ""
    assert unequal(site, LAST) == {}


def test_a_ledger_that_was_lost_between_two_batches_learns_which_was_a_part(filled: Broker, tmp_path: Path) -> None:
    site = _site(tmp_path, filled)
    running = site.launch("sync", "--until", until(LAST))
    assert running.until(lambda run: run.said("continuing with the next part"))
    running.process.kill()
    running.answer()
    running.left()
    first = site.batches()[0]
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()
    done = site.sync("--until", until(LAST))
    assert done.code == 0, done.err
    assert (site.batches()[0]["cut_at"], site.batches()[0]["until"]) == (first["cut_at"], None)
    assert unequal(site, LAST) == {} and doubled_commits(site.lake) == []
