# SPDX-License-Identifier: Apache-2.0
"""The bench's source: a deterministic MySQL workload as Debezium writes it, and what its tables must hold at the end.

A change is an insert (30 %), an update (58 %), a delete (8 %, with its tombstone) or the return of a deleted key
(4 %), so that keys are about 30 % of the changes.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple

import pyarrow as pa

from tests.bench.structure import (
    DATABASE,
    EXPECTED,
    ONE_TOPIC,
    SCHEMA_TOPIC,
    SERVER,
    START,
    Column,
    alteration,
    creation,
    envelope_schema,
    key_schema,
)

_SCHEMA_KEY = b'{"databaseName":"shop"}'
_POOL = 4096  # distinct values of a column that has no number of its own in it
_WORDS = [
    *("order", "parcel", "café", "storage", "Łódź", "market", '"quoted"', "back\\slash", "street", "corner", "東京"),
    *("north", "green", "line", "winter", "river"),
]


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
    embedded: whether records carry their schema, as Debezium's JSON converter does unless its settings say otherwise.
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
        self._written = self._changes = 0
        self._fill_pools()

    def _table(self, name: str, one_topic: bool) -> _Table:
        head, key_head = "", ""
        if self.embedded:
            prefix = f"{SERVER}.{DATABASE}.{name}"
            head = f'{{"schema":{envelope_schema(prefix)},"payload":'
            key_head = f'{{"schema":{key_schema(prefix)},"payload":'
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
        """Return the records of the schema topic: every table's creation, as a snapshot states it."""
        for number, table in enumerate(self._tables):
            yield Record(SCHEMA_TOPIC, 0, _SCHEMA_KEY, creation(table.name, number))

    def altered(self, statement: str, columns: Sequence[Column]) -> Record:
        """Return the record of an ALTER TABLE of the first table, after all changes so far.

        columns: all that the table has after it.
        """
        self._written += 900
        ms, (file, pos) = (START + self._changes // 200) * 1000, self._position()
        self._written += 900
        return Record(SCHEMA_TOPIC, 0, _SCHEMA_KEY, alteration(self._tables[0].name, statement, columns, ms, file, pos))

    def _position(self) -> tuple[str, int]:
        return f"mysql-bin.{self._written // 100_000_000 + 1:06d}", self._written % 100_000_000 + 4

    def batch(self, changes: int) -> Iterator[Record]:
        """Return the records of the next changes; tombstones come on top of their number."""
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
                index = int(draw() * len(keys))
                key = keys[index]
                keys[index] = keys[-1]
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

    def of_keys(self, kinds: Iterable[tuple[str, int]]) -> Iterator[Record]:
        """Return the records of changes of stated keys of the first table: operation and key of each.

        What a row was before is made up: a table with a key does not depend on it.
        """
        table, bits = self._tables[0], self._random.getrandbits
        for op, key in kinds:
            self._changes += 1
            number = self._changes
            before = "null" if op == "c" else self._inserted(key, number, bits)[0]
            after = None
            if op != "d":
                after = table.rows[key] = self._inserted(key, number, bits)
            yield from self._records(table, key, op, before, "null" if after is None else after[0], number)

    def _records(self, table: _Table, key: int, op: str, before: str, after: str, number: int) -> Iterator[Record]:
        # an event of the log holds up to three rows
        if number % 3 == 0:
            self._written += 900
        file, pos = self._position()
        ms = (START + number // 200) * 1000
        source = (
            f'{{"version":"3.1.2.Final","connector":"mysql","name":"{SERVER}","ts_ms":{ms},"snapshot":"false",'
            f'"db":"{DATABASE}","sequence":null,"ts_us":{ms}000,"ts_ns":{ms}000000,"table":"{table.name}","server_id":4711,'
            f'"gtid":null,"file":"{file}","pos":{pos},"row":{number % 3},"thread":17,"query":null}}'
        )
        payload = (
            f'{{"before":{before},"after":{after},"source":{source},"transaction":null,"op":"{op}",'
            f'"ts_ms":{ms + 250},"ts_us":{ms + 250}000,"ts_ns":{ms + 250}000000}}'
        )
        record = self._record(table, key, payload)
        yield record
        if op == "d":
            yield record._replace(value=None)

    def _record(self, table: _Table, key: int, payload: str) -> Record:
        end = "}" if table.head else ""
        raw_key = f'{table.key_head}{{"id":{key}}}{end}'.encode()
        partition = key * 2654435761 % 4294967296 * self.partitions >> 32
        return Record(table.topic, partition, raw_key, f"{table.head}{payload}{end}".encode())

    def snapshot(self, rows: int) -> Iterator[tuple[Record, int]]:
        """Return the records of an initial snapshot of the first table, each with its row's quantity.

        Rows are not remembered: their number is not bounded by memory.
        """
        table, bits, ms = self._tables[0], self._random.getrandbits, START * 1000
        for key in range(1, rows + 1):
            image, values = self._inserted(key, key, bits)
            source = (
                f'{{"version":"3.1.2.Final","connector":"mysql","name":"{SERVER}","ts_ms":{ms},'
                f'"snapshot":"{"last" if key == rows else "true"}","db":"{DATABASE}","sequence":null,"ts_us":{ms}000,'
                f'"ts_ns":{ms}000000,"table":"{table.name}","server_id":0,"gtid":null,"file":"mysql-bin.000001","pos":4,'
                f'"row":0,"thread":null,"query":null}}'
            )
            payload = (
                f'{{"before":null,"after":{image},"source":{source},"transaction":null,"op":"r",'
                f'"ts_ms":{ms + 250},"ts_us":{ms + 250}000,"ts_ns":{ms + 250}000000}}'
            )
            yield self._record(table, key, payload), values[6]

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
    for index, kind in enumerate(EXPECTED):
        values: Any = columns[index]
        if index in (2, 3):
            values = [text for text, _ in values]
        elif index == 4:
            values = [f"{text} v{number}" for (text, _), number in values]
        elif index == 5:
            values = [Decimal(cents).scaleb(-2) for cents, _ in values]
        if index in microseconds:
            arrays.append(pa.array(microseconds[index], pa.int64()).cast(kind.type))
        elif index == 9:
            arrays.append(pa.array(values, pa.int32()).cast(kind.type))
        else:
            arrays.append(pa.array(values, kind.type))
    return pa.Table.from_arrays(arrays, schema=EXPECTED)


def differences(expected: pa.Table, actual: pa.Table) -> str:
    """Say how two tables differ cell by cell, empty if they do not; the actual one may be in any order.

    actual: its columns may have wider types that hold the same values.
    """
    if sorted(actual.column_names) != sorted(expected.column_names):
        return f"columns {actual.column_names}"
    if actual.num_rows != expected.num_rows:
        return f"{actual.num_rows} rows instead of {expected.num_rows}"
    actual = actual.select(expected.column_names).cast(expected.schema).sort_by("id")
    wrong = [name for name in expected.column_names if not actual.column(name).equals(expected.column(name))]
    return f"other values in {', '.join(wrong)}" if wrong else ""


def _decimal_text(cents: int) -> str:
    return base64.b64encode(cents.to_bytes(cents.bit_length() // 8 + 1, "big", signed=True)).decode()


_ZONED: dict[int, str] = {}


def _zoned(seconds: int) -> str:
    text = _ZONED.get(seconds)
    if text is None:
        text = _ZONED[seconds] = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return text
