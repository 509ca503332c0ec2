# SPDX-License-Identifier: Apache-2.0
"""The verb ``quarantine``: what could not be carried is listed, exported, repaired, replayed or discarded."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.batch.result import table_states
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.model.check_result import CheckResult
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.surface.checks import CheckedTables, QuarantineBelow
from tests.airflow.shop import rows as stored
from tests.cross_format.canal_json_writer import Writer as CanalJsonWriter
from tests.cross_format.events import Row
from tests.cross_format.oms_canal_writer import Writer as OmsCanalWriter
from tests.histories.searched import holding
from tests.services.broker import Broker
from tests.system.bad_rows import BAD, GOOD, quarantine, repaired, update, waiting
from tests.system.ground import PRICED, Ground, Story
from tests.system.site import Site

pytestmark = pytest.mark.system


@pytest.fixture
def ground(broker: Broker, tmp_path: Path, request: pytest.FixtureRequest) -> Ground:
    topic = "".join(c for c in request.node.name if c.isalnum())[-60:]
    site = Site(tmp_path, {"bootstrap.servers": broker.bootstrap})
    names = {"topics": [f"{topic}.rows"], "schema_topic": f"{topic}.schema", "heartbeat_topic": None}
    site.changes["source"] = names
    return Ground(site, broker, topic)


def rows(lake: Path, database: str, table: str) -> list[dict[str, Any]]:
    return sorted(stored(lake, database, table), key=lambda row: row["id"])


def below(ground: Ground, number: int, *tables: str) -> CheckResult:
    """Check that fewer records than a number wait, of some tables or of all."""
    pipeline = CdcPipeline.from_yaml(ground.site.file())
    states = table_states(Ledger(pipeline.ledger), pipeline.name).values()
    checked = CheckedTables(pipeline, [state for state in states if not tables or state.table in tables])
    return QuarantineBelow(number).run(checked)


def stale(ground: Ground) -> dict[str, int]:
    tables = ground.site.command("tables").json
    return {table["table"]: table["stale_rows"] for table in tables}


def _undecodable(story: Story) -> None:
    story.create("sick")
    story.insert("sick", id=1, v="first")
    story.insert("sick", id=2, v="second")
    story.change_last(lambda value: value.replace(GOOD, BAD))
    update(story, "sick", id=1, v="newer")
    story.create("t0")
    story.insert("t0")


def test_a_repaired_record_goes_to_its_own_position_and_its_table_goes_on(ground: Ground) -> None:
    story = Story(_writer())
    _undecodable(story)
    ground.send(story)
    assert ground.site.sync().code == 3
    (entry,) = waiting(ground)
    assert (entry["kind"], entry["table"], entry["code"]) == ("record", "shop.sick", "record.malformed")
    assert (entry["topic"], entry["partition"], entry["offset"]) == (f"{ground.topic}.rows", 0, 1)
    assert entry["bytes"] > 0
    assert stale(ground) == {"sick": 1, "t0": 0}
    assert (below(ground, 1).tables, below(ground, 1).seen) == (["shop.sick"], "1 records of shop.sick")
    assert below(ground, 2).passed and below(ground, 1, "t0").passed
    (shown,) = quarantine(ground, "show", "--record", f"{ground.topic}.rows/0:1").json
    assert "second" in shown["value"]

    as_it_is = quarantine(ground, "replay")
    assert (as_it_is.code, as_it_is.json["error"]["code"]) == (3, "quarantine.unreadable")

    done = quarantine(ground, "replay", repaired(ground, lambda value: value.replace(BAD, GOOD)), "--by", "ann")
    assert (done.code, done.json["status"]) == (0, "done"), done.out + done.err
    assert rows(ground.site.lake, "shop", "sick") == [{"id": 1, "v": "newer"}, {"id": 2, "v": "second"}]
    assert waiting(ground) == []
    assert stale(ground) == {"sick": 0, "t0": 0}
    assert below(ground, 1).passed
    (settled,) = waiting(ground, "--all")
    assert (settled["decision"]["action"], settled["decision"]["by"]) == ("replay", "ann")
    assert ground.site.sync().code == 0


def test_values_that_stay_out_of_the_change_log_are_in_no_file_of_it(ground: Ground) -> None:
    ground.site.changes["tables"] = {"shop.sick": {"columns": {"unlogged": ["v"]}}}
    story = Story(_writer())
    story.create("sick")
    story.insert("sick", id=1, v="hunter2")
    story.insert("sick", id=2, v="hunter2")
    story.change_last(lambda value: value.replace(GOOD, BAD))
    ground.send(story)
    explained = ground.site.run("plan", "--explain")
    assert "shop.sick: the change log has no values of v: no rebuild, replay or ALTER TABLE gives them" in explained.out
    assert ground.site.sync().code == 3
    (entry,) = waiting(ground)
    assert entry["bytes"] is None
    # the record is still in Kafka
    done = quarantine(ground, "replay", repaired(ground, lambda value: value.replace(BAD, GOOD)), "--by", "ann")
    assert (done.code, done.json["status"]) == (0, "done"), done.out + done.err
    assert rows(ground.site.lake, "shop", "sick") == [{"id": 1}, {"id": 2}]
    assert holding(ground.site.lake, "hunter2") == []
    assert not list(ground.site.lake.rglob("job.json"))  # it has repaired records in base64


def _writer() -> Any:
    from tests.cross_format.debezium_json_writer import Writer

    return Writer()


@pytest.mark.parametrize("wire", ["debezium-json", "oms-canal"])
def test_newer_changes_of_the_key_win(ground: Ground, wire: str) -> None:
    story = Story(_writer() if wire == "debezium-json" else OmsCanalWriter())
    if wire == "debezium-json":
        story.create("sick")
    story.insert("sick", id=1, v="first")
    story.insert("sick", id=2, v="second")
    good = b'"INSERT"' if wire == "oms-canal" else GOOD
    bad = b'"INSERT' if wire == "oms-canal" else BAD
    whole = story.messages[-1]
    story.change_last(lambda value: value.replace(good, bad))
    update(story, "sick", id=2, v="newest")
    create = "CREATE TABLE sick (id INT NOT NULL, v VARCHAR(20), PRIMARY KEY (id))"
    if wire == "oms-canal":
        ground.site.changes["source"] |= {"format": "oms-canal", "schema_topic": None}
        ground.site.changes["tables"] = {"shop.sick": {"create": create}}
    ground.site.changes.setdefault("tables", {}).setdefault("shop.sick", {})["quarantine_limit"] = 1
    ground.site.changes["policy"] = {"quarantine_limit": 1}
    ground.send(story)
    assert ground.site.sync().code == 0
    assert rows(ground.site.lake, "shop", "sick") == [{"id": 1, "v": "first"}, {"id": 2, "v": "newest"}]
    version = ground.site.tables()["sick"]["version"]
    done = quarantine(ground, "replay", repaired(ground, lambda value: whole[0].value or b""))
    assert (done.code, done.json["records"]) == (0, 1), done.out + done.err
    assert rows(ground.site.lake, "shop", "sick") == [{"id": 1, "v": "first"}, {"id": 2, "v": "newest"}]
    assert ground.site.tables()["sick"]["version"] >= version
    assert waiting(ground) == []


def _unfit(story: Story) -> None:
    story.create("sick")
    story.insert("sick", id=1, v="one")
    story.insert("sick", id=2, v="two")
    story.change_last(lambda value: value.replace(b'"id":2', b'"id":"two"'))
    story.create("t0")
    story.insert("t0")


def test_a_row_that_does_not_fit_is_replaced_by_its_repaired_record(ground: Ground) -> None:
    story = Story(_writer())
    _unfit(story)
    ground.send(story)
    assert ground.site.sync().code == 3
    (entry,) = waiting(ground)
    assert (entry["kind"], entry["table"], entry["offset"]) == ("row", "shop.sick", 1)
    (shown,) = quarantine(ground, "show").json
    assert '"two"' in shown["after"]
    done = quarantine(ground, "replay", repaired(ground, lambda value: value.replace(b'"id":"two"', b'"id":2')))
    assert (done.code, done.json["status"]) == (0, "done"), done.out + done.err
    assert rows(ground.site.lake, "shop", "sick") == [{"id": 1, "v": "one"}, {"id": 2, "v": "two"}]
    assert waiting(ground) == []
    again = ground.site.command("replay")
    assert again.code == 0, again.err
    assert len(rows(ground.site.lake, "shop", "sick")) == 2


def test_the_row_before_an_update_is_shown_whole_where_records_name_only_what_changed(ground: Ground) -> None:
    story = Story(CanalJsonWriter())
    old, new = ({"id": 1, "v": Decimal(price)} for price in ("12.50", "1234567890123.50"))
    story.record(Row("insert", "shop", "sick", PRICED, None, old))
    story.record(Row("update", "shop", "sick", PRICED, old, new))
    create = "CREATE TABLE sick (id INT NOT NULL, v DECIMAL(10, 2), PRIMARY KEY (id))"
    ground.site.changes["source"] |= {"format": "canal-json", "schema_topic": None}
    ground.site.changes["tables"] = {"shop.sick": {"create": create}}
    ground.send(story)
    assert ground.site.sync().code == 3
    (shown,) = quarantine(ground, "show").json
    assert json.loads(shown["before"]) == {"id": "1", "v": "12.50"}


def test_another_record_of_a_topic_that_was_made_again_is_not_exported_for_a_row(ground: Ground) -> None:
    story = Story(_writer())
    _unfit(story)
    ground.send(story)
    assert ground.site.sync().code == 3
    topic = f"{ground.topic}.rows"
    for done in ground.broker.admin.delete_topics([topic], operation_timeout=30).values():
        done.result()
    ground.broker.create_topic(topic, 1)
    later = Story(story.writer)
    later.insert("t0", id=7, v="seven")
    later.insert("t0", id=8, v="eight")
    ground.append(later)
    assert ground.site.sync("--accept-loss").code == 3
    exported = quarantine(ground, "export", str(ground.site.folder / "records.jsonl"))
    assert (exported.json["records"], exported.json["missing"]) == (0, 1), exported.out + exported.err


@pytest.mark.parametrize("break_one", [_undecodable, _unfit])
def test_a_table_goes_on_without_what_is_discarded(ground: Ground, break_one: Callable[[Story], None]) -> None:
    story = Story(_writer())
    break_one(story)
    ground.send(story)
    assert ground.site.sync().code == 3
    refused = quarantine(ground, "discard", "--all")
    assert refused.code == 2
    assert "--why" in refused.err
    done = quarantine(ground, "discard", "--tables", "shop.sick", "--why", "a test row", "--by", "ann")
    assert (done.code, done.json["status"]) == (0, "done"), done.out + done.err
    assert [row["id"] for row in rows(ground.site.lake, "shop", "sick")] == [1]
    (settled,) = waiting(ground, "--all")
    assert settled["decision"] | {"at": ""} == {
        "action": "discard", "by": "ann", "why": "a test row", "at": "", "seq": 2
    }  # fmt: skip
    assert (quarantine(ground, "discard", "--all", "--why", "again").json["status"]) == "nothing_to_do"


def test_bytes_of_no_known_table_are_discarded_and_the_batch_goes_on(ground: Ground) -> None:
    story = Story(_writer())
    for table in ("t1", "t0"):  # a topic of one table would name it
        story.create(table)
        story.insert(table)
    story.insert("t0", id=2, v="two")
    message, sent = story.messages[-1]
    story.messages[-1] = replace(message, value=(message.value or b"")[:40]), sent
    ground.send(story)
    assert ground.site.sync().json["error"]["code"] == "land.quarantine_exceeded"
    (entry,) = waiting(ground)
    assert entry["table"] is None
    unknown = quarantine(ground, "discard", "--record", f"{ground.topic}.rows/0:99", "--why", "x")
    assert (unknown.code, unknown.json["error"]["code"]) == (3, "quarantine.not_there")
    done = quarantine(ground, "discard", "--record", f"{ground.topic}.rows/0:{entry['offset']}", "--why", "cut off")
    assert (done.code, done.json["seq"]) == (0, 1), done.out + done.err
    assert rows(ground.site.lake, "shop", "t0") == [{"id": 1, "v": "one"}]
    assert waiting(ground) == []
