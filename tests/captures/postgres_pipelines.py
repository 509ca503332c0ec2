# SPDX-License-Identifier: Apache-2.0
"""Pipelines over recorded traffic of Debezium's PostgreSQL connector, and the verdict on each table."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from spark_jobs.driver.approval import NewGenerationError
from tests.captures.in_memory import DATA, records
from tests.captures.postgres_truth import create_table, load, verdict
from tests.histories.log import Log
from tests.histories.records import Record as LogRecord
from tests.histories.scripted import Script

MAIN, BARE, AVRO = "public-postgres-15", "public-postgres-bare-15", "public-postgres-avro-15"
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
    AVRO: {
        "app.Mixed Case": "columns ['Id', 'a_b_c', 'select']",  # the name of `a-b c` stands nowhere
        "app.accounts": "Decimal('0.00') instead of None",  # NULL came as the column's default
        "app.contacts": "'sad' instead of ",  # the same, and the label
        "app.arrays": "instead of '{blue}'",
        "app.texts": f"instead of {ENUM}",
        "app.numbers": "None instead of",
        "app.events": "",
    },
    NEW_LOG: {},
    FAILOVER: {},
}
UNLOGGED = {"app.unlogged"}  # never in the WAL
# tables that are equal at every point, at least
EQUAL = {
    MAIN: {"app.Mixed Case", "app.customers", "app.shard_0", "app.shard_1", "app.stock", "app.metrics"},
    BARE: {"app.Mixed Case", "app.customers", "app.shard_0", "app.shard_1", "app.stock", "ctl.marker"},
    AVRO: {"app.customers", "app.shard_0", "app.shard_1", "app.stock", "app.metrics"},
    NEW_LOG: {"app.accounts", "app.orders", "app.visits"},
    FAILOVER: {"app.accounts", "app.orders", "app.visits"},
}


def pipeline(name: str, log: Log, root: Path, registry: Mapping[str, str] | None = None, **policy: Any) -> Script:
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
    return Script(
        log,
        root,
        "debezium-avro" if registry else "debezium-json",
        None,
        options,
        policy,
        tables,
        registry=dict(registry or {}),
    )


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
