"""A log that lost something (offsets expired, topics made anew or gone): clear errors, nothing half done."""

from __future__ import annotations

import pytest

from tests.airflow.shop import PHASES
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


def test_a_topic_made_anew_before_planning(place: Place) -> None:
    assert place.site.sync().code == 0
    place.recreate(place.topic("orders"))
    demand_refused(place.site.sync(), 3, "kafka.topic_recreated", place.topic("orders"))
    assert ledger_faults(place.site, 1) == []
    assert unequal(place.site, 0) == {}


def test_a_topic_made_anew_between_planning_and_landing(place: Place) -> None:
    place.leave_planned()
    place.recreate(place.topic("orders"))
    place.produce(place.topic("orders"), b"{}")
    refused = place.site.sync()
    demand_refused(refused, 3, "kafka.end_beyond_log", place.topic("orders"), "rebuild")
    assert versions(place.site.lake) == {}


def test_a_topic_that_is_gone(place: Place) -> None:
    assert place.site.sync().code == 0
    for done in place.broker.admin.delete_topics([place.topic("orders")], operation_timeout=30).values():
        done.result(30)
    refused = place.site.sync()
    demand_refused(refused, 3, "kafka.topic_gone", place.topic("orders"))
    assert unequal(place.site, 0) == {}
