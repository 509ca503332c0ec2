# SPDX-License-Identifier: Apache-2.0
"""A plain model of Debezium's PostgreSQL connector: which records it sends of a server's WAL, and in which order.

What is followed is what recorded traffic shows (docs/wire/debezium-postgres.md): whole transactions in the order of
their commits, ``source.sequence`` of two places, keys that are looked up when a table is met, a moved key as delete,
tombstone and insert, repeats after a restart with equal places, snapshots.
"""

from __future__ import annotations

import json
import random
import re
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.histories.connect_json import converted
from tests.histories.records import Record
from tests.histories.tools import Style
from tests.postgres_histories.connect_json import (
    CONNECTOR,
    DATABASE,
    HEARTBEAT_KEY,
    HEARTBEAT_VALUE,
    NAME,
    TRANSACTION_KEY,
    TRANSACTION_VALUE,
    Catalogue,
    envelope_schema,
    image,
    key_schema,
    partial,
)
from tests.postgres_histories.ddl_log import LOG, STRUCTURE
from tests.postgres_histories.server import Change, Name, Picture, Row, Server, Structure, Table, Transaction

LOG_TOPIC = f"{NAME}.{LOG[0]}.{LOG[1]}"
HEARTBEAT = f"__debezium-heartbeat.{NAME}"
TRANSACTION = f"{NAME}.transaction"


@dataclass(frozen=True)
class Sent:
    """One record in the order of sending.

    :param picture: what the lake must hold when exactly everything up to this record has arrived, None where a
        transaction has more records, or the lake holds what the source never had.
    """

    record: Record
    picture: Picture | None


@dataclass(frozen=True)
class _Where:
    """Hold what ``source`` says of the position of one record."""

    structure: Structure
    sequence: tuple[int | None, int]
    millis: int
    xid: int | None
    lsn: int | None
    mark: str | None
    order: tuple[int, int, int] | None = None  # transaction, number in it, number among those of the table


@dataclass
class Connector:
    """Sends records of a server; all chance comes from ``chance``.

    :ivar read: how many transactions of the WAL were sent.
    :ivar committed: place up to which commits were processed; None until the first one was seen.
    :ivar lsn: of the newest full snapshot, and ``begun`` how many transactions were not streamed then.
    :ivar exact_from: number of transactions from which on the lake holds what the source had: a snapshot may have read
        rows that are younger than it says.
    """

    server: Server
    style: Style
    chance: random.Random
    sent: list[Sent] = field(default_factory=list)
    read: int = 0
    committed: int | None = None
    lsn: int = 0
    begun: int = 0
    exact_from: int = 0
    picture: Picture | None = None
    _run: int = 0
    _clock: int = 0
    _built: int = 0  # microseconds: no two records are built at once
    _met: dict[int, tuple[int, Catalogue]] = field(default_factory=dict)
    _schemas: dict[Any, str] = field(default_factory=dict)
    _starts: dict[int, int | None] = field(default_factory=dict)  # of each transaction since the newest full snapshot

    def stream(self, count: int | None = None) -> None:
        """Send the next transactions, all of them without a count."""
        end = len(self.server.wal) if count is None else min(len(self.server.wal), self.read + count)
        while self.read < end:
            self._send(self.read)
            self.read += 1
        if self.style.heartbeats and self.chance.random() < 0.3:
            time = self._time(self.server.millis)
            schemas = (HEARTBEAT_KEY, HEARTBEAT_VALUE) if self.style.embedded else (None, None)
            key, value = converted({"serverName": NAME}, schemas[0]), converted({"ts_ms": time}, schemas[1])
            self._add([Record(HEARTBEAT, 0, time, key, value)], self.picture)

    def restart(self, back: int) -> None:
        """Die and start again some transactions before: what was sent since comes again."""
        self._meet_again()
        self._clock += 5_000  # it takes a while to start
        newest, self.read = self.read, max(min(self._starts, default=self.read), self.read - back)
        self.committed = self._starts.get(self.read, self.committed)
        while self.read < newest:
            self._send(self.read, again=True)
            self.read += 1

    def snapshot(self, names: Sequence[Name], mark_lsns: tuple[int | None, int], xid: int) -> None:
        """Send all rows of tables, marked from first to last."""
        tables = [
            (name, table.structure, list(table.rows.values()))
            for name, table in self._tables(names, full=mark_lsns[0] is None)
        ]
        tables = [(name, structure, rows) for name, structure, rows in tables if rows]
        millis, last = self.server.millis, len(tables) - 1
        for number, (_, structure, rows) in enumerate(tables):
            for number_of_row, row in enumerate(rows):
                first, final = number_of_row == 0, number_of_row == len(rows) - 1
                mark = "first_in_data_collection" if first else "last_in_data_collection" if final else "true"
                mark = "last_in_data_collection" if final else mark
                mark = "first" if first and not number else "last" if final and number == last else mark
                where = _Where(structure, mark_lsns, millis, xid, mark_lsns[1], mark)
                self._add([self._row(where, "r", None, self._image(structure, row))], None)

    def _tables(self, names: Sequence[Name], *, full: bool) -> Iterator[tuple[Name, Table]]:
        for name in sorted(names):
            yield name, self.server.tables[name]
        if full and self.server.logs_ddl and self.server.ddl_rows:
            yield LOG, Table(STRUCTURE, dict(enumerate(self.server.ddl_rows)))

    def begin_epoch(self, lsn: int, *, read: int, exact_from: int, slow: bool = False) -> None:
        """Take a full snapshot, and stream from a transaction on.

        :param lsn: in the WAL, that the snapshot says it is of.
        :param read: transactions that are not streamed.
        :param exact_from: see :attr:`exact_from`.
        :param slow: whether changes are committed while its rows are written.
        """
        self._meet_again()
        self._clock = max(self._clock, self.server.millis) + 10_000 * slow
        self.snapshot(list(self.server.tables), (None, lsn), self.server.chance.randint(700, 999))
        self.server.millis = max(self.server.millis, self._clock + 1 - 10_000 * slow)
        self.read, self.committed, self.exact_from, self.lsn, self.begun = read, None, exact_from, lsn, read
        self._starts.clear()
        self.picture = self.server.picture() if exact_from <= read else None
        self.show()

    def break_off(self, lsn: int) -> None:
        """Die in a full snapshot."""
        already = len(self.sent)
        self.snapshot(list(self.server.tables), (None, lsn), self.server.chance.randint(700, 999))
        del self.sent[self.chance.randint(already, len(self.sent)) :]

    @property
    def reached(self) -> int:
        """The place up to which the slot was read since the newest full snapshot."""
        return self.server.wal[self.read - 1].end if self.read > self.begun else self.lsn

    def show(self) -> None:
        """Let the newest record complete what the lake must hold, if nothing more is on its way."""
        if self.exact_from > self.read:
            self.picture = None
        if self.sent:
            self.sent[-1] = Sent(self.sent[-1].record, self.picture)

    def read_again(self, rows: Sequence[Row], structure: Structure) -> None:
        """Send rows of an incremental snapshot, whose window was closed at the newest commit that was processed."""
        lsn = self.committed or self.server.lsn
        for row in rows:
            where = _Where(structure, (lsn, lsn), self.server.millis, None, None, "incremental")
            self._add([self._row(where, "r", None, self._image(structure, row))], self.picture)

    def _meet_again(self) -> None:
        self._run += 1
        self._met.clear()

    def _send(self, number: int, *, again: bool = False) -> None:
        """Send one transaction."""
        transaction = self.server.wal[number]
        if not again:
            self._starts[number] = self.committed
        records: list[Record] = []
        total, orders = 0, Counter[int]()
        marks = self.style.transactions
        if marks and transaction.changes:
            records.append(self._mark("BEGIN", transaction, None))
        for change in transaction.changes:
            for op in ("d", "c") if change.op == "k" else (change.op,):
                total += 1
                orders[change.structure.oid] += 1
                records += self._change(transaction, change, op, (total, orders[change.structure.oid]))
        if marks and transaction.changes:
            records.append(self._mark("END", transaction, orders))
        self.committed = transaction.end
        if not again:
            self.picture = transaction.picture if number + 1 >= self.exact_from else None
        if records:
            self._add(records, self.picture)
        elif not again and self.picture is not None:
            self.show()

    def _change(self, transaction: Transaction, change: Change, op: str, order: tuple[int, int]) -> list[Record]:
        """Return the records of one change: a delete has a tombstone."""
        structure = change.structure
        numbers = (transaction.xid, *order) if self.style.transactions else None
        sequence = (self.committed, change.lsn)
        where = _Where(structure, sequence, transaction.millis, transaction.xid, change.lsn, None, numbers)
        catalogue, embedded = self._catalogue(structure), self.style.embedded
        before = after = None
        if change.before is not None and op in ("u", "d") and (op == "d" or structure.identity == "f"):
            there = structure.identifying
            before = partial(structure, change.before, there, catalogue, embedded=embedded)
        if change.after is not None and op in ("c", "u"):
            after = image(structure, change.after, change.unchanged, embedded=embedded)
        moved: tuple[tuple[str, bytes], ...] = ()
        if change.op == "k" and change.before is not None and change.after is not None:
            other = change.after if op == "d" else change.before
            there = tuple(c.attnum for c in structure.columns) if op == "d" else structure.identifying
            named = partial(structure, other, there, catalogue, embedded=embedded)
            text = json.dumps({name: named[name] for name in catalogue.key}, separators=(",", ":")).encode()
            moved = (("__debezium.newkey" if op == "d" else "__debezium.oldkey", text),) if catalogue.key else ()
        record = self._row(where, op, before, after, moved)
        if op != "d":
            return [record]
        part = record.partition if record.key is not None else self._any_partition(record.topic)
        return [record, Record(record.topic, part, record.time, record.key, None, record.headers)]

    def _catalogue(self, structure: Structure) -> Catalogue:
        """Return what is known of a table: looked up by its name when the connector meets this version of it."""
        known = self._met.get(structure.oid)
        if known is None or known[0] != structure.version:
            known = self._met[structure.oid] = structure.version, self._look_up(structure)
        return known[1]

    def _look_up(self, structure: Structure) -> Catalogue:
        table = self.server.tables.get(structure.name)
        now = STRUCTURE if structure.name == LOG else None if table is None else table.structure
        if now is None:
            return Catalogue((), frozenset())
        names = {column.attnum: column.name for column in now.columns}
        unique = now.key or ((now.index,) if now.index is not None else ())
        key = tuple(names[attnum] for attnum in unique if structure.has(names[attnum]))
        return Catalogue(key, frozenset(column.name for column in now.columns if column.notnull))

    def _image(self, structure: Structure, row: Row) -> dict[str, Any]:
        return image(structure, row, frozenset(), embedded=self.style.embedded)

    def _row(
        self,
        where: _Where,
        op: str,
        before: dict[str, Any] | None,
        after: dict[str, Any] | None,
        moved: Collection[tuple[str, bytes]] = (),
    ) -> Record:
        structure, time = where.structure, self._time(where.millis)
        topic, catalogue = topic_of(structure.name), self._catalogue(structure)
        self._built = max(self._built + 1, time * 1000)
        value = {
            "before": before,
            "after": after,
            "source": self._source(where),
            "transaction": None,
            "op": op,
            "ts_ms": self._built // 1000,
            "ts_us": self._built,
            "ts_ns": self._built * 1000,
        }
        if where.order is not None:
            transaction, total, own = where.order
            value["transaction"] = {
                "id": f"{transaction}:{where.lsn}",
                "total_order": total,
                "data_collection_order": own,
            }
        of_row = before if after is None else after
        key = None
        if catalogue.key and of_row is not None:
            schema = self._schema("key", topic, structure, catalogue)
            key = converted({name: of_row[name] for name in catalogue.key}, schema)
        partition = self._any_partition(topic) if key is None else zlib.crc32(key) % self._partitions(topic)
        text = converted(value, self._schema("value", topic, structure, catalogue))
        return Record(topic, partition, time, key, text, (*self._context(), *moved))

    def _context(self) -> tuple[tuple[str, bytes], ...]:
        values = {"connectorLogicalName": NAME, "taskId": "0", "connectorName": CONNECTOR, "runId": f"run-{self._run}"}
        return tuple((f"__debezium.context.{name}", value.encode()) for name, value in values.items())

    def _schema(self, what: str, topic: str, structure: Structure, catalogue: Catalogue) -> str | None:
        if not self.style.embedded:
            return None
        mark = (what, topic, structure.oid, structure.version, catalogue)
        if mark not in self._schemas:
            make = key_schema if what == "key" else envelope_schema
            self._schemas[mark] = make(topic, structure, catalogue)
        return self._schemas[mark]

    def _source(self, where: _Where) -> dict[str, Any]:
        streamed = None if self.style.snapshot_null else "false"
        first, second = where.sequence
        schema, table = where.structure.name
        return {
            "version": "3.6.1.Final",
            "connector": CONNECTOR,
            "name": NAME,
            "ts_ms": where.millis,
            "snapshot": where.mark or streamed,
            "db": DATABASE,
            "sequence": json.dumps([None if first is None else str(first), str(second)], separators=(",", ":")),
            "ts_us": where.millis * 1000,
            "ts_ns": where.millis * 1_000_000,
            "schema": schema,
            "table": table,
            "txId": where.xid,
            "lsn": where.lsn,
            "xmin": None,
            "origin": None,
            "origin_lsn": None,
        }

    def _mark(self, status: str, transaction: Transaction, orders: Counter[int] | None) -> Record:
        """Return the record that begins or ends a transaction."""
        lsn = transaction.changes[0].lsn if orders is None else transaction.end
        names = {change.structure.oid: ".".join(change.structure.name) for change in transaction.changes}
        counts = [{"data_collection": names[oid], "event_count": n} for oid, n in (orders or {}).items()]
        mark = f"{transaction.xid}:{lsn}"
        value = {
            "status": status,
            "id": mark,
            "event_count": None if orders is None else orders.total(),
            "data_collections": None if orders is None else counts,
            "ts_ms": transaction.millis,
        }
        schemas = (TRANSACTION_KEY, TRANSACTION_VALUE) if self.style.embedded else (None, None)
        key, text = converted({"id": mark}, schemas[0]), converted(value, schemas[1])
        return Record(TRANSACTION, 0, self._time(transaction.millis), key, text)

    def _time(self, millis: int) -> int:
        """Return the connector's clock: somewhat after the event, and never before what it showed last."""
        self._clock = max(self._clock, millis + self.chance.randint(0, 900))
        return self._clock

    def _partitions(self, topic: str) -> int:
        return 1 if topic == LOG_TOPIC else self.style.partitions

    def _any_partition(self, topic: str) -> int:
        return self.chance.randrange(self._partitions(topic))

    def _add(self, records: Sequence[Record], picture: Picture | None) -> None:
        self.sent += [Sent(record, None) for record in records[:-1]]
        self.sent.append(Sent(records[-1], picture))


def topic_of(name: Name) -> str:
    """Return a table's topic."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", f"{NAME}.{name[0]}.{name[1]}")
