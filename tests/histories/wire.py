"""A history as Debezium's JSON converter writes it, in the order in which the connector produces it.

What is followed: row envelope and ``source`` of 2.7 and later, a key change as delete, tombstone and insert, tombstones
also for tables without key, schema changes with ``tableChanges`` and several records of one split statement at one
place, TRUNCATE only as a row record, a snapshot whose schema and row records all have one place, heartbeats,
transaction marks.
"""

from __future__ import annotations

import base64
import json
import random
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from tests.histories.kinds import BITS, WIDE, Kind, moment_text
from tests.histories.source import (
    Column,
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

PREFIX = "src"
HEARTBEAT = f"__debezium-heartbeat.{PREFIX}"
TRANSACTION = f"{PREFIX}.transaction"
START = 1_700_000_000  # seconds since 1970 at which histories begin


@dataclass(frozen=True)
class Style:
    """How the connector and its converter are set up.

    :param partitions: of every data topic.
    :param embedded: whether records carry their schema.
    :param snapshot_null: streamed rows have ``snapshot`` null instead of "false" (``replace.null.with.default=false``).
    :param snapshot_after: the connector starts after so many statements and takes a snapshot of what is there.
    :param file: number of the first log file.
    """

    partitions: int = 3
    embedded: bool = True
    snapshot_null: bool = False
    transactions: bool = False
    heartbeats: bool = False
    snapshot_after: int = 0
    file: int = 1


@dataclass(frozen=True)
class Record:
    """One Kafka record and where it goes."""

    topic: str
    partition: int
    time: int
    key: bytes | None
    value: bytes | None


@dataclass
class Unit:
    """Records that the connector sends as one: what one row or one DDL record becomes.

    :param repeatable: whether a repeat can be told from a new change: snapshot rows without key share one place.
    :param drifts: whether a repeat may land in another partition (records without key).
    :param picture: what the lake must hold once this and all units before it arrived; None inside a statement.
    """

    records: list[Record]
    repeatable: bool = True
    drifts: bool = False
    picture: Picture | None = None


@dataclass
class _Place:
    file: int
    pos: int
    second: int
    gtid: int = 0


@dataclass
class Writer:
    """Turns statements into units; all chance comes from ``rnd``."""

    style: Style
    rnd: random.Random
    source: Source = field(default_factory=Source)

    def __post_init__(self) -> None:
        self._at = _Place(self.style.file, 4, START)

    def units(self, statements: Sequence[Statement]) -> Iterator[Unit]:
        """Return everything the connector sends."""
        for statement in statements[: self.style.snapshot_after]:
            self.source.run(statement)
        self.source.forget()
        yield from self._snapshot()
        for statement in statements[self.style.snapshot_after :]:
            yield from self._statement(statement)

    def _statement(self, statement: Statement) -> Iterator[Unit]:
        events = self.source.run(statement)
        if not events:
            return
        self._advance()
        units = list(self._events(events))
        units[-1].picture = self.source.picture()
        yield from units
        if self.style.heartbeats and self.rnd.random() < 0.2:
            time = self._millis()
            key, value = self._json({"serverName": PREFIX}, None), self._json({"ts_ms": time}, None)
            yield Unit([Record(HEARTBEAT, 0, time, key, value)], picture=units[-1].picture)

    def _advance(self) -> None:
        at = self._at
        at.gtid += 1
        at.second += self.rnd.choice((0, 0, 1, 7))
        if self.rnd.random() < 0.06:
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
        return Unit([Record(TRANSACTION, 0, time, self._json({"id": mark}, None), self._json(value, None))])

    def _millis(self) -> int:
        """Return the connector's clock: somewhat after the event."""
        return self._at.second * 1000 + self.rnd.randint(0, 900)

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
        for name in names:
            content = picture.tables[name]
            for row in content.rows:
                records = [self._image(name, content.structure, "r", None, row, 0, "true")]
                units.append(Unit(records, repeatable=bool(content.structure.key)))
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
            "tableChanges": [_table_change(change) for change in changes],
        }
        schema = _SCHEMA_CHANGE if self.style.embedded else None
        key = self._json({"databaseName": database}, _SCHEMA_KEY if self.style.embedded else None)
        return Unit([Record(PREFIX, 0, time, key, self._json(value, schema))])

    def _truncate(self, event: TruncateEvent) -> Unit:
        return Unit([self._image(event.name, event.structure, "t", None, None, 0)], drifts=True)

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
        return Unit(records, drifts=not keyed)

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
        time, topic = self._millis(), topic_of(name)
        value = {
            "before": None if before is None else _wired(structure, before),
            "after": None if after is None else _wired(structure, after),
            "source": self._source(name[0], name[1], row, snapshot),
            "transaction": None,
            "op": op,
            "ts_ms": time,
            "ts_us": time * 1000,
            "ts_ns": time * 1_000_000,
        }
        image = after if before is None else before
        key = None
        if structure.key and image is not None:
            given = {part: wired(structure.named(part).kind, image[part]) for part in structure.key}
            key = self._json(given, _key_schema(name, structure) if self.style.embedded else None)
        schema = _envelope(name, structure) if self.style.embedded else None
        # as a producer does: by hash of the key, without key anywhere
        partition = self._any_partition() if key is None else zlib.crc32(key) % self.style.partitions
        return Record(topic, partition, time, key, self._json(value, schema))

    def _json(self, payload: Any, schema: str | None) -> bytes:
        text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
        return (text if schema is None else f'{{"schema":{schema},"payload":{text}}}').encode()


def topic_of(name: Name) -> str:
    """Return a table's topic: several tables may share one."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{PREFIX}.{name[0]}.{name[1]}")


def _wired(structure: Structure, row: dict[str, Any]) -> dict[str, Any]:
    return {column.name: wired(column.kind, row[column.name]) for column in structure.columns}


def wired(kind: Kind, value: Any) -> Any:
    """Return a value as it stands in the JSON."""
    if value is None:
        return None
    if kind.name == "decimal":
        unscaled = int(value.scaleb(kind.scale or 0, context=WIDE))
        return base64.b64encode(unscaled.to_bytes(_signed_size(unscaled), "big", signed=True)).decode()
    if kind.name == "bigint" and kind.unsigned:
        return value - (1 << 64) if value >= 1 << 63 else value
    if kind.name == "bit":
        return (
            bool(value)
            if kind.length == 1
            else base64.b64encode(value.to_bytes((kind.length + 7) // 8, "little")).decode()
        )
    if kind.name == "blob":
        return base64.b64encode(value).decode()
    if kind.name == "datetime":
        return value if (kind.length or 0) > 3 else value // 1000
    if kind.name == "timestamp":
        return moment_text(value, kind.length or 0, "T") + "Z"
    return float(str(np.float32(value))) if kind.name == "float" else value


def _signed_size(number: int) -> int:
    return (number if number >= 0 else ~number).bit_length() // 8 + 1


def _connect(column: Column) -> dict[str, Any]:
    kind = column.kind
    kinds: dict[str, tuple[str, str | None]] = {
        "double": ("double", None),
        "float": ("float", None),
        "varchar": ("string", None),
        "json": ("string", "io.debezium.data.Json"),
        "blob": ("bytes", None),
        "date": ("int32", "io.debezium.time.Date"),
        "time": ("int64", "io.debezium.time.MicroTime"),
        "timestamp": ("string", "io.debezium.time.ZonedTimestamp"),
        "datetime": ("int64", f"io.debezium.time.{'MicroTimestamp' if (kind.length or 0) > 3 else 'Timestamp'}"),
        "enum": ("string", "io.debezium.data.Enum"),
        "decimal": ("bytes", "org.apache.kafka.connect.data.Decimal"),
        "bit": ("boolean", None) if kind.length == 1 else ("bytes", "io.debezium.data.Bits"),
    }
    if kind.name in BITS:
        signed, unsigned = {
            "tinyint": (16, 16),
            "smallint": (16, 32),
            "mediumint": (32, 32),
            "int": (32, 64),
            "bigint": (64, 64),
        }[kind.name]
        kinds[kind.name] = (f"int{unsigned if kind.unsigned else signed}", None)
    name, logical = kinds[kind.name]
    item: dict[str, Any] = {"type": name, "optional": column.nullable}
    if logical is not None:
        item |= {"name": logical, "version": 1}
    if kind.name == "decimal":
        item["parameters"] = {"scale": str(kind.scale or 0), "connect.decimal.precision": str(kind.length)}
    if kind.labels:
        item["parameters"] = {"allowed": ",".join(kind.labels)}
    if logical == "io.debezium.data.Bits":
        item["parameters"] = {"length": str(kind.length)}
    if column.has_default and column.default is not None:
        item["default"] = wired(kind, column.default)
    return {**item, "field": column.name}


def _struct(fields: list[dict[str, Any]], *, optional: bool, name: str, field: str | None = None) -> dict[str, Any]:
    return {
        "type": "struct",
        "fields": fields,
        "optional": optional,
        "name": name,
        **({"field": field} if field else {}),
    }


@lru_cache(maxsize=500)
def _envelope(name: Name, structure: Structure) -> str:
    full_name = topic_of(name)
    fields = [_connect(column) for column in structure.columns]
    source = [
        {"type": kind, "optional": optional, "field": field}
        for field, kind, optional in (
            ("version", "string", False),
            ("connector", "string", False),
            ("name", "string", False),
            ("ts_ms", "int64", False),
            ("snapshot", "string", True),
            ("db", "string", False),
            ("table", "string", True),
            ("file", "string", False),
            ("pos", "int64", False),
            ("row", "int32", False),
        )
    ]
    parts = [
        _struct(fields, optional=True, name=f"{full_name}.Value", field="before"),
        _struct(fields, optional=True, name=f"{full_name}.Value", field="after"),
        _struct(source, optional=False, name="io.debezium.connector.mariadb.Source", field="source"),
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
    ]
    return json.dumps(
        {**_struct(parts, optional=False, name=f"{full_name}.Envelope"), "version": 2}, separators=(",", ":")
    )


@lru_cache(maxsize=500)
def _key_schema(name: Name, structure: Structure) -> str:
    fields = [_connect(structure.named(part)) for part in structure.key]
    return json.dumps(_struct(fields, optional=False, name=f"{topic_of(name)}.Key"), separators=(",", ":"))


_SCHEMA_KEY = json.dumps(
    _struct(
        [{"type": "string", "optional": False, "field": "databaseName"}],
        optional=False,
        name="io.debezium.connector.mariadb.SchemaChangeKey",
    )
)
_SCHEMA_CHANGE = json.dumps(
    _struct(
        [
            {"type": "string", "optional": True, "field": "databaseName"},
            {"type": "string", "optional": True, "field": "ddl"},
        ],
        optional=False,
        name="io.debezium.connector.mariadb.SchemaChangeValue",
    )
)


def _table_change(change: TableChange) -> dict[str, Any]:
    table = None
    if change.structure is not None:
        table = {
            "defaultCharsetName": "utf8mb4",
            "primaryKeyColumnNames": list(change.structure.key),
            "columns": [_column(number, column) for number, column in enumerate(change.structure.columns, 1)],
            "comment": None,
        }
    quoted_parts = [part.replace('"', '""') for part in change.name]
    return {"type": change.type, "id": '"{}"."{}"'.format(*quoted_parts), "table": table}


_JDBC = {
    "tinyint": 5,
    "smallint": 5,
    "mediumint": 4,
    "int": 4,
    "bigint": -5,
    "decimal": 3,
    "varchar": 12,
    "double": 8,
    "float": 6,
}


def _column(number: int, column: Column) -> dict[str, Any]:
    kind = column.kind
    spelled = kind.name.upper() + (" UNSIGNED" if kind.unsigned else "")
    length = 1 if kind.labels else kind.length
    default = None
    if column.has_default and column.default is not None:
        default = kind.literal(column.default).strip("b") if kind.name == "bit" else kind.literal(column.default)
        default = default[1:-1].replace("''", "'") if default[0] == "'" else default
    return {
        "name": column.name,
        "jdbcType": _JDBC.get(kind.name, 1111),
        "nativeType": None,
        "typeName": spelled,
        "typeExpression": spelled,
        "charsetName": "utf8mb4" if kind.name in ("varchar", "enum") else None,
        "length": None if kind.name in ("datetime", "timestamp", "time") and not length else length,
        "scale": kind.scale,
        "position": number,
        "optional": column.nullable,
        "autoIncremented": False,
        "generated": False,
        "comment": None,
        "defaultValueExpression": default,
        "enumValues": [f"'{label.replace(chr(39), chr(39) * 2)}'" for label in kind.labels] or None,
    }
