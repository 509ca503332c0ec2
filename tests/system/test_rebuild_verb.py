# SPDX-License-Identifier: Apache-2.0
"""The verb ``rebuild``: tables are made again from the change log, whatever happened at their locations."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from deltalake import DeltaTable

from tests.system.pipeline_site import PipelineSite
from tests.system.verdict import unequal

pytestmark = pytest.mark.system


@pytest.fixture
def ground(request: pytest.FixtureRequest) -> PipelineSite:
    """Return a pipeline whose tables hold the shop's first phase."""
    topics: PipelineSite = request.getfixturevalue("shop")
    assert topics.site.sync().code == 0
    return topics


def test_tables_that_are_deleted_or_changed_by_others_are_made_again(ground: PipelineSite) -> None:
    shutil.rmtree(ground.site.location("customers"))
    DeltaTable(str(ground.site.location("orders"))).delete()
    ground.feed(1)
    parked = ground.site.sync()
    reasons = {line["table"]: line["reason"] for line in parked.json["parked"]}
    assert set(reasons) == {"customers", "orders"}
    assert "[sink.missing]" in reasons["customers"] and "airflow-cdc rebuild" in reasons["customers"]
    assert "[sink.changed_by_other]" in reasons["orders"]

    one = ground.site.command("rebuild", "shop.customers")
    assert one.code == 3, "shop.orders is parked still"
    actions = {line["table"]: (line["action"], line["state"]) for line in one.json["tables"]}
    assert actions == {"customers": ("create", "ok"), "orders": ("", "parked")}
    done = ground.site.command("rebuild", "shop.orders", "shop.customers")
    assert (done.code, done.json["status"], done.json["records"]) == (0, "done", 0), done.err
    assert {line["table"]: line["action"] for line in done.json["tables"]} == {
        "customers": "overwrite",
        "orders": "overwrite",
    }
    assert unequal(ground.site, 1) == {}

    ground.feed(2)
    after = ground.site.sync()
    assert (after.code, after.json["parked"]) == (0, []), after.err
    assert unequal(ground.site, 2) == {}


def test_a_table_whose_rows_left_the_change_log_stays_as_it_is(ground: PipelineSite) -> None:
    version = DeltaTable(str(ground.site.location("customers"))).version()
    for file in ground.site.log(1).glob("*.parquet"):
        file.unlink()
    failed = ground.site.command("rebuild", "shop.customers")
    assert (failed.code, failed.json["status"]) == (3, "parked"), failed.err
    (line,) = failed.json["tables"]
    assert (line["table"], line["state"], line["action"]) == ("customers", "ok", "")
    assert "[log.missing]" in line["reason"]
    assert ground.site.tables()["customers"]["state"] == "ok"
    assert DeltaTable(str(ground.site.location("customers"))).version() == version

    ground.feed(1)
    after = ground.site.sync()
    assert (after.code, after.json["status"]) == (0, "done"), after.err
    assert unequal(ground.site, 1) == {}


def test_without_an_ad_hoc_snapshot_a_table_stays_as_it_is(ground: PipelineSite) -> None:
    for options in ([], ["--since", "2020-01-01T00:00:00Z"]):
        failed = ground.site.command("rebuild", "shop.customers", "--from", "snapshot", *options)
        assert (failed.code, failed.json["status"], failed.json["parked"]) == (3, "parked", []), failed.err
        (line,) = failed.json["tables"]
        assert (line["table"], line["state"]) == ("customers", "ok")
        assert "[rebuild.no_snapshot]" in line["reason"] and "run sync" in line["reason"]
    assert unequal(ground.site, 0) == {}


def test_a_table_that_is_not_there_or_files_without_a_time_are_problems_of_the_command(ground: PipelineSite) -> None:
    untimed = ground.site.command("rebuild", "shop.customers", "--from", "customers.parquet")
    assert (untimed.code, untimed.json["error"]["code"]) == (2, "configuration") and "needs since" in untimed.err
    refused = ground.site.command("rebuild", "shop.custmers")
    assert refused.code == 2
    assert json.loads(refused.out)["error"]["code"] == "configuration"
    assert "did you mean 'shop.customers'?" in refused.err
    assert len(ground.site.batches()) == 1


def test_a_signal_asks_the_connector_for_an_incremental_snapshot(ground: PipelineSite) -> None:
    topic = f"{ground.prefix}.signals"
    ground.site.changes["source"]["signal_topic"] = topic
    missing = ground.site.command("rebuild", "shop.orders", "--signal")
    assert (missing.code, missing.json["error"]["code"]) == (2, "kafka.topic_unknown"), missing.out
    ground.broker.create_topic(topic, 1)
    before = datetime.now(UTC)
    sent = ground.site.command("rebuild", "shop.orders", "shop.customers", "--signal")
    assert sent.code == 0, sent.err
    assert (sent.json["topic"], sent.json["tables"]) == (topic, ["shop.orders", "shop.customers"])
    assert before - timedelta(seconds=10) < datetime.fromisoformat(sent.json["since"]) < datetime.now(UTC)
    (record,) = _records(ground, topic)
    assert record.key() == ground.prefix.encode()
    assert json.loads(record.value()) == {
        "type": "execute-snapshot",
        "data": {"data-collections": [r"shop\.orders", r"shop\.customers"], "type": "INCREMENTAL"},
    }
    unknown = ground.site.command("rebuild", "shop.order", "--signal")
    assert unknown.code == 2 and "did you mean 'shop.orders'" in unknown.json["error"]["message"]
    assert len(_records(ground, topic)) == 1, "nothing was sent for a table that is not known"
    assert ground.site.sync().code == 0, "signals are not read"


def _records(ground: PipelineSite, topic: str) -> list[Any]:
    consumer = Consumer({"bootstrap.servers": ground.broker.bootstrap, "group.id": "signals"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=60)
    records = consumer.consume(end, timeout=60)
    consumer.close()
    return list(records)
