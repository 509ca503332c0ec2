# SPDX-License-Identifier: Apache-2.0
"""The lake on an object store: the change log, the tables and the documents over the S3 API."""

from __future__ import annotations

import lzma
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_cdc.core.documents import Maintenance, Rebuild
from airflow_provider_cdc.demo.truth import differing, load
from spark_jobs.driver.maintenance import maintain
from spark_jobs.driver.run_batch import sync
from spark_jobs.lake.batch_log import BatchLog
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.captures.replaying import Lake, random_cuts
from tests.locations import table_location
from tests.services.broker import Broker
from tests.services.capture import partitions_of, read, replay
from tests.services.s3 import S3
from tests.system.jobs import next_job

_FUTURE = 4_102_444_800_000_000  # 2100, microseconds since the epoch
SHOP = Path(__file__).parents[2] / "example_dags" / "shop_data"


def _inline(work: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [work(item) for item in items]


@pytest.fixture(scope="module")
def options(s3: S3) -> dict[str, str]:
    s3.create_bucket("lake")
    return dict(s3.storage_options)


def test_documents_and_folders(options: dict[str, str]) -> None:
    storage = Storage("s3://lake/documents", options)
    assert storage.read_json("a/b.json") is None
    storage.write_json("a/b.json", {"x": 1})
    assert storage.read_json("a/b.json") == {"x": 1}
    assert storage.holds_files("a")
    storage.delete_folder("a")
    assert not storage.holds_files("a")


def test_of_two_creators_of_an_object_one_succeeds(options: dict[str, str]) -> None:
    storage = Storage("s3://lake/claims", options)
    assert storage.create_json("log/00000001/claim.json", {"by": 1})
    assert not storage.create_json("log/00000001/claim.json", {"by": 2})
    assert storage.read_json("log/00000001/claim.json") == {"by": 1}


def test_folders_behind_a_name(options: dict[str, str]) -> None:
    storage = Storage("s3://lake/folders", options)
    assert storage.folders("log") == []
    for number in (1, 2, 10):
        storage.write_json(f"log/{number:08d}/claim.json", {})
    assert storage.folders("log") == ["00000001", "00000002", "00000010"]
    assert storage.folders("log", after="00000001") == ["00000002", "00000010"]
    assert storage.folders("log", after="00000010") == []


def _renamed(topic: str) -> str:
    """Return a topic of this test alone: others put the same recorded log into the broker."""
    return topic.replace("shopdb", "shop_on_s3")


def test_the_shop_in_three_batches_equals_the_source(options: dict[str, str], broker: Broker) -> None:
    records = [replace(r, topic=_renamed(r.topic)) for r in read(SHOP) if r.topic.startswith("shopdb")]
    replay(broker, records, {_renamed(t): n for t, n in partitions_of(SHOP).items() if t.startswith("shopdb")})
    lake = Lake("s3://lake/shop", broker.bootstrap, _renamed("shopdb"), storage=options)
    ends: dict[tuple[str, int], int] = {}
    for record in records:
        partition = (record.topic, record.partition)
        ends[partition] = max(ends.get(partition, 0), record.offset + 1)
    spellings = ("s3://lake/shop", "s3a://lake//shop/", "S3://lake/./shop")  # of one root
    for root, cut in zip(spellings, random_cuts(ends, 3, seed=2), strict=True):
        lake.root = root
        lake.sync_to(cut)
    order = Maintenance(1 << 20, 24, expire_through=2)
    report = maintain(next_job(lake), order, {}, _inline).expired
    assert (report.through, report.folded) == (2, 2)
    storage = Storage("s3://lake/shop", options)
    assert storage.folders("_cdc/capture/log") == ["00000000", "00000003"]
    lost = replace(next_job(lake), seq=1, earlier=[])
    assert [batch.seq for batch in BatchLog(storage, "capture").unknown_to(lost)] == [2, 3]
    assert lake.sync_to(ends).status == "done"
    wrong = []
    with lzma.open(SHOP / "source_final.jsonl.xz", "rt") as lines:
        assert next(lines)
    for source in load(SHOP / "source_final.jsonl.xz"):
        location = DeltaLocation(table_location("s3://lake/shop", source.database, source.table), options)
        wrong += [f"{source.table}: {text}" for text in differing(source, location.rows())]
    assert not wrong, "\n".join(wrong[:10])
    _rebuild_from_an_object(lake, "customers")


def _rebuild_from_an_object(lake: Lake, table: str) -> None:
    """Rebuild a deleted table from a parquet object that holds every change so far."""
    storage = Storage("s3://lake", lake.storage)
    location = DeltaLocation(table_location(str(lake.root), "shop", table), lake.storage)
    before = location.rows()
    with storage.open_new(f"provided/{table}.parquet") as stream:
        pq.write_table(before, stream)
    storage.delete_folder(f"shop/shop/{table}")
    rebuild = Rebuild.of([f"shop.{table}"], f"s3://lake/provided/{table}.parquet", _FUTURE)
    result = sync(replace(next_job(lake), order=rebuild), {}, _inline, lambda line: None)
    assert [(one.table, one.status, one.action) for one in result.tables] == [(table, "committed", "create")]
    location = DeltaLocation(location.location, lake.storage)
    assert location.version is not None
    assert location.rows().sort_by("id") == before.sort_by("id")
