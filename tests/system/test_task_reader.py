# SPDX-License-Identifier: Apache-2.0
"""The task reader says what the brokers say: at once where waiting is useless, in time where it is not."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterable
from typing import Any

import pytest
from confluent_kafka import Producer

from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, UnavailableError
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.readers import task_reader
from spark_jobs.readers.task_reader import read_chunks
from tests.services.broker import Broker

MB = 1 << 20


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"reader.{uuid.uuid4().hex}"
    broker.create_topic(name, config={"max.message.bytes": str(20 * MB)})
    return name


def fill(broker: Broker, topic: str, *sizes: int) -> OffsetRange:
    """Write records of these sizes; return all of them as a chunk."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "message.max.bytes": 20 * MB})
    for size in sizes:
        producer.produce(topic, os.urandom(size))
    assert producer.flush(60) == 0
    return OffsetRange(topic, 0, 0, len(sizes))


def refused(chunk: OffsetRange, config: dict[str, Any], **options: Any) -> tuple[CdcError, float]:
    """Return the error that reading ends with, and the seconds until then."""
    began = time.monotonic()
    with pytest.raises(CdcError) as error:
        list(read_chunks([chunk], config, **options))
    return error.value, time.monotonic() - began


@pytest.mark.parametrize("grouped", [False, True])
def test_a_refused_login_is_reported_at_once(
    broker: Broker, topic: str, grouped: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    error, seconds = refused(
        fill(broker, topic, 10), broker.sasl_settings("wrong"), deadline_seconds=60, grouped=grouped
    )
    assert error.code == "kafka.login_refused" and "refuses the login" in error.message
    assert "sasl.password" in error.hint and "wrong" not in str(error)
    assert seconds < 15 and capfd.readouterr().err == ""


def test_a_record_above_the_receive_limit_is_reported_at_once(
    broker: Broker, topic: str, capfd: pytest.CaptureFixture[str]
) -> None:
    config = {"bootstrap.servers": broker.bootstrap, "receive.message.max.bytes": str(9 * MB)}
    error, seconds = refused(fill(broker, topic, 15 * MB), config, deadline_seconds=60)
    assert isinstance(error, ConfigurationError) and "receive.message.max.bytes" in error.message
    assert seconds < 15 and capfd.readouterr().err == ""


def test_a_receive_limit_below_our_fetches_is_followed(broker: Broker, topic: str) -> None:
    config = {"bootstrap.servers": broker.bootstrap, "receive.message.max.bytes": str(MB)}
    read = list(read_chunks([fill(broker, topic, *[100_000] * 30)], config))
    assert sum(len(records) for records in read) == 30


def test_settings_that_the_client_refuses_are_reported(broker: Broker, topic: str) -> None:
    config = {"bootstrap.servers": broker.bootstrap, "security.protocol": "SASL_SSL", "sasl.mechanism": "NOPE"}
    error, _ = refused(fill(broker, topic, 10), config)
    assert isinstance(error, ConfigurationError) and "extra" in error.hint


@pytest.mark.parametrize("grouped", [False, True])
def test_brokers_that_are_away_are_waited_for_until_the_deadline_without_a_flood(
    grouped: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    config = {"bootstrap.servers": "127.0.0.1:1"}
    error, seconds = refused(OffsetRange("t", 0, 0, 5), config, deadline_seconds=4, grouped=grouped)
    assert isinstance(error, UnavailableError) and "Connection refused" in error.message
    assert 4 <= seconds < 60 and capfd.readouterr().err == ""


def test_a_deadline_is_for_the_whole_task_however_steadily_records_come(
    broker: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = fill(broker, topic, *[10] * 40)
    monkeypatch.setattr(task_reader, "_TAKEN", 1)
    monkeypatch.setattr(task_reader, "BATCH_BYTES", 1)
    read = 0
    with pytest.raises(UnavailableError) as error:
        for records in read_chunks([chunk], {"bootstrap.servers": broker.bootstrap}, deadline_seconds=4):
            read += len(records)
            time.sleep(0.2)
    assert 0 < read < 40
    assert error.value.code == "kafka.slow" and "of 40 offsets were read in 4 s" in error.value.message
    assert "land_deadline_seconds" in error.value.hint


def test_what_passes_while_records_come_is_no_reason(broker: Broker, topic: str) -> None:
    config = {"bootstrap.servers": f"127.0.0.1:1,{broker.bootstrap}"}
    read = list(read_chunks([fill(broker, topic, *[10] * 5)], config, deadline_seconds=30))
    assert sum(len(records) for records in read) == 5


def test_of_large_records_few_are_held_at_a_time(broker: Broker, topic: str) -> None:
    chunk = fill(broker, topic, *[4 * MB] * 30)
    sizes = [sum(map(len, records.values)) for records in read_chunks([chunk], {"bootstrap.servers": broker.bootstrap})]  # type: ignore[arg-type]
    assert sum(sizes) == 120 * MB and max(sizes) <= 2 * task_reader.BATCH_BYTES


_READ = """
import re, sys
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.readers.task_reader import read_chunks
topic, end, servers = sys.argv[1:]
chunk = OffsetRange(topic, 0, 0, int(end))
size = sum(sum(map(len, records.values)) for records in read_chunks([chunk], {"bootstrap.servers": servers}))
print(size, int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1]) >> 10)
"""


def test_of_compressed_records_few_are_unpacked_at_a_time(broker: Broker, topic: str) -> None:
    count, settings = 600, {"message.max.bytes": 40 * MB, "batch.size": 20 * MB, "linger.ms": 200}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "zstd", **settings})
    for number in range(count):
        producer.produce(topic, (number.to_bytes(4) * 1024 + os.urandom(4096)) * 128)  # unpacks to 100 times its size
        producer.poll(0)
    assert producer.flush(60) == 0
    command = [sys.executable, "-c", _READ, topic, str(count), broker.bootstrap]
    size, peak = map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())
    assert size == count * MB and peak < 450, peak  # 8 MB of answers at a time: 700


def test_a_batch_that_the_client_will_not_unpack_is_reported_with_the_setting(broker: Broker, topic: str) -> None:
    settings = {"message.max.bytes": 200 * MB, "batch.size": 150 * MB, "linger.ms": 2_000}
    producer = Producer({"bootstrap.servers": broker.bootstrap, "compression.type": "zstd", **settings})
    for _ in range(140):
        producer.produce(topic, bytes(MB))
    assert producer.flush(60) == 0
    error, seconds = refused(
        OffsetRange(topic, 0, 0, 140), {"bootstrap.servers": broker.bootstrap}, deadline_seconds=60
    )
    assert isinstance(error, ConfigurationError) and "cannot be unpacked" in error.message and seconds < 30
    assert "receive.message.max.bytes" in error.hint
    config = {"bootstrap.servers": broker.bootstrap, "receive.message.max.bytes": str(300 * MB)}
    assert sum(map(len, read_chunks([OffsetRange(topic, 0, 0, 140)], config))) == 140


def test_many_partitions_are_read_to_their_ends(broker: Broker) -> None:
    name, partitions, records = f"reader.{uuid.uuid4().hex}", 40, 500
    broker.create_topic(name, partitions=partitions)
    producer, value = Producer({"bootstrap.servers": broker.bootstrap}), os.urandom(4_000)
    for number in range(partitions * records):
        producer.produce(name, value, partition=number % partitions)
        producer.poll(0)
    assert producer.flush(60) == 0
    chunks = [OffsetRange(name, partition, 0, records) for partition in range(partitions)]
    read = offsets_by_partition(read_chunks(chunks, {"bootstrap.servers": broker.bootstrap}))
    assert read == {partition: list(range(records)) for partition in range(partitions)}


def offsets_by_partition(batches: Iterable[Records]) -> dict[int, list[int]]:
    offsets: dict[int, list[int]] = {}
    for batch in batches:
        offsets.setdefault(batch.partition, []).extend(batch.offsets)
    return offsets


class _Message:
    def __init__(self, partition: int, offset: int) -> None:
        self._partition, self._offset = partition, offset

    def topic(self) -> str:
        return "t"

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def value(self) -> bytes:
        return b"x"

    def key(self) -> None:
        return None

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def error(self) -> None:
        return None

    def headers(self) -> None:
        return None


class _Consumer:
    """A log of some partitions; each call is answered with records of the partitions in turn, as Kafka does."""

    def __init__(self, partitions: int, records: int) -> None:
        self._messages = {p: [_Message(p, o) for o in range(records)] for p in range(partitions)}
        self._paused: set[int] = set()

    def consume(self, count: int, timeout: float) -> list[_Message]:
        readable = [p for p, messages in self._messages.items() if messages and p not in self._paused]
        share, taken = -(-count // len(readable)), []
        for partition in readable:
            taken += self._messages[partition][:share]
            del self._messages[partition][:share]
        return taken

    def pause(self, partitions: list[Any]) -> None:
        self._paused |= {each.partition for each in partitions}

    def resume(self, partitions: list[Any]) -> None:
        self._paused -= {each.partition for each in partitions}


class _PrefetchingConsumer(_Consumer):
    """Gives records that were fetched before their partition was paused: those of the last partition first."""

    def consume(self, count: int, timeout: float) -> list[_Message]:
        partition = max(p for p, messages in self._messages.items() if messages)
        taken = self._messages[partition][:count]
        del self._messages[partition][:count]
        return taken


class _LargeMessage(_Message):
    def value(self) -> bytes:
        return _LARGE


_LARGE = bytes(100_000)


def reading(consumer: _Consumer, partitions: int, records: int, grouped: bool = False) -> Iterable[Records]:
    chunks = [OffsetRange("t", partition, 0, records) for partition in range(partitions)]
    deadline, complaints = task_reader.Deadline(20), task_reader.Complaints()
    return task_reader._Reading(consumer, chunks, deadline, complaints, grouped).batches()


@pytest.mark.parametrize(("grouped", "most"), [(False, 2.5), (True, 6)])
def test_records_of_all_partitions_are_held_up_to_a_size(grouped: bool, most: float) -> None:
    """Of 30 partitions none is large enough to be decoded alone; those of a grouped format are, so more is held."""
    partitions, records, held = 30, 40, [0]

    class Consumer(_Consumer):
        def consume(self, count: int, timeout: float) -> list[_Message]:
            taken = super().consume(count, timeout)
            held.append(held[-1] + len(taken))
            return taken

    consumer = Consumer(partitions, records)
    consumer._messages = {p: [_LargeMessage(p, o) for o in range(records)] for p in range(partitions)}
    for batch in reading(consumer, partitions, records, grouped):
        held.append(held[-1] - len(batch))
    assert held[-1] == 0
    size = max(held) * len(_LARGE) / task_reader.BATCH_BYTES
    assert most / 2 < size <= most


def test_many_partitions_are_decoded_in_large_batches() -> None:
    """Read all at once, a hundred partitions would be decoded 200 records at a time: 1 500 batches."""
    partitions, records = 100, 3_000
    batches = list(reading(_Consumer(partitions, records), partitions, records))
    assert offsets_by_partition(batches) == {partition: list(range(records)) for partition in range(partitions)}
    assert len(batches) <= 3 * partitions


def test_a_partition_that_ends_while_it_is_paused_is_not_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_reader, "HELD_RECORDS", 1)  # so that no more partitions are read than must be
    partitions, records = 3 * task_reader.ACTIVE_PARTITIONS, 5
    read = offsets_by_partition(reading(_PrefetchingConsumer(partitions, records), partitions, records))
    assert read == {partition: list(range(records)) for partition in range(partitions)}
