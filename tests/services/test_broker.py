# SPDX-License-Identifier: Apache-2.0
"""The test broker takes, keeps and protects records like any Kafka broker."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.services.broker import Broker
from tests.services.process import Server
from tests.system import processes


def consume(settings: dict[str, str], topic: str, count: int) -> list[bytes]:
    consumer = Consumer({**settings, "group.id": "unused", "enable.auto.commit": "false"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[bytes] = []
    deadline = time.monotonic() + 60
    while len(values) < count and time.monotonic() < deadline:
        for message in consumer.consume(count - len(values), timeout=1):
            assert message.error() is None, message.error()
            values.append(message.value())
    consumer.close()
    return values


def test_records_come_back_even_when_their_timestamps_are_old(broker: Broker) -> None:
    broker.create_topic("services.round-trip", partitions=1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(10):
        producer.produce("services.round-trip", value=str(number).encode(), timestamp=1_000 + number)
    assert producer.flush(20) == 0
    expected = [str(number).encode() for number in range(10)]
    assert consume({"bootstrap.servers": broker.bootstrap}, "services.round-trip", 10) == expected


def test_the_right_password_opens_the_protected_listener(broker: Broker) -> None:
    assert AdminClient(broker.sasl_settings()).list_topics(timeout=20).brokers


def test_a_wrong_password_is_refused_as_such(broker: Broker) -> None:
    errors: list[KafkaError] = []
    settings = {**broker.sasl_settings(password="wrong"), "error_cb": errors.append, "log_level": 0}
    producer = Producer(settings)
    deadline = time.monotonic() + 60
    while not any(error.code() == KafkaError._AUTHENTICATION for error in errors) and time.monotonic() < deadline:
        producer.poll(0.1)
    assert KafkaError._AUTHENTICATION in {error.code() for error in errors}


def test_a_server_does_not_outlive_a_killed_parent(tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    parent = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import os, pathlib, sys, time\n"
            "from tests.services.process import Server\n"
            "folder = pathlib.Path(sys.argv[1])\n"
            "Server('sleeper', ['sh', '-c', 'echo $$ > pid; exec sleep 600'], folder / 'log')\n"
            "time.sleep(600)\n",
            str(tmp_path),
        ],
        cwd=Path(__file__).parents[2],
    )
    assert eventually(lambda: mark.exists() and mark.read_text().strip() != "")
    parent.kill()
    parent.wait()
    assert eventually(lambda: not alive(int(mark.read_text())))


def test_stopping_a_server_ends_its_process(tmp_path: Path) -> None:
    server = Server("sleeper", ["sh", "-c", "echo $$ > pid; exec sleep 600"], tmp_path / "log")
    assert eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    server.stop()
    assert not server.running
    assert not alive(int((tmp_path / "pid").read_text()))


def test_a_server_that_dies_shows_its_last_words(tmp_path: Path) -> None:
    server = Server("talker", ["sh", "-c", "echo out of luck; exit 3"], tmp_path / "log")
    with pytest.raises(RuntimeError, match=r"(?s)code 3.*out of luck"):
        server.wait_until(lambda: False, timeout=10)


def eventually(holds: Callable[[], bool], seconds: float = 15) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.05)
    return False


def alive(pid: int) -> bool:
    # a killed process that nobody has waited for yet still has its number
    return processes.state(pid) not in "ZX"
