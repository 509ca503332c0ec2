# SPDX-License-Identifier: Apache-2.0
"""Images in whichever shape a schema has them, and their values."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from typing import Any

import fastavro
import pytest

from airflow_provider_cdc.core.formats.drs.avro_tokens import ABSENT
from airflow_provider_cdc.core.formats.registry import open_format
from tests.cross_format.avro_schema import OPTIONS, encoded, value, wire
from tests.unit.core.formats.drs.avro_changes import (
    FIELDS,
    PLAIN,
    VALUE,
    changes,
    decoded,
    event,
    image,
    integer,
    schema_of,
)


def test_an_image_may_be_a_map() -> None:
    row = {"b": True, "n": 2**63 - 1, "f": 0.1, "s": 'q"\\\u0000 😀', "x": b"\x00\xff", "z": None}
    (change,) = decoded({"type": "map", "values": VALUE}, event(data=row))
    assert (change["database"], change["table"]) == ("d", "t ")
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)
    assert (
        change["after"] == '{"b":true,"n":"9223372036854775807","f":"0.1","s":"q\\"\\\\\\u0000 😀","x":"AP8=","z":null}'
    )
    description = open_format("drs-avro", OPTIONS).describe(change["columns"])
    assert description.details == {"x": "bytes"}


def test_an_image_may_be_a_record_of_columns() -> None:
    columns = {"id": "long", "v": ["null", "string"]}
    (change,) = decoded(None, event(type="UPDATE", old={"id": 1, "v": "a"}, data={"id": 2, "v": None}), columns=columns)
    assert [image(change[side]) for side in ("before", "after")] == [{"id": "1", "v": "a"}, {"id": "2", "v": None}]


def test_an_image_may_be_a_list_of_rows() -> None:
    kind = {"type": "array", "items": {"type": "map", "values": VALUE}}
    rows = [{"id": n} for n in range(12)]
    actual = decoded(kind, event(type="UPDATE", old=rows, data=rows[::-1]))
    assert [change["index"] for change in actual] == list(range(12))
    assert [image(change["before"])["id"] for change in actual] == [str(n) for n in range(12)]
    assert [image(change["after"])["id"] for change in actual] == [str(11 - n) for n in range(12)]
    assert [c["position"] for c in actual] == sorted({c["position"] for c in actual})


def test_an_image_may_be_a_list_of_names_with_values() -> None:
    fields = [{"name": "name", "type": "string"}, {"name": "value", "type": VALUE}]
    kind = {"type": "array", "items": {"type": "record", "name": "Cell", "fields": fields}}
    cell = [{"name": "id", "value": 1}, {"name": "v", "value": "a"}]
    actual = decoded(kind, event(data=cell), event(data=[*cell, cell[0]]))
    assert [change["kind"] for change in actual] == ["row", "error"]
    assert image(actual[0]["after"]) == {"id": "1", "v": "a"}


def logical(base: Any, name: str, **more: Any) -> dict[str, Any]:
    return {**(base if isinstance(base, dict) else {"type": base}), "logicalType": name, **more}


@pytest.mark.parametrize(
    ("kind", "written", "token"),
    [
        # fastavro's own reading of a decimal rounds to the stated precision
        (logical("bytes", "decimal", precision=4, scale=2), b"\x01\x00\x00\x00", "167772.16"),
        (logical("bytes", "decimal", precision=60, scale=30), b"\xff" * 30, "-0." + "0" * 29 + "1"),
        (logical({"type": "fixed", "name": "F", "size": 2}, "decimal", precision=4, scale=0), b"\xff\xff", "-1"),
        (logical("int", "date"), 18803, "2021-06-25"),
        (logical("int", "date"), -719528, "0000-01-01"),
        (logical("int", "time-millis"), 64313201, "17:51:53.201"),
        (logical("long", "time-micros"), 64313201000, "17:51:53.201000"),
        (logical("long", "timestamp-millis"), 1624614713201, "1624614713.201"),
        (logical("long", "timestamp-micros"), -1, "-0.000001"),
        (logical("long", "local-timestamp-millis"), 1624643513201, "2021-06-25 17:51:53.201"),
        (logical("long", "local-timestamp-micros"), -1, "1969-12-31 23:59:59.999999"),
        (logical("string", "uuid"), "a-b", "a-b"),
        (logical("string", "varchar"), "x", "x"),
        ("float", 0.10000000149011612, "0.10000000149011612"),
        ("long", -(2**63), "-9223372036854775808"),
        ("boolean", False, False),
        ({"type": "fixed", "name": "F", "size": 2}, b"\x00\xff", "AP8="),
    ],
)  # fmt: skip
def test_every_avro_value_becomes_an_exact_token(kind: Any, written: Any, token: object) -> None:
    tree = schema_of({"c": ["null", kind]})
    # written without logical types: fastavro would convert
    plain = fastavro.parse_schema(json.loads(json.dumps(tree).replace("logicalType", "l")))
    (change,) = changes(encoded(plain, event(data={"c": written})), options={**PLAIN, "schema": json.dumps(tree)})
    assert change["kind"] == "row", change["error"]
    assert image(change["after"]) == {"c": token}


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("double", float("nan")),
        ("double", float("-inf")),
        ({"type": "enum", "name": "E", "symbols": ["NULL", "X"]}, "NULL"),
        ({"type": "array", "items": "string"}, ["a"]),
        ({"type": "map", "values": "string"}, {"a": "b"}),
        ({"type": "record", "name": "R", "fields": [{"name": "what", "type": "string"}]}, {"what": "x"}),
        (logical("long", "timestamp-nanos"), 1),
        (logical("int", "date"), 2**31 - 1),
        (logical("long", "time-micros"), 10**13),
    ],
)
def test_a_value_whose_meaning_is_not_known_is_an_error(kind: Any, written: Any) -> None:
    tree = schema_of({"c": kind})
    plain = fastavro.parse_schema(json.loads(json.dumps(tree).replace("logicalType", "l")))
    (change,) = changes(encoded(plain, event(data={"c": written})), options={**PLAIN, "schema": json.dumps(tree)})
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")


def test_a_column_that_is_text_before_and_bytes_after_is_an_error() -> None:
    actual = decoded({"type": "map", "values": VALUE}, event(type="UPDATE", old={"c": "dGVzdA=="}, data={"c": b"test"}))
    assert [change["kind"] for change in actual] == ["error"]


def test_lists_of_columns_that_take_turns_each_name_their_own_values() -> None:
    lists = [[{"name": f"c{n}", "dataTypeNumber": 3}] for n in range(40)]  # more than are remembered
    lists += [FIELDS[:1], FIELDS, FIELDS[::-1], [], None, FIELDS[:1] * 2]
    rows = [(fields, [integer(n + 1) for n in range(len(fields or ()))]) for fields in lists] * 3
    actual = changes(*(wire("INSERT", fields=fields, afterImages=values) for fields, values in rows))
    for change, (fields, _) in zip(actual, rows, strict=True):
        names = [item["name"] for item in fields or ()]
        assert change["kind"] == ("row" if names and len(set(names)) == len(names) else "error")
        if change["kind"] == "row":
            assert image(change["after"]) == {name: str(n + 1) for n, name in enumerate(names)}
            assert json.loads(change["columns"])["columns"] == sorted(names)


def test_columns_may_be_listed_inside_a_record() -> None:
    head = {"type": "record", "name": "H", "fields": [{"name": "names", "type": {"type": "array", "items": "string"}}]}
    tree = schema_of(None, {"type": "array", "items": VALUE})
    tree["fields"].insert(0, {"name": "h", "type": ["null", head]})
    options = {**PLAIN, "schema": json.dumps(tree), "field.columns": "h.names"}
    rows = [{"a": 1}, {"b": 2}, {"a": 3, "b": None}]
    events = [event(h={"names": list(row)}, data=list(row.values())) for row in rows]
    actual = changes(*(encoded(fastavro.parse_schema(tree), e) for e in events), options=options)
    assert [image(change["after"]) for change in actual] == [{"a": "1"}, {"b": "2"}, {"a": "3", "b": None}]


@pytest.mark.parametrize("kind", [{"type": "array", "items": "string"}, {"type": "map", "values": "string"}])
def test_a_name_that_is_no_text_is_an_error(kind: dict[str, Any]) -> None:
    name: Any = ["a"] if kind["type"] == "array" else {"a": "b"}
    cell = {
        "type": "record",
        "name": "Cell",
        "fields": [{"name": "name", "type": kind}, {"name": "value", "type": VALUE}],
    }
    (change,) = decoded({"type": "array", "items": cell}, event(data=[{"name": name, "value": 1}]))
    tree = schema_of(None, {"type": "array", "items": VALUE})
    column = {"type": "record", "name": "Column", "fields": [{"name": "name", "type": kind}]}
    tree["fields"].insert(0, {"name": "names", "type": {"type": "array", "items": column}})
    options = {**PLAIN, "schema": json.dumps(tree), "field.columns": "names"}
    (listed,) = changes(encoded(fastavro.parse_schema(tree), event(names=[{"name": name}], data=[1])), options=options)
    assert [(c["kind"], c["error_code"]) for c in (change, listed)] == [("error", "record.malformed")] * 2


def test_bytes_like_the_mark_of_an_absent_column_are_carried() -> None:
    (change,) = changes(
        wire("INSERT", fields=FIELDS, afterImages=["NONE", value("BinaryObject", type="x", value=ABSENT)])
    )
    assert image(change["after"]) == {"v": b64encode(ABSENT).decode()}
