# SPDX-License-Identifier: Apache-2.0
"""Test what the hook sees of a real broker, and its errors when there is none or it is not let in."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer, TopicPartition

from airflow_provider_cdc.core.errors import ConfigurationError, SourceError, Terminal, UnavailableError
from airflow_provider_cdc.hooks.kafka import KafkaProgressHook

from .conftest import Connect

if TYPE_CHECKING:
    from tests.services.broker import Broker


@pytest.fixture
def hook(broker: Broker, connect: Connect) -> KafkaProgressHook:
    return KafkaProgressHook(connect("kafka_test", "kafka", {"bootstrap.servers": broker.bootstrap}))


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"shop.{uuid.uuid4().hex}"
    broker.create_topic(name, 2)
    return name


@pytest.fixture
def producer(broker: Broker) -> Producer:
    return Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})


@pytest.fixture
def transactional(broker: Broker) -> Iterator[Producer]:
    made = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": uuid.uuid4().hex, "linger.ms": 0})
    made.init_transactions(30)
    yield made


def produce(producer: Producer, topic: str, values: list[Any], *, partition: int = 0, at: int = 0) -> None:
    for number, value in enumerate(values):
        options = {"timestamp": at + number} if at else {}
        producer.produce(topic, value, key=str(number), partition=partition, **options)
    assert producer.flush(30) == 0


# ---- what is there


def test_topics_with_their_partitions_and_none_of_kafkas_own(
    hook: KafkaProgressHook, topic: str, transactional: Producer
) -> None:
    topics = hook.topics()
    assert topics[topic] == [0, 1]
    assert not [name for name in topics if name.startswith("__")]


@pytest.mark.parametrize("call", ["ends", "offsets_at", "tails"])
def test_an_unknown_topic_is_terminal_and_names_those_there_are(hook: KafkaProgressHook, topic: str, call: str) -> None:
    wrong = topic[:-1] + "x" if topic[-1] != "x" else topic[:-1] + "y"
    calls: dict[str, Any] = {
        "ends": lambda: hook.ends([wrong]),
        "offsets_at": lambda: hook.offsets_at([wrong], 0),
        "tails": lambda: hook.tails([wrong], 1),
    }
    with pytest.raises(SourceError) as refused:
        calls[call]()
    assert isinstance(refused.value, Terminal)
    assert refused.value.code == "kafka.topic_unknown" and wrong in str(refused.value) and topic in refused.value.hint


def test_a_topic_has_one_id_until_it_is_made_again(hook: KafkaProgressHook, broker: Broker, topic: str) -> None:
    broker.create_topic(f"{topic}.more")
    first = hook.topic_ids([topic, f"{topic}.more"])
    assert set(first) == {topic, f"{topic}.more"} and len(set(first.values())) == 2
    assert hook.topic_ids([topic]) == {topic: first[topic]}
    for done in broker.admin.delete_topics([topic], operation_timeout=30).values():
        done.result(30)
    broker.create_topic(topic)
    assert hook.topic_ids([topic])[topic] not in first.values()
    assert hook.topic_ids([]) == {}


# ---- ends


def test_ends_of_an_empty_topic(hook: KafkaProgressHook, topic: str) -> None:
    marks = hook.ends([topic])
    assert marks.lows == marks.highs == {topic: {0: 0, 1: 0}}


def settled(hook: KafkaProgressHook, topic: str, end: int) -> dict[int, int]:
    """Return the ends once the brokers wrote a transaction's mark: the producer is answered before that."""
    deadline = time.monotonic() + 60
    while (highs := hook.ends([topic]).highs[topic])[0] < end and time.monotonic() < deadline:
        time.sleep(0.1)
    return highs


def test_an_open_transaction_hides_what_comes_after_it_began(
    hook: KafkaProgressHook, topic: str, transactional: Producer, producer: Producer
) -> None:
    produce(producer, topic, ["a"])
    transactional.begin_transaction()
    produce(transactional, topic, ["b", "c"])
    produce(producer, topic, ["d"])
    assert hook.ends([topic]).highs[topic] == {0: 1, 1: 0}
    assert [record.value for record in hook.tails([topic], 10)[topic, 0]] == [b"a"]
    transactional.commit_transaction(30)
    assert settled(hook, topic, 5) == {0: 5, 1: 0}, "four records and the commit's mark"
    assert [record.value for record in hook.tails([topic], 10)[topic, 0]] == [b"a", b"b", b"c", b"d"]


def test_aborted_records_are_never_seen(hook: KafkaProgressHook, topic: str, transactional: Producer) -> None:
    transactional.begin_transaction()
    produce(transactional, topic, ["kept"])
    transactional.commit_transaction(30)
    transactional.begin_transaction()
    produce(transactional, topic, [str(number) for number in range(8)])
    transactional.abort_transaction(30)
    assert settled(hook, topic, 11)[0] == 11
    last = hook.tails([topic], 2)[topic, 0]
    assert [record.value for record in last] == [b"kept"], "looks further back than the marks"
    assert hook.read({(topic, 0): (2, 11)}, 5) == {(topic, 0): []}


def test_deleted_records_raise_the_beginning(
    hook: KafkaProgressHook, broker: Broker, topic: str, producer: Producer
) -> None:
    produce(producer, topic, list("abcdefgh"))
    for done in broker.admin.delete_records([TopicPartition(topic, 0, 5)]).values():
        done.result(30)
    marks = hook.ends([topic])
    assert marks.lows[topic] == {0: 5, 1: 0} and marks.highs[topic] == {0: 8, 1: 0}
    assert [record.offset for record in hook.tails([topic], 100)[topic, 0]] == [5, 6, 7]
    with pytest.raises(SourceError) as refused:
        hook.read({(topic, 0): (0, 8)}, 10)
    assert refused.value.code == "kafka.offset_out_of_range"


def test_offsets_for_a_time_leave_out_partitions_without_a_later_record(
    hook: KafkaProgressHook, topic: str, producer: Producer
) -> None:
    produce(producer, topic, list("abc"), at=1_700_000_000_000)
    assert hook.offsets_at([topic], 1_700_000_000_001) == {topic: {0: 1}}
    assert hook.offsets_at([topic], 1_700_000_000_003) == {topic: {}}


# ---- records


def test_the_tail_is_the_last_records_in_order_with_all_they_carry(
    hook: KafkaProgressHook, topic: str, producer: Producer
) -> None:
    produce(producer, topic, ["a", "b", None], at=1_700_000_000_000)
    last = hook.tails([topic], 2)[topic, 0]
    assert [(r.offset, r.key, r.value, r.timestamp_ms) for r in last] == [
        (1, b"1", b"b", 1_700_000_000_001),
        (2, b"2", None, 1_700_000_000_002),
    ]
    assert hook.tails([topic], 2)[topic, 1] == []


def test_windows_of_many_partitions_are_read_together_and_no_further(
    hook: KafkaProgressHook, topic: str, producer: Producer
) -> None:
    produce(producer, topic, [str(n) for n in range(50)])
    produce(producer, topic, [str(n) for n in range(50)], partition=1)
    records = hook.read({(topic, 0): (10, 13), (topic, 1): (40, 50)}, 5)
    assert [record.offset for record in records[topic, 0]] == [10, 11, 12]
    assert [record.offset for record in records[topic, 1]] == [40, 41, 42, 43, 44]


def test_it_joins_no_group_and_commits_nothing(
    hook: KafkaProgressHook, broker: Broker, topic: str, producer: Producer
) -> None:
    produce(producer, topic, ["a"])
    hook.tails([topic], 1)[topic, 0]
    groups = broker.admin.list_consumer_groups(request_timeout=10).result().valid
    assert "airflow-provider-cdc-unused" not in [group.group_id for group in groups]


# ---- refusals


def test_no_broker_is_worth_another_try_and_answered_within_the_deadline(connect: Connect) -> None:
    connect("kafka_none", "kafka", {"bootstrap.servers": "127.0.0.1:1"})
    began = time.monotonic()
    with pytest.raises(UnavailableError, match="Connection refused"):
        KafkaProgressHook("kafka_none", timeout=2).topics()
    assert time.monotonic() - began < 30


def test_a_wrong_password_is_terminal_reported_at_once_and_not_repeated(broker: Broker, connect: Connect) -> None:
    connect("kafka_sasl", "kafka", broker.sasl_settings("s3cret-and-wrong"))
    began = time.monotonic()
    with pytest.raises(SourceError, match="refuses the login") as refused:
        KafkaProgressHook("kafka_sasl").topics()
    assert time.monotonic() - began < 30
    assert refused.value.code == "kafka.login_refused"
    assert "sasl.password" in refused.value.hint and "s3cret" not in str(refused.value)


def test_the_right_password_opens_it_also_from_the_connections_own_fields(broker: Broker, connect: Connect) -> None:
    settings = broker.sasl_settings()
    assert KafkaProgressHook(connect("kafka_sasl", "kafka", settings)).test_connection()[0]
    login, password = settings.pop("sasl.username"), settings.pop("sasl.password")
    connect("kafka_sasl", "kafka", settings, login=login, password=password)
    assert KafkaProgressHook("kafka_sasl").test_connection()[0]


def test_the_connection_forms_test_says_why_it_failed(connect: Connect) -> None:
    connect("kafka_none", "kafka", {"bootstrap.servers": "127.0.0.1:1"})
    fine, text = KafkaProgressHook("kafka_none", timeout=1).test_connection()
    assert not fine and text.startswith("broker: [kafka.unavailable]") and " -> check the addresses" in text


def test_a_broker_that_goes_away_is_an_outage(connect: Connect, tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.services.broker import OwnBroker

    with OwnBroker(tmp_path_factory.mktemp("broker") / "b") as own:
        connect("kafka_own", "kafka", {"bootstrap.servers": own.bootstrap})
        hook = KafkaProgressHook("kafka_own", timeout=3)
        own.create_topic("t")
        assert hook.topics() == {"t": [0]}
        own.pause()
        with pytest.raises(UnavailableError):
            hook.ends(["t"])


# ---- the connection


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("error_cb", "never names code"),
        ("oauth_cb", "never names code"),
        ("plugin.library.paths", "load a library"),
        ("sasl.kerberos.kinit.cmd", "run a program"),
        ("ssl.engine.location", "load a library"),
        ("group.id", "never join a group"),
        ("enable.auto.commit", "never commit"),
        ("isolation.level", "read_committed"),
        ("sasl.pasword", "allowed are sasl.kerberos.keytab"),
        ("debug", "only addresses"),
    ],
)
def test_keys_beyond_the_list_are_refused(connect: Connect, key: str, words: str) -> None:
    connect("kafka_odd", "kafka", {"bootstrap.servers": "h:1", key: "x"})
    with pytest.raises(ConfigurationError, match=words) as refused:
        KafkaProgressHook("kafka_odd").client_config()
    assert key in str(refused.value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sasl.kerberos.principal", "x; id > /tmp/out; true"),
        ("sasl.kerberos.principal", "x$(id)"),
        ("sasl.kerberos.principal", "x\nid"),
        ("sasl.kerberos.principal", "-c/tmp/cache"),
        ("sasl.kerberos.principal", "cdc@CORP\n"),
        ("sasl.kerberos.principal", "%{sasl.password}"),
        ("sasl.kerberos.principal", ""),
        ("sasl.kerberos.keytab", '/etc/x"; id; "'),
        ("sasl.kerberos.keytab", "/etc/`id`"),
        ("sasl.kerberos.keytab", "/etc/$HOME"),
        ("sasl.kerberos.keytab", "-k"),
        ("sasl.kerberos.service.name", "kafka|id"),
    ],
)
def test_a_value_that_reaches_kinits_shell_is_plain_or_refused(connect: Connect, key: str, value: str) -> None:
    connect("kafka_krb", "kafka", {"bootstrap.servers": "h:1", key: value})
    with pytest.raises(ConfigurationError, match="shell command") as refused:
        KafkaProgressHook("kafka_krb").client_config()
    assert key in str(refused.value)


def test_ordinary_kerberos_names_pass(connect: Connect) -> None:
    settings = {
        "bootstrap.servers": "h:1",
        "sasl.kerberos.principal": "cdc_reader/etl-1.corp.example@CORP.EXAMPLE",
        "sasl.kerberos.keytab": "/etc/security/keytabs/cdc-reader_1.keytab",
        "sasl.kerberos.service.name": "kafka",
    }
    assert KafkaProgressHook(connect("kafka_krb", "kafka", settings)).client_config() == settings


def test_every_problem_of_a_connection_is_reported_at_once(connect: Connect) -> None:
    connect("kafka_odd", "kafka", {"group.id": "x", "debug": "all", "ssl.ca.pem": ["a"]})
    with pytest.raises(ConfigurationError) as refused:
        KafkaProgressHook("kafka_odd").client_config()
    assert len(refused.value.problems) == 4


def test_values_become_text_as_librdkafka_reads_it(connect: Connect) -> None:
    connect("kafka_ok", "kafka", {"bootstrap.servers": "h:1", "socket.keepalive.enable": True, "socket.timeout.ms": 5})
    config = KafkaProgressHook("kafka_ok").client_config()
    assert config == {"bootstrap.servers": "h:1", "socket.keepalive.enable": "true", "socket.timeout.ms": "5"}


def test_the_address_may_stand_in_the_connections_own_fields(connect: Connect) -> None:
    connect("kafka_uri", "kafka", {}, host="broker", port=9093)
    assert KafkaProgressHook("kafka_uri").client_config() == {"bootstrap.servers": "broker:9093"}


def test_a_value_librdkafka_refuses_is_a_configuration_error(connect: Connect) -> None:
    connect("kafka_bad", "kafka", {"bootstrap.servers": "h:1", "socket.timeout.ms": "soon"})
    with pytest.raises(ConfigurationError, match=r"socket\.timeout\.ms"):
        KafkaProgressHook("kafka_bad").topics()


def test_secrets_are_masked_in_logs(connect: Connect) -> None:
    from airflow.providers.common.compat.sdk import redact

    connect("kafka_secret", "kafka", {"bootstrap.servers": "h:1", "sasl.password": "long-and-s3cret"})
    KafkaProgressHook("kafka_secret").client_config()
    assert "s3cret" not in str(redact("the password is long-and-s3cret"))
