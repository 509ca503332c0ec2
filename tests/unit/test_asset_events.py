# SPDX-License-Identifier: Apache-2.0
"""Events announce every committed change at least once, and never an older one after a newer."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_provider_cdc.batch.asset_events import asset_events, due_batches
from airflow_provider_cdc.core.documents import Proof
from airflow_provider_cdc.core.model.status import BatchStatus
from airflow_provider_cdc.ledger import SYNC, Batch, TaskTry

START = datetime(2026, 11, 21, tzinfo=UTC)
RUN = TaskTry("shop", "r1", "sync")


def batch(seq: int, changed: dict[str, int], task: TaskTry | None = None, parked: bool = False) -> Batch:
    """Return a committed batch.

    :param changed: versions of the tables that changed, by name.
    """
    tables = [
        {"database": "shop", "table": t, "action": "merge", "upserts": 2, "deletes": 1, "state": "ok", "version": v}
        for t, v in changed.items()
    ]
    tables.append({"database": "shop", "table": "idle", "action": "", "upserts": 0, "deletes": 0, "state": "ok"})
    cut = {"consistent": not parked, "position": f"p{seq}", "source_time": START.isoformat()}
    result = {"status": "parked" if parked else "done", "records": 3, "tables": tables, "cut": cut}
    until = START + timedelta(hours=seq)
    return Batch("shop", seq, SYNC, BatchStatus.COMMITTED, {}, {}, until, START, START, result, task=task)


def test_an_event_names_version_rows_and_cut() -> None:
    events = asset_events([batch(4, {"a": 7})], 3)
    assert events is not None and events.through == 4
    assert events.tables == {
        ("shop", "a"): {
            "pipeline": "shop",
            "seq": 4,
            "until": "2026-11-21T04:00:00.000000Z",
            "source_time": START.isoformat(),
            "position": "p4",
            "consistent": True,
            "repeated": False,
            "table": "shop.a",
            "version": 7,
            "state": "ok",
            "rows": {"upserts": 2, "deletes": 1},
            "contradictions": {},
            "proof": None,
        }
    }
    assert (events.cut["records"], events.cut["versions"]["shop.a"]) == (3, 7)


KINDS = {"key_there": 1, "key_missing": 23456, "row_differs": 3}


def contradicted(done: Batch) -> Batch:
    """Return a batch whose tables the log contradicts; those that did not change are parked for it."""
    assert done.result is not None
    proof = Proof("p3", "p2", 7, KINDS, contradicted=True).document()
    return replace(
        done,
        result={
            **done.result,
            "tables": [{**line, "contradictions": KINDS, "proof": proof} for line in done.result["tables"]],
        },
    )


def test_events_name_contradictions_and_proof() -> None:
    events = asset_events([contradicted(batch(4, {"a": 7})), batch(5, {"b": 8})], 3)
    assert events is not None
    assert events.cut["contradictions"] == {"shop.a": KINDS, "shop.idle": KINDS}
    table = events.tables["shop", "a"]
    assert table["contradictions"] == KINDS
    assert (table["proof"]["until"], table["proof"]["agreed_rows"]) == ("p3", 7)


def test_a_batch_of_many_tables_fits_into_an_event() -> None:
    events = asset_events([contradicted(batch(1, {f"table_with_a_long_name_{n:04}": n for n in range(1000)}))], 0)
    assert events is not None and len(events.tables) == 1000
    assert max(len(json.dumps(extra)) for extra in (events.cut, *events.tables.values())) < 8192


@pytest.mark.parametrize(
    ("announced", "requested", "me", "expected"),
    [
        (0, 2, RUN, [1, 2]),  # nobody announced 1: its run died
        (1, 2, RUN, [2]),
        (2, 1, RUN, []),  # a clear of the first run
        (2, 2, RUN, [2]),  # a repeat of the newest
        (2, None, RUN, []),
        (2, 3, replace(RUN, run_id="r2", try_number=2), [2]),  # its own first try committed 2, perhaps announced it
        (2, 3, replace(RUN, run_id="r2"), []),
        (2, 3, replace(RUN, try_number=2), []),
        (2, 3, None, []),
    ],
)
def test_which_batches_are_due(announced: int, requested: int | None, me: TaskTry | None, expected: list[int]) -> None:
    batches = [batch(1, {"a": 0}, RUN), batch(2, {"b": 0}, replace(RUN, run_id="r2"))]
    assert [due.seq for due in due_batches(batches, announced, requested, me)] == expected
    assert due_batches([], announced, requested, me) == []


def test_of_several_due_batches_each_table_has_its_newest_version() -> None:
    events = asset_events([batch(1, {"a": 0, "b": 0}), batch(2, {"a": 1})], 0)
    assert events is not None
    assert [(name, extra["seq"], extra["version"]) for (_, name), extra in events.tables.items()] == [
        ("b", 1, 0),
        ("a", 2, 1),
    ]
    assert events.cut["versions"] == {"shop.a": 1, "shop.b": 0, "shop.idle": None} and events.cut["seq"] == 2


# ---- random lives


@dataclass
class Life:
    """A DAG's life: what is committed, what was sent, and what is known of both.

    :param events: ``(table, version)`` in the order in which consumers saw them.
    """

    batches: list[Batch] = field(default_factory=list)
    announced: int = 0
    versions: dict[str, int] = field(default_factory=dict)
    events: list[tuple[str, int]] = field(default_factory=list)
    runs: dict[str, tuple[int | None, int]] = field(default_factory=dict)

    def request(self, rng: random.Random, run: str) -> None:
        """Let a run ask for its batch; it may die or fail at any point."""
        seq, tries = self.runs.get(run, (None, 0))
        me = TaskTry("shop", run, "sync", try_number=tries + 1)
        if seq is None or rng.random() < 0.1:  # without a time, a retry asks for something new
            seq = self.commit(rng, me)
        self.runs[run] = (seq, tries + 1)
        parked = bool((self.batches[-1].result or {})["status"] == "parked") if self.batches else False
        if rng.random() < 0.2 or (parked and rng.random() < 0.5):
            return  # died after the commit, or failed because a table is parked
        events = asset_events(due_batches(self.batches, self.announced, seq, me), self.announced)
        if events is None:
            return
        self.announced = max(self.announced, events.through)
        self.events += [(extra["table"], extra["version"]) for extra in events.tables.values()]

    def commit(self, rng: random.Random, me: TaskTry) -> int | None:
        """Commit a batch with some tables; sometimes there is nothing new."""
        if rng.random() < 0.2:
            return None
        changed = {table: self.versions.get(table, -1) + 1 for table in "abcd" if rng.random() < 0.5}
        self.versions |= changed
        made = batch(len(self.batches) + 1, changed, me, parked=rng.random() < 0.2)
        self.batches.append(made)
        return made.seq


@pytest.mark.parametrize("first", range(0, 1000, 100))
def test_in_random_lives_versions_never_go_back_and_the_newest_is_always_announced(first: int) -> None:
    """A version that a newer one replaced before anybody announced it is announced by the newer one."""
    for seed in range(first, first + 100):
        rng, life = random.Random(seed), Life()
        for _ in range(rng.randint(1, 30)):
            known = list(life.runs)
            run = rng.choice(known) if known and rng.random() < 0.5 else f"r{len(known)}"  # a clear or a retry, or new
            life.request(rng, run)
        last: Any = {}
        for table, version in life.events:
            assert version >= last.get(table, 0), f"seed {seed}: {table} went back"
            last[table] = version
        if life.announced == len(life.batches):
            assert last == {f"shop.{table}": version for table, version in life.versions.items()}, f"seed {seed}"
        announced = {f"shop.{t}": v for b in life.batches[: life.announced] for t, v in _changed(b).items()}
        assert all(last[table] >= version for table, version in announced.items()), f"seed {seed}"


def _changed(made: Batch) -> dict[str, int]:
    return {line["table"]: line["version"] for line in (made.result or {})["tables"] if line["action"]}
