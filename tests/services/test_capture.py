# SPDX-License-Identifier: Apache-2.0
"""A replayed capture stands in the broker as it was recorded."""

from __future__ import annotations

import base64
import json
import lzma
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.services.broker import Broker, OwnBroker
from tests.services.capture import Record, ReplayError, partitions_of, read, replay

CAPTURES = sorted(Path(__file__).parents[1].glob("**/records.jsonl.xz"), key=lambda file: file.stat().st_size)

RECORDS = [
    Record("services.capture", 0, 0, 1_700_000_000_001, b"k0", b"v0"),
    Record("services.capture", 0, 1, 1_700_000_000_000, None, None),
    Record("services.capture", 1, 0, 1_700_000_000_002, b"", b"\x00\xff", (("h", b"1"), ("h", None))),
]


def written(folder: Path, records: list[Record]) -> Path:
    def text(value: bytes | None) -> str | None:
        return None if value is None else base64.b64encode(value).decode()

    with lzma.open(folder / "records.jsonl.xz", "wt") as file:
        for record in records:
            entry = {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": text(record.key),
                "value": text(record.value),
                "headers": [[name, text(value)] for name, value in record.headers],
            }
            file.write(json.dumps(entry) + "\n")
    return folder


def stored(broker: Broker, records: list[Record]) -> list[Record]:
    """Return what the broker holds where the wanted records should stand."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused", "enable.auto.commit": False})
    partitions = {(record.topic, record.partition) for record in records}
    consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in partitions])
    result: list[Record] = []
    deadline = time.monotonic() + 60
    while len(result) < len(records) and time.monotonic() < deadline:
        for message in consumer.consume(1000, timeout=1):
            assert message.error() is None
            headers = tuple(message.headers() or ())
            metadata = (message.topic(), message.partition(), message.offset(), message.timestamp()[1])
            result.append(Record(*metadata, message.key(), message.value(), headers))
    consumer.close()
    return sorted(result, key=lambda record: (record.topic, record.partition, record.offset))


def test_reading_gives_back_what_was_written(tmp_path: Path) -> None:
    assert list(read(written(tmp_path, RECORDS))) == RECORDS
    assert partitions_of(tmp_path) == {"services.capture": 2}
    (tmp_path / "meta.json").write_text('{"partitions": {"services.capture": 3, "silent": 1}}')
    assert partitions_of(tmp_path) == {"services.capture": 3, "silent": 1}


def test_every_field_survives_the_replay(broker: Broker) -> None:
    assert replay(broker, reversed(RECORDS), {"services.capture": 3}) == 3
    assert stored(broker, RECORDS) == RECORDS
    assert len(broker.admin.list_topics(timeout=20).topics["services.capture"].partitions) == 3


def test_slices_in_order_keep_their_offsets_and_a_skipped_one_is_noticed(broker: Broker) -> None:
    records = [Record("services.slices", 0, offset, 1_000 + offset, None, b"x") for offset in range(6)]
    replay(broker, records[:2])
    replay(broker, records[2:4], timestamp=lambda record: record.timestamp + 5_000)
    assert [record.timestamp for record in stored(broker, records[:4])] == [1_000, 1_001, 6_002, 6_003]
    with pytest.raises(ReplayError, match=r"services\.slices\[0\]@5 is at offset 4"):
        replay(broker, records[5:])


@pytest.mark.skipif(not CAPTURES, reason="no capture among the tests")
def test_the_smallest_real_capture_is_replayed_record_by_record() -> None:
    folder = CAPTURES[0].parent
    records = sorted(read(folder), key=lambda record: (record.topic, record.partition, record.offset))
    with OwnBroker() as own:  # other tests may have put the same capture into theirs
        assert replay(own, records, partitions_of(folder)) == len(records)
        assert stored(own, records) == records
