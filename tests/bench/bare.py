# SPDX-License-Identifier: Apache-2.0
"""The bare consumer loop: the floor under everything that reads the same topics in Python.

`python tests/bench/bare.py BOOTSTRAP RANGES [--envelope]`; RANGES is `{topic: {partition: [start, end]}}` as JSON.
Deliberately free of any import of this project.
"""

from __future__ import annotations

import argparse
import gc
import json

import msgspec
from confluent_kafka import Consumer, TopicPartition


class _Source(msgspec.Struct, gc=False):
    db: str | None = None
    table: str | None = None
    file: str | None = None
    pos: int | None = None
    row: int | None = None
    ts_ms: int | None = None


class _Payload(msgspec.Struct, gc=False):
    op: str | None = None
    source: _Source | None = None
    before: msgspec.Raw = msgspec.Raw()
    after: msgspec.Raw = msgspec.Raw()


class _Enveloped(msgspec.Struct, gc=False):
    payload: _Payload | None = None


def main() -> None:
    """Read the ranges in one process, decoding the envelope of each record or nothing at all."""
    parser = argparse.ArgumentParser()
    parser.add_argument("bootstrap")
    parser.add_argument("ranges", type=json.loads)
    parser.add_argument("--envelope", choices=("none", "embedded", "plain"), default="none")
    options = parser.parse_args()
    decoder = {"none": None, "embedded": msgspec.json.Decoder(_Enveloped), "plain": msgspec.json.Decoder(_Payload)}
    decode = decoder[options.envelope].decode if decoder[options.envelope] else None
    consumer = Consumer(
        {
            "bootstrap.servers": options.bootstrap,
            "group.id": "bare",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "fetch.queue.backoff.ms": 5,
            "queued.min.messages": 100_000,
            "queued.max.messages.kbytes": 131_072,
            "fetch.message.max.bytes": 8 << 20,
        }
    )
    ends = {(t, int(p)): end for t, spans in options.ranges.items() for p, (start, end) in spans.items() if end > start}
    consumer.assign([TopicPartition(t, p, options.ranges[t][str(p)][0]) for t, p in ends])
    gc.disable()
    count = size = 0
    while ends:
        for message in consumer.consume(20_000, timeout=0.2):
            if message.error() is not None:
                raise SystemExit(str(message.error()))
            value = message.value()
            if value is not None:
                count += 1
                size += len(value)
                if decode is not None:
                    decode(value)
            partition = (message.topic(), message.partition())
            if message.offset() + 1 >= ends.get(partition, 1 << 62):
                del ends[partition]
    consumer.close()
    print(json.dumps({"records": count, "bytes": size}))


if __name__ == "__main__":
    main()
