"""The bench's source: a deterministic MySQL workload as Debezium writes it, and what its tables must hold at the end.

A change is an insert (30 %), an update (58 %), a delete (8 %, with its tombstone) or the return of a deleted key
(4 %), so that keys are about 30 % of the changes. The structure of the tables is written by hand below in three forms
(DDL, embedded schema, Arrow), none derived from the code under measurement.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

SERVER = "bench"
DATABASE = "shop"
SCHEMA_TOPIC = SERVER
DATA_TOPICS = rf"{SERVER}\.{DATABASE}\..*"
ONE_TOPIC = f"{SERVER}.{DATABASE}.all"

START = 1_780_000_000  # seconds since the epoch of the first change
_POOL = 4096  # distinct values of a column that has no number of its own in it
_WORDS = [
    *("order", "parcel", "café", "storage", "Łódź", "market", '"quoted"', "back\\slash", "street", "corner", "東京"),
    *("north", "green", "line", "winter", "river"),
]

_DDL = """\
CREATE TABLE `{table}` (
  `id` bigint(20) NOT NULL,
  `customer` varchar(64) NOT NULL,
  `email` varchar(120) DEFAULT NULL,
  `street` varchar(120) NOT NULL,
  `note` varchar(255) NOT NULL,
  `amount` decimal(12,2) NOT NULL,
  `quantity` int(11) NOT NULL,
  `created` datetime NOT NULL,
  `weight` double DEFAULT NULL,
  `due` date DEFAULT NULL,
  `status` tinyint(4) NOT NULL,
  `updated` timestamp NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"""

# name, JDBC type, type, length, scale, optional: what `tableChanges` says of the columns
_COLUMNS: list[tuple[str, int, str, int | None, int | None, bool]] = [
    ("id", -5, "BIGINT", 20, None, False),
    ("customer", 12, "VARCHAR", 64, None, False),
    ("email", 12, "VARCHAR", 120, None, True),
    ("street", 12, "VARCHAR", 120, None, False),
    ("note", 12, "VARCHAR", 255, None, False),
    ("amount", 3, "DECIMAL", 12, 2, False),
    ("quantity", 4, "INT", 11, None, False),
    ("created", 93, "DATETIME", None, None, False),
    ("weight", 8, "DOUBLE", None, None, True),
    ("due", 91, "DATE", None, None, True),
    ("status", 5, "TINYINT", 4, None, False),
    ("updated", 2014, "TIMESTAMP", None, None, False),
]

EXPECTED = pa.schema(
    [
        ("id", pa.int64()),
        ("customer", pa.string()),
        ("email", pa.string()),
        ("street", pa.string()),
        ("note", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("quantity", pa.int32()),
        ("created", pa.timestamp("us")),
        ("weight", pa.float64()),
        ("due", pa.date32()),
        ("status", pa.int8()),
        ("updated", pa.timestamp("us", "UTC")),
    ]
)


def _field(field: str, kind: str, optional: bool = False, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "optional": optional, **more, "field": field}


_DECIMAL = {
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2", "connect.decimal.precision": "12"},
}
_ROW_FIELDS = [
    _field("id", "int64"),
    _field("customer", "string"),
    _field("email", "string", True),
    _field("street", "string"),
    _field("note", "string"),
    _field("amount", "bytes", **_DECIMAL),
    _field("quantity", "int32"),
    _field("created", "int64", name="io.debezium.time.Timestamp", version=1),
    _field("weight", "double", True),
    _field("due", "int32", True, name="io.debezium.time.Date", version=1),
    _field("status", "int16"),
    _field("updated", "string", name="io.debezium.time.ZonedTimestamp", version=1),
]
_SNAPSHOT = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
_SOURCE_FIELDS = [
    _field("version", "string"),
    _field("connector", "string"),
    _field("name", "string"),
    _field("ts_ms", "int64"),
    {
        **_field("snapshot", "string", True, name="io.debezium.data.Enum", version=1),
        "parameters": {"allowed": _SNAPSHOT},
        "default": "false",
    },
    _field("db", "string"),
    _field("sequence", "string", True),
    _field("ts_us", "int64", True),
    _field("ts_ns", "int64", True),
    _field("table", "string", True),
    _field("server_id", "int64"),
    _field("gtid", "string", True),
    _field("file", "string"),
    _field("pos", "int64"),
    _field("row", "int32"),
    _field("thread", "int64", True),
    _field("query", "string", True),
]
_BLOCK_FIELDS = [_field("id", "string"), _field("total_order", "int64"), _field("data_collection_order", "int64")]
_SOURCE_NAME = "io.debezium.connector.mysql.Source"


class Record(NamedTuple):
    """One record for the broker."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass
class _Table:
    """One table's rows by key as (image, values); `keys` allows drawing one of them."""

    name: str
    topic: str
    key_head: str
    head: str
    rows: dict[int, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)
    keys: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    next_key: int = 1


class Feed:
    """A source database whose changes come in batches; the same arguments always give the same bytes.

    tables: how many tables the changes are spread over.
    embedded: whether records carry their schema, as Debezium's JSON converter does unless told otherwise.
    one_topic: whether all tables share one topic (by Debezium's topic routing); else each has its own.
    partitions: of each data topic.
    """

    def __init__(
        self, tables: int = 1, embedded: bool = True, one_topic: bool = False, partitions: int = 1, seed: int = 20
    ) -> None:
        self._random = random.Random(seed)
        self.embedded, self.partitions = embedded, partitions
        self._tables = [self._table(f"orders_{number:04d}", one_topic) for number in range(1, tables + 1)]
        self.topics = dict.fromkeys((table.topic for table in self._tables), partitions)
        self._place = self._changes = 0
        self._fill_pools()

    def _table(self, name: str, one_topic: bool) -> _Table:
        head, key_head = "", ""
        if self.embedded:
            prefix = f"{SERVER}.{DATABASE}.{name}"
            head = f'{{"schema":{_compact(_envelope_schema(prefix))},"payload":'
            key = {"type": "struct", "fields": [_field("id", "int64")], "optional": False, "name": f"{prefix}.Key"}
            key_head = f'{{"schema":{_compact(key)},"payload":'
        return _Table(name, ONE_TOPIC if one_topic else f"{SERVER}.{DATABASE}.{name}", key_head, head)

    def _fill_pools(self) -> None:
        draw = self._random

        def words(count: int) -> list[tuple[str, str]]:
            texts = (" ".join(draw.choices(_WORDS, k=count)) + f" {draw.randrange(10**6)}" for _ in range(_POOL))
            return [(text, json.dumps(text, ensure_ascii=False)) for text in texts]

        self._streets, self._notes = words(4), words(8)
        self._emails: list[tuple[str | None, str]] = [
            (None, "null") if not n % 16 else (f"user{n}@mail{n % 7}.example", f'"user{n}@mail{n % 7}.example"')
            for n in range(_POOL)
        ]
        # not negative, as amounts mostly are: the hand-written job may read them with Spark's plain `conv`
        self._amounts = [(cents, _decimal_text(cents)) for cents in (draw.randrange(10**9) for _ in range(_POOL))]
        self._weights = [None if not n % 16 else round(draw.uniform(0, 1000), 3) for n in range(_POOL)]

    @property
    def table_names(self) -> list[str]:
        return [table.name for table in self._tables]

    def schema_records(self) -> Iterator[Record]:
        """The records of the schema topic: every table's creation, as a snapshot tells it."""
        for number, table in enumerate(self._tables):
            yield Record(SCHEMA_TOPIC, 0, b'{"databaseName":"shop"}', _creation(table.name, number))

    def batch(self, changes: int) -> Iterator[Record]:
        """The records of the next changes; tombstones come on top of their number."""
        draw, bits, tables = self._random.random, self._random.getrandbits, self._tables
        count = len(tables)
        for _ in range(changes):
            table = tables[int(draw() * count)] if count > 1 else tables[0]
            kind = draw()
            self._changes += 1
            number = self._changes
            rows, keys = table.rows, table.keys
            if kind < 0.58 and keys:
                key = keys[int(draw() * len(keys))]
                before, old = rows[key]
                after = self._updated(old, number, bits)
                op = "u"
                rows[key] = after
            elif kind < 0.66 and keys:
                place = int(draw() * len(keys))
                key = keys[place]
                keys[place] = keys[-1]
                keys.pop()
                before, after, op = rows.pop(key)[0], None, "d"
                table.gone.append(key)
            else:
                if kind < 0.70 and table.gone:
                    key = table.gone.pop(int(draw() * len(table.gone)))
                else:
                    key = table.next_key
                    table.next_key += 1
                before, after, op = "null", self._inserted(key, number, bits), "c"
                rows[key] = after
                keys.append(key)
            yield from self._records(table, key, op, before, "null" if after is None else after[0], number)

    def _records(self, table: _Table, key: int, op: str, before: str, after: str, number: int) -> Iterator[Record]:
        # an event of the log holds up to three rows
        if number % 3 == 0:
            self._place += 900
        file, pos = self._place // 100_000_000 + 1, self._place % 100_000_000 + 4
        ms = (START + number // 200) * 1000
        source = (
            f'{{"version":"3.1.2.Final","connector":"mysql","name":"{SERVER}","ts_ms":{ms},"snapshot":"false",'
            f'"db":"{DATABASE}","sequence":null,"ts_us":{ms}000,"ts_ns":{ms}000000,"table":"{table.name}","server_id":4711,'
            f'"gtid":null,"file":"mysql-bin.{file:06d}","pos":{pos},"row":{number % 3},"thread":17,"query":null}}'
        )
        payload = (
            f'{{"before":{before},"after":{after},"source":{source},"transaction":null,"op":"{op}",'
            f'"ts_ms":{ms + 250},"ts_us":{ms + 250}000,"ts_ns":{ms + 250}000000}}'
        )
        end = "}" if table.head else ""
        raw_key = f'{table.key_head}{{"id":{key}}}{end}'.encode()
        partition = key * 2654435761 % 4294967296 * self.partitions >> 32
        yield Record(table.topic, partition, raw_key, f"{table.head}{payload}{end}".encode())
        if op == "d":
            yield Record(table.topic, partition, raw_key, None)

    def _inserted(self, key: int, number: int, bits: Any) -> tuple[str, tuple[Any, ...]]:
        draw = bits(48)
        seconds = START + number // 200
        email, street, note = (
            self._emails[draw & 4095],
            self._streets[draw >> 12 & 4095],
            self._notes[draw >> 24 & 4095],
        )
        due = None if not draw % 13 else 20_000 + draw % 1000
        return self._image(
            (
                key,
                f"customer {key}",
                email,
                street,
                (note, number),
                self._amounts[draw >> 36],
                draw % 5000,
                (seconds - draw % 90_000) * 1000,
                self._weights[draw >> 20 & 4095],
                due,
                draw % 7,
                seconds,
            )
        )

    def _updated(self, old: tuple[Any, ...], number: int, bits: Any) -> tuple[str, tuple[Any, ...]]:
        draw = bits(36)
        note, amount = self._notes[draw & 4095], self._amounts[draw >> 12 & 4095]
        return self._image((*old[:4], (note, number), amount, draw % 5000, *old[7:10], draw % 7, START + number // 200))

    def _image(self, row: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
        key, customer, email, street, (note, number), amount, quantity, created, weight, due, status, updated = row
        return (
            f'{{"id":{key},"customer":"{customer}","email":{email[1]},"street":{street[1]},'
            f'"note":{note[1][:-1]} v{number}","amount":"{amount[1]}","quantity":{quantity},"created":{created},'
            f'"weight":{"null" if weight is None else weight},"due":{"null" if due is None else due},'
            f'"status":{status},"updated":"{_zoned(updated)}"}}'
        ), row

    def expected(self) -> dict[str, pa.Table]:
        """Every table's rows now, by key."""
        return {table.name: _rows(table) for table in self._tables}


def _rows(table: _Table) -> pa.Table:
    rows = [table.rows[key][1] for key in sorted(table.rows)]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(EXPECTED)
    microseconds = {
        7: [ms * 1000 for ms in columns[7]],
        11: [seconds * 1_000_000 for seconds in columns[11]],
    }
    arrays = []
    for place, kind in enumerate(EXPECTED):
        values: Any = columns[place]
        if place in (2, 3):
            values = [text for text, _ in values]
        elif place == 4:
            values = [f"{text} v{number}" for (text, _), number in values]
        elif place == 5:
            values = [Decimal(cents).scaleb(-2) for cents, _ in values]
        if place in microseconds:
            arrays.append(pa.array(microseconds[place], pa.int64()).cast(kind.type))
        elif place == 9:
            arrays.append(pa.array(values, pa.int32()).cast(kind.type))
        else:
            arrays.append(pa.array(values, kind.type))
    return pa.Table.from_arrays(arrays, schema=EXPECTED)


def differences(expected: pa.Table, found: pa.Table) -> str:
    """Say how two tables differ cell by cell, empty if they do not; the found one may be in any order.

    found: its columns may have wider types that hold the same values.
    """
    if sorted(found.column_names) != sorted(expected.column_names):
        return f"columns {found.column_names}"
    if found.num_rows != expected.num_rows:
        return f"{found.num_rows} rows instead of {expected.num_rows}"
    found = found.select(expected.column_names).cast(expected.schema).sort_by("id")
    wrong = [name for name in expected.column_names if not found.column(name).equals(expected.column(name))]
    return f"other values in {', '.join(wrong)}" if wrong else ""


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _envelope_schema(prefix: str) -> dict[str, Any]:
    image = {"type": "struct", "fields": _ROW_FIELDS, "optional": True, "name": f"{prefix}.Value"}
    source = {"type": "struct", "fields": _SOURCE_FIELDS, "optional": False, "name": _SOURCE_NAME, "version": 1}
    block = {"type": "struct", "fields": _BLOCK_FIELDS, "optional": True, "name": "event.block", "version": 1}
    fields = [
        {**image, "field": "before"},
        {**image, "field": "after"},
        {**source, "field": "source"},
        {**block, "field": "transaction"},
        _field("op", "string"),
        *(_field(name, "int64", True) for name in ("ts_ms", "ts_us", "ts_ns")),
    ]
    return {"type": "struct", "fields": fields, "optional": False, "name": f"{prefix}.Envelope", "version": 2}


def _creation(table: str, number: int) -> bytes:
    ms = START * 1000 - 60_000 + number
    source = {
        "version": "3.1.2.Final", "connector": "mysql", "name": SERVER, "ts_ms": ms, "snapshot": "true", "db": DATABASE,
        "sequence": None, "ts_us": ms * 1000, "ts_ns": ms * 1_000_000, "table": table, "server_id": 0, "gtid": None,
        "file": "mysql-bin.000001", "pos": 4, "row": 0, "thread": None, "query": None,
    }  # fmt: skip
    columns = [
        {
            "name": name, "jdbcType": jdbc, "nativeType": None, "typeName": kind, "typeExpression": kind,
            "charsetName": "utf8mb4" if kind == "VARCHAR" else None, "length": length, "scale": scale,
            "position": place, "optional": optional, "autoIncremented": False, "generated": False, "comment": None,
            "defaultValueExpression": None, "enumValues": None,
        }
        for place, (name, jdbc, kind, length, scale, optional) in enumerate(_COLUMNS, 1)
    ]  # fmt: skip
    structure = {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": ["id"], "columns": columns, "comment": None}
    payload = {
        "source": source,
        "ts_ms": ms + 5,
        "databaseName": DATABASE,
        "schemaName": None,
        "ddl": _DDL.format(table=table),
        "tableChanges": [{"type": "CREATE", "id": f'"{DATABASE}"."{table}"', "table": structure}],
    }
    return _compact(payload).encode()


def _decimal_text(cents: int) -> str:
    return base64.b64encode(cents.to_bytes(cents.bit_length() // 8 + 1, "big", signed=True)).decode()


_ZONED: dict[int, str] = {}


def _zoned(seconds: int) -> str:
    text = _ZONED.get(seconds)
    if text is None:
        text = _ZONED[seconds] = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return text


def produce(bootstrap: str, records: Iterator[Record]) -> tuple[int, int]:
    """Send records in their order of each partition; returns their number and the bytes of their values."""
    from confluent_kafka import Producer

    failed: list[str] = []

    def told(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(str(error))

    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 200_000,
            "queue.buffering.max.kbytes": 256 << 10,
            "enable.idempotence": True,
            "delivery.report.only.error": True,
            "log_level": 3,
        }
    )
    count = size = 0
    for topic, partition, key, value, headers in records:
        while True:
            try:
                producer.produce(topic, value, key, partition, on_delivery=told, headers=list(headers))
                break
            except BufferError:
                producer.poll(0.1)
        count += 1
        size += len(value or b"")
        if not count & 1023:
            producer.poll(0)
    left = producer.flush(120)
    if left or failed:
        raise RuntimeError(f"{left + len(failed)} records were not taken by the broker: {failed[:1]}")
    return count, size
