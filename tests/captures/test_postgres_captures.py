# SPDX-License-Identifier: Apache-2.0
"""Recorded traffic of Debezium's PostgreSQL connector: each table equals the source, or says why it is parked.

The records are read from memory: the broker has its part in ``test_captures.py``.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from tests.captures.in_memory import DATA, checkpoints
from tests.captures.postgres_pipelines import (
    AVRO,
    BARE,
    EQUAL,
    FAILOVER,
    MAIN,
    NEW_LOG,
    pipeline,
    sync,
    verdicts,
)
from tests.captures.postgres_truth import load, verdict
from tests.histories.log import Log
from tests.sample import ALL
from tests.services.registered_schemas import SCHEMAS, ServedSchemas, schemas_of

# the connector did not run; the failover lost transactions that had been read, and no heartbeat came since
UNREAD = {NEW_LOG: {2}, FAILOVER: {6}}
# the heartbeat shows that another server took over, which may lack what was read
WAITING = {FAILOVER: {5, 7, 8}}


@pytest.fixture
def registry(request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    """Return the settings of the registry of a capture that has one, empty for the others."""
    name = request.getfixturevalue("name")
    if not (DATA / name / SCHEMAS).exists():
        yield {}
        return
    server = ServedSchemas(schemas_of(DATA / name))
    yield {"url": server.url, "timeout": "5"}
    server.stop()
    assert set(server.asked.values()) == {1}, "each schema is asked for once"


@pytest.mark.every(2)
@pytest.mark.parametrize("name", [MAIN, NEW_LOG, FAILOVER, *[BARE, AVRO] * ALL])  # all are cut below
def test_tables_equal_the_source_at_recorded_points_or_say_why_not(
    name: str, log: Log, registry: dict[str, str], tmp_path: Path
) -> None:
    script = pipeline(name, log, tmp_path, registry)
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


@pytest.mark.sampled
@pytest.mark.parametrize("cuts", [1, 3, 12])
@pytest.mark.parametrize("name", [MAIN, BARE, AVRO, FAILOVER])
def test_tables_equal_the_source_however_batches_are_cut(
    name: str, cuts: int, log: Log, registry: dict[str, str], tmp_path: Path
) -> None:
    script = pipeline(name, log, tmp_path, registry)
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


def test_a_table_without_key_that_changed_while_a_snapshot_on_its_slot_began_is_parked(
    log: Log, tmp_path: Path
) -> None:
    script = pipeline(NEW_LOG, log, tmp_path, on_unseen_ddl="apply")
    points = sorted(checkpoints(NEW_LOG), key=lambda point: int(point[0].name.split(".")[0]))
    outcomes = []
    for truth, ends in points:
        sync(script, ends)
        outcomes.append({table.name: verdict(script, table) for table in load(truth)}.get("app.born2"))
    assert outcomes[-2:] == ["equal", "parked"]  # mode always: two rows are in it, and streamed behind it
    assert [state.code for state in script.states.values() if state.table == "born2"] == ["apply.contradicted"]
