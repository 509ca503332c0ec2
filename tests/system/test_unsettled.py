# SPDX-License-Identifier: Apache-2.0
"""Tables that wait or are parked while the log brings nothing new: each wait ends, and no engine starts in vain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.airflow.shop import until
from tests.services import capture
from tests.services.broker import Broker
from tests.system.pipeline_site import PipelineSite
from tests.system.site import Running, Site, records, source
from tests.system.verdict import unequal

pytestmark = pytest.mark.system


@pytest.fixture
def shop(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> PipelineSite:
    """Return a pipeline whose topics hold the shop's first phase without any schema change."""
    prefix = "u" + "".join(c for c in request.node.name if c.isalnum())[-60:]
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap}, {"source": source(prefix)})
    broker.create_topic(prefix)
    rows = [record for record in records(0, 0, prefix) if record.topic != prefix]
    capture.replay(broker, rows)
    return PipelineSite(site, broker, prefix)


def _engines(running: Running) -> int:
    return sum("launch/run.py" in line for line in running.children.values())


def test_a_table_that_waits_is_named_and_ends_parked_without_an_engine(shop: PipelineSite) -> None:
    first = shop.site.sync()
    assert (first.code, first.json["status"]) == (5, "waiting"), first.err
    waiting = {line["table"] for line in first.json["waiting"]}
    assert {"customers", "orders"} <= waiting
    shop.site.changes["policy"] = {"ddl_grace_seconds": 0}  # as if the time had passed
    running = shop.site.launch()
    ended = running.watched_answer()
    assert (ended.code, ended.json["status"]) == (3, "parked"), ended.err
    assert {line["table"] for line in ended.json["parked"]} == waiting
    assert all("CREATE TABLE" in line["reason"] for line in ended.json["parked"])
    assert _engines(running) == 0
    again = shop.site.launch()
    assert (again.watched_answer().code, _engines(again)) == (3, 0)


def test_a_schema_change_that_arrives_ends_the_wait(shop: PipelineSite) -> None:
    assert shop.site.sync().code == 5
    changes = [record for record in records(0, 0, shop.prefix) if record.topic == shop.prefix]
    capture.replay(shop.broker, changes)
    done = shop.site.sync()
    assert (done.code, done.json["status"], done.json["waiting"]) == (0, "done", []), done.err
    assert unequal(shop.site, 0) == {}


def test_a_repeated_request_leaves_the_unfinished_batch_of_another_one_alone(shop: PipelineSite) -> None:
    shop.site.changes["policy"] = {"ddl_grace_seconds": 0}
    assert shop.site.sync("--until", until(0)).code == 5
    rows = [record for record in records(1, 1, shop.prefix) if record.topic != shop.prefix]
    capture.replay(shop.broker, rows)
    shop.leave_planned()
    again = shop.site.sync("--until", until(0))
    assert (again.code, again.json["status"]) == (5, "waiting"), again.out + again.err
    assert shop.site.batches()[-1]["status"] == "planned"


def test_a_data_file_that_was_lost_and_is_put_back_frees_its_table(shop: PipelineSite) -> None:
    capture.replay(shop.broker, [record for record in records(0, 0, shop.prefix) if record.topic == shop.prefix])
    assert shop.site.sync().code == 0
    lost = sorted(shop.site.location("customers").glob("*.parquet"))
    for file in lost:
        file.rename(shop.site.folder / file.name)
    capture.replay(shop.broker, list(records(1, 1, shop.prefix)))
    parked = shop.site.sync()
    assert (parked.code, parked.json["status"]) == (3, "parked"), parked.err
    assert [line["table"] for line in parked.json["parked"]] == ["customers"]
    assert "[sink.file_missing]" in parked.json["parked"][0]["reason"]
    running = shop.site.launch()
    assert (running.watched_answer().code, _engines(running)) == (3, 0)
    for file in lost:
        (shop.site.folder / file.name).rename(file)
    freed = shop.site.sync()
    assert (freed.code, freed.json["parked"]) == (0, []), freed.err
    assert unequal(shop.site, 1) == {}
