# SPDX-License-Identifier: Apache-2.0
"""Planning against a real broker and a real ledger: the same request gets the same batch, and each record one batch."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer, TopicPartition

from airflow_provider_cdc.batch.planner import has_rows_before, made_again, observe, plan_batch, plan_settling
from airflow_provider_cdc.core.config import CdcPipeline, DeltaSink, KafkaSource
from airflow_provider_cdc.core.errors import SourceError
from airflow_provider_cdc.core.plan.progress import received
from airflow_provider_cdc.hooks.kafka import KafkaProgressHook
from airflow_provider_cdc.ledger import Lease, Ledger

from .conftest import Connect

if TYPE_CHECKING:
    from tests.services.broker import Broker

TEN = datetime(2026, 11, 21, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


class Shop:
    """A pipeline over topics of its own."""

    def __init__(self, broker: Broker, hook: KafkaProgressHook, folder: Path) -> None:
        self.prefix = f"p{uuid.uuid4().hex}"
        self.orders, self.items = f"{self.prefix}.shop.orders", f"{self.prefix}.shop.items"
        self.beat = f"{self.prefix}.heartbeat"
        self.broker, self.hook = broker, hook
        broker.create_topics({self.orders: 2, self.items: 1, self.prefix: 1})
        self.ledger = Ledger(f"sqlite:///{folder / 'ledger.db'}")
        self.lease: Lease = self.ledger.lease("shop", "test", 60)
        self.producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})
        self.pipeline = CdcPipeline(
            name="shop",
            source=KafkaSource(
                topics=rf"{self.prefix}\.shop\..*",
                format="debezium-json",
                connection=hook.kafka_conn_id,
                schema_topic=self.prefix,
                heartbeat_topic=self.beat,
            ),
            sink=DeltaSink(root=str(folder)),
        )

    def rows(self, topic: str, *times: datetime, partition: int = 0, written: datetime | None = None) -> None:
        """Write one row for each source time; Kafka's own time is the same unless `written` says otherwise."""
        for moment in times:
            value = {"op": "c", "before": None, "after": {"id": 1}, "source": _source(moment), "ts_ms": _ms(moment)}
            self._send(topic, value, written or moment, partition)

    def heartbeat(self, moment: datetime, topic: str = "") -> None:
        self._send(topic or self.beat, {"ts_ms": _ms(moment)}, moment, 0)

    def _send(self, topic: str, value: Any, written: datetime, partition: int) -> None:
        self.producer.produce(topic, json.dumps(value), partition=partition, timestamp=_ms(written))
        assert self.producer.flush(30) == 0

    def recreate(self, topic: str) -> None:
        """Delete a topic and make it again, empty."""
        partitions = len(self.hook.topics()[topic])
        for done in self.broker.admin.delete_topics([topic], operation_timeout=30).values():
            done.result(30)
        deadline = time.monotonic() + 60
        while topic in self.hook.topics() and time.monotonic() < deadline:
            time.sleep(0.1)
        self.broker.create_topic(topic, partitions)
        while topic not in self.hook.topics() and time.monotonic() < deadline:
            time.sleep(0.1)

    def plan(self, until: datetime | None = None, **options: Any) -> Any:
        return plan_batch(self.pipeline, self.ledger, self.lease, self.hook, until, **options)

    def done(self, until: datetime | None = None) -> Any:
        batch = self.plan(until)
        return self.ledger.commit(self.lease, batch.seq, {"rows": batch.records})


def _ms(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)


def _source(moment: datetime) -> dict[str, Any]:
    return {
        "connector": "mysql", "name": "x", "ts_ms": _ms(moment), "snapshot": "false", "db": "shop", "table": "orders",
        "file": "binlog.000001", "pos": 4, "row": 0,
    }  # fmt: skip


@pytest.fixture
def shop(broker: Broker, connect: Connect, tmp_path: Path) -> Iterator[Shop]:
    hook = KafkaProgressHook(connect("kafka_plan", "kafka", {"bootstrap.servers": broker.bootstrap}))
    made = Shop(broker, hook, tmp_path)
    yield made
    made.lease.release()


def test_batches_in_a_row_take_each_record_once(shop: Shop) -> None:
    shop.rows(shop.orders, TEN, TEN)
    first = shop.plan()
    assert first.start[shop.orders] == {0: 0, 1: 0} and first.end[shop.orders] == {0: 2, 1: 0}
    assert set(first.end) == {shop.orders, shop.items, shop.prefix} and not first.committed
    shop.ledger.commit(shop.lease, first.seq, {})
    shop.rows(shop.orders, TEN, partition=1)
    second = shop.plan()
    assert (second.seq, second.start, second.records) == (2, first.end, 1)


def test_a_batch_that_is_not_finished_comes_back_whatever_is_asked(shop: Shop) -> None:
    shop.rows(shop.orders, TEN)
    batch = shop.plan()
    shop.rows(shop.orders, TEN)
    assert shop.plan() == shop.plan(TEN + MINUTE) == batch
    shop.ledger.commit(shop.lease, 1, {})
    assert shop.plan().seq == 2


def test_a_request_gets_its_batch_again_after_it_is_committed(shop: Shop) -> None:
    shop.rows(shop.orders, TEN - MINUTE, TEN + MINUTE, TEN + 2 * MINUTE)
    first = shop.done(TEN)
    assert first.end[shop.orders][0] == 1
    shop.done(TEN + 90 * timedelta(seconds=1))
    assert shop.plan(TEN) == first
    assert shop.plan(TEN - timedelta(hours=1)) == first, "reached by a later request"
    assert len(shop.ledger.batches("shop")) == 2


def test_nothing_new_is_committed_at_once_and_remembered(shop: Shop) -> None:
    shop.rows(shop.orders, TEN)
    shop.done()
    empty = shop.plan(TEN + MINUTE)
    assert empty.committed and empty.records == 0 and empty.result is not None and empty.result["status"] == "empty"
    assert empty.seq == 2 and empty.until == TEN + MINUTE
    assert shop.plan(TEN + MINUTE) == empty


def test_heartbeats_alone_start_nothing(shop: Shop) -> None:
    shop.broker.create_topic(shop.beat)
    shop.rows(shop.orders, TEN)
    shop.heartbeat(TEN)
    shop.done()
    shop.heartbeat(TEN + MINUTE)
    batch = shop.plan()
    assert batch.committed and batch.end[shop.beat] == {0: 2}


def test_until_takes_what_the_tool_wrote_late(shop: Shop) -> None:
    # The tool was down from ten to noon: a change of 09:59 is written at 12:00.
    noon = TEN + timedelta(hours=2)
    shop.rows(shop.orders, TEN - 2 * MINUTE)
    shop.rows(shop.orders, TEN - MINUTE, TEN + MINUTE, noon, written=noon)
    batch = shop.plan(TEN)
    assert batch.end[shop.orders][0] == 2, "up to the first row that is certainly later"


def test_until_reads_on_when_nothing_proves_the_end(shop: Shop) -> None:
    shop.rows(shop.orders, TEN - MINUTE, TEN + timedelta(seconds=1), TEN + timedelta(seconds=2))
    assert shop.plan(TEN).end[shop.orders][0] == 3


def test_a_heartbeat_among_the_rows_proves_nothing_about_their_end(shop: Shop) -> None:
    shop.rows(shop.orders, TEN - 2 * MINUTE)
    shop.heartbeat(TEN + MINUTE, shop.orders)
    shop.rows(shop.orders, TEN - MINUTE, written=TEN + MINUTE)
    assert shop.plan(TEN).end[shop.orders][0] == 3


def test_a_request_that_is_done_is_answered_while_a_later_one_is_open(shop: Shop) -> None:
    shop.rows(shop.orders, TEN - MINUTE, TEN + MINUTE)
    done = shop.done(TEN)
    later = shop.plan(TEN + timedelta(hours=1))
    assert not later.committed and shop.plan(TEN) == done


def test_the_schema_topic_is_read_to_its_end_whatever_was_asked(shop: Shop) -> None:
    shop.rows(shop.orders, TEN - MINUTE, TEN + MINUTE)
    shop.rows(shop.prefix, TEN + 5 * MINUTE)
    batch = shop.plan(TEN)
    assert batch.end[shop.orders][0] == 1 and batch.end[shop.prefix][0] == 1


def test_rows_before_a_time_count_until_they_are_committed_and_the_schema_topic_never(shop: Shop) -> None:
    def before(moment: datetime) -> bool:
        return has_rows_before(shop.pipeline, shop.ledger, shop.hook, moment)

    shop.rows(shop.prefix, TEN - MINUTE)
    shop.rows(shop.orders, TEN + MINUTE)
    assert not before(TEN) and before(TEN + 2 * MINUTE)
    batch = shop.plan(TEN + 2 * MINUTE)
    assert before(TEN), "an unfinished batch comes first"
    shop.ledger.commit(shop.lease, batch.seq, {})
    assert not before(TEN + 2 * MINUTE)


def test_a_topic_that_appears_joins_at_its_beginning(shop: Shop) -> None:
    shop.rows(shop.orders, TEN)
    shop.done()
    late = f"{shop.prefix}.shop.late"
    shop.broker.create_topic(late)
    shop.rows(late, TEN, TEN)
    batch = shop.plan()
    assert batch.start[late] == {0: 0} and batch.end[late] == {0: 2}


def test_records_that_expired_unread_stop_the_pipeline_until_the_loss_is_accepted(shop: Shop) -> None:
    shop.rows(shop.orders, TEN)
    shop.done()
    shop.rows(shop.orders, TEN, TEN, TEN)
    for done in shop.broker.admin.delete_records([TopicPartition(shop.orders, 0, 3)]).values():
        done.result(30)
    with pytest.raises(SourceError) as refused:
        shop.plan()
    assert refused.value.code == "kafka.offsets_expired" and "deleted 2 records" in refused.value.message
    batch = shop.plan(accept_loss=True)
    assert (batch.start[shop.orders][0], batch.end[shop.orders][0]) == (3, 4)
    assert batch.lost == [{"topic": shop.orders, "partition": 0, "start": 1, "end": 3}]


def test_a_topic_deleted_under_the_pipeline_stops_it(shop: Shop) -> None:
    shop.rows(shop.items, TEN)
    shop.done()
    for done in shop.broker.admin.delete_topics([shop.items]).values():
        done.result(30)
    deadline = time.monotonic() + 60
    while shop.items in shop.hook.topics() and time.monotonic() < deadline:
        time.sleep(0.1)
    with pytest.raises(SourceError) as refused:
        shop.plan()
    assert refused.value.code == "kafka.topic_gone" and refused.value.where["topic"] == shop.items


def test_a_range_follows_the_start_of_an_abandoned_batch(shop: Shop) -> None:
    shop.rows(shop.orders, TEN, TEN, TEN)
    batch = shop.plan()
    for done in shop.broker.admin.delete_records([TopicPartition(shop.orders, 0, 2)]).values():
        done.result(30)
    shop.ledger.abandon(shop.lease, batch.seq)
    with pytest.raises(SourceError) as refused:
        shop.plan()
    assert refused.value.code == "kafka.offsets_expired" and "deleted 2 records" in refused.value.message
    batch = shop.plan(accept_loss=True)
    assert (batch.seq, batch.start[shop.orders][0], batch.end[shop.orders][0]) == (2, 2, 3)
    assert batch.lost == [{"topic": shop.orders, "partition": 0, "start": 0, "end": 2}]


def test_a_topic_made_again_after_planning_is_known(shop: Shop) -> None:
    shop.rows(shop.orders, TEN)
    batch = shop.plan()
    assert made_again(shop.hook, batch) == []
    shop.recreate(shop.orders)
    assert made_again(shop.hook, batch) == [shop.orders]
    assert made_again(shop.hook, batch, shop.orders) == [], "heartbeats are not missed"


@pytest.mark.parametrize("records", [1, 2, 5])
def test_a_topic_made_again_stops_it_whatever_it_holds_now(shop: Shop, records: int) -> None:
    shop.rows(shop.items, TEN, TEN)
    shop.done()
    shop.recreate(shop.items)
    shop.rows(shop.items, *[TEN] * records)
    with pytest.raises(SourceError) as refused:
        shop.plan()
    assert refused.value.code == "kafka.topic_recreated" and refused.value.where["topic"] == shop.items
    assert "--accept-loss" in refused.value.hint
    batch = shop.plan(accept_loss=True)
    assert (batch.start[shop.items], batch.end[shop.items]) == ({0: 0}, {0: records})
    assert batch.lost == [{"topic": shop.items, "partition": 0, "start": 2, "end": None}]
    shop.ledger.commit(shop.lease, batch.seq, {})
    assert shop.plan().records == 0, "the new topic is the known one now"


def test_a_topic_made_again_is_noticed_through_batches_that_did_not_read_it(shop: Shop) -> None:
    shop.rows(shop.items, TEN)
    shop.done()
    known = shop.ledger.last("shop").topics
    assert set(known) == {shop.orders, shop.items, shop.prefix} and len(set(known.values())) == 3
    for seq in (2, 3):  # nothing new, and a batch of a table that is tried again
        batch = shop.plan() if seq == 2 else plan_settling(shop.ledger, shop.lease, "shop")
        assert (batch.seq, batch.topics) == (seq, known)
    shop.ledger.commit(shop.lease, 3, {})
    shop.recreate(shop.items)
    shop.rows(shop.items, TEN, TEN)
    with pytest.raises(SourceError, match="deleted and created again"):
        shop.plan()


def test_the_heartbeat_topic_may_be_made_again(shop: Shop) -> None:
    shop.broker.create_topic(shop.beat)
    shop.rows(shop.orders, TEN)
    shop.heartbeat(TEN)
    shop.done()
    shop.recreate(shop.beat)
    shop.heartbeat(TEN)
    shop.heartbeat(TEN + MINUTE)
    batch = shop.plan()
    assert (batch.start[shop.beat], batch.end[shop.beat]) == ({0: 0}, {0: 2}) and batch.lost == []


def test_a_batch_planned_without_ids_takes_them_as_they_are(shop: Shop) -> None:
    shop.rows(shop.orders, TEN)
    batch = shop.ledger.plan(shop.lease, {shop.orders: {0: 0, 1: 0}}, {shop.orders: {0: 1, 1: 0}}, None)
    assert batch.topics is None
    shop.ledger.commit(shop.lease, 1, {})
    assert set(shop.plan().topics) == {shop.orders, shop.items, shop.prefix}


def test_topics_that_are_not_there_are_named(shop: Shop) -> None:
    source = KafkaSource(["nope"], "debezium-json", connection="kafka_plan", schema_topic="nor.this")
    pipeline = CdcPipeline("other", source, DeltaSink("/data"))
    with shop.ledger.lease("other", "test") as lease, pytest.raises(SourceError, match=r"nope, nor\.this"):
        plan_batch(pipeline, shop.ledger, lease, shop.hook)
    pipeline = CdcPipeline("other", KafkaSource("nope.*", "debezium-json"), DeltaSink("/data"))
    with shop.ledger.lease("other", "test") as lease, pytest.raises(SourceError, match=r"no topic matches 'nope\.\*'"):
        plan_batch(pipeline, shop.ledger, lease, shop.hook)


def test_an_until_without_a_zone_is_refused(shop: Shop) -> None:
    with pytest.raises(ValueError, match="zone"):
        shop.plan(datetime(2026, 11, 21))


def test_observed_facts_show_whether_everything_was_received(shop: Shop) -> None:
    shop.broker.create_topic(shop.beat)
    shop.rows(shop.orders, TEN + MINUTE)
    facts, beats = observe(shop.pipeline, shop.hook)
    answer = received(_ms(TEN), facts, beats)
    assert not answer.reached
    assert {(hold.topic, hold.partition) for hold in answer.holds} == {(shop.orders, 1), (shop.items, 0)}
    shop.heartbeat(TEN + 2 * MINUTE)
    answer = received(_ms(TEN), *observe(shop.pipeline, shop.hook))
    assert answer.reached and answer.proven[shop.orders] == {0: 0, 1: 0}
