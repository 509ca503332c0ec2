# SPDX-License-Identifier: Apache-2.0
"""Short stories of a source in each tool's form, read in one batch, in two (cut anywhere), and record by record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from tests.cross_format.events import Ddl, Event, Message, Row
from tests.cross_format.writers import between_groups
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.histories.tools import PREFIX, TOOLS, Style
from tests.sample import ALL
from tests.services.capture import Record as Placed

START_MS = 1_767_600_000_000
STEP_MS = 20_000  # between two events: what a tool sends again comes much sooner
SHOP = "shop"
_FORMATS = list(TOOLS)


@dataclass(frozen=True)
class Said:
    """A statement that the log has.

    :param table: the table that the tool names with it.
    :param columns: CREATE TABLE text of that table's structure afterwards, empty where it is gone.
    :param kind: what the tool calls it, None for what the text begins with.
    """

    statement: str
    table: str
    columns: str = ""
    kind: str | None = None


@dataclass(frozen=True)
class Put:
    """A row that the log has: an insert, unless it has the row before too."""

    table: str
    columns: str
    row: Mapping[str, Any] | None
    before: Mapping[str, Any] | None = None


Story = Sequence[Said | Put]
Outcome = dict[str, tuple[str, str, Counter[tuple[Any, ...]] | None]]


def schema_of(create: str) -> TableSchema:
    """Return the structure that a CREATE TABLE states."""
    (table,) = build_timeline([SchemaChange("1", 1, SHOP, create)]).tables.values()
    return table.schema


def messages(format: str, story: Story) -> list[tuple[int, Message]]:
    """Return what a tool writes about a story, each message with its time."""
    writer = TOOLS[format].writer(Style())
    sent = []
    for number, item in enumerate(story, 1):
        what: Row | Ddl
        if isinstance(item, Said):
            schema = schema_of(item.columns) if item.columns else None
            what = Ddl(item.statement, SHOP, item.table, schema, item.kind)
        else:
            op = "insert" if item.before is None else "delete" if item.row is None else "update"
            what = Row(op, SHOP, item.table, schema_of(item.columns), item.before, item.row)
        time = START_MS + STEP_MS * number
        event = Event(number, 7, 100 + 40 * number, time, time + 300, number, what)
        sent += [(time + 300, message) for message in writer.write(event, 1)]
    if hasattr(writer, "rest"):
        sent += [(START_MS + STEP_MS * (len(story) + 1), message) for message in writer.rest()]
    return sent


def cuts(count: int, format: str) -> Iterator[tuple[int, ...]]:
    """Yield after which records batches end: one batch, two, one for each record.

    Where two batches meet is anywhere; without CDC_SEEDS=2 at every fifth place, each format at others than the next.
    """
    yield (count,)
    shift = 0 if ALL else _FORMATS.index(format)
    yield from ((first, count) for first in range(1, count) if ALL or (first + shift) % 5 == 0)
    yield tuple(range(1, count + 1))


def outcomes(format: str, story: Story, log: Log, lake: Path, **pipeline: Any) -> dict[tuple[int, ...], Outcome]:
    """Return how each cut ends: state, reason and rows of each table that is not dropped."""
    sent = messages(format, story)
    return {
        cut: _outcome(format, sent, cut, log, lake / "-".join(map(str, cut)), pipeline)
        for cut in cuts(len(sent), format)
    }


def script_of(format: str, log: Log, root: Path, **pipeline: Any) -> Script:
    """Return an empty pipeline of a format."""
    for records in log.partitions.values():
        records.clear()
    tool = TOOLS[format]
    return Script(log, root, format, tool.schema_topic and f"{PREFIX}.schema", dict(tool.options), **pipeline)


def _outcome(
    format: str,
    sent: Sequence[tuple[int, Message]],
    cut: Sequence[int],
    log: Log,
    root: Path,
    pipeline: Mapping[str, Any],
) -> Outcome:
    script = script_of(format, log, root, **pipeline)
    placed: list[Placed] = []
    offsets: Counter[str] = Counter()
    for time, message in sent:
        topic = f"{PREFIX}.{message.topic}"
        script.send(Record(topic, 0, time, message.key, message.value, message.headers))
        placed.append(Placed(topic, 0, offsets[topic], time, message.key, message.value, message.headers))
        offsets[topic] += 1
    wire = open_format(format, TOOLS[format].options)
    for count in cut:
        ends = {(topic, 0): 0 for topic in offsets}
        for record in placed[:count]:
            ends[record.topic, 0] = record.offset + 1
        script.sync(between_groups(ends, placed, wire))
    return ending(script)


def ending(script: Script) -> Outcome:
    """Return state, reason and rows of each table that is not dropped."""
    return {
        state.table: (str(state.state), state.reason, script.rows(state.database, state.table))
        for state in script.states.values()
        if state.state != "dropped"
    }
