# SPDX-License-Identifier: Apache-2.0
"""Translate the model's events to the neutral ones that the writers of tests/cross_format take."""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from itertools import groupby
from typing import Any

from airflow_provider_cdc.core.model import schema as model
from tests.cross_format import events as neutral
from tests.cross_format.canal_protobuf_writer import together
from tests.histories.flaws import FILTERED, as_written, unfiltered
from tests.histories.kinds import FRACTIONAL, Kind, moment_text, time_text
from tests.histories.records import Record, Sending, Unit
from tests.histories.source import (
    Column,
    DdlEvent,
    Event,
    Name,
    Row,
    RowEvent,
    Source,
    Statement,
    Structure,
    TruncateEvent,
    create_text,
    full,
    quoted,
)
from tests.histories.tools import PREFIX, Style, Tool

START = 1_700_000_000  # seconds since 1970 at which histories begin
REPLAYED_MS = 15_000  # of the tool's clock, before somebody sends an old record again
EVENT_ROWS = 8  # of one event in the source's log


@dataclass
class Writer:
    """Turns statements into units; all chance comes from ``rnd``, that of repeats from ``again``."""

    tool: Tool
    style: Style
    rnd: random.Random
    again: random.Random
    source: Source = field(default_factory=Source)

    def __post_init__(self) -> None:
        self._writer = self.tool.writer(self.style)
        self._file, self._pos, self._second = self.style.file, 4, START
        self._number = self._transaction = 0
        self._millis = START * 1000 + 500  # the tool's clock
        self._schemas: dict[Structure, model.TableSchema] = {}
        self._written: dict[int, list[Record]] = {}  # by the number of a unit's first event, as it was sent first

    def units(self, statements: Sequence[Statement]) -> Iterator[Unit]:
        """Return everything that the tool sends."""
        for statement in statements[: self.style.snapshot_after]:
            self.source.run(statement)
        self.source.forget()
        yield from self._snapshot()
        for number, statement in enumerate(statements[self.style.snapshot_after :], self.style.snapshot_after):
            if number in self.style.log_restarts:
                self._begin_log()
            events = as_written(self.source.run(statement), self.style.flaws, self.rnd)
            if not events:
                continue
            self._transaction += 1
            self._second += self.rnd.choice((0, 0, 1, 7))
            # a new log shows by a fall of two files: its first record is in the file that it begins with
            if self.rnd.random() < 0.06 and self._pos != 4:
                self._file, self._pos = self._file + 1, 4
            units = [self._unit(list(group)) for _, group in groupby(self._placed(events), lambda event: event.number)]
            units[-1].picture = self.source.picture()
            yield from units

    def _begin_log(self) -> None:
        """Go on with another server, or a task whose numbers begin again."""
        self._file, self._pos, self._number = max(1, self._file - self.rnd.randint(2, 4)), 4, 0
        seconds = self.rnd.randint(2, 60)
        self._second, self._millis = self._second + seconds, self._millis + seconds * 1000

    def _snapshot(self) -> Iterator[Unit]:
        """Return the full phase: what is there when the tool starts."""
        picture, units = self.source.picture(), []
        for name, content in picture.tables.items():
            structure = unfiltered(content.structure) if FILTERED in self.style.flaws else content.structure
            schema = self._schema(structure)
            create = neutral.Ddl(create_text(name, content.structure), *name, None, "CREATE", initial=True)
            rows = [neutral.Row("init", *name, schema, None, _image(structure, row)) for row in content.rows]
            for what in (create, *rows):
                self._number += 1
                event = neutral.Event(self._number, self._file, self._pos, self._second * 1000, 0, 0, what)
                units.append(self._unit([event]))
        if units:
            units[-1].picture = picture
        yield from units

    def _placed(self, events: Sequence[Event]) -> Iterator[neutral.Event]:
        """Give the events of a statement their places."""
        size, shared = 0, self.tool.packets or self.style.rows > 1
        for event in events:
            if size == 0 or not shared:
                self._number += 1
                self._pos += self.rnd.randint(40, 900)
                size = self.rnd.randint(1, EVENT_ROWS)
            size -= 1
            millis = self._second * 1000
            yield neutral.Event(self._number, self._file, self._pos, millis, 0, self._transaction, self._what(event))

    def _unit(self, events: list[neutral.Event]) -> Unit:
        what = [event.what for event in events]
        keyless = any(isinstance(row, neutral.Row) and not row.schema.key for row in what)
        repeatable = not (self.tool.by_clock and keyless)
        return Unit(lambda why: self._records(events, why), repeatable, second=self._second)

    def _records(self, events: Sequence[neutral.Event], why: Sending) -> list[Record]:
        partitions = self.style.partitions
        if why is Sending.ANYWHERE and self.tool.by_clock:
            self._millis += REPLAYED_MS
            if self.again.random() < 0.5:  # somebody copies the records; else the tool makes them again
                copied = (replace(record, time=self._millis) for record in self._written[events[0].number])
                return [self._anywhere(record) for record in copied]
        if why is Sending.ANYWHERE:
            partitions = self.again.randint(1, partitions)  # where rows go follows from how many partitions there are
        written: list[tuple[neutral.Event, neutral.Message]] = []
        for event in events:
            if self.rnd.random() >= self.style.ties:
                self._millis += self.rnd.randint(1, 50)
            sent = replace(event, sent_ms=self._millis)
            written += [(event, message) for message in self._writer.write(sent, partitions)]
        if isinstance(self._writer, neutral.Waiting):
            written += [(events[-1], message) for message in self._writer.rest()]
        records = [self._record(event, message) for event, message in written]
        if self.tool.packets:
            records = _packed(records)
        if why is Sending.ANYWHERE and not self.tool.numbers_records:
            records = [self._anywhere(record) for record in records]
        self._written.setdefault(events[0].number, records)
        return records

    def _record(self, event: neutral.Event, message: neutral.Message) -> Record:
        topic = f"{PREFIX}.{message.topic}"
        if self.style.topic_per_table and message.topic == "rows":
            name = f"{event.what.database}_{event.what.table}"
            topic = re.sub(r"[^a-z0-9._-]", "_", name.lower())
        # the load is read at one moment: a tool that is done with it later would show changes that it may have
        is_loaded = isinstance(event.what, neutral.Row) and event.what.op == "init"
        millis = event.time_ms - 1 if is_loaded else self._millis
        return Record(topic, message.partition, millis, message.key, message.value, message.headers)

    def _anywhere(self, record: Record) -> Record:
        if record.topic == self.tool.schema_topic:
            return record
        return replace(record, partition=self.again.randrange(self.style.partitions))

    def _what(self, event: Event) -> neutral.Row | neutral.Ddl:
        if isinstance(event, RowEvent):
            op = {"c": "insert", "u": "update", "k": "update", "d": "delete"}[event.op]
            rows = self._partial(event) if self.style.minimal else (event.before, event.after)
            images = (_image(event.structure, row) for row in rows)
            return neutral.Row(op, *event.name, self._schema(event.structure), *images)
        if isinstance(event, TruncateEvent):
            return neutral.Ddl(f"TRUNCATE TABLE {full(event.name)}", *event.name, None, "TRUNCATE")
        return neutral.Ddl(self._statement(event), *event.name, None, event.kind)

    def _partial(self, event: RowEvent) -> tuple[Row | None, Row | None]:
        """Return the images as a server writes them that leaves out what nobody needs."""
        before, after, structure, what = event.before, event.after, event.structure, self.tool.partial
        if not structure.key and what == "changes":
            return before, after
        key = set(structure.key)
        if before is None:
            assert after is not None
            needless = {column.name for column in structure.columns if _has_default(column, after)} - key
            needless = (
                set() if needless == set(after) else needless
            )  # INSERT () VALUES () has an image like that of no row
            return None, _part(after, after.keys() - (needless if what != "changes" else set()))
        identifying = key or set(before)  # without a key the whole row identifies it
        if after is None:
            return _part(before, identifying if what != "changes" else set(before)), None
        changed = {name for name in after if after[name] != before[name]}
        if what == "changes":
            return _part(before, key | changed), _part(after, key | changed)
        return _part(before, identifying), _part(after, changed)

    def _statement(self, event: DdlEvent) -> str:
        text = event.statement
        if self.tool.qualifies:
            text = text.replace(f"CREATE TABLE {quoted(event.name[1])} (", f"CREATE TABLE {full(event.name)} (", 1)
        return text

    def _schema(self, structure: Structure) -> model.TableSchema:
        if structure not in self._schemas:
            self._schemas[structure] = table_schema(structure)
        return self._schemas[structure]


def table_schema(structure: Structure) -> model.TableSchema:
    """Return a structure in the words of the neutral events."""
    columns = tuple(
        model.Column(number, column.name, _type(column.kind), column.nullable)
        for number, column in enumerate(structure.columns, 1)
    )
    ids = {column.name: column.id for column in columns}
    return model.TableSchema(columns, tuple(ids[name] for name in structure.key))


def _type(kind: Kind) -> model.ColumnType:
    length = None if kind.name in FRACTIONAL and not kind.length else kind.length
    return model.ColumnType(kind.name, length, kind.scale, kind.unsigned, kind.labels)


def _image(structure: Structure, row: Row | None) -> neutral.Image | None:
    if row is None:
        return None
    return {column.name: _value(column.kind, row[column.name]) for column in structure.columns if column.name in row}


def _part(row: Row, names: Collection[str]) -> Row:
    return {name: value for name, value in row.items() if name in names}


def _has_default(column: Column, row: Row) -> bool:
    """Return whether a row's value is what its INSERT need not name, and the log states for certain."""
    uncertain = column.kind.name == "timestamp" if column.has_default else not column.nullable
    return not uncertain and row[column.name] == column.absent()


def _value(kind: Kind, value: Any) -> neutral.Value:
    """Return a value as neutral events have it: moments, times and dates as MySQL prints them."""
    if value is None:
        return None
    if kind.name == "date":
        return str(date(1970, 1, 1) + timedelta(days=value))
    if kind.name in ("datetime", "timestamp"):
        return moment_text(value, kind.length or 0, " ")
    if kind.name == "time":
        return time_text(value, kind.length or 0)
    return value


def _packed(records: Sequence[Record]) -> list[Record]:
    """Return packets of one partition as one, in the order of partitions."""
    packets: dict[tuple[str, int], list[Record]] = {}
    for record in records:
        packets.setdefault((record.topic, record.partition), []).append(record)
    packed = []
    for group in packets.values():
        messages = [neutral.Message(record.partition, None, record.value) for record in group]
        packed.append(replace(group[0], value=together(messages).value))
    return packed


def creates(statements: Sequence[Statement]) -> dict[str, dict[str, str]]:
    """Return the ``tables`` of a pipeline whose tool sends no CREATE TABLE."""
    source, pictures = Source(), {}
    for statement in statements:
        for event in source.run(statement):
            if isinstance(event, DdlEvent) and event.kind == "CREATE":
                pictures[_dotted(event.name)] = {"create": event.statement}
    return pictures


def _dotted(name: Name) -> str:
    return ".".join(name)
