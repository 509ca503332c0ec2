# SPDX-License-Identifier: Apache-2.0
"""A whole pipeline on the stores of other clouds, through the connections that their providers define."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hdfs_native import FileWriter

from airflow_provider_cdc.connections.lookup import storage_options
from airflow_provider_cdc.core.lake.object_store import open_objects
from airflow_provider_cdc.core.lake.segments import Packet, SegmentLog
from airflow_provider_cdc.demo.truth import differing, load
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.airflow.shop import Shop, until
from tests.locations import table_location
from tests.object_store.objects_contract import LEFT, left_by_contract
from tests.services.azurite import Azurite
from tests.services.broker import Broker
from tests.services.google_storage import google_storage
from tests.services.process import NotAvailable
from tests.services.s3 import S3
from tests.services.yarn import YarnCluster

SHOP = Path(__file__).parents[2] / "example_dags" / "shop_data"


@dataclass(frozen=True)
class OtherStore:
    """A store: an address in it, and its connection, empty where it has none.

    :param secret: a part of the connection that nothing may show.
    """

    root: str
    connection: dict[str, Any]
    secret: str
    options: dict[str, str]


@pytest.fixture(scope="module", params=["gs", "abfss", "hdfs"])
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OtherStore]:
    if request.param == "gs":
        s3: S3 = request.getfixturevalue("s3")
        s3.create_bucket("on-google")
        with google_storage(s3, tmp_path_factory.mktemp("google")) as key:
            secret = "private-key-that-nobody-prints"
            extra = {"keyfile_dict": json.dumps({**key, "private_key_id": secret}), "project": "p"}
            connection = {"conn_type": "google_cloud_platform", "extra": extra}
            yield OtherStore("gs://on-google/a lake", connection, secret, {"allow_http": "true"})
        return
    if request.param == "hdfs":
        try:
            cluster = YarnCluster(nodes=0)
        except NotAvailable as reason:
            pytest.skip(str(reason))
        with cluster:
            yield OtherStore(f"{cluster.hdfs}/lakes/shop", {}, "", {})
        return
    try:
        azurite = Azurite()
    except NotAvailable as reason:
        pytest.skip(str(reason))
    with azurite:
        root = f"{azurite.create_container('lake')}/in/it"
        login = {"login": azurite.account, "password": azurite.key, "host": azurite.endpoint}
        yield OtherStore(root, {"conn_type": "wasb", **login}, azurite.key, {})


@pytest.fixture
def options(store: OtherStore, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    if not store.connection:
        return store.options
    monkeypatch.setenv("AIRFLOW_CONN_STORE", json.dumps(store.connection))
    return {**storage_options("store"), **store.options}


def test_a_store_keeps_the_contract(store: OtherStore, options: dict[str, str]) -> None:
    assert left_by_contract(open_objects(f"{store.root}-0".replace(" ", "_"), options)) == LEFT


def test_a_table_s_files_are_written_and_read(store: OtherStore, options: dict[str, str]) -> None:
    storage = Storage(f"{store.root}/files", options)
    rows = pa.table({"n": range(100_000)})
    with storage.access("a/b.parquet"), storage.open_new("a/b.parquet") as stream:
        pq.write_table(rows, stream)
    with storage.open_file("a/b.parquet") as file:
        assert pq.read_table(file) == rows
    ((_, size),) = storage.files("a", ".parquet")
    assert size > 100_000


def test_segments_of_packets_are_kept(store: OtherStore, options: dict[str, str]) -> None:
    log = SegmentLog(store.root, "_cdc/segments/d", options)
    assert log.end() == 0
    log.append([Packet(b"one", 1), Packet(b"two", 2)])
    assert SegmentLog(store.root, "_cdc/segments/d", options).end() == 2


def carried_out(shop: Shop, *verb: str) -> str:
    """Run a command to its end; return what it wrote."""
    answer = shop.run(*verb)
    while "[ledger.busy]" in answer.err:  # the lease of one that was killed
        answer = shop.run(*verb)
    assert answer.code == 0, answer.out + answer.err
    return answer.out + answer.err


def killed(shop: Shop, *verb: str) -> str:
    """Kill a command while its tables are committed; return what it had written."""
    process = shop.start(*verb)
    assert process.stderr is not None
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("apply: "):
            time.sleep(0.3)  # some tables are committed then, and others not
            process.kill()
            break
    out, rest = process.communicate()
    assert process.returncode == -signal.SIGKILL, lines
    return "".join([out, *lines, rest])


def test_the_shop_equals_the_source_and_no_secret_is_shown(
    store: OtherStore, options: dict[str, str], filled: Broker, tmp_path: Path
) -> None:
    connection = "store" if store.connection else None
    sink = {"root": store.root, "storage_connection": connection, "storage_options": store.options}
    changes = {"sink": sink, "policy": {"lease_seconds": 3}}
    shop = Shop(tmp_path, {"bootstrap.servers": filled.bootstrap}, changes)
    shop.environment = {"AIRFLOW_CONN_STORE": json.dumps(store.connection)} if connection else {}
    steps = [["doctor"], ["sync", "--until", until(0)], ["sync", "--json"]]
    said = [*(carried_out(shop, *verb) for verb in steps[:2]), killed(shop, *steps[2]), carried_out(shop, *steps[2])]
    assert shop.run("sync", "--json").json["status"] == "nothing_to_do"
    sources = load(SHOP / "source_at" / "1.jsonl.xz")
    tables = [(source, table_location(store.root, source.database, source.table)) for source in sources]
    assert {DeltaLocation(location, options).version for _, location in tables} == {1}, "one commit for each batch"
    said.append(carried_out(shop, "maintain"))
    for source, location in tables:
        assert differing(source, DeltaLocation(location, options).rows()) == []
    objects = open_objects(store.root, options)
    contents = [objects.read(f"_cdc/{name}") or b"" for name in objects.names("_cdc")]
    assert len(contents) > 10
    secret = store.secret.encode() or b"no secret"
    assert not [text for text in (*contents, *(text.encode() for text in said)) if secret in text]


@pytest.mark.parametrize("store", ["hdfs"], indirect=True)
def test_a_file_that_could_not_be_written_whole_is_not_there(
    store: OtherStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = open_objects(f"{store.root}-4", {})
    write = FileWriter.write

    def some(writer: FileWriter, content: bytes) -> int:
        write(writer, content[:3])
        raise RuntimeError("the last data node is gone")

    for put in (objects.create, objects.put):
        with monkeypatch.context() as patched:
            patched.setattr(FileWriter, "write", some)
            with pytest.raises(OSError, match="data node"):
                put("log/claim.json", b"content")
        assert objects.read("log/claim.json") is None
    assert not objects.holds_any("log")


@pytest.mark.parametrize("store", ["hdfs"], indirect=True)
def test_an_upload_that_was_killed_leaves_nothing_that_is_listed(store: OtherStore) -> None:
    objects = open_objects(f"{store.root}-5", {})
    with objects.open_new("log/1/a.bin") as upload:
        upload.write(b"content")
        assert not objects.holds_any("log") and objects.names("log") == []
        assert objects.entries("log/1") == ([], [])
    assert objects.names("log") == ["1/a.bin"] and objects.entries("log/1") == ([], [("a.bin", 7)])


@pytest.mark.parametrize("store", ["hdfs"], indirect=True)
def test_a_process_that_has_read_a_lake_can_start_others(store: OtherStore) -> None:
    """Drop nothing in the child of a fork that would wait for threads which the child has not."""
    assert Storage(f"{store.root}-3", {}).read_json("none.json") is None
    child = os.fork()
    if child == 0:
        os._exit(0)
    deadline = time.monotonic() + 20
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            pytest.fail("the child of a fork hangs")
        time.sleep(0.02)


@pytest.mark.parametrize("store", ["hdfs"], indirect=True)
def test_a_table_at_a_path_that_delta_rs_misses_is_parked_by_itself(
    store: OtherStore, filled: Broker, tmp_path: Path
) -> None:
    changes = {"sink": {"root": f"{store.root}-2"}, "target": [{"from": "shop.orders", "to": "shop.größe"}]}
    shop = Shop(tmp_path, {"bootstrap.servers": filled.bootstrap}, changes)
    done = shop.run("sync", "--until", until(0), "--json").json
    states = {table["table"]: table["state"] for table in done["tables"]}
    assert {name for name, state in states.items() if state != "ok"} == {"orders"} and len(states) > 5
    (parked,) = done["parked"]
    assert "letters beyond ASCII" in parked["reason"] and "sink.names: safe" in parked["reason"]


@pytest.mark.parametrize("root", ["hdfs://name:8020/a lake", "hdfs://name:8020/größe"])
def test_a_root_of_hdfs_that_delta_rs_misses_is_refused(root: str, tmp_path: Path) -> None:
    answer = Shop(tmp_path, {"bootstrap.servers": "nowhere:1"}, {"sink": {"root": root}}).run("sync")
    assert answer.code == 2
    assert "sink.root: of HDFS has neither spaces nor letters beyond ASCII" in answer.err


@pytest.mark.parametrize("root", ["gs://b/lake", "abfss://c@a.dfs.core.windows.net/lake", "hdfs://name/lake"])
def test_the_spark_writer_is_refused_where_it_does_not_reach(root: str, tmp_path: Path) -> None:
    shop = Shop(
        tmp_path,
        {"bootstrap.servers": "nowhere:1"},
        {"sink": {"root": root}, "policy": {"engine": "spark", "writer": "spark"}},
    )
    answer = shop.run("sync")
    assert answer.code == 2
    assert "policy.writer: Spark's writer reaches local disks and S3" in answer.err
