# SPDX-License-Identifier: Apache-2.0
"""The same orders in every wire form, written by the writers of `tests/cross_format`, and the table they leave."""

from __future__ import annotations

import importlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

from airflow_provider_cdc.core.formats.registry import format_names, open_format
from tests.bench.data import Record
from tests.bench.structure import EXPECTED
from tests.cross_format import canal_protobuf_writer
from tests.cross_format.events import Ddl, Event, Image, Message, Row, Waiting, Writer
from tests.cross_format.history import DATABASE, START_MS, structure
from tests.cross_format.truth import in_lake

TABLE = "orders"
CREATE = (
    "CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY, customer VARCHAR(64) NOT NULL, email VARCHAR(120),"
    " street VARCHAR(120) NOT NULL, note VARCHAR(255) NOT NULL, amount DECIMAL(12,2) NOT NULL, quantity INT NOT NULL,"
    " created DATETIME NOT NULL, weight DOUBLE, due DATE, status TINYINT NOT NULL, updated TIMESTAMP NOT NULL)"
)
# Canal sends a batch of events as one packet for each partition. Packets captured from real servers hold 19 (1.1.7 with
# MySQL) and 21 (with MariaDB) entries on average, mostly of one row; those sent while Canal catches up 50 to 90.
ENTRIES = 20
_WORDS = [
    "order",
    "parcel",
    "café",
    "storage",
    "Łódź",
    "market",
    '"quoted"',
    "street",
    "corner",
    "東京",
    "north",
    "winter",
]
# DTS as a busy table fills it: transactions of four rows, one record each, 1 in 50 cut in two; a checkpoint after 1000
# events, since DTS makes one every 10 seconds. The writer's own shape, a single row between BEGIN and COMMIT and every
# seventh record in three slices, is made to find mistakes.
_SHAPES: Mapping[str, Mapping[str, int]] = {"dts-protobuf": {"rows": 4, "sliced": 200, "slices": 2, "checked": 1_000}}


POSTGRES = "debezium-postgres"
_NARROWEST = {POSTGRES: pa.int16()}  # integers of the sources: MySQL's TINYINT is a smallint elsewhere


def case_names() -> list[str]:
    """Return the formats, and what else a format is read of."""
    return [*format_names(), POSTGRES]


def writer_of(name: str) -> Writer:
    """Return the writer of a case."""
    module = importlib.import_module(f"tests.cross_format.{name.replace('-', '_')}_writer")
    writer: Writer = module.Writer(**_SHAPES.get(name, {}))
    return writer


@dataclass
class Orders:
    """A deterministic workload: inserts (45 %), updates (45 %), deletes (10 %) of some tables of one structure.

    content: the rows that are there after the events given out so far, by table and key.
    """

    tables: Sequence[str] = (TABLE,)
    seed: int = 1
    content: dict[str, dict[int, Image]] = field(default_factory=dict)

    def events(self, changes: int) -> Iterator[Event]:
        """Give out a CREATE TABLE of each table and so many row changes."""
        chance = random.Random(self.seed)
        schemas, keys_of = {}, {}
        for number, table in enumerate(self.tables, 1):
            create = create_of(table)
            schema = structure([create], table)
            assert schema is not None
            schemas[table], keys_of[table], self.content[table] = schema, list[int](), {}
            yield Event(number, 1, 4, START_MS, START_MS, number, Ddl(create, DATABASE, table, schema))
        first = len(self.tables) + 1
        for number in range(first, changes + first):
            table = self.tables[number % len(self.tables)]
            schema, keys, content = schemas[table], keys_of[table], self.content[table]
            what = chance.random()
            if what < 0.45 or not keys:
                key = number
                keys.append(key)
                before, after = None, self._row(chance, key)
            else:
                index = chance.randrange(len(keys))
                key = keys[index]
                before = content[key]
                after = {**before, **_changed(chance)} if what < 0.9 else None
                if after is None:
                    keys[index] = keys[-1]
                    keys.pop()
            if after is None:
                del content[key]
            else:
                content[key] = after
            op = "insert" if before is None else "delete" if after is None else "update"
            time = START_MS + number // 100 * 1000
            row = Row(op, DATABASE, table, schema, before, after)
            yield Event(number, 1 + number // 100_000, 4 + 200 * number, time, START_MS + number, number, row)

    @staticmethod
    def _row(chance: random.Random, key: int) -> Image:
        return {
            "id": key,
            "customer": f"{chance.choice(_WORDS)} {key}",
            "email": None if chance.random() < 0.1 else f"customer{key}@example.org",
            "street": " ".join(chance.choices(_WORDS, k=5)),
            "note": " ".join(chance.choices(_WORDS, k=12)),
            **_changed(chance),
            "created": f"2026-05-{1 + key % 28:02d} 10:11:{key % 60:02d}",
            "weight": None if chance.random() < 0.1 else chance.randrange(10_000) / 8,
            "due": None if chance.random() < 0.1 else f"2026-06-{1 + key % 30:02d}",
        }


def _changed(chance: random.Random) -> dict[str, int | Decimal | str]:
    return {
        "amount": Decimal(chance.randrange(10**9)).scaleb(-2),
        "quantity": chance.randrange(1000),
        "status": chance.randrange(8),
        "updated": f"2026-07-{1 + chance.randrange(28):02d} 01:02:{chance.randrange(60):02d}",
    }


def create_of(table: str) -> str:
    """Return the statement that makes a table."""
    return CREATE.replace(TABLE, table, 1)


def typed(name: str, content: Mapping[int, Image]) -> pa.Table:
    """Return rows as the lake holds them in a case, by docs/reference/types.md."""
    schema = structure([CREATE], TABLE)
    assert schema is not None
    status = EXPECTED.get_field_index("status")
    expected = EXPECTED.set(status, EXPECTED.field(status).with_type(_NARROWEST.get(name, pa.int8())))
    rows = [{c.name: in_lake(row[c.name], c.type) for c in schema.columns} for row in content.values()]
    return pa.Table.from_pylist(rows, expected)


def records_of(name: str, writer: Writer, orders: Orders, changes: int, partitions: int) -> Iterator[Record]:
    """Write the events as a tool does, to ``bench.<case>.rows`` and, where it has one, ``bench.<case>.schema``."""
    messages = _messages(writer, orders, changes, partitions)
    for message in _packets(messages) if name == "canal-protobuf" else messages:
        yield Record(f"bench.{name}.{message.topic}", message.partition, message.key, message.value, message.headers)


def _messages(writer: Writer, orders: Orders, changes: int, partitions: int) -> Iterator[Message]:
    for event in orders.events(changes):
        if not writer.creates or isinstance(event.what, Row):
            yield from writer.write(event, partitions)
    if isinstance(writer, Waiting):
        yield from writer.rest()


def _packets(messages: Iterable[Message]) -> Iterator[Message]:
    """Put entries together as Canal does."""
    waiting: dict[int, list[Message]] = {}
    for message in messages:
        batch = waiting.setdefault(message.partition, [])
        batch.append(message)
        if len(batch) == ENTRIES:
            yield canal_protobuf_writer.together(waiting.pop(message.partition))
    yield from map(canal_protobuf_writer.together, waiting.values())


def pipeline_of(name: str, writer: Writer) -> dict[str, object]:
    """Return what a pipeline says of its source and tables to read these records."""
    wire = open_format(writer.format, writer.options)
    source: dict[str, object] = {"topics": [f"bench.{name}.rows"], "format": wire.name, "options": dict(writer.options)}
    if "ddl" in wire.carries and not wire.ddl_among_rows and not writer.creates:
        source["schema_topic"] = f"bench.{name}.schema"
    if hasattr(writer, "schemas"):
        source["schema_registry"] = "bench_registry"
    tables = {f"{DATABASE}.{TABLE}": {"create": CREATE}} if writer.creates else {}
    # the table is not in a snapshot, and where the log has no DDL its first row alone says that it was created
    policy = {} if writer.creates or "ddl" in wire.carries else {"on_unseen_ddl": "apply"}
    return {"source": source, "tables": tables, "policy": policy}
