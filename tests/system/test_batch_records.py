# SPDX-License-Identifier: Apache-2.0
"""A large request is a sequence of bounded batches, and a stop between two of them loses nothing."""

from __future__ import annotations

import sqlite3
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from airflow_provider_cdc.batch.window import ExactWindow
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.ledger.records import time_text
from tests.airflow.shop import until
from tests.services.broker import Broker
from tests.system.site import Site, source
from tests.system.verdict import doubled_commits, ledger_faults, unequal, versions

pytestmark = pytest.mark.system

LAST = 1
MOST = 1500
"""Far fewer than the log has, and more than came at one time."""


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


def _killed_after_a_part(site: Site, *arguments: str) -> None:
    running = site.launch("sync", *arguments)
    assert running.until(lambda run: run.said("continuing with the next part"))
    running.process.kill()
    running.answer()
    running.left()


def test_a_request_that_is_killed_between_batches_goes_on_also_with_a_lost_ledger(
    filled: Broker, tmp_path: Path
) -> None:
    """The asked window is complete only with the last batch."""
    site = _site(tmp_path, filled)
    end = datetime.fromisoformat(until(LAST))
    mine, following = ExactWindow(end - timedelta(days=999), end), ExactWindow(end, end + timedelta(hours=1))
    _killed_after_a_part(site, "--until", until(LAST))
    ledger = Ledger(f"sqlite:///{site.ledger}")
    assert ledger.covering("shop", end) is None
    assert "waits for everything before" in following.holds_back(ledger, "shop")
    _end_lease(site)
    _killed_after_a_part(site, "--until", until(LAST))
    for file in tmp_path.glob("ledger.db*"):
        file.unlink()

    done = site.sync("--until", until(LAST))
    assert done.code == 0, done.err
    ledger = Ledger(f"sqlite:///{site.ledger}")
    assert mine.holds_back(ledger, "shop") == following.holds_back(ledger, "shop") == ""
    batches = [batch for batch in site.batches() if batch["start"] != batch["end"]]
    rows = [_row_records(batch) for batch in batches]
    assert len(batches) > 2 and all(0 < count <= MOST for count in rows), rows
    assert [batch["until"] for batch in batches] == [None] * (len(batches) - 1) + [time_text(end)]
    cuts = [batch["cut_at"] for batch in batches]
    assert cuts[-1] is None and None not in cuts[:-1] and cuts[:-1] == sorted(cuts[:-1])
    assert ledger_faults(site, len(batches)) == []
    assert unequal(site, LAST) == {} and doubled_commits(site.lake) == []

    before = versions(site.lake)
    again = site.sync("--until", until(LAST))
    assert (again.code, again.json["repeated"], again.json["seq"]) == (0, True, batches[-1]["seq"]), again.err
    assert (versions(site.lake), len(site.batches())) == (before, batches[-1]["seq"])


def test_a_request_without_a_time_is_a_sequence_with_one_result(filled: Broker, tmp_path: Path) -> None:
    site = _site(tmp_path, filled)
    done = site.sync()
    assert done.code == 0, done.err
    full = [batch for batch in site.batches() if batch["start"] != batch["end"]]
    rows = [_row_records(batch) for batch in full]
    assert len(full) > 2 and all(0 < count <= MOST for count in rows), rows
    assert done.json["batches"] == len(full) and done.json["records"] >= sum(rows)
    assert full[-1]["cut_at"] is None and {batch["until"] for batch in full} == {None}
    assert ledger_faults(site, len(full)) == []
    assert unequal(site, LAST) == {} and doubled_commits(site.lake) == []
    assert site.sync().json["status"] == "nothing_to_do"
