# SPDX-License-Identifier: Apache-2.0
"""Records nobody can read are counted and reported without their content, and nothing next to them is lost."""

from __future__ import annotations

import pytest

from tests.airflow.shop import PHASES
from tests.system.pipeline_site import PipelineSite
from tests.system.site import demand_refused, records
from tests.system.verdict import unequal

pytestmark = pytest.mark.system


def _row() -> bytes:
    """Return a real change of the table customers."""
    return next(r.value for r in records(1, 1) if r.topic == "shopdb.shop.customers" and r.value)


def _bad() -> dict[str, bytes]:
    return {
        "malformed": b'{"before": nul, "after": {}}',
        "truncated": _row()[: len(_row()) // 2],
        "no text": b"\x00\x00\x00\x00\x07\xff\xfe\x01avro",
        "empty": b"",
        "foreign": b'{"data":[{"id":"1"}],"database":"shop","es":1,"isDdl":false,"table":"customers","type":"INSERT"}',
        "no object": b"[1, 2, 3]",
        "truncated in a character": '{"after": "ü'.encode()[:-1],
        "deep": b"[" * 100_000,
        "over-long": b'{"after": "' + b"x" * 12_000_000,
    }


def test_bad_records_within_and_beyond_the_budget(shop: PipelineSite) -> None:
    bad = _bad()
    topic, first = shop.topic("customers"), PHASES[0]["end_offsets"]["shopdb.shop.customers"][0]
    shop.produce(topic, *bad.values())
    refused = shop.site.sync()  # the topic names their table: the others are there
    assert (refused.code, refused.json["status"], refused.json["quarantined"]) == (3, "parked", len(bad)), refused.err
    (parked,) = refused.json["parked"]
    assert f"[land.quarantine_exceeded] {len(bad)} records" in parked["reason"]
    assert unequal(shop.site, 0).keys() == {"customers"}
    quarantine = refused.json["quarantine"]
    assert [entry["offset"] for entry in quarantine] == list(range(first, first + len(bad)))
    assert {(entry["topic"], entry["partition"]) for entry in quarantine} == {(topic, 0)}
    assert all(entry["error_code"] and entry["error"] for entry in quarantine)
    assert "xxxx" not in refused.out + refused.err, "no content of records in messages"

    shop.site.changes["policy"]["quarantine_limit"] = len(bad)
    done = shop.site.sync()
    assert (done.code, done.json["status"]) == (0, "done"), done.err
    assert unequal(shop.site, 0) == {}

    # the rows behind the bad ones are read, and those of all batches count
    shop.feed(1, same_offsets=False)
    shop.produce(topic, bad["malformed"], partition=1)
    parked = shop.site.sync()
    assert (parked.code, parked.json["quarantined"]) == (3, 1), parked.err
    shop.site.changes["policy"]["quarantine_limit"] = len(bad) + 1
    done = shop.site.sync()
    assert done.code == 0, done.err
    assert unequal(shop.site, 1) == {}


def test_a_bad_record_in_the_schema_topic_is_counted_too(shop: PipelineSite) -> None:
    shop.produce(shop.prefix, b'{"ddl": 17')
    demand_refused(shop.site.sync(), 3, "land.quarantine_exceeded", shop.prefix)
    shop.site.changes["policy"]["quarantine_limit"] = 1
    done = shop.site.sync()
    assert (done.code, done.json["quarantined"]) == (0, 1), done.err
    assert unequal(shop.site, 0) == {}
