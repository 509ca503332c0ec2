# SPDX-License-Identifier: Apache-2.0
"""A history as Debezium sends it: which records, and in which order.

What is followed: row envelope and ``source`` of 2.7 and later, a key change as delete, tombstone and insert, tombstones
also for tables without key, schema changes with ``tableChanges`` and several records of one split statement at one
place, TRUNCATE only as a row record, a snapshot whose schema and row records all have one place, heartbeats,
transaction marks.
"""

from __future__ import annotations

import random
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from tests.histories.connect_json import (
    SCHEMA_CHANGE,
    SCHEMA_KEY,
    converted,
    envelope_schema,
    key_schema,
    wired,
    wired_row,
)
from tests.histories.flaws import FILTERED, TWO_WORDS, TYPED_NAMES, as_written, unfiltered
from tests.histories.records import Record, Sending, Unit
from tests.histories.row_statements import Delete, Insert, ShiftKey, Update
from tests.histories.source import (
    DdlEvent,
    Event,
    Name,
    Picture,
    RowEvent,
    Source,
    Statement,
    Structure,
    TableChange,
    TruncateEvent,
    create_text,
    full,
    quoted,
)
from tests.histories.table_changes import table_change
from tests.histories.tools import PREFIX, Style

HEARTBEAT = f"__debezium-heartbeat.{PREFIX}"
TRANSACTION = f"{PREFIX}.transaction"
_ONE_PARTITION = (PREFIX, HEARTBEAT, TRANSACTION)
START = 1_700_000_000  # seconds since 1970 at which histories begin


@dataclass
class _Place:
    file: int
    pos: int
    second: int
    gtid: int = 0


@dataclass
class DebeziumWriter:
    """Turns statements into units; all chance comes from ``rnd``, that of repeats from ``again``."""

    style: Style
    rnd: random.Random
    again: random.Random
    source: Source = field(default_factory=Source)

    def __post_init__(self) -> None:
        self._at = _Place(self.style.file, 4, START)
        self._clock = 0  # milliseconds
        self._orders = Counter[Name]()  # changes of the transaction by table

    def units(self, statements: Sequence[Statement]) -> Iterator[Unit]:
        """Return everything the connector sends."""
        for statement in statements[: self.style.snapshot_after]:
            self.source.run(statement)
        self.source.forget()
        if self.style.snapshot_dies:
            units = list(self._snapshot())
            dead = units[: self.rnd.randrange(len(units))]
            yield from (replace(unit, repeatable=False, picture=None) for unit in dead)
            self._at.second += 1
        yield from self._snapshot()
        for number in range(self.style.snapshot_after, len(statements)):
            if number in self.style.log_restarts:
                self._begin_log()
            if number == self.style.missed[0] < self.style.missed[1]:
                yield from self._miss(statements[slice(*self.style.missed)])
            if number not in range(*self.style.missed):
                yield from self._statement(statements[number])

    def _miss(self, statements: Sequence[Statement]) -> Iterator[Unit]:
        """Let the source carry out statements while the connector is away, which then takes a new full snapshot.

        DDL, and what leaves a table without rows, does not happen: no row of the snapshot shows it.
        """
        seen = deepcopy(self.source.tables)
        for statement in (*statements, *(Delete(name, (self.rnd.randrange(100),)) for name in seen)):
            before = deepcopy(self.source.tables)
            if isinstance(statement, Insert | Update | ShiftKey | Delete):
                self.source.run(statement)
            if any(before[name].rows and not table.rows for name, table in self.source.tables.items()):
                self.source.tables = before
        for name, table in self.source.tables.items():
            if table.rows:
                table.restate(seen[name])
        self._advance()
        first, *others = self._snapshot()
        yield replace(first, begins=True)
        yield from others

    def _statement(self, statement: Statement) -> Iterator[Unit]:
        events = as_written(self.source.run(statement), self.style.flaws, self.rnd)
        if not events:
            return
        self._advance()
        units = list(self._events(events))
        units[-1].picture = self.source.picture()
        yield from units
        if self.style.heartbeats and self.rnd.random() < 0.2:
            time = self._millis()
            key, value = converted({"serverName": PREFIX}, None), converted({"ts_ms": time}, None)
            yield self._unit([Record(HEARTBEAT, 0, time, key, value)], picture=units[-1].picture)

    def _begin_log(self) -> None:
        """Go on with another server, or after a reset: its files have numbers of their own."""
        at = self._at
        at.file, at.pos = max(1, at.file - self.rnd.randint(2, 4)), 4
        at.second += self.rnd.randint(2, 60)

    def _advance(self) -> None:
        at = self._at
        at.gtid += 1
        self._orders.clear()
        at.second += self.rnd.choice((0, 0, 1, 7))
        # a new log shows by a fall of two files: its first record is in the file that it begins with
        if self.rnd.random() < 0.06 and at.pos != 4:
            at.file, at.pos = at.file + 1, 4
        at.pos += self.rnd.randint(40, 900)

    def _events(self, events: Sequence[Event]) -> Iterator[Unit]:
        if self.style.transactions:
            yield self._mark("BEGIN", events)
        row, size = 0, self.rnd.randint(1, 8)
        for event in events:
            if row == size:  # the server begins another event of the same statement
                self._at.pos += self.rnd.randint(40, 900)
                row, size = 0, self.rnd.randint(1, 8)
            if isinstance(event, DdlEvent):
                yield from (self._ddl(database, text, changes, event) for database, text, changes in event.records)
            elif isinstance(event, TruncateEvent):
                yield self._truncate(event)
            else:
                yield self._row(event, row)
                row += 1
        if self.style.transactions and isinstance(events[0], RowEvent):
            yield self._mark("END", events)

    def _mark(self, status: str, events: Sequence[Event]) -> Unit:
        time, ended = self._millis(), status == "END"
        mark = f"0-1-{self._at.gtid}"
        value = {
            "status": status,
            "id": mark,
            "event_count": len(events) if ended else None,
            "data_collections": None,
            "ts_ms": time,
        }
        return self._unit([Record(TRANSACTION, 0, time, converted({"id": mark}, None), converted(value, None))])

    def _numbered(self, name: Name) -> dict[str, Any]:
        """Return what ``provide.transaction.metadata`` adds to the next row of a table."""
        self._orders[name] += 1
        total, order = sum(self._orders.values()), self._orders[name]
        return {"id": f"0-1-{self._at.gtid}", "total_order": total, "data_collection_order": order}

    def _millis(self) -> int:
        """Return the connector's clock: somewhat after the event, and never before what it showed last."""
        self._clock = max(self._clock, self._at.second * 1000 + self.rnd.randint(0, 900))
        return self._clock

    def _source(self, database: str, table: str | None, row: int, snapshot: str | None = None) -> dict[str, Any]:
        streamed = None if self.style.snapshot_null else "false"
        at = self._at
        return {
            "version": "3.5.0.Final",
            "connector": "mariadb",
            "name": PREFIX,
            "ts_ms": at.second * 1000,
            "snapshot": snapshot or streamed,
            "db": database,
            "sequence": None,
            "ts_us": at.second * 1_000_000,
            "ts_ns": at.second * 1_000_000_000,
            "table": table,
            "server_id": 0 if snapshot else 1,
            "gtid": None if snapshot else f"0-1-{at.gtid}",
            "file": f"mysql-bin.{at.file:06d}",
            "pos": at.pos,
            "row": row,
            "thread": None,
            "query": None,
        }

    def _snapshot(self) -> Iterator[Unit]:
        picture = self.source.picture()
        names = sorted(picture.tables)
        units = [self._schema_record("", "SET character_set_server=utf8mb4, collation_server=utf8mb4_bin", (), "true")]
        for name in names:
            text = f"DROP TABLE IF EXISTS {full(name)}"
            units.append(self._schema_record(name[0], text, (TableChange("DROP", name, None),), "true"))
        for database in dict.fromkeys(name[0] for name in names):
            for text in (
                "DROP DATABASE IF EXISTS {}",
                "CREATE DATABASE {} CHARSET utf8mb4 COLLATE utf8mb4_bin",
                "USE {}",
            ):
                units.append(self._schema_record(database, text.format(quoted(database)), (), "true"))
            for name in names:
                if name[0] == database:
                    structure = picture.tables[name].structure
                    change = TableChange("CREATE", name, structure)
                    units.append(self._schema_record(database, create_text(name, structure), (change,), "true"))
        # times of Kafka distinguish the rows of this snapshot from those of the one before
        if any(self.style.missed) or self.style.snapshot_dies:
            self._at.second += 1
        for name in names:
            content = picture.tables[name]
            structure = unfiltered(content.structure) if FILTERED in self.style.flaws else content.structure
            for row in content.rows:
                records = [self._image(name, structure, "r", None, row, 0, "true")]
                units.append(self._unit(records, repeatable=bool(structure.key)))
        units[-1].picture = picture
        yield from units

    def _ddl(self, database: str, text: str, changes: Sequence[TableChange], event: DdlEvent) -> Unit:
        if self.rnd.random() < 0.2:
            text = f"/* by a tool */ {text}"
        return self._schema_record(database, text, changes, None)

    def _schema_record(self, database: str, text: str, changes: Sequence[TableChange], snapshot: str | None) -> Unit:
        time = self._millis()
        tables = ",".join(change.name[1] for change in changes) or ("" if not snapshot else None)
        value = {
            "source": self._source(database, tables, 0, snapshot),
            "ts_ms": time,
            "databaseName": database,
            "schemaName": None,
            "ddl": text,
            "tableChanges": [table_change(change, two_words=TWO_WORDS in self.style.flaws) for change in changes],
        }
        schema = SCHEMA_CHANGE if self.style.embedded else None
        key = converted({"databaseName": database}, SCHEMA_KEY if self.style.embedded else None)
        return self._unit([Record(PREFIX, 0, time, key, converted(value, schema))])

    def _truncate(self, event: TruncateEvent) -> Unit:
        return self._unit([self._image(event.name, event.structure, "t", None, None, 0)], drifts=True)

    def _row(self, event: RowEvent, row: int) -> Unit:
        name, structure, keyed = event.name, event.structure, bool(event.structure.key)
        if event.op == "k":
            records = [self._image(name, structure, "d", event.before, None, row)]
            records.append(Record(records[0].topic, records[0].partition, records[0].time, records[0].key, None))
            records.append(self._image(name, structure, "c", None, event.after, row))
        else:
            records = [self._image(name, structure, event.op, event.before, event.after, row)]
            if event.op == "d":
                part = records[0].partition if keyed else self._any_partition()
                records.append(Record(records[0].topic, part, records[0].time, records[0].key, None))
        return self._unit(records, drifts=not keyed)

    def _unit(
        self, records: list[Record], *, repeatable: bool = True, drifts: bool = False, picture: Picture | None = None
    ) -> Unit:
        """Return records as a unit; those without key may land in another partition when they are sent again.

        Records of one key stay together, as whoever writes them chooses the partition by the key.
        """

        def write(why: Sending) -> list[Record]:
            if why is Sending.FIRST or (why is Sending.AGAIN and not drifts) or records[0].topic in _ONE_PARTITION:
                return records
            parts = {record.key: self.again.randrange(self.style.partitions) for record in records}
            return [replace(record, partition=parts[record.key]) for record in records]

        return Unit(write, repeatable, picture=picture)

    def _topic_of(self, name: Name) -> str:
        """Return a table's topic; a TRUNCATE names the table as it was typed, and is in the topic of the rows."""
        return topic_of((name[0].lower(), name[1].lower()) if TYPED_NAMES in self.style.flaws else name)

    def _any_partition(self) -> int:
        return self.rnd.randrange(self.style.partitions)

    def _image(
        self,
        name: Name,
        structure: Structure,
        op: str,
        before: dict | None,
        after: dict | None,
        row: int,
        snapshot: str | None = None,
    ) -> Record:
        time, topic = self._millis(), self._topic_of(name)
        value = {
            "before": None if before is None else wired_row(structure, before),
            "after": None if after is None else wired_row(structure, after),
            "source": self._source(name[0], name[1], row, snapshot),
            "transaction": self._numbered(name) if self.style.transactions and snapshot is None else None,
            "op": op,
            "ts_ms": time,
            "ts_us": time * 1000,
            "ts_ns": time * 1_000_000,
        }
        image = after if before is None else before
        key = None
        if structure.key and image is not None:
            key_values = {part: wired(structure.named(part).kind, image[part]) for part in structure.key}
            key = converted(key_values, key_schema(topic, structure) if self.style.embedded else None)
        schema = envelope_schema(topic, structure) if self.style.embedded else None
        # as a producer does: by hash of the key, without key anywhere
        partition = self._any_partition() if key is None else zlib.crc32(key) % self.style.partitions
        return Record(topic, partition, time, key, converted(value, schema))


def topic_of(name: Name) -> str:
    """Return a table's topic: several tables may share one."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{PREFIX}.{name[0]}.{name[1]}")
