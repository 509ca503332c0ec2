# SPDX-License-Identifier: Apache-2.0
"""Recorded snapshots of Debezium 3.5: what they write describes the tables, and replaces content only with rows.

The records are read from memory: the broker has its part in ``test_captures.py``.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from airflow_provider_cdc.core.documents import Rebuild, RebuildSource
from tests.captures.in_memory import CUTS, DATA, SEEDS, checkpoints, pipeline, records, rising, wrong_tables
from tests.histories.log import Log
from tests.histories.scripted import Script

RECOVERY, INCREMENTAL = "public-recovery-my8", "public-incremental-my8"
# rows left these two without row events: a foreign key's cascade and DROP PARTITION
NOT_DERIVABLE = {INCREMENTAL: frozenset({"shop.child", "shop.part"})}


def compare(name: str, script: Script, truth: Path) -> None:
    wrong = wrong_tables(script, truth, NOT_DERIVABLE.get(name, frozenset()))
    assert not wrong, "\n".join([truth.name, *wrong[:20]])


@pytest.mark.every(2)
@pytest.mark.parametrize("on_drop_table", ["keep", "apply"])
def test_snapshots_without_rows_change_no_table(on_drop_table: str, log: Log, tmp_path: Path) -> None:
    script = pipeline(RECOVERY, log, tmp_path, on_drop_table=on_drop_table)
    for truth, ends in checkpoints(RECOVERY):
        script.sync(ends)
        compare(RECOVERY, script, truth)


@pytest.mark.sampled
@pytest.mark.parametrize("cuts", [1, 3, 12])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", [RECOVERY, INCREMENTAL])
def test_snapshots_cut_anywhere_give_the_final_content(
    name: str, seed: int, cuts: int, log: Log, tmp_path: Path
) -> None:
    script = pipeline(name, log, tmp_path)
    chance = random.Random(f"{seed} {cuts}")
    for number in range(1, cuts):
        ends = {where: chance.randint(0, len(all_) * number // cuts + 3) for where, all_ in log.partitions.items()}
        script.sync(rising({where: min(end, len(log.partitions[where])) for where, end in ends.items()}, script.ends))
    script.sync()
    compare(name, script, DATA / name / "source_final.jsonl.xz")


@pytest.mark.every(2)
@pytest.mark.parametrize("first", ["ddl", "rows"])
def test_a_batch_may_end_between_a_snapshots_ddl_and_its_rows(first: str, log: Log, tmp_path: Path) -> None:
    script = pipeline(RECOVERY, log, tmp_path)
    topic = script.schema_topic
    for truth, ends in checkpoints(RECOVERY):
        part = {where: end for where, end in ends.items() if (where[0] == topic) == (first == "ddl")}
        script.sync(part)
        script.sync(ends)
        compare(RECOVERY, script, truth)


def test_ad_hoc_snapshots_of_a_table_without_key_add_no_rows(log: Log, tmp_path: Path) -> None:
    script = pipeline(INCREMENTAL, log, tmp_path)
    passed_over = 0
    for truth, ends in checkpoints(INCREMENTAL):
        result = script.sync(ends)
        passed_over += result.lossy.get("keyless_snapshot_row", 0)
        compare(INCREMENTAL, script, truth)
    assert passed_over == 4  # one for each chunk, as the capture's own account says
    assert script.states_of("shop", "part") == ["parked"]


def rebuild(script: Script, since: int | None, *tables: str) -> dict[str, str]:
    """Rebuild tables whose rows the log lost from an ad hoc snapshot; return why one is not."""
    result = script.sync(rebuild=Rebuild([f"shop.{table}" for table in tables], RebuildSource.SNAPSHOT, since))
    return {line.table: line.reason for line in result.tables if line.status != "committed"}


def started(kind: str) -> list[int]:
    """Return when the connector began snapshots, in microseconds, down to whole seconds."""
    notifications = [
        json.loads(record.value)["payload"]
        for record in records(INCREMENTAL)
        if record.topic.endswith(".notifications") and record.value is not None
    ]
    times = [
        int(notification["timestamp"]) // 1_000 * 1_000_000
        for notification in notifications
        if (notification["aggregate_type"], notification["type"]) == (kind, "STARTED")
    ]
    return sorted(times)


def test_an_incremental_snapshot_makes_lost_rows_known_again(log: Log, tmp_path: Path) -> None:
    script = pipeline(INCREMENTAL, log, tmp_path)
    for number, (truth, ends) in enumerate(checkpoints(INCREMENTAL)):
        script.sync(ends)
        if number == 2:
            assert script.states_of("shop", "child") == script.states_of("shop", "part") == ["parked"]
            reasons = rebuild(script, None, "child", "part")
            assert all("[rebuild.no_snapshot]" in reasons[table] for table in ("child", "part")), reasons
        elif number == 3:
            assert rebuild(script, None, "part") == {}
            # no record says where rows of child were removed: they may have been after the first that is new
            assert "[apply.cascaded]" in rebuild(script, None, "child")["child"]
            # it was asked for while the second one ran, of docs
            assert rebuild(script, started("Incremental Snapshot")[1], "child") == {}
        if number >= 3:
            assert wrong_tables(script, truth) == []
    script.sync()
    assert wrong_tables(script, DATA / INCREMENTAL / "source_final.jsonl.xz") == []


@pytest.mark.parametrize("cuts", CUTS)
def test_a_blocking_snapshot_makes_lost_rows_known_again(cuts: int, log: Log, tmp_path: Path) -> None:
    script = pipeline(INCREMENTAL, log, tmp_path)
    for number in range(1, cuts + 1):
        ends = {where: len(all_) * number // cuts for where, all_ in log.partitions.items()}
        script.sync(rising(ends, script.ends))
    assert rebuild(script, started("Initial Snapshot")[-1], "child", "part") == {}
    assert wrong_tables(script, DATA / INCREMENTAL / "source_final.jsonl.xz") == []
