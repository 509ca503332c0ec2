# SPDX-License-Identifier: Apache-2.0
"""Recorded rows of PostgreSQL that ExtractNewRecordState flattened: each table equals the source, or says why not.

Or it lacks what the transform loses: a TRUNCATE, and NULL in a column with a default. Shards are routed into one topic.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from spark_jobs.sinks.delta.table import DeltaLocation
from tests.captures.in_memory import CUTS, DATA, Ends, checkpoints, pipeline
from tests.captures.postgres_truth import REASONS, SourceTable, create_table, differing, load
from tests.histories.log import Log
from tests.histories.scripted import Script
from tests.locations import table_location

FLAT = "public-postgres-flat-15"
OPTIONS = {
    "connector": "postgresql",
    "decimal.handling.mode": "string",
    "delete.tombstone.handling.mode": "rewrite",
    "add.fields": "op,schema,table,lsn,txId,source.sequence,source.snapshot,source.ts_us,ts_ms",
    "add.headers": "op,source.sequence",
}
# what the pages of the format say of a table that is parked; intervals are numbers here
MISSED = "apply.changes_missing"  # its transaction topic counts what the transform swallowed
FLAT_REASONS = (*REASONS, "reason=number_invalid", "reason=image_missing", MISSED)
UNLOGGED = {"app.unlogged"}  # never in the WAL
# what the connector without schemas loses: table -> part of what differs
LOST = {
    "app.arrays": "instead of '{",  # items of dates are numbers
    "app.contacts": "instead of 'blue'",  # the label 'sad' of an enum was renamed
    "app.texts": "instead of 'blue'",
    "app.numbers": "N",  # NAN and POSITIVE_INFINITY
    "app.events": "'",  # a partition was attached, another detached
    "app.events_2026_01": "",  # rows of partitions are streamed under the root's name
    "app.events_2026_02": "",
}
# what the transform loses, next to what the connector without schemas does
TRUNCATED = {
    "app.accounts",
    "app.visits",
    "app.Mixed Case",
    "app.addresses",
    "app.customers",
    "app.order_lines",
    "app.shard_0",
}
DEFAULT = {"app.accounts": "'0.00' instead of None", "app.contacts": "'sad' instead of None"}
# of these each partition shows a change from behind the TRUNCATE
READ_BEHIND = {"app.accounts", "app.order_lines", "app.events"}
EQUAL = {"app.metrics", "app.shard_1", "app.stock", "ctl.marker"}


def flattened(log: Log, root: Path) -> Script:
    """Return a pipeline that states the tables as the snapshot found them."""
    script = pipeline(FLAT, log, root, options=OPTIONS)
    script.schema_topic, first = None, DATA / FLAT / "source_at" / "0.jsonl.xz"
    script.tables = {table.name: {"create": create_table(first, table.name)} for table in load(first)}
    return script


def problems(script: Script, table: SourceTable) -> list[str]:
    """Return what is wrong with a table: nothing where it is parked for one of the reasons that the pages list."""
    states = [state for state in script.states.values() if (state.database, state.table) == (table.schema, table.table)]
    if not states:
        return ["absent"] if table.rows and table.name not in UNLOGGED else []
    if states[-1].state != "ok":
        reason = str(states[-1].reason)
        return [] if any(part in reason for part in FLAT_REASONS) else [reason]
    location = DeltaLocation(table_location(str(script.root), table.schema, table.table), {})
    wrong = [text for text in differing(table, location.rows()) if not is_lost(table.name, text)]
    return [f"{table.name}: {text}" for text in wrong]


def is_lost(name: str, problem: str) -> bool:
    """Return whether a difference is one that no reader can see."""
    if name in TRUNCATED and problem.startswith("too much"):
        return True
    return any(name in lost and lost[name] in problem for lost in (LOST, DEFAULT))


def equal(script: Script, truth: Path) -> set[str]:
    """Return the tables that are equal; none may be wrong."""
    tables = load(truth)
    assert [text for table in tables for text in problems(script, table)] == []
    swallowed = {"app.invoices", "app.events", *TRUNCATED}
    assert missed(script) <= swallowed
    ok = {f"{state.database}.{state.table}" for state in script.states.values() if state.state == "ok"}
    return {table.name for table in tables} & ok


def missed(script: Script) -> set[str]:
    """Return the tables that are parked because the log counts more than it has."""
    return {f"{state.database}.{state.table}" for state in script.states.values() if MISSED in str(state.reason)}


def points() -> list[tuple[Path, Ends]]:
    return sorted(checkpoints(FLAT), key=lambda point: int(point[0].name.split(".")[0]))


def test_each_recorded_point(log: Log, tmp_path: Path) -> None:
    script = flattened(log, tmp_path)
    for truth, ends in points():
        script.sync(ends)
        assert equal(script, truth) >= EQUAL
    assert missed(script) >= READ_BEHIND


@pytest.mark.parametrize("cuts", CUTS)
def test_any_cut_ends_alike(cuts: int, log: Log, tmp_path: Path) -> None:
    script = flattened(log, tmp_path)
    chance = random.Random(cuts)
    whole = {where: len(all_) for where, all_ in log.partitions.items()}
    for number in range(1, cuts):
        most = {where: end * number // cuts + 3 for where, end in whole.items()}
        ends = {where: min(chance.randint(0, most[where]), end) for where, end in whole.items()}
        script.sync({where: max(end, script.ends.get(where, 0)) for where, end in ends.items()})
    script.sync(whole)
    assert equal(script, DATA / FLAT / "source_final.jsonl.xz") >= EQUAL
    assert missed(script) >= READ_BEHIND


def test_where_contradictions_are_counted_no_table_is_parked_for_its_counts(log: Log, tmp_path: Path) -> None:
    script = flattened(log, tmp_path)
    script.policy = {"on_contradiction": "count"}
    script.sync({where: len(all_) for where, all_ in log.partitions.items()})
    assert missed(script) == set()
