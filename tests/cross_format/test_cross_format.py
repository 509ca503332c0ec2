# SPDX-License-Identifier: Apache-2.0
"""The same history in every tool's wire form, over several partitions and partly sent twice, gives the same tables."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.core.formats.registry import format_names, open_format
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.captures.replaying import Lake, full_ends, random_cuts
from tests.cross_format.events import Event, Message, Row
from tests.cross_format.history import CREATES, DATABASE, History, history
from tests.cross_format.truth import problems
from tests.cross_format.writers import between_groups, registry_of, writer_of
from tests.locations import table_location
from tests.sample import ALL
from tests.services.broker import Broker
from tests.services.capture import Record, replay

PARTITIONS = 3
WITH_DDL = [name for name in format_names() if "ddl" in open_format(name).carries]
WITHOUT_DDL = [name for name in format_names() if name not in WITH_DDL]


def deliveries(history: History, order: str, seed: int) -> list[Event]:
    """Return the events as a tool sends them: stretches come again some time later.

    Where records carry no position a repeat looks like a new change: there tables without key are not sent
    again, nor stretches in which a key moves, since half of a move could seem to come after the whole.
    """
    chance = random.Random(seed)
    sent: list[Event] = []
    points = set(chance.sample(range(20, len(history.events)), 6))
    for index, event in enumerate(history.events):
        sent.append(event)
        if index in points:
            again = history.events[index - 12 : index + 1]
            if order == "clock":
                again = [] if any(map(_moves, again)) else [one for one in again if _keyed(one)]
            sent += again
    return [replace(event, sent_ms=history.events[0].sent_ms + 1000 * index) for index, event in enumerate(sent)]


def _keyed(event: Event) -> bool:
    return not isinstance(event.what, Row) or bool(event.what.schema.key)


def _moves(event: Event) -> bool:
    row = event.what
    if not isinstance(row, Row) or row.before is None or row.after is None:
        return False
    return any(row.before[column.name] != row.after[column.name] for column in row.schema.key_columns)


def produced(messages: list[Message], topic: str, sent: list[int]) -> list[Record]:
    """Give messages their offsets."""
    ends: dict[tuple[str, int], int] = {}
    records = []
    for message, time in zip(messages, sent, strict=True):
        partition = (f"{topic}.{message.topic}", message.partition)
        offset = ends[partition] = ends.get(partition, -1) + 1
        records.append(Record(*partition, offset, time, message.key, message.value, message.headers))
    return records


def run(name: str, history: History, seed: int, broker: Broker, root: Path, create: bool) -> list[str]:
    """Write, send, read in batches; return what differs."""
    writer, wire = writer_of(name), open_format(name)
    topic = f"one.{name}.{seed}.{'ddl' if not create else 'rows'}"
    messages, sent = [], []
    for event in deliveries(history, wire.order, seed):
        if create and writer.creates and not isinstance(event.what, Row):
            continue
        for message in writer.write(event, PARTITIONS):
            messages.append(message)
            sent.append(event.sent_ms)
    records = produced(messages, topic, sent)
    replay(broker, records, {f"{topic}.rows": PARTITIONS, f"{topic}.schema": 1})
    tables = {f"{DATABASE}.{table}": {"create": text} for table, text in CREATES.items()} if writer.creates else {}
    schema_topic = None if wire.ddl_among_rows or writer.creates else f"{topic}.schema"
    lake = Lake(root, broker.bootstrap, schema_topic, name, dict(writer.options), tables, quarantine_limit=0)
    with registry_of(writer) as lake.registry:
        for ends in random_cuts(full_ends(records), 4, seed):
            lake.sync_to(between_groups(ends, records, wire))
    assert lake.quarantined == 0
    wrong = []
    for table, schema in history.schemas.items():
        state = lake.state(DATABASE, table)
        if state is None or state.state != "ok":
            wrong.append(f"{table}: {None if state is None else (state.state, state.reason)}")
            continue
        rows = DeltaLocation(table_location(str(root), DATABASE, table), {}).rows()
        stored_value = getattr(
            writer, "stored_value", lambda value, kind: value
        )  # what the tool itself leaves of a value
        content = [{c.name: stored_value(row[c.name], c.type) for c in schema.columns} for row in history.tables[table]]
        wrong += [f"{table}: {text[:400]}" for text in problems(rows, schema, content)]
    return wrong


@pytest.mark.parametrize("seed", [1])
@pytest.mark.parametrize("name", format_names() if ALL else ["debezium-json", *WITHOUT_DDL])  # the others below
def test_rows_of_every_type_arrive_equal_in_every_format(name: str, seed: int, broker: Broker, tmp_path: Path) -> None:
    reported = history(seed, ddl=False)
    wrong = run(name, reported, seed, broker, tmp_path, create=True)
    assert not wrong, "\n".join(wrong[:10])


@pytest.mark.every(2)
@pytest.mark.parametrize("seed", [2])
@pytest.mark.parametrize("name", WITH_DDL)
def test_rows_and_ddl_arrive_equal_in_every_format_that_carries_ddl(
    name: str, seed: int, broker: Broker, tmp_path: Path
) -> None:
    reported = history(seed, ddl=True)
    wrong = run(name, reported, seed, broker, tmp_path, create=False)
    assert not wrong, "\n".join(wrong[:10])
