# SPDX-License-Identifier: Apache-2.0
"""A log that lost something (offsets expired, topics recreated or gone): clear errors, nothing half done."""

from __future__ import annotations

import pytest

from tests.airflow.shop import PHASES
from tests.system import processes
from tests.system.place import Place
from tests.system.site import demand_refused, error_of
from tests.system.verdict import ledger_faults, unequal, versions

pytestmark = pytest.mark.system


def test_offsets_expired_before_planning(place: Place) -> None:
    assert place.site.sync().code == 0
    before = versions(place.site.lake)
    place.feed(1)
    ends = PHASES[0]["end_offsets"]["shopdb.shop.customers"]
    place.expire(place.topic("customers"), 0, ends[0] + 10)
    refused = place.site.sync()
    demand_refused(refused, 3, "kafka.offsets_expired", place.topic("customers"), str(ends[0]), "rebuild")
    assert versions(place.site.lake) == before
    assert ledger_faults(place.site, 1) == []
    assert unequal(place.site, 0) == {}


def test_offsets_expired_between_planning_and_landing(place: Place) -> None:
    place.leave_planned()
    place.expire(place.topic("orders"), 1, 5)
    refused = place.site.sync()
    demand_refused(refused, 3, "kafka.offsets_expired", place.topic("orders"), "rebuild")
    assert error_of(refused)["where"]["partition"] == 1
    assert versions(place.site.lake) == {}
    assert [b["status"] for b in place.site.batches()] == ["planned"]
    done = place.site.sync("--accept-loss")
    assert done.code == 0, done.err
    lost = [{"topic": place.topic("orders"), "partition": 1, "start": 0, "end": 5}]
    assert done.json["seq"] == 2 and done.json["lost"] == lost
    assert "batch 1 can no longer be read and is abandoned" in done.err
    assert [(b["status"], b["lost"]) for b in place.site.batches()] == [("abandoned", []), ("committed", lost)]
    assert set(unequal(place.site, 0)) == {"orders"}, "only the table whose records are lost"
    place.feed(1)
    assert place.site.sync().code == 0
    assert set(unequal(place.site, 1)) <= {"orders"}


def test_a_batch_that_was_landed_needs_its_records_no_more(place: Place) -> None:
    running = place.site.launch()
    assert running.until(lambda run: (place.site.log(1) / "manifest.json").exists())
    for pid in running.watch():
        processes.kill(pid)
    assert running.answer().code == 5
    place.expire(place.topic("orders"), 1, 5)
    done = place.site.sync("--accept-loss")
    assert done.code == 0 and "lost" not in done.json, done.err
    assert [b["status"] for b in place.site.batches()] == ["committed"]
    assert unequal(place.site, 0) == {}


def test_a_topic_recreated_before_planning(place: Place) -> None:
    assert place.site.sync().code == 0
    place.recreate(place.topic("orders"))
    demand_refused(place.site.sync(), 3, "kafka.topic_recreated", place.topic("orders"))
    assert ledger_faults(place.site, 1) == []
    assert unequal(place.site, 0) == {}


def test_a_topic_recreated_between_planning_and_landing(place: Place) -> None:
    place.leave_planned()
    place.recreate(place.topic("orders"))
    place.produce(place.topic("orders"), b'{"ts_ms": 1}')
    refused = place.site.sync()
    demand_refused(refused, 3, "kafka.topic_recreated", place.topic("orders"), "--accept-loss")
    assert versions(place.site.lake) == {}
    done = place.site.sync("--accept-loss")
    assert done.code == 0, done.err
    assert [loss["topic"] for loss in done.json["lost"]] == [place.topic("orders")] * 2
    assert [b["status"] for b in place.site.batches()] == ["abandoned", "committed"]
    assert set(unequal(place.site, 0)) == {"orders"}


def test_a_topic_recreated_with_more_records_than_before(place: Place) -> None:
    assert place.site.sync().code == 0
    ends = PHASES[0]["end_offsets"]["shopdb.shop.orders"]
    before = versions(place.site.lake)
    place.recreate(place.topic("orders"))
    for partition, end in enumerate(ends):
        place.produce(place.topic("orders"), *[b'{"ts_ms": 1}'] * (end + 10), partition=partition)
    demand_refused(place.site.sync(), 3, "kafka.topic_recreated", place.topic("orders"), "--accept-loss")
    assert versions(place.site.lake) == before and unequal(place.site, 0) == {}
    done = place.site.sync("--accept-loss")
    assert done.json["lost"] == [
        {"topic": place.topic("orders"), "partition": p, "start": end, "end": None} for p, end in enumerate(ends)
    ]
    assert done.json["records"] == sum(ends) + 20, "the new topic is read from its beginning"


def test_a_topic_that_is_gone(place: Place) -> None:
    assert place.site.sync().code == 0
    for done in place.broker.admin.delete_topics([place.topic("orders")], operation_timeout=30).values():
        done.result(30)
    refused = place.site.sync()
    demand_refused(refused, 3, "kafka.topic_gone", place.topic("orders"))
    assert unequal(place.site, 0) == {}
