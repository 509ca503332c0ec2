# SPDX-License-Identifier: Apache-2.0
"""Detection: every format is separated from its lookalikes by what its records show, or the answer is open."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.detection import Detection, detect

MARIADB = {"connector": "mariadb", "db": "shop", "table": "t", "file": "b.000001", "pos": 4, "row": 0, "ts_ms": 1}
DTLE = {"version": "0.0.1", "name": "dt", "db": "shop", "table": "t", "file": "b.000001", "pos": 4, "row": 0}
FIELDS = [{"type": "struct", "field": "after", "fields": [{"type": "int32", "field": "id"}]}]
KEY = b'{"schema":{"fields":[{"type":"int32","field":"id"}]},"payload":{"id":1}}'
CANAL = {
    "id": 7,
    "database": "shop",
    "table": "t",
    "pkNames": ["id"],
    "isDdl": False,
    "type": "INSERT",
    "es": 1_700_000_000_000,
    "ts": 1_700_000_000_500,
    "sql": "",
    "sqlType": {"id": 4, "v": 12},
    "mysqlType": {"id": "int", "v": "varchar(20)"},
    "data": [{"id": "1", "v": "a"}],
    "old": None,
}
DRS = {**CANAL, "mysqlType": {"id": "int", "v": "varchar", "t": "timestamp"}, "sqlType": {"id": 4, "v": 12, "t": 93}}
META = {
    "record_primary_key": "id",
    "record_primary_value": "1",
    "dbType": "OB_MYSQL",
    "db": "x.shop",
    "table_name": "t",
}
OMS = {
    "prevStruct": None,
    "recordType": "INSERT",
    "postStruct": {"id": 1},
    "allMetaData": {**META, "timestamp": "1700000000", "storeDataSequence": 170000000000001},
}


def detected(*values: Any, key: bytes | None = KEY) -> Detection:
    raw = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    count = len(raw)
    records = Records("t", 0, list(range(count)), [1_700_000_000_000] * count, [key] * count, raw, [None] * count)
    return detect([records])


def enveloped(op: str, source: dict[str, Any], **more: Any) -> dict[str, Any]:
    images = {"before": None, "after": {"id": 1}}
    return {"schema": {"fields": FIELDS}, "payload": {**images, "source": source, "op": op, "ts_ms": 1, **more}}


def canal(**more: Any) -> dict[str, Any]:
    return {**CANAL, **more}


def drs(**more: Any) -> dict[str, Any]:
    return {**DRS, "data": [{"id": "1", "v": "a", "t": None}], **more}


def test_debezium_and_dtle_are_recognised_by_their_source_block() -> None:
    assert detected(enveloped("c", MARIADB)).format == "debezium-json"
    assert detected(enveloped("c", DTLE)).format == "dtle-json"
    old = {"version": "0.9.5.Final", **{k: v for k, v in DTLE.items() if k != "version"}, "ts_sec": 1}
    assert detected(enveloped("c", old)).format == "debezium-json"


def test_ddl_alone_shows_dtle() -> None:
    position = {"ts_sec": 1, "file": "b.000001", "pos": 4, "gtids": ""}
    ddl = {"source": {"server": ""}, "position": position, "databaseName": "shop", "ddl": "DROP TABLE shop.t"}
    assert detected(ddl, key=b"null").format == "dtle-json"


@pytest.mark.parametrize(
    "value",
    [
        canal(),
        canal(type="ALTER", isDdl=True, sql="ALTER TABLE t ADD c INT", data=None, mysqlType=None, sqlType=None),
        canal(id=0, mysqlType={"id": "int", "v": "varchar"}, _tidb={"commitTs": 1}),
    ],
)
def test_canal_is_recognised_by_lengths_of_types_by_kinds_of_ddl_and_by_what_ticdc_adds(value: dict[str, Any]) -> None:
    assert detected(value, key=None).format == "canal-json"


def test_omss_canal_is_recognised_by_the_id_it_does_not_write() -> None:
    value = {k: v for k, v in CANAL.items() if k != "id"}
    answer = detected({**value, "data": [{"id": 1, "v": "a"}], "mysqlType": {"id": "int64", "v": "varchar"}})
    assert answer.format == "oms-canal"


def test_lengths_without_an_id_are_neither_canals_nor_omss() -> None:
    assert detected({k: v for k, v in CANAL.items() if k != "id"}).format is None


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (drs(type="DELETE", data=None, old=[{"id": "1", "v": "a", "t": None}]), "drs-json"),
        (drs(type="DELETE", old=None), "drs-json-c"),
        (drs(data=[{"id": "1", "v": "a", "t": "1624614713.201"}]), "drs-json"),
        (drs(data=[{"id": "1", "v": "a", "t": "2021-06-25 17:51:53"}]), "drs-json-c"),
    ],
)
def test_drss_two_forms_are_recognised_by_deletes_and_by_timestamps(value: dict[str, Any], name: str) -> None:
    assert detected(value, key=None).format == name


def test_inserts_alone_leave_drss_two_forms_open() -> None:
    answer = detected(drs(), drs(type="INIT"), key=None)
    assert answer.format is None
    best = [one.format for one in answer.candidates if not one.contradicted and one.share == 1]
    assert best == ["drs-json", "drs-json-c"]


def test_omss_two_default_methods_are_recognised_by_the_types_in_images() -> None:
    typed = {**OMS, "postStruct": {"id": 1, "__light_type": {"id": {"schemaType": "INT"}}}}
    assert detected(OMS).format == "oms-default"
    assert detected(typed).format == "oms-default-extended"
    ddl = {**OMS, "recordType": "DDL", "postStruct": {"ddl": "DROP TABLE t"}}
    assert detected(ddl).format is None


def test_a_few_damaged_records_do_not_hide_a_format() -> None:
    good = [enveloped("c", MARIADB)] * 30
    answer = detected(*good, b"{", b"\xff", None)
    assert (answer.format, answer.records) == ("debezium-json", 32)
    assert answer.candidates[0].share == pytest.approx(30 / 32)
    assert detected(*good, *[b"{"] * 10).format is None


def test_what_no_format_reads_is_undecided_and_names_what_could_not_be_tried() -> None:
    answer = detected(b"\x00\x01", b"hello")
    assert answer.format is None
    assert [(one.format, one.share) for one in answer.candidates] == [("drs-avro", None)]
    assert "source.options.schema_file" in answer.candidates[0].evidence


def test_nothing_is_undecided() -> None:
    assert detect([]).format is None
    assert detected(None).records == 0


def test_the_evidence_says_what_was_read_and_why() -> None:
    (first, *_) = detected(enveloped("c", MARIADB), enveloped("c", MARIADB)).candidates
    assert first.evidence == "read 2 row; for it: source.connector is mariadb (2 records)"
