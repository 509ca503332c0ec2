# SPDX-License-Identifier: Apache-2.0
"""Sensors and their triggers over a real broker: what they wait for, what they say, and what they do not block."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from .conftest import Connect
from .shop import DATA, PHASES, Shop, until

if TYPE_CHECKING:
    from tests.services.broker import Broker

pytestmark = pytest.mark.airflow


def shop_time(phase: int) -> datetime:
    return datetime.fromisoformat(PHASES[phase]["window_end"])


NEVER = "2030-01-01T00:00:00+00:00"


async def first_event(trigger: Any) -> dict[str, Any]:
    return dict((await anext(aiter(trigger.run()))).payload)


def sensor(shop: Shop, moment: str, **more: Any) -> Any:
    from airflow_provider_cdc import CdcReceivedSensor

    return CdcReceivedSensor(task_id="wait", pipeline=shop.document(), until=moment, **more)


def test_a_sensor_that_need_not_wait_never_defers(shop: Shop) -> None:
    moment = (shop_time(1) - timedelta(seconds=20)).isoformat()
    for deferrable in (True, False):
        seen = sensor(shop, moment, deferrable=deferrable).execute({})
        assert seen["received"] >= moment


def test_a_sensor_defers_with_a_trigger_that_can_be_built_again(shop: Shop) -> None:
    from airflow.providers.common.compat.sdk import TaskDeferred

    from airflow_provider_cdc.triggers.condition import CdcConditionTrigger

    with pytest.raises(TaskDeferred) as deferred:
        sensor(shop, NEVER, deferrable=True, timeout=5).execute({})
    assert deferred.value.timeout is not None
    path, arguments = deferred.value.trigger.serialize()
    assert path.rsplit(".", 1)[1] == CdcConditionTrigger.__name__
    again = CdcConditionTrigger(**json.loads(json.dumps(arguments)))
    assert again.serialize() == (path, arguments)
    assert "bootstrap" not in json.dumps(arguments)


def test_a_trigger_reads_outside_the_event_loop_and_names_the_partition(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_cdc.sources.kafka_log import KafkaLog
    from airflow_provider_cdc.triggers.condition import CdcConditionTrigger

    readers = set()
    topics = KafkaLog.topics

    def noted(log: KafkaLog) -> Any:
        readers.add(threading.get_ident())
        return topics(log)

    monkeypatch.setattr(KafkaLog, "topics", noted)
    event = asyncio.run(first_event(CdcConditionTrigger("received", shop.document(), 0.2, time.time(), until=NEVER)))
    assert event["status"] == "timeout"
    assert "shopdb.shop.customers/" in event["message"]
    assert readers and threading.get_ident() not in readers


def test_a_trigger_ends_at_what_waiting_does_not_end(shop: Shop) -> None:
    from airflow_provider_cdc.triggers.condition import CdcConditionTrigger

    shop.changes = {"source": {"topics": "nowhere"}}
    trigger = CdcConditionTrigger("received", shop.document(), 1, time.time() + 60, until=until(1))
    event = asyncio.run(first_event(trigger))
    assert (event["status"], "kafka.topic_unknown" in event["message"]) == ("failed", True)


def test_a_broker_that_is_away_is_waited_for(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    away = json.dumps({"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}})
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_KAFKA", away)
    seen = sensor(shop, until(1)).poke({})
    assert not seen.is_done


@pytest.mark.parametrize("deferrable", [True, False])
@pytest.mark.parametrize("soft_fail", [True, False])
def test_an_error_of_the_configuration_fails_also_with_soft_fail(
    shop: Shop, *, deferrable: bool, soft_fail: bool
) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    how = {"deferrable": deferrable, "soft_fail": soft_fail}
    with pytest.raises(AirflowFailException, match="'soon' is not an ISO time"):
        sensor(shop, "soon", **how).execute({})
    shop.changes = {"source": {"topics": "nowhere"}}
    with pytest.raises(AirflowFailException, match=r"kafka\.topic_unknown"):
        sensor(shop, NEVER, **how).execute({})


@pytest.mark.parametrize("soft_fail", [True, False])
def test_an_error_of_the_configuration_in_the_triggerer_fails_also_with_soft_fail(
    shop: Shop, *, soft_fail: bool
) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    event = {"status": "failed", "message": "[kafka.topic_unknown] no topic", "configuration": True}
    with pytest.raises(AirflowFailException, match="no topic"):
        sensor(shop, NEVER, soft_fail=soft_fail).resume_execution("execute_complete", {"event": event}, {})


# ---- timeouts


def test_every_way_of_waiting_names_in_its_timeout_what_holds_back(shop: Shop) -> None:
    from airflow.providers.common.compat.sdk import AirflowSensorTimeout, TaskDeferred

    names = r"shopdb\.shop\.customers/\d"
    with pytest.raises(AirflowSensorTimeout, match=names):
        sensor(shop, NEVER, timeout=0, poke_interval=0).execute({})
    with pytest.raises(AirflowSensorTimeout, match=names):
        sensor(shop, NEVER, timeout=0, mode="reschedule").execute({"ti": FirstRun()})
    waiting = sensor(shop, NEVER, timeout=0, deferrable=True)
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    event = asyncio.run(first_event(deferred.value.trigger))
    with pytest.raises(AirflowSensorTimeout, match=names):
        waiting.resume_execution("execute_complete", {"event": event}, {})


class FirstRun:
    """Stand for a task instance that was rescheduled an hour ago."""

    dag_id, run_id, task_id, map_index, try_number = "shop_hourly", "run 1", "wait", -1, 1

    def xcom_push(self, key: str, value: Any) -> None:
        """Take what a link sets."""

    def get_first_reschedule_date(self, context: Any) -> datetime:
        from airflow.providers.common.compat.sdk import timezone

        return timezone.utcnow() - timedelta(hours=1)


def test_the_execution_timeout_holds_while_deferred(shop: Shop) -> None:
    from airflow.providers.common.compat.sdk import AirflowSensorTimeout, AirflowTaskTimeout, TaskDeferred

    waiting = sensor(shop, NEVER, timeout=7200, execution_timeout=timedelta(seconds=30), deferrable=True)
    before = time.time()
    with pytest.raises(TaskDeferred) as deferred:
        waiting.execute({})
    trigger = deferred.value.trigger
    assert before + 30 <= trigger.deadline <= time.time() + 30
    trigger.deadline = time.time()
    event = asyncio.run(first_event(trigger))
    assert (event["status"], event["limit"]) == ("timeout", "execution_timeout")
    with pytest.raises(AirflowTaskTimeout, match=r"execution_timeout.*shopdb\.shop"):
        waiting.resume_execution("execute_complete", {"event": event}, {})
    with pytest.raises(AirflowSensorTimeout, match=r"\(timeout\)"):
        waiting.resume_execution("execute_complete", {"event": {**event, "limit": "timeout"}}, {})


@pytest.mark.parametrize("deferrable", [True, False])
def test_a_skipped_task_says_why_in_its_log(
    shop: Shop, capsys: pytest.CaptureFixture[str], *, deferrable: bool
) -> None:
    from airflow.providers.common.compat.sdk import AirflowSkipException, TaskDeferred

    waiting = sensor(shop, NEVER, timeout=0, soft_fail=True, deferrable=deferrable)
    with pytest.raises(AirflowSkipException, match=r"shopdb\.shop\.customers"):
        try:
            waiting.execute({})
        except TaskDeferred as deferred:
            event = asyncio.run(first_event(deferred.trigger))
            waiting.resume_execution("execute_complete", {"event": event}, {})
    (line,) = [line for line in capsys.readouterr().out.splitlines() if "skipped: " in line]
    assert "shopdb.shop.customers/" in line


# ---- brokers that are away


def test_dead_brokers_starve_no_sensor_of_another_broker(
    shop: Shop, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_cdc.sources.kafka_log import KafkaLog
    from airflow_provider_cdc.triggers.condition import CdcConditionTrigger

    over = threading.Event()
    topics = KafkaLog.topics

    def silent(log: KafkaLog) -> Any:
        if log.kafka_conn_id.startswith("dead"):
            over.wait()
        return topics(log)

    monkeypatch.setattr(KafkaLog, "topics", silent)
    moment = (shop_time(1) - timedelta(seconds=20)).isoformat()
    good = CdcConditionTrigger("received", shop.document(), 1, time.time() + 600, until=moment)
    dead = []
    for number in range(25):
        # Some share an address, and each reads other topics.
        connect(f"dead{number}", "kafka", {"bootstrap.servers": f"127.0.0.1:{number % 5 + 1}"})
        shop.changes = {"source": {"connection": f"dead{number}", "topics": f"topic{number}"}}
        dead.append(CdcConditionTrigger("received", shop.document(), 1, time.time() + 600, until=moment))

    async def wait() -> dict[str, Any] | None:
        others = [asyncio.create_task(first_event(trigger)) for trigger in dead]
        await asyncio.sleep(0.1)
        mine = asyncio.create_task(first_event(good))
        await asyncio.wait([mine], timeout=60)
        over.set()
        for task in others:
            task.cancel()
        return mine.result() if mine.done() else None

    event = asyncio.run(wait())
    assert event is not None, "the sensor of the good broker waits for the dead ones"
    assert event["status"] == "reached"


# ---- lag, applied tables and health


def synced(shop: Shop, moment: str | None) -> dict[str, Any]:
    from airflow_provider_cdc import CdcSyncOperator

    return dict(CdcSyncOperator(task_id="sync", pipeline=shop.document(), until=moment).execute({}))


def deferred_trigger(task: Any) -> Any:
    """Return what a task defers with, after a journey through JSON."""
    from airflow.providers.common.compat.sdk import TaskDeferred

    with pytest.raises(TaskDeferred) as deferred:
        task.execute({})
    _, arguments = deferred.value.trigger.serialize()
    return type(deferred.value.trigger)(**json.loads(json.dumps(arguments)))


def test_lag_applied_and_health_over_a_life(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    from airflow.providers.common.compat.sdk import AirflowFailException

    from airflow_provider_cdc import CdcAppliedSensor, CdcHealthSensor, CdcLagSensor

    pipeline, early, late = shop.document(), until(0), (shop_time(1) - timedelta(seconds=20)).isoformat()

    def lagging(**arguments: Any) -> Any:
        return CdcLagSensor(task_id="lag", pipeline=pipeline, **arguments)

    def applied(moment: str, **arguments: Any) -> Any:
        return CdcAppliedSensor(task_id="applied", pipeline=pipeline, until=moment, **arguments)

    assert not lagging(max_records=0).poke({})
    assert not applied(early).poke({})
    assert CdcHealthSensor(task_id="health", pipeline=pipeline).poke({})
    synced(shop, early)
    assert applied(early, tables=["shop.customers"]).poke({}).xcom_value["seq"] == 1
    assert not applied(late).poke({})
    behind = lagging(max_records=0, deferrable=True, timeout=3600, poke_interval=0.2)
    trigger = deferred_trigger(behind)
    waiting = deferred_trigger(applied(late, deferrable=True, timeout=3600, poke_interval=0.2))
    with pytest.raises(AirflowFailException, match=r"above; .*shopdb\.shop\.\w+/\d"):
        lagging(max_records=0, raise_above=True).execute({})

    async def both() -> list[dict[str, Any]]:
        looks = [asyncio.create_task(first_event(one)) for one in (trigger, waiting)]
        await asyncio.to_thread(synced, shop, None)
        await asyncio.to_thread(synced, shop, late)
        return list(await asyncio.gather(*looks))

    lag_event, applied_event = asyncio.run(both())
    assert (lag_event["status"], lag_event["value"]["records"]) == ("reached", 0)
    assert applied_event["status"] == "reached"
    # The recorded hours are in the past: the log itself is behind our clock by far more than a minute.
    assert not lagging(max_lag=timedelta(minutes=1), of="received").poke({})
    assert behind.resume_execution("execute_complete", {"event": lag_event}, {})["partitions"] == {}
    assert "shopdb.shop" in capsys.readouterr().out


def test_a_destructive_schema_change_is_seen_before_a_batch(shop: Shop, filled: Broker) -> None:
    from confluent_kafka import Producer

    from airflow_provider_cdc import CdcSchemaChangeSensor
    from tests.services import capture

    filled.create_topic("later_changes")
    producer = Producer(dict(shop.connection))
    first_after_the_snapshot = PHASES[0]["end_offsets"]["shopdb"][0]
    for record in capture.read(DATA):
        if record.topic == "shopdb" and record.offset >= first_after_the_snapshot:
            producer.produce("later_changes", key=record.key, value=record.value)
    producer.flush()

    def waiting(topic: str, **arguments: Any) -> list[str]:
        shop.changes = {"source": {"schema_topic": topic}}
        answer = CdcSchemaChangeSensor(task_id="ddl", pipeline=shop.document(), **arguments).poke({})
        return [change["text"] for change in answer.xcom_value["changes"]] if answer else []

    assert waiting("shopdb") == [], "a snapshot describes its tables, it changes none"
    assert "ALTER TABLE addresses DROP COLUMN fax" in waiting("later_changes")
    assert waiting("later_changes", kinds=["destructive"], tables=["shop.nothing"]) == []


def test_a_rescheduled_lag_sensor_goes_on_counting(shop: Shop) -> None:
    from airflow_provider_cdc import CdcLagSensor

    store: dict[str, Any] = {}

    class Store:
        """Stands for Airflow's store, which outlives a process."""

        def get(self, key: str) -> Any:
            return store.get(key)

        def set(self, key: str, value: Any) -> None:
            store[key] = json.loads(json.dumps(value))

    def poke() -> bool:
        sensor = CdcLagSensor(
            task_id="lag", pipeline=shop.document(), max_records=10**9, for_looks=3, mode="reschedule"
        )
        return bool(sensor.poke({"task_state_store": Store()}))

    assert [poke() for _ in range(3)] == [False, False, True]
