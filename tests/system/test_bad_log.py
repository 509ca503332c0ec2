# SPDX-License-Identifier: Apache-2.0
"""A log that lost something (offsets expired, topics recreated or gone): clear errors, nothing half done."""

from __future__ import annotations

import pytest

from tests.airflow.shop import PHASES
from tests.system import processes
from tests.system.pipeline_site import PipelineSite
from tests.system.site import demand_refused, error_of
from tests.system.verdict import ledger_faults, unequal, versions

pytestmark = pytest.mark.system


def test_offsets_expired_before_planning(shop: PipelineSite) -> None:
    assert shop.site.sync().code == 0
    before = versions(shop.site.lake)
    shop.feed(1)
    ends = PHASES[0]["end_offsets"]["shopdb.shop.customers"]
    shop.expire(shop.topic("customers"), 0, ends[0] + 10)
    refused = shop.site.sync()
    demand_refused(refused, 3, "kafka.offsets_expired", shop.topic("customers"), str(ends[0]), "rebuild")
    assert versions(shop.site.lake) == before
    assert ledger_faults(shop.site, 1) == []
    assert unequal(shop.site, 0) == {}


def test_offsets_expired_between_planning_and_landing(shop: PipelineSite) -> None:
    shop.leave_planned()
    shop.expire(shop.topic("orders"), 1, 5)
    refused = shop.site.sync()
    demand_refused(refused, 3, "kafka.offsets_expired", shop.topic("orders"), "rebuild")
    assert error_of(refused)["where"]["partition"] == 1
    assert versions(shop.site.lake) == {}
    assert [b["status"] for b in shop.site.batches()] == ["planned"]
    done = shop.site.sync("--accept-loss")
    assert done.code == 0, done.err
    lost = [{"topic": shop.topic("orders"), "partition": 1, "start": 0, "end": 5}]
    assert done.json["seq"] == 2 and done.json["lost"] == lost
    assert "batch 1 can no longer be read and is abandoned" in done.err
    assert [(b["status"], b["lost"]) for b in shop.site.batches()] == [("abandoned", []), ("committed", lost)]
    assert set(unequal(shop.site, 0)) == {"orders"}, "only the table whose records are lost"
    shop.feed(1)
    later = shop.site.sync()
    assert later.code == 3, later.err
    assert [table["table"] for table in later.json["tables"] if table.get("contradictions")] == ["orders"]
    assert set(unequal(shop.site, 1)) == {"orders"}, "later changes do not find the lost rows"


def test_a_batch_that_was_landed_needs_its_records_no_more(shop: PipelineSite) -> None:
    running = shop.site.launch()
    assert running.until(lambda run: (shop.site.log(1) / "manifest.json").exists())
    for pid in running.watch():
        processes.kill(pid)
    assert running.answer().code == 5
    shop.expire(shop.topic("orders"), 1, 5)
    done = shop.site.sync("--accept-loss")
    assert done.code == 0 and "lost" not in done.json, done.err
    assert [b["status"] for b in shop.site.batches()] == ["committed"]
    assert unequal(shop.site, 0) == {}


def test_a_topic_recreated_before_planning(shop: PipelineSite) -> None:
    assert shop.site.sync().code == 0
    shop.recreate(shop.topic("orders"))
    demand_refused(shop.site.sync(), 3, "kafka.topic_recreated", shop.topic("orders"))
    assert ledger_faults(shop.site, 1) == []
    assert unequal(shop.site, 0) == {}


def test_a_topic_recreated_between_planning_and_landing(shop: PipelineSite) -> None:
    shop.leave_planned()
    shop.recreate(shop.topic("orders"))
    shop.produce(shop.topic("orders"), b'{"ts_ms": 1}')
    refused = shop.site.sync()
    demand_refused(refused, 3, "kafka.topic_recreated", shop.topic("orders"), "--accept-loss")
    assert versions(shop.site.lake) == {}
    done = shop.site.sync("--accept-loss")
    assert done.code == 0, done.err
    assert [loss["topic"] for loss in done.json["lost"]] == [shop.topic("orders")] * 2
    assert [b["status"] for b in shop.site.batches()] == ["abandoned", "committed"]
    assert set(unequal(shop.site, 0)) == {"orders"}


def test_a_topic_recreated_with_more_records_than_before(shop: PipelineSite) -> None:
    assert shop.site.sync().code == 0
    ends = PHASES[0]["end_offsets"]["shopdb.shop.orders"]
    before = versions(shop.site.lake)
    shop.recreate(shop.topic("orders"))
    for partition, end in enumerate(ends):
        shop.produce(shop.topic("orders"), *[b'{"ts_ms": 1}'] * (end + 10), partition=partition)
    demand_refused(shop.site.sync(), 3, "kafka.topic_recreated", shop.topic("orders"), "--accept-loss")
    assert versions(shop.site.lake) == before and unequal(shop.site, 0) == {}
    done = shop.site.sync("--accept-loss")
    assert done.json["lost"] == [
        {"topic": shop.topic("orders"), "partition": p, "start": end, "end": None} for p, end in enumerate(ends)
    ]
    assert done.json["records"] == sum(ends) + 20, "the new topic is read from its beginning"


def test_a_topic_that_is_gone(shop: PipelineSite) -> None:
    assert shop.site.sync().code == 0
    for done in shop.broker.admin.delete_topics([shop.topic("orders")], operation_timeout=30).values():
        done.result(30)
    refused = shop.site.sync()
    demand_refused(refused, 3, "kafka.topic_gone", shop.topic("orders"))
    assert unequal(shop.site, 0) == {}
