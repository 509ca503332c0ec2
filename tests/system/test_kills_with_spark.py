# SPDX-License-Identifier: Apache-2.0
"""Kill -9 of any process of a batch on Spark at any moment, then the same command again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from deltalake import DeltaTable

from tests.airflow.shop import demand_data
from tests.sample import ALL
from tests.services.broker import Broker
from tests.system.killing import Hit, spark_kills, staged_kills
from tests.system.site import feed
from tests.system.trials import KilledSite, assert_kills_met_batches, left, ordeal, site_of, trials

pytestmark = [pytest.mark.system, pytest.mark.spark]

# Spark takes seconds for each table that it merges; the others are the task's, and are compared as well
MERGED = ("orders", "order_items", "page_views") if ALL else ("orders",)
OTHERS = {"addresses", "customers", "inventory", "order_items", "page_views", "payments", "products"} - {*MERGED}
BUCKET = 50 if ALL else 300  # rows, of which the orders have 580: key buckets are staged too


def test_kills_with_spark(broker: Broker, tmp_path: Path) -> None:
    demand_data()
    topics = "killedonspark"
    if not ALL:  # what the kills meet are merges: the batch before is made without Spark
        feed(broker, 0, 0, topics)
        assert site_of(tmp_path / "s", broker, "inline", topics).sync().code == 0
        feed(broker, 1, 1, topics)
    site = site_of(tmp_path / "s", broker, "spark", topics, KilledSite)
    site.changes["spark"] = {"connection": "two"}  # the hook of Airflow's provider is between command and JVM
    site.environment = {"AIRFLOW_CONN_TWO": '{"conn_type": "spark", "host": "local[2]"}'}
    if ALL:
        hits = trials([(site, spark_kills(3))], broker, topics, first=3)
    else:
        hits = ordeal(site, 1, 2, spark_kills(3))
        assert left(site) == []
    assert_kills_met_batches(hits, 2 if ALL else 1)  # a fast machine ends the last batch before its kill


def _assert_kills_met_staged_tables(hits: list[Hit], least: int) -> None:
    """Demand that kills met tables that were staged; how far the merges had come by then depends on the machine."""
    assert len(hits) >= least
    assert any(hit.kill.moment == "staged" for hit in hits)


@pytest.mark.skipif(
    not ALL, reason="takes minutes: set CDC_SEEDS=2; tests/spark/test_auto_writer.py dies at these places"
)
def test_kills_between_staging_and_merge_of_the_spark_writer(filled: Broker, tmp_path: Path) -> None:
    # key buckets are staged too, in folders of their own
    site = site_of(tmp_path / "w", filled, "spark", kind=KilledSite, bucket_rows=50)
    site.changes["tables"] = {f"shop.{table}": {"writer": "spark"} for table in MERGED}
    hits = ordeal(site, 1, 1, staged_kills(5))
    _assert_kills_met_staged_tables(hits, 1)
    assert left(site) == []


@pytest.mark.skipif(
    not ALL, reason="takes minutes: set CDC_SEEDS=2; tests/spark/test_auto_writer.py dies at these places"
)
def test_kills_where_the_writer_follows_from_what_a_merge_touches(broker: Broker, tmp_path: Path) -> None:
    demand_data()
    topics = "killedwriter"
    site = site_of(tmp_path / "c", broker, "inline", topics, KilledSite, spark_writer_bytes=1, bucket_rows=BUCKET)
    for phase in (0, 1):  # the second batch merges first: from the next one on Spark starts with its writer
        feed(broker, phase, phase, topics)
        assert {table.get("writer") for table in site.sync().json["tables"]} <= {"task", None}
    feed(broker, 2, 2, topics)
    on_spark = site_of(site.folder, broker, "spark", topics, spark_writer_bytes=1, bucket_rows=BUCKET)
    site.changes = {**on_spark.changes, "tables": {f"shop.{table}": {"writer": "task"} for table in OTHERS}}
    hits = ordeal(site, 2, 3, staged_kills(6)[: 4 if ALL else 1 : 3])  # the others are those of the test before
    _assert_kills_met_staged_tables(hits, 1)
    logs = [log for log in site.lake.rglob("_delta_log") if "_cdc" not in log.parts]
    commits = [entry for log in logs for entry in DeltaTable(str(log.parent)).history()]
    writers = [json.loads(text)["writer"] for entry in commits if (text := entry.get("userMetadata"))]
    assert writers and all(one["name"] == "spark" and "the merge touches" in one["reason"] for one in writers)
    assert left(site) == []
