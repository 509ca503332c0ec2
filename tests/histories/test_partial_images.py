# SPDX-License-Identifier: Apache-2.0
"""Updates that leave out what did not change, over lagging partitions and with repeats, leave what the source has."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import spark_jobs.driver.table_tasks
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.tasks.table_task import ApplyReport
from tests.captures.replaying import Lake
from tests.captures.shaped_truth import of_source
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.locations import table_location
from tests.sample import amount

CREATE = "CREATE TABLE t (k INT PRIMARY KEY, a INT, b VARCHAR(9), c DECIMAL(9,2))"
PARTITIONS = 3
Row = dict[str, Any]


class Source:
    """A table, and its changes as OMS's SharePlex method writes them, ``key`` without the columns that need not be."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.rows: dict[int, Row] = {}
        self.sent: list[tuple[int, Record]] = []

    def run(self, steps: int) -> None:
        for number in range(steps):
            self._step(number)
            if self._chance.random() < 0.05:
                again = self.sent[-self._chance.randint(1, len(self.sent)) :][:5]
                self.sent += again

    def _step(self, number: int) -> None:
        chance = self._chance
        free = [key for key in range(10) if key not in self.rows]
        if free and (not self.rows or chance.random() < 0.25):
            self.rows[free[0]] = row = {"k": free[0], "a": number, "b": f"b{number}", "c": number}
            self._send(number, "ins", row, None, free[0])
            return
        key = chance.choice(list(self.rows))
        before = self.rows.pop(key)
        if chance.random() < 0.15:
            self._send(number, "del", before, None, key)
            return
        values = {"a": chance.choice([None, number]), "b": f"b{number}", "c": number}
        changed: Row = {name: value for name, value in values.items() if chance.random() < 0.4}
        if free and chance.random() < 0.15:
            changed["k"] = chance.choice(free)
        after = {**before, **changed}
        self.rows[after["k"]] = after
        stated = {name: value for name, value in before.items() if name == "k" or chance.random() < 0.2}
        self._send(number, "upd", changed, stated, after["k"])

    def _send(self, number: int, op: str, data: Row, key: Row | None, position: int) -> None:
        meta = {"op": op, "table": "shop.t", "time": "2025-01-01T00:00:00", "scn": f"1735689600{number}"}
        value = {"data": data, "meta": meta, **({} if key is None else {"key": key})}
        self.sent.append(
            (position % PARTITIONS, Record("t", position % PARTITIONS, 1, None, json.dumps(value).encode()))
        )


def replay(seed: int, log: Log, root: Path) -> None:
    chance = random.Random(seed)
    source = Source(chance)
    source.run(chance.choice([20, 60]))
    log.partitions.clear()
    orders: dict[tuple[str, int], list[int]] = {}
    for order, (partition, record) in enumerate(source.sent):
        log.partitions.setdefault(("t", partition), []).append(record)
        orders.setdefault(("t", partition), []).append(order)
    lake = Lake(root, "", None, "oms-shareplex", {}, {"shop.t": {"create": CREATE}}, quarantine_limit=0)
    done = dict.fromkeys(orders, 0)
    for batch in range(1, 6):
        for position, sent in orders.items():
            moment = len(source.sent) * batch // 5 + chance.randint(-9, 9) * (batch < 5)
            done[position] = max(done[position], sum(order < moment for order in sent))
        lake.sync_to(done)
    state = lake.state("shop", "t")
    assert state is not None
    assert (state.state, state.reason) == ("ok", ""), seed
    rows = DeltaLocation(table_location(str(root), "shop", "t"), {}).rows().to_pylist()
    assert sorted(rows, key=lambda row: row["k"]) == [source.rows[key] for key in sorted(source.rows)], seed


def test_partial_updates_leave_what_the_source_has(log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()
    apply = spark_jobs.driver.table_tasks.apply

    def counted(*arguments: Any) -> ApplyReport:
        report = apply(*arguments)
        counts[report.status] += 1
        return report

    monkeypatch.setattr(spark_jobs.driver.table_tasks, "apply", counted)
    seeds = amount(12, 30)
    for seed in range(seeds):
        replay(seed, log, lake)
        shutil.rmtree(lake, ignore_errors=True)
    assert counts["committed"] > 100 * seeds // 30
    assert counts["rewind"] > 2 * seeds // 30  # rows that moved while a partition lagged


def _sent(number: int, partition: int, op: str, data: Row, key: Row | None = None) -> Record:
    meta = {"op": op, "table": "shop.t", "time": "2025-01-01T00:00:00", "scn": f"1735689600{number}"}
    value = {"data": data, "meta": meta, **({} if key is None else {"key": key})}
    return Record("t", partition, 1, None, json.dumps(value).encode())


@pytest.mark.parametrize("cuts", [[(3, 0), (3, 2)], [(1, 0), (3, 0), (3, 2)], [(1, 0), (2, 0), (2, 2), (3, 2)]])
@pytest.mark.parametrize("mode", ["mirror", "soft_delete", "history"])
def test_a_late_update_reaches_the_row_under_the_key_that_it_moved_to(
    mode: str, cuts: list[tuple[int, int]], log: Log, lake: Path
) -> None:
    script = Script(log, lake, "oms-shareplex", None, tables={"shop.t": {"create": CREATE, "mode": mode}})
    # the first late row lets the insert be looked at again, so that the table needs no older version
    script.send(_sent(1, 1, "ins", {"k": 9, "a": 9, "b": "b", "c": 9}))
    script.send(_sent(2, 0, "ins", {"k": 1, "a": 1, "b": "b", "c": 1}), _sent(4, 0, "upd", {"k": 2}, {"k": 1}))
    script.send(_sent(5, 0, "upd", {"k": 3}, {"k": 2}), _sent(3, 1, "upd", {"a": 7}, {"k": 1}))
    for ends in cuts:
        script.sync({("t", partition): end for partition, end in enumerate(ends)})
    assert script.states_of("shop", "t") == ["ok"], [state.reason for state in script.states.values()]
    stored = DeltaLocation(table_location(str(lake), "shop", "t"), {}).rows()
    left = of_source(stored, mode, ("k",)).select(["k", "a", "b"]).to_pylist()
    assert sorted(left, key=lambda row: int(row["k"])) == [{"k": 3, "a": 7, "b": "b"}, {"k": 9, "a": 9, "b": "b"}]
