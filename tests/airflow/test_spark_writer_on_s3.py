# SPDX-License-Identifier: Apache-2.0
"""The Spark writer on S3: nothing is configured but the connection of the store, and `policy.writer`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.airflow.shop import Shop, event_log, rows, until
from tests.sample import ALL
from tests.services.broker import Broker
from tests.services.s3 import S3

pytestmark = pytest.mark.spark

# with a key; CDC_SEEDS=2 takes one without a key, too
MERGED = ["shop.order_items", *(["shop.page_views"] if ALL else [])]
SECRET = "s3-secret-that-nobody-prints"


def shop(folder: Path, broker: Broker, **changes: Any) -> Shop:
    folder.mkdir()
    return Shop(folder, {"bootstrap.servers": broker.bootstrap}, changes)


def ordered(table: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in table)


def test_tables_on_s3_are_those_of_the_task_writer(filled: Broker, s3: S3, tmp_path: Path) -> None:
    bucket = s3.create_bucket("spark-writer")
    sink = {"root": f"{bucket}/lake", "storage_connection": "store"}
    policy = {"engine": "spark", "writer": "spark"}
    spark = {"conf": event_log(tmp_path)}
    ours = shop(tmp_path / "spark", filled, sink=sink, policy=policy, spark=spark, tables={"include": MERGED})
    extra = {"endpoint_url": s3.endpoint, "region_name": s3.region}
    connection = {"conn_type": "aws", "extra": extra}
    with_keys = {**connection, "login": s3.access_key, "password": SECRET}
    variables = {"AWS_ACCESS_KEY_ID": s3.access_key, "AWS_SECRET_ACCESS_KEY": SECRET}
    in_variables = {"AIRFLOW_CONN_STORE": json.dumps(connection), **variables}
    in_connection = {"AIRFLOW_CONN_STORE": json.dumps(with_keys)}
    # a session takes long to reach a store: one merges what a task made, unless all is asked for
    batches = [(policy, in_connection), (policy, in_variables)]
    if not ALL:
        batches = [({"engine": "inline"}, in_variables), (policy, in_connection)]
    reference = shop(tmp_path / "inline", filled, tables={"include": MERGED})
    assert reference.run("sync").code == 0

    done = set[tuple[str, str]]()
    for phase, (ours.changes["policy"], ours.environment) in enumerate(batches):
        answer = ours.run("sync", "--json", "--until", until(phase))
        assert answer.code == 0, answer.err[-3000:]
        assert SECRET not in answer.out + answer.err
        tables = answer.json["tables"]
        done |= {(table["action"], table["writer"]) for table in tables if table["action"]}
    events = b"".join(file.read_bytes() for file in (tmp_path / "events").rglob("events_*"))
    assert b"SparkListenerEnvironmentUpdate" in events and SECRET.encode() not in events
    assert {("create", "spark" if ALL else "task"), ("merge", "spark")} <= done
    assert {writer for action, writer in done if ALL or action != "create"} == {"spark"}
    located = {(t["database"], t["table"]) for t in ours.run("tables", "--json").json}
    assert located == {("shop", table.removeprefix("shop.")) for table in MERGED}
    for database, table in located:
        stored = DeltaTable(f"{bucket}/lake/{database}/{table}", storage_options=s3.storage_options)
        actual = stored.to_pyarrow_table().to_pylist()
        assert ordered(actual) == ordered(rows(reference.lake, database, table)), f"{database}.{table}"


@pytest.mark.skipif(not ALL, reason="starts Spark for one sentence: set CDC_SEEDS=2")
def test_a_session_without_a_library_is_a_mistake_of_the_configuration(filled: Broker, tmp_path: Path) -> None:
    policy, spark = {"engine": "spark", "writer": "spark"}, {"conf": {"spark.jars": ""}}
    ours = shop(tmp_path / "bare", filled, policy=policy, spark=spark)
    answer = ours.run("sync", "--json")
    assert answer.code == 2, answer.err[-3000:]
    assert "Spark lacks Delta's library" in answer.json["error"]["message"]
    assert not answer.json.get("parked")
