# SPDX-License-Identifier: Apache-2.0
"""Flattened rows in frames of a registry: the settings mean what they mean in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.contract import Headers, Records, Tombstoned, needs_headers
from airflow_provider_cdc.core.formats.registry import open_format
from tests.cross_format.connect_avro import AvroConverter
from tests.unit.core.formats.connect.flattened_rows import OPTIONS, POSITION, flat

COLUMNS = [
    {"field": "id", "type": "int32", "optional": False},
    {"field": "d", "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "parameters": {"scale": "2"}},
    {"field": "op", "type": "string"},
]
ROW = {"id": 1, "d": "AMg=", "op": 'a "__deleted":"true" text'}


def framed(converter: AvroConverter, payload: dict[str, Any]) -> bytes:
    message = {"schema": {"fields": COLUMNS}, "payload": payload}
    return converter.framed(json.dumps(message).encode(), "Value") or b""


def changes(payload: dict[str, Any], options: dict[str, str], headers: Headers = None) -> list[dict[str, Any]]:
    converter = AvroConverter()
    fmt, value = open_format("debezium-avro", options), framed(converter, payload)
    fmt.learn(converter.schemas)  # type: ignore[attr-defined]
    records = Records("p.shop.t", 0, [0], [1000], [b'{"id":1}'], [value], [] if headers is None else [headers])
    return fmt.decode(records).to_pylist()


@pytest.mark.parametrize(("op", "name"), [("r", "snapshot"), ("c", "insert"), ("u", "update"), ("d", "delete")])
def test_a_row_has_its_image_types_operation_and_place(op: str, name: str) -> None:
    (change,) = changes(flat(ROW, op=op, deleted=str(op == "d").lower()), OPTIONS)
    assert (change["kind"], change["op"], change["database"], change["table"]) == ("row", name, "shop", "t")
    assert change["position"] == POSITION
    assert json.loads(change["before" if op == "d" else "after"]) == ROW
    described = json.loads(change["columns"])
    assert [column["field"] for column in described["columns"]] == ["id", "d", "op"]
    assert described["columns"][1]["name"] == "org.apache.kafka.connect.data.Decimal"
    assert described["key"] == ["id"]


def test_members_may_stand_in_headers() -> None:
    options = {**OPTIONS, "add.headers": "op", "add.fields": OPTIONS["add.fields"].removeprefix("op,")}
    row = flat(ROW)
    del row["__op"]
    (change,) = changes(row, options, [("__op", b"u")])
    assert (change["kind"], change["op"]) == ("row", "update")
    assert needs_headers(open_format("debezium-avro", options))


def test_what_is_not_flattened_as_stated_is_refused() -> None:
    (change,) = changes(flat(ROW), {})
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")
    assert "flattened by the transform ExtractNewRecordState" in change["error"]
    (change,) = changes({**flat(ROW), "__more": 1}, OPTIONS)
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")
    assert "the member __more behind __deleted" in change["error"]


def test_tombstones_stand_behind_deletes_in_one_mode_only() -> None:
    assert not isinstance(open_format("debezium-avro", OPTIONS), Tombstoned)
    fmt = open_format("debezium-avro", {**OPTIONS, "delete.tombstone.handling.mode": "rewrite-with-tombstone"})
    converter = AvroConverter()
    deleted, there = (framed(converter, flat(ROW, op=op, deleted=text)) for op, text in (("d", "true"), ("c", "false")))
    fmt.learn(converter.schemas)  # type: ignore[attr-defined]
    assert isinstance(fmt, Tombstoned)
    assert fmt.may_delete(deleted)
    assert not fmt.may_delete(there)
    assert fmt.may_delete(b"\0\0\0\0\1x")  # nobody can say
