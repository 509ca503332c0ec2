# SPDX-License-Identifier: Apache-2.0
"""Records that only make sense together (Tencent DTS), through both readers."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.formats.generated.dts_pb2 import (
    Column,
    Data,
    DataType,
    DMLEvent,
    Entries,
    Entry,
    Envelope,
    Event,
    Header,
    MessageType,
    RowChange,
)
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.lake.row_groups import read_groups
from spark_jobs.lake.storage import Storage
from spark_jobs.readers import task_reader
from spark_jobs.readers.spark_reader import _records, read_with_spark
from spark_jobs.tasks.land import land, land_chunks
from tests.services.broker import Broker
from tests.spark.jobs import job

TOPIC = "readers.dts"
ID = Column(name="id", originalType=b"int(11)", isKey=True).SerializeToString()


def sent(number: int, total: int = 1) -> list[bytes]:
    """One inserted row in so many slices."""
    row = RowChange(newColumns=[Data(dataType=DataType.INT32, sv=str(number))])
    header = Header(messageType=MessageType.DML, schemaName="shop", tableName="t", seqId=number, timestamp=1)
    entry = Entry(header=header, event=Event(dmlEvent=DMLEvent(columns=[ID], rows=[row])))
    data = Entries(items=[entry]).SerializeToString()
    cuts = [len(data) * cut // total for cut in range(total + 1)]
    slices = [data[low:high] for low, high in pairwise(cuts)]
    return [Envelope(version=1, total=total, index=i, data=part).SerializeToString() for i, part in enumerate(slices)]


# running number and value of each record: row 2 in slices of which one is sent again; number 5 never came
LOG = [(1, sent(1)[0]), *zip((2, 3), sent(2, 2), strict=True), (3, sent(2, 2)[1]), (4, sent(3)[0]), (6, sent(4)[0])]


@pytest.fixture(scope="module")
def topic(broker: Broker) -> str:
    from confluent_kafka import Producer

    broker.create_topic(TOPIC, 1)
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number, value in LOG:
        producer.produce(TOPIC, value, partition=0, headers=[("ps", str(number).encode())])
    producer.flush()
    return TOPIC


def read(reader: str, request: pytest.FixtureRequest, broker: Broker, root: Path, chunk: OffsetRange) -> dict[str, Any]:
    """Return the rows by offset and the errors of a chunk."""
    asked = replace(job(broker, root, chunk), format="dts-protobuf")
    if reader == "task":
        reports = [land_chunks(asked, asked.chunks, {})]
    else:
        reports = read_with_spark(request.getfixturevalue("session"), asked, {}, land)
    groups = [group for report in reports for group in report.groups]
    changes = read_groups(Storage(str(root)), groups, ["offset", "after"]).to_pylist() if groups else []
    rows = {change["offset"]: json.loads(change["after"])["id"] for change in changes if change["after"] is not None}
    errors = [(e["offset"], e["error_code"]) for report in reports for e in report.errors]
    return {"rows": rows, "errors": errors, "records": sum(report.records for report in reports)}


@pytest.mark.parametrize("reader", ["task", "spark"])
def test_slices_are_put_together_and_numbers_followed(
    reader: str, request: pytest.FixtureRequest, topic: str, broker: Broker, tmp_path: Path
) -> None:
    actual = read(reader, request, broker, tmp_path, OffsetRange(topic, 0, 0, 6))
    assert actual == {"rows": {0: "1", 2: "2", 4: "3", 5: "4"}, "errors": [(5, "record.lost")], "records": 6}


def test_blocks_of_one_record_cut_no_group(
    request: pytest.FixtureRequest, topic: str, broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("_TAKEN", "HELD_RECORDS"):
        monkeypatch.setattr(task_reader, name, 1)
    actual = read("task", request, broker, tmp_path, OffsetRange(topic, 0, 0, 6))
    assert actual == {"rows": {0: "1", 2: "2", 4: "3", 5: "4"}, "errors": [(5, "record.lost")], "records": 6}


def test_what_stood_before_a_batch_shows_its_repeats_and_losses(
    request: pytest.FixtureRequest, topic: str, broker: Broker, tmp_path: Path
) -> None:
    actual = read("task", request, broker, tmp_path / "a", OffsetRange(topic, 0, 3, 5))
    assert actual == {"rows": {4: "3"}, "errors": [], "records": 2}
    actual = read("task", request, broker, tmp_path / "b", OffsetRange(topic, 0, 5, 6))
    assert actual == {"rows": {5: "4"}, "errors": [(5, "record.lost")], "records": 1}
    actual = read("task", request, broker, tmp_path / "c", OffsetRange(topic, 0, 2, 3))
    assert actual == {"rows": {}, "errors": [(2, "record.slices_missing")], "records": 1}


def test_sparks_headers_become_pairs() -> None:
    header = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.RecordBatch.from_pydict(
        {
            "topic": ["t", "t"],
            "partition": pa.array([0, 0], pa.int32()),
            "offset": [1, 2],
            "timestamp": pa.array([1, 2], pa.timestamp("us", "UTC")),
            "key": pa.array([None, None], pa.binary()),
            "value": pa.array([b"a", b"b"]),
            "headers": pa.array([[{"key": "ps", "value": b"1"}, {"key": "x", "value": None}], None], header),
        }
    )
    (records,) = _records([batch])
    assert records.headers == [[("ps", b"1"), ("x", None)], None]
