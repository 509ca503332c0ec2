# SPDX-License-Identifier: Apache-2.0
"""Recorded traffic of Debezium's PostgreSQL connector: each table equals the source, or says why it is parked.

The records are read from memory: the broker has its part in ``test_captures.py``.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from spark_jobs.driver.approval import NewGenerationError
from tests.captures.in_memory import DATA, checkpoints, records
from tests.captures.postgres_truth import create_table, load, verdict
from tests.histories.log import Log
from tests.histories.records import Record as LogRecord
from tests.histories.scripted import Script

MAIN, BARE = "public-postgres-15", "public-postgres-bare-15"
NEW_LOG, FAILOVER = "public-postgres-newlog-15", "public-postgres-failover-18"
FIRST = "source_at/0.jsonl.xz"
# what no reader can see (docs/formats/debezium-postgres.md, "What the tool loses"): table -> part of what differs
ENUM = "'blue'"  # its label 'sad' was renamed
LOST = {
    MAIN: {
        "app.arrays": "instead of '{blue}'",
        "app.contacts": f"instead of {ENUM}",
        "app.texts": f"instead of {ENUM}",
        "app.numbers": "None instead of",  # NaN and Infinity, under decimal.handling.mode=precise
        "app.events": "",  # its partitions' rows are streamed under their own names
    },
    BARE: {
        "app.arrays": "instead of '{",  # items of dates are numbers, and the label
        "app.contacts": f"instead of {ENUM}",
        "app.texts": f"instead of {ENUM}",
        "app.numbers": "N",  # NAN and POSITIVE_INFINITY, under decimal.handling.mode=string
        "app.events": "'",  # a partition was attached, another detached
        "app.events_2026_01": "",  # rows of partitions are streamed under the root's name
        "app.events_2026_02": "",
        "ctl.beat": "at of",  # a heartbeat was on its way
    },
    NEW_LOG: {},
    FAILOVER: {},
}
UNLOGGED = {"app.unlogged"}  # never in the WAL
# the connector did not run; the failover lost transactions that had been read, and no heartbeat came since
UNREAD = {NEW_LOG: {2}, FAILOVER: {6}}
# tables that are equal at every point, at least
EQUAL = {
    MAIN: {"app.Mixed Case", "app.customers", "app.shard_0", "app.shard_1", "app.stock", "app.metrics"},
    BARE: {"app.Mixed Case", "app.customers", "app.shard_0", "app.shard_1", "app.stock", "ctl.marker"},
    NEW_LOG: {"app.accounts", "app.orders", "app.visits"},
    FAILOVER: {"app.accounts", "app.orders", "app.visits"},
}
# the heartbeat shows that another server took over, which may lack what was read
WAITING = {FAILOVER: {5, 7, 8}}


def pipeline(name: str, log: Log, root: Path, **policy: Any) -> Script:
    """Return a pipeline over a capture; without schemas it states the tables as the snapshot outcomes them."""
    for record in records(name):
        partition = log.partitions.setdefault((record.topic, record.partition), [])
        assert record.offset == len(partition)
        partition.append(LogRecord(record.topic, record.partition, record.timestamp, record.key, record.value))
    options, tables = {"connector": "postgresql"}, {}
    if name == BARE:
        options |= {"decimal.handling.mode": "string", "interval.handling.mode": "string"}
        first = DATA / name / FIRST
        tables = {table.name: {"create": create_table(first, table.name)} for table in load(first)}
    return Script(log, root, schema_topic=None, options=options, tables=tables, policy=policy)


def sync(script: Script, ends: Mapping[tuple[str, int], int]) -> None:
    """Read up to these offsets; a log that begins again is approved, as an operator would."""
    ends = {where: max(end, script.ends.get(where, 0)) for where, end in ends.items() if where in script.log.partitions}
    try:
        script.sync(ends)
    except NewGenerationError as error:
        first = error.where["first_records"].split()[0]
        script.sync(ends, new_generation=first)


def verdicts(name: str, script: Script, truth: Path) -> dict[str, str]:
    """Return the verdict of each table that the source had, none of which may be wrong."""
    outcomes = {table.name: verdict(script, table) for table in load(truth)}
    for table, outcome in outcomes.items():
        lost = LOST[name].get(table)
        if outcome not in ("equal", "parked") and table not in UNLOGGED:
            assert lost is not None and all(lost in part for part in outcome.split("; ")), f"{table}: {outcome}"
    return outcomes


@pytest.mark.parametrize("name", [MAIN, BARE, NEW_LOG, FAILOVER])
def test_tables_equal_the_source_at_recorded_points_or_say_why_not(name: str, log: Log, tmp_path: Path) -> None:
    script = pipeline(name, log, tmp_path)
    for number, (truth, ends) in enumerate(
        sorted(checkpoints(name), key=lambda point: int(point[0].name.split(".")[0]))
    ):
        sync(script, ends)
        if number not in UNREAD.get(name, ()):
            outcomes = verdicts(name, script, truth)
            right = "parked" if number in WAITING.get(name, ()) else "equal"
            assert {table for table, outcome in outcomes.items() if outcome == right} >= EQUAL[name] & outcomes.keys()


def test_a_failover_that_lost_nothing_is_approved_and_one_that_did_waits_for_a_snapshot(
    log: Log, tmp_path: Path
) -> None:
    script = pipeline(FAILOVER, log, tmp_path)
    points = sorted(checkpoints(FAILOVER), key=lambda point: int(point[0].name.split(".")[0]))
    tables = EQUAL[FAILOVER]
    for number, (truth, ends) in enumerate(points):
        sync(script, ends)
        if number == 5:  # timeline 2: an orderly failover
            for table in sorted(tables):
                script.decide(table.partition(".")[2], Answer.APPLY)
        if number != 6:  # no heartbeat of timeline 3 is read
            outcomes = verdicts(FAILOVER, script, truth)
            assert {outcomes[table] for table in tables} == {"parked" if number in (7, 8) else "equal"}
    assert {item.policy for table in tables for item in script.waiting(table.partition(".")[2])} == {"on_failover"}


@pytest.mark.parametrize("policy", ["apply", "fail"])
def test_what_a_failover_does_is_the_policy_s(policy: str, log: Log, tmp_path: Path) -> None:
    script = pipeline(FAILOVER, log, tmp_path, on_failover=policy)
    points = sorted(checkpoints(FAILOVER), key=lambda point: int(point[0].name.split(".")[0]))
    for _, ends in points[:5]:
        sync(script, ends)
    truth, ends = points[5]
    if policy == "fail":
        with pytest.raises(DataError, match="on_failover"):
            sync(script, ends)
    else:
        sync(script, ends)
        assert {verdicts(FAILOVER, script, truth)[table] for table in EQUAL[FAILOVER]} == {"equal"}


@pytest.mark.parametrize("cuts", [1, 3, 12])
@pytest.mark.parametrize("name", [MAIN, BARE, FAILOVER])
def test_tables_equal_the_source_however_batches_are_cut(name: str, cuts: int, log: Log, tmp_path: Path) -> None:
    script = pipeline(name, log, tmp_path)
    chance = random.Random(cuts)
    for number in range(1, cuts):
        most = {where: len(all_) * number // cuts + 3 for where, all_ in log.partitions.items()}
        sync(script, {where: min(chance.randint(0, most[where]), len(all_)) for where, all_ in log.partitions.items()})
    sync(script, {where: len(all_) for where, all_ in log.partitions.items()})
    outcomes = verdicts(name, script, DATA / name / "source_final.jsonl.xz")
    assert {table for table, outcome in outcomes.items() if outcome == "equal"} >= EQUAL[name] & outcomes.keys()


def test_tables_that_are_new_are_equal_once_that_is_allowed(log: Log, tmp_path: Path) -> None:
    script = pipeline(MAIN, log, tmp_path, on_unseen_ddl="apply")
    points = sorted(checkpoints(MAIN), key=lambda point: int(point[0].name.split(".")[0]))
    for _, ends in points[:6]:
        sync(script, ends)
    outcomes = {table.name: verdict(script, table) for table in load(points[5][0])}
    made = {"ctl.marker", "app.born", "app.like_", "app.copied", "app.events_2026_03"}
    assert {table: outcomes[table] for table in made} == dict.fromkeys(made, "equal")


def test_a_table_that_no_snapshot_had_goes_on_once_it_is_approved(log: Log, tmp_path: Path) -> None:
    script = pipeline(MAIN, log, tmp_path)
    points = sorted(checkpoints(MAIN), key=lambda point: int(point[0].name.split(".")[0]))
    marker = next(table for table in load(points[1][0]) if table.name == "ctl.marker")
    for _, ends in points[:2]:
        sync(script, ends)
    assert verdict(script, marker) == "parked"
    script.decide("marker", Answer.APPLY)
    assert verdict(script, marker) == "equal"


def test_a_batch_is_refused_where_its_policy_is_to_fail(log: Log, tmp_path: Path) -> None:
    script = pipeline(MAIN, log, tmp_path, on_unseen_ddl="fail")
    _, ends = min(checkpoints(MAIN), key=lambda point: int(point[0].name.split(".")[0]))
    with pytest.raises(DataError, match="on_unseen_ddl"):
        sync(script, ends)
