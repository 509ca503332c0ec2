# SPDX-License-Identifier: Apache-2.0
"""Records that come close to a format: a sentence says what they are, in errors and in detection.

The samples are written by the documents of the tools that they are of.
"""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from fastavro import schemaless_writer

from airflow_provider_cdc.core.formats.connect.debezium_avro import WireFormat
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.detection import detect
from airflow_provider_cdc.core.formats.near_misses import near_miss
from airflow_provider_cdc.core.formats.registry import open_format

ROW = {"id": 1, "v": "a"}
TICDC = {
    "version": "2.4.0.Final",
    "connector": "TiCDC",
    "file": "",
    "pos": 0,
    "db": "shop",
    "table": "t",
    "commit_ts": 1,
}
HISTORY = {
    "source": {"server": "src"}, "position": {"file": "mysql-bin.000001", "pos": 4}, "ts_ms": 1, "databaseName": "shop",
    "ddl": "CREATE TABLE t (id int)", "tableChanges": [],
}  # fmt: skip
# the members of ``source`` that the documents of each connector name
OTHERS: list[tuple[str, Any, dict[str, Any], str]] = [
    (
        "sqlserver", ROW, {"db": "shop", "schema": "dbo", "table": "t", "change_lsn": "00000027:00000758:0003",
        "commit_lsn": "00000027:00000758:0005", "event_serial_no": 1}, "SQL Server",
    ),
    ("oracle", ROW, {"db": "SHOP", "schema": "S", "table": "T", "txId": "6.28.807", "scn": "2122185"}, "Oracle"),
    ("db2", ROW, {"db": "shop", "schema": "S", "table": "t", "change_lsn": None, "commit_lsn": "00:2f"}, "Db2"),
    ("db2as400", ROW, {"db": "shop", "schema": "S", "table": "t"}, "Db2 for i"),
    ("vitess", ROW, {"db": "", "keyspace": "shop", "table": "t", "shard": "0", "vgtid": "[]"}, "Vitess"),
    ("mongodb", '{"_id":1}', {"db": "shop", "rs": "rs0", "collection": "t", "ord": 31}, "MongoDB"),
    ("informix", ROW, {"db": "shop", "schema": "s", "table": "t", "commit_lsn": "34359758632"}, "Informix"),
    ("spanner", ROW, {"db": "shop", "table": "t", "record_sequence": "00000000"}, "Spanner"),
    (
        "cassandra", ROW, {"db": "shop", "keyspace_name": "shop", "table": "t", "file": "CommitLog-7-170.log",
        "pos": 4}, "Cassandra",
    ),
    ("cockroachdb", ROW, {"db": "shop", "table": "t"}, "CockroachDB"),
]  # fmt: skip
NEAR: dict[str, tuple[bytes | None, Any, str]] = {
    "flattened": (None, ROW, "ExtractNewRecordState"),
    "flattened_marked": (None, {**ROW, "__op": "u", "__deleted": "false", "j": {}}, "ExtractNewRecordState"),
    "flattened_described": (None, {"schema": {"type": "struct"}, "payload": ROW}, "ExtractNewRecordState"),
    "cloud_event": (
        None, {"specversion": "1.0", "id": "name:src", "source": "/debezium/mysql/src", "type": "c", "data": {}},
        "CloudEvent",
    ),
    "registry": (None, b"\x00\x00\x00\x00\x07\x02\x06abc", "state format: debezium-avro"),
    "json_schema": (None, b'\x00\x00\x00\x00\x07{"op":"c"}', "JSON Schema"),
    "glue": (None, b"\x03\x00" + bytes(16) + b"abc", "schema registry"),
    "ticdc_debezium": (None, {"payload": {"before": None, "after": ROW, "source": TICDC, "op": "c"}}, "canal-json"),
    "ticdc_debezium_bare": (None, {"before": None, "after": ROW, "source": TICDC, "op": "c"}, "canal-json"),
    "ticdc_debezium_ddl": (
        None, {"payload": {"source": TICDC, "ts_ms": 1, "databaseName": "shop", "schemaName": None,
        "ddl": "RENAME TABLE shop.t TO shop.u", "tableChanges": []}}, "canal-json",
    ),
    "ticdc_debezium_watermark": (
        None, {"payload": {"source": {**TICDC, "db": "", "table": ""}, "op": "m", "ts_ms": 1, "transaction": None}},
        "canal-json",
    ),
    "ticdc_simple": (
        None, {"version": 1, "database": "shop", "table": "t", "type": "INSERT", "commitTs": 4, "data": {"id": "1"}},
        "simple protocol",
    ),
    "ticdc_open": (
        b'\x00\x00\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x2d{"ts":4,"scm":"shop","tbl":"t","t":1}',
        b'\x00\x00\x00\x00\x00\x00\x00\x1d{"u":{"id":{"t":3,"v":1}}}', "open protocol",
    ),
    "maxwell": (
        None, {"database": "shop", "table": "t", "type": "insert", "ts": 1, "xid": 2, "commit": True, "data": ROW},
        "Maxwell",
    ),
    "dms": (
        None, {"data": ROW, "metadata": {"timestamp": "", "record-type": "data", "operation": "insert"}}, "AWS DMS",
    ),
    "history": (None, HISTORY, "topic.prefix, not schema.history.internal.kafka.topic"),
    "flattened_by_kafka": (
        None, {"after.id": 1, "source.file": "mysql-bin.000001", "source.pos": 4, "op": "c", "ts_ms": 4},
        "Kafka Connect's transform Flatten",
    ),
    **{
        name: (None, {"before": None, "after": after, "source": {"connector": name, **source}, "op": "c"}, said)
        for name, after, source, said in OTHERS
    },
    "struct": (b"Struct{id=1}", b"Struct{after=Struct{id=1,v=a},op=c}", "StringConverter"),
    "twice": (None, json.dumps(json.dumps({"op": "c"})).encode(), "JSON text inside"),
}  # fmt: skip


def records(key: bytes | None, value: Any) -> Records:
    encoded = value if isinstance(value, bytes) else json.dumps(value).encode()
    return Records("t", 0, [0], [0], [key], [encoded])


@pytest.mark.parametrize("name", NEAR)
def test_a_near_miss_has_a_name(name: str) -> None:
    key, value, text = NEAR[name]
    recorded = records(key, value)
    assert text in str(near_miss(key, recorded.values[0]))
    (change,) = open_format("debezium-json").decode(recorded).to_pylist()
    assert change["kind"] == "error" and text in change["error"]
    detected = detect([recorded])
    assert detected.format is None
    assert any(text in sentence for sentence in detected.near_misses)


@pytest.mark.parametrize("value", [b"", b"{", b"{}", b"[1]", b"1", b'{"ts_ms":1}', b"\x00", b"abc", b'{"a":' * 5000])
def test_others_have_none(value: bytes) -> None:
    assert near_miss(None, value) is None


def test_a_key_may_have_columns_called_schema_and_payload() -> None:
    source = {"connector": "mysql", "name": "s", "db": "shop", "table": "t", "file": "b.000001", "pos": 4, "row": 0}
    image = {"schema": 1, "payload": 2, "v": "a"}
    value = {"before": None, "after": image, "source": source, "op": "c"}
    for key in ({"schema": 1, "payload": 2}, {"schema": None, "payload": {"schema": 1, "payload": 2}}):
        wire = open_format("debezium-json")
        (change,) = wire.decode(records(json.dumps(key).encode(), value)).to_pylist()
        assert change["kind"] == "row"
        assert wire.describe(change["columns"]).key == ("schema", "payload")


@pytest.mark.parametrize("connector", [name for name, *_ in OTHERS])
def test_heartbeats_of_another_connector_do_not_decide(connector: str) -> None:
    """They are read, and are the most of what a quiet database sends."""
    _, value, said = NEAR[connector]
    beats = [json.dumps({"ts_ms": 1_700_000_000_000 + number}).encode() for number in range(50)]
    values = [*beats, json.dumps(value).encode()]
    count = len(values)
    detected = detect([Records("t", 0, range(count), [0] * count, [None] * count, values)])
    assert detected.format is None
    assert any(said in sentence for sentence in detected.near_misses)


def test_a_connector_that_no_format_reads_is_refused_in_avro_as_well() -> None:
    def struct(name: str, fields: dict[str, Any]) -> dict[str, Any]:
        return {"type": "record", "name": name, "fields": [{"name": key, "type": of} for key, of in fields.items()]}

    row = struct("Value", {"id": "int", "v": "string"})
    source = struct("Source", {key: "long" if isinstance(value, int) else "string" for key, value in TICDC.items()})
    envelope = struct(
        "Envelope", {"before": ["null", row], "after": ["null", "Value"], "source": source, "op": "string"}
    )
    value = io.BytesIO(b"\0\0\0\0\7")
    value.seek(5)
    schemaless_writer(value, envelope, {"before": None, "after": ROW, "source": TICDC, "op": "c"})
    wire = WireFormat()
    wire.learn({7: {"schema": json.dumps(envelope)}})
    (change,) = wire.decode(records(None, value.getvalue())).to_pylist()
    assert change["kind"] == "error" and "canal-json" in change["error"]


def test_a_connector_that_nobody_knows_is_refused_by_its_name() -> None:
    position = {"db": "shop", "table": "t", "file": "mysql-bin.000001", "pos": 4, "row": 0}
    value = {"before": None, "after": ROW, "source": {"connector": "newdb", **position}, "op": "c"}
    (change,) = open_format("debezium-json").decode(records(None, value)).to_pylist()
    assert change["error"] == "not a Debezium message: a record of the connector newdb, which no format reads"
