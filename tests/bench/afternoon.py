# SPDX-License-Identifier: Apache-2.0
"""Write the newest row of each key into Delta, as an engineer does it in an afternoon: for Canal's flat JSON, no Spark.

`python tests/bench/afternoon.py BOOTSTRAP RANGES ROOT ZONE`; RANGES is `{topic: {partition: [start, end]}}` as JSON. It
knows the one structure of its tables, and no DDL, late record, order across partitions, change log, progress or retry.
Deliberately free of any import of this project.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections import defaultdict

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable, write_deltalake


class _Row(msgspec.Struct, gc=False):
    id: str
    customer: str
    email: str | None
    street: str
    note: str
    amount: str
    quantity: str
    created: str
    weight: str | None
    due: str | None
    status: str
    updated: str


class _Change(msgspec.Struct, gc=False):
    type: str
    table: str
    data: list[msgspec.Raw] | None = None


_TYPES = {
    "id": pa.int64(),
    "amount": pa.decimal128(12, 2),
    "quantity": pa.int32(),
    "created": pa.timestamp("us"),
    "weight": pa.float64(),
    "due": pa.date32(),
    "status": pa.int8(),
    "updated": pa.timestamp("us"),
}


def main() -> None:
    """Read the ranges in one process, keep the newest row of each key, and merge them into the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("ranges", type=json.loads)
    parser.add_argument("root")
    parser.add_argument("zone", help="of TIMESTAMP columns")
    options = parser.parse_args()
    gc.disable()
    for table, rows in _newest(options.bootstrap, options.ranges).items():
        _merge(f"{options.root}/{table}", rows, options.zone)


def _newest(bootstrap: str, ranges: dict[str, dict[str, list[int]]]) -> dict[str, dict[str, _Row | None]]:
    """Return the newest row of each key by table, None of those that were deleted."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "afternoon",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.queue.backoff.ms": 5,
            "queued.min.messages": 100_000,
            "queued.max.messages.kbytes": 131_072,
            "fetch.message.max.bytes": 8 << 20,
        }
    )
    ends = {(t, int(p)): end for t, spans in ranges.items() for p, (start, end) in spans.items() if end > start}
    consumer.assign([TopicPartition(t, p, ranges[t][str(p)][0]) for t, p in ends])
    change_of, row_of = msgspec.json.Decoder(_Change).decode, msgspec.json.Decoder(_Row).decode
    tables: dict[str, dict[str, _Row | None]] = defaultdict(dict)
    while ends:
        for message in consumer.consume(20_000, timeout=0.2):
            if message.error() is not None:
                raise SystemExit(str(message.error()))
            change = change_of(message.value())
            rows = tables[change.table]
            for image in change.data or ():
                row = row_of(image)
                rows[row.id] = None if change.type == "DELETE" else row
            partition = (message.topic(), message.partition())
            if message.offset() + 1 >= ends.get(partition, 1 << 62):
                del ends[partition]
    consumer.close()
    return tables


def _merge(uri: str, newest: dict[str, _Row | None], zone: str) -> None:
    """Put the newest rows of keys into a table, and take those away that were deleted."""
    if not newest:
        return
    columns = {}
    there = [row for row in newest.values() if row is not None]
    for name in _Row.__struct_fields__:
        texts = pa.array([getattr(row, name) for row in there], pa.string())
        columns[name] = texts.cast(_TYPES.get(name, pa.string()))
    columns["updated"] = pc.assume_timezone(columns["updated"], zone).cast(pa.timestamp("us", "UTC"))
    rows = pa.table(columns)
    if not DeltaTable.is_deltatable(uri):
        write_deltalake(uri, rows)
        return
    gone = pa.array([key for key, row in newest.items() if row is None], pa.string()).cast(pa.int64())
    nothing = {f.name: pa.nulls(len(gone), f.type) for f in rows.schema}
    changes = pa.concat_tables([rows, pa.table({**nothing, "id": gone})])
    changes = changes.append_column("gone", pa.array([False] * len(there) + [True] * len(gone)))
    merge = DeltaTable(uri).merge(changes, "s.id = t.id", source_alias="s", target_alias="t")
    merge = merge.when_matched_delete("s.gone").when_matched_update(
        {name: f"s.{name}" for name in rows.column_names}, "NOT s.gone"
    )
    merge.when_not_matched_insert({name: f"s.{name}" for name in rows.column_names}, "NOT s.gone").execute()


if __name__ == "__main__":
    main()
