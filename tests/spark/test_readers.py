# SPDX-License-Identifier: Apache-2.0
"""One behaviour suite over both readers: the same stretch of a topic gives the same changes, whoever reads it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import CdcError, ConfigurationError, SourceError
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.lake.manifest import LandReport
from spark_jobs.lake.row_groups import read_groups
from spark_jobs.lake.storage import Storage
from spark_jobs.readers.spark_reader import java_client, read_with_spark
from spark_jobs.tasks import land as landing
from spark_jobs.tasks.land import land_chunks
from tests.services.broker import Broker
from tests.spark.jobs import job

Land = Callable[[JobDocument], list[dict[str, Any]]]
TOPIC = "readers.shop.t"


@pytest.fixture(params=["task", "spark"])
def land(request: pytest.FixtureRequest) -> Land:
    if request.param == "task":
        return lambda job: [land_chunks(job, job.chunks, {})]
    session = request.getfixturevalue("session")
    return lambda job: read_with_spark(session, job, {}, landing.land)


def message(number: int) -> bytes:
    source = {
        "db": "shop",
        "table": "t",
        "file": "b.000001",
        "pos": number,
        "row": 0,
        "ts_ms": 1000,
        "snapshot": "false",
    }
    return json.dumps({"before": None, "after": {"id": number}, "source": source, "op": "c", "ts_ms": 1}).encode()


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    """Two partitions: ten plain records; committed, aborted and committed records of transactions."""
    from confluent_kafka import Producer

    broker.create_topic(TOPIC, 2)
    plain = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(10):
        plain.produce(
            TOPIC, message(number), key=b'{"id":%d}' % number, partition=0, timestamp=1_700_000_000_000 + number
        )
    plain.flush()
    bound = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "readers"})
    bound.init_transactions()
    for first, good in ((100, True), (200, False), (300, True), (400, False)):
        bound.begin_transaction()
        for number in range(first, first + 3):
            bound.produce(TOPIC, message(number), key=b"{}", partition=1)
        bound.flush()
        (bound.commit_transaction if good else bound.abort_transaction)()
    _await_end(broker, TOPIC, 1, 16)
    return TOPIC


def _await_end(broker: Broker, topic: str, partition: int, end: int) -> None:
    """Wait for the last transaction's mark: the producer is answered before the brokers wrote it."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "x", "isolation.level": "read_committed"})
    deadline = time.monotonic() + 60
    while consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)[1] < end:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    consumer.close()


def landed(root: Path, reports: list[LandReport]) -> list[tuple[int, int, str]]:
    storage = Storage(str(root))
    groups = [group for report in reports for group in report.groups]
    if not groups:
        return []
    rows = read_groups(storage, groups, ["partition", "offset", "after", "kafka_time"])
    return sorted((r["partition"], r["offset"], r["after"]) for r in rows.to_pylist())


def test_a_stretch_in_the_middle_is_read_exactly(land: Land, topic: str, broker: Broker, tmp_path: Path) -> None:
    reports = land(job(broker, tmp_path, OffsetRange(topic, 0, 3, 7)))
    assert [offset for _, offset, _ in landed(tmp_path, reports)] == [3, 4, 5, 6]
    assert sum(report.records for report in reports) == 4


def test_only_committed_records_are_read(land: Land, topic: str, broker: Broker, tmp_path: Path) -> None:
    # 100-102, marker, 200-202 aborted, marker, 300-302, marker, 400-402 aborted, marker: 16 offsets
    rows = landed(tmp_path, land(job(broker, tmp_path, OffsetRange(topic, 1, 0, 16))))
    assert [json.loads(after)["id"] for _, _, after in rows] == [100, 101, 102, 300, 301, 302]


@pytest.mark.parametrize("end", [4, 5, 7, 8, 12, 15])
def test_an_end_at_a_marker_or_an_aborted_record_ends_the_read(
    land: Land, topic: str, broker: Broker, tmp_path: Path, end: int
) -> None:
    rows = landed(tmp_path, land(job(broker, tmp_path, OffsetRange(topic, 1, 0, end))))
    assert [offset for _, offset, _ in rows] == [n for n in (0, 1, 2, 8, 9, 10) if n < end]


def test_a_stretch_of_nothing_but_aborted_records_is_empty(
    land: Land, topic: str, broker: Broker, tmp_path: Path
) -> None:
    assert landed(tmp_path, land(job(broker, tmp_path, OffsetRange(topic, 1, 4, 8)))) == []


def test_several_partitions_are_read_in_one_go(land: Land, topic: str, broker: Broker, tmp_path: Path) -> None:
    rows = landed(tmp_path, land(job(broker, tmp_path, OffsetRange(topic, 0, 0, 10), OffsetRange(topic, 1, 8, 11))))
    assert [(p, o) for p, o, _ in rows] == [*((0, n) for n in range(10)), (1, 8), (1, 9), (1, 10)]


def test_an_end_beyond_the_log_is_an_error(land: Land, topic: str, broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(CdcError) as caught:
        land(job(broker, tmp_path, OffsetRange(topic, 0, 5, 40)))
    assert caught.value.code in ("kafka.end_beyond_log", "kafka.offsets_expired", "spark.read_failed")


def test_offsets_that_are_gone_are_an_error(land: Land, broker: Broker, tmp_path: Path, request: Any) -> None:
    from confluent_kafka import Producer, TopicPartition

    name = f"readers.gone.{abs(hash(request.node.name))}"
    broker.create_topic(name, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(10):
        producer.produce(name, message(number))
    producer.flush()
    for future in broker.admin.delete_records([TopicPartition(name, 0, 6)]).values():
        future.result()
    with pytest.raises(SourceError) as caught:
        land(job(broker, tmp_path, OffsetRange(name, 0, 2, 9)))
    assert caught.value.code == "kafka.offsets_expired"


def test_the_java_client_logs_in_with_the_same_user() -> None:
    config = java_client(
        {
            "bootstrap.servers": "b:9092",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": 'a"b',
            "sasl.password": "p\\w",
            "socket.timeout.ms": 1000,
        }
    )
    assert config["sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="a\\"b" password="p\\\\w";'
    )
    assert "sasl.password" not in config
    assert "socket.timeout.ms" not in config


def test_a_setting_without_counterpart_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match=r"ssl\.key\.pem"):
        java_client({"bootstrap.servers": "b:9092", "ssl.key.pem": "x"})


def test_a_user_name_adds_nothing_to_the_login_configuration() -> None:
    name = 'me" evil="1\\\r\n; evil.Module required "'
    config = java_client({"sasl.mechanism": "PLAIN", "sasl.username": name, "sasl.password": "x"})
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    escaped = 'me\\" evil=\\"1\\\\\\r\\n; evil.Module required \\"'
    assert config["sasl.jaas.config"] == f'{module} required username="{escaped}" password="x";'
