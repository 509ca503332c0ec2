# SPDX-License-Identifier: Apache-2.0
"""Topics in files give the tables that the same topics in Kafka give, batch by batch."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_cdc.batch.planner import observe, plan_batch
from airflow_provider_cdc.batch.source_log import open_log, resolve_source
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import SourceError
from airflow_provider_cdc.core.file_log.appending import append
from airflow_provider_cdc.core.model.offsets import OffsetRange
from airflow_provider_cdc.core.plan.progress import received
from airflow_provider_cdc.demo.shop_log import ShopLog
from airflow_provider_cdc.demo.story import line_of as line_of_demo
from airflow_provider_cdc.ledger import Ledger
from spark_jobs.readers.file_reader import read_files
from tests.airflow.shop import demand_data, until
from tests.histories.log import Partitions, reader
from tests.histories.records import Record
from tests.sample import ALL
from tests.system.recorded_files import FilesSite, records_of
from tests.system.site import Site
from tests.system.verdict import doubled_commits, ledger_faults, unequal

if TYPE_CHECKING:
    from tests.services.broker import Broker

pytestmark = pytest.mark.system

PHASES = 7 if ALL else 3


@pytest.fixture
def site(tmp_path: Path) -> FilesSite:
    demand_data()
    return FilesSite(tmp_path, {})


def test_every_hour_equals_the_database(site: FilesSite) -> None:
    phases = PHASES if ALL else 4
    for phase in range(phases):
        count = site.feed(phase)
        answer = site.sync("--until", until(phase))
        assert (answer.code, answer.json["records"]) == (0, count), answer.err
        assert unequal(site, phase) == {}
        if phase == 0:
            files = sum(file.stat().st_size for file in site.lake.glob("shop/*/*.parquet"))
            assert (answer.json["added_bytes"], answer.json["cpu_seconds"] > 0) == (files, True)
    again = site.sync("--until", until(phases - 1))
    assert again.code == 0 and again.json["repeated"]
    assert "is silent" not in again.err
    old = site.sync()  # the log was recorded days ago
    assert (old.code, old.json["status"]) == (0, "nothing_to_do")
    assert "the source is silent: its newest record is" in old.err and f"airflow-cdc lag {site.file()}" in old.err
    assert ledger_faults(site, phases) == [] and doubled_commits(site.lake) == []
    answer = site.command("replay", "--tables", "shop.orders")
    assert answer.code == 0, answer.err
    answer = site.command("rebuild", "shop.products")
    assert answer.code == 0, answer.err
    assert unequal(site, phases - 1) == {}


def test_a_time_cuts_files_that_hold_more(site: FilesSite) -> None:
    log = ShopLog()
    for phase in log.phases[:3]:
        append(site.log, map(line_of_demo, log.hour(phase)))
    for phase in log.phases[:2]:
        assert site.sync("--until", phase.end.isoformat()).code == 0
        assert unequal(site, phase.number) == {}


def test_a_large_request_is_cut(site: FilesSite) -> None:
    for phase in range(2):
        site.feed(phase)
    site.changes["policy"] = {"engine": "inline", "batch_records": 1500}
    answer = site.sync()
    assert answer.code == 0, answer.err
    assert len(site.batches()) > 2 and unequal(site, 1) == {}


def test_the_task_reader_gives_what_a_log_in_memory_gives(site: FilesSite) -> None:
    partitions: Partitions = {}
    for phase in range(2):
        site.feed(phase)
        for r in records_of(phase):
            headers = tuple((name, value) for name, value in r.headers if value is not None)
            record = Record(r.topic, r.partition, r.timestamp, r.key, r.value, headers)
            partitions.setdefault((r.topic, r.partition), []).append(record)
    chunks = [OffsetRange(*where, len(some) // 3, len(some)) for where, some in partitions.items()]
    chunks = [chunk for chunk in chunks if chunk.records]
    config = {"folder": str(site.log), "lines": "records", "gaps": "fail"}
    for grouped in (False, True):
        of_files: dict[tuple[str, int], list[object]] = {}
        of_memory: dict[tuple[str, int], list[object]] = {}
        for source, into in (
            (read_files(chunks, config, grouped=grouped), of_files),
            (reader(partitions)(chunks, {}, grouped=grouped, headers=True), of_memory),
        ):
            for part in source:
                headers = (tuple(one or ()) for one in part.headers)
                columns = part.offsets, part.timestamps, part.keys, part.values, headers
                into.setdefault((part.topic, part.partition), []).extend(zip(*columns, strict=True))
        assert of_files == of_memory


def test_a_planned_batch_stays_while_the_files_grow(site: FilesSite) -> None:
    site.feed(0)
    pipeline, ledger = CdcPipeline.from_dict(site.document()), Ledger(f"sqlite:///{site.ledger}")
    log = open_log(pipeline)
    with ledger.lease("shop", "test", 60) as lease:
        planned = plan_batch(pipeline, ledger, lease, log)
        site.feed(1)
        again = plan_batch(pipeline, ledger, lease, open_log(pipeline))
    assert (again.seq, again.end) == (planned.seq, planned.end)
    answer = site.sync()
    assert (answer.code, answer.json["records"]) == (0, planned.records), answer.err
    assert unequal(site, 0) == {}
    assert site.sync().json["records"] == sum(1 for _ in records_of(1))
    assert [batch["seq"] for batch in site.batches()] == [1, 2] and unequal(site, 1) == {}


def test_a_sensor_sees_that_an_hour_is_complete(site: FilesSite) -> None:
    site.feed(0)
    pipeline = CdcPipeline.from_dict(site.document())
    source = asyncio.run(resolve_source(pipeline, "a sensor", 5))
    log = source.open()
    until_ms = int(datetime.fromisoformat(until(0)).timestamp() * 1000)
    assert not received(until_ms, *observe(pipeline, log)).reached
    site.feed(1)
    assert received(until_ms, *observe(pipeline, log)).reached
    assert log.namespace() == "file"


def test_a_pipeline_goes_on_with_the_same_topics_in_kafka(site: FilesSite, filled: Broker) -> None:
    """The offsets of whole records are Kafka's: years of a log may lie in files, and the rest in the cluster."""
    site.feed(0)
    assert site.sync().code == 0
    kafka = Site(site.folder, {"bootstrap.servers": filled.bootstrap})
    mine, theirs = (CdcPipeline.from_dict(one.document()).fingerprint() for one in (site, kafka))
    assert mine == theirs
    answer = kafka.sync()
    assert answer.code == 0 and answer.json["seq"] == 2, answer.err
    assert unequal(kafka, 1) == {} and ledger_faults(kafka, 2) == []


def test_values_alone_give_the_same_tables(site: FilesSite) -> None:
    site.changes["source"] = {"lines": "values", "gaps": "accept"}
    for phase in range(2):
        site.feed_values(phase)
        answer = site.sync()
        assert answer.code == 0, answer.err
        assert unequal(site, phase) == {}


def test_a_record_that_cannot_be_read_is_set_aside_and_repaired(site: FilesSite) -> None:
    site.feed(0)
    topic = "shopdb.shop.orders"
    path = site.log / topic / "partition=0" / f"{topic}+0+0000000000.jsonl"
    good = path.read_bytes().splitlines()
    broken = json.loads(good[2]) | {"value": "bm90IEpTT04="}
    path.write_bytes(b"\n".join([*good[:2], json.dumps(broken).encode(), *good[3:], b""]))
    site.changes["policy"] = {"engine": "inline", "quarantine_limit": 1}
    answer = site.sync()
    assert (answer.code, answer.json["quarantined"]) == (0, 1)
    (entry,) = site.command("quarantine", "list").json
    assert (entry["topic"], entry["partition"], entry["offset"]) == (topic, 0, 2)
    repaired = site.folder / "repaired.jsonl"
    repaired.write_bytes(good[2] + b"\n")
    answer = site.command("quarantine", "replay", str(repaired))
    assert answer.code == 0, answer.err
    assert unequal(site, 0) == {}


def test_files_that_are_gone_or_doubled_refuse_the_batch(site: FilesSite) -> None:
    site.feed(0)
    assert site.sync().code == 0
    topic = "shopdb.shop.orders"
    folder = site.log / topic / "partition=0"
    (file,) = folder.iterdir()
    content = file.read_bytes()
    file.write_bytes(content[: content.index(b"\n") + 1])
    answer = site.sync()
    assert (answer.code, answer.json["error"]["code"]) == (3, "kafka.topic_recreated")
    file.write_bytes(content + content.splitlines(keepends=True)[-1])
    answer = site.sync()
    assert (answer.code, answer.json["error"]["code"]) == (3, "files.offsets")
    assert answer.json["error"]["where"]["path"].endswith(file.name)
    file.write_bytes(content)
    assert site.sync().json["status"] == "nothing_to_do"


def test_doctor_looks_at_the_files(site: FilesSite) -> None:
    def finding() -> dict[str, object]:
        return next(one for one in site.command("doctor").json if one["check"] == "files")

    missing = finding()
    assert missing["ok"] is False and "there is no folder" in str(missing["message"])
    site.feed(0)
    assert finding()["ok"] is True and "8 data topics, 491 offsets" in str(finding()["message"])
    (site.log / "shopdb.shop.orders" / "year=2026").mkdir()
    wrong = finding()
    assert wrong["ok"] is False and "[files.layout]" in str(wrong["message"]) and "DefaultPartitioner" in wrong["hint"]


def test_a_topic_that_is_not_there_is_named(site: FilesSite) -> None:
    site.feed(0)
    site.changes["source"] = {"schema_topic": "shop"}
    with pytest.raises(SourceError, match="there is no topic shop") as caught:
        observe(CdcPipeline.from_dict(site.document()), open_log(CdcPipeline.from_dict(site.document())))
    assert caught.value.where["folder"] == str(site.log)
