"""Huawei DRS, Avro by a stated schema: shapes of images, exact values, wrong schemas, framings, options."""

from __future__ import annotations

import json
from base64 import b64encode
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.drs.avro_tokens import ABSENT
from airflow_provider_cdc.core.formats.registry import open_format, portable_options
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type
from tests.one_history.avro_schema import OLDER, OPTIONS, SHORTENED, encoded, value, wire

FIELDS = [{"name": "id", "dataTypeNumber": 3}, {"name": "v", "dataTypeNumber": 253}]


def changes(*values: bytes | None, options: Any = OPTIONS) -> list[dict[str, Any]]:
    count = len(values)
    records = Records("drs", 1, list(range(count)), [1000] * count, [None] * count, values)
    return open_format("drs-avro", options).decode(records).to_pylist()


def image(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def integer(number: int) -> Any:
    return value("Integer", precision=4, value=str(number))


def characters(text: str, charset: str = "utf8mb4", codec: str = "utf-8") -> Any:
    return value("Character", charset=charset, value=text.encode(codec))


A, B = [integer(103), characters("größe 😀")], [integer(104), None]
IMAGE_A, IMAGE_B = {"id": "103", "v": "größe 😀"}, {"id": "104", "v": None}


# ---- the shape of appendix A: values beside a list of columns


@pytest.mark.parametrize(
    ("operation", "op", "before", "after"),
    [
        ("INSERT", "insert", None, A),
        ("INIT", "snapshot", None, A),
        ("UPDATE", "update", A, B),
        ("DELETE", "delete", A, None),
    ],
)
def test_a_row_keeps_its_images_names_position_and_time(operation: str, op: str, before: Any, after: Any) -> None:
    (change,) = changes(wire(operation, fields=FIELDS, beforeImages=before, afterImages=after))
    assert (change["kind"], change["op"], change["database"], change["table"]) == ("row", op, "shop", "orders")
    assert change["position"] == "0000.0000000000.00000000000000027677.0000000000"
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)
    assert change["transaction_id"] == "77"
    images = [image(change[side]) for side in ("before", "after")]
    assert images == [{id(A): IMAGE_A, id(B): IMAGE_B}.get(id(rows)) for rows in (before, after)]
    description = open_format("drs-avro", OPTIONS).describe(change["columns"])
    assert (description.names, description.complete) == (("id", "v"), True)


def test_a_deleted_row_may_stand_in_the_image_after() -> None:
    (change,) = changes(wire("DELETE", fields=FIELDS, afterImages=A))
    assert (change["op"], image(change["before"]), change["after"]) == ("delete", IMAGE_A, None)


def test_schema_changes_marks_and_heartbeats() -> None:
    found = changes(
        wire("DDL", afterImages="ALTER TABLE orders ADD c INT"),
        wire("BEGIN", objectName=None),
        wire("COMMIT", objectName=None),
        wire("HEARTBEAT", objectName=None),
        wire("CHECKPOINT", objectName=None),
        None,
    )
    assert [(c["kind"], c["op"]) for c in found] == [
        ("schema", None), ("transaction", "begin"), ("transaction", "commit"), ("progress", None),
        ("ignored", None), ("ignored", None),
    ]  # fmt: skip
    assert (found[0]["statement"], found[0]["default_database"]) == ("ALTER TABLE orders ADD c INT", "shop")
    assert found[0]["position"] == "0000.0000000000.00000000000000027677.0000000000"
    assert found[1]["transaction_id"] == "77"
    assert found[3]["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)


def test_a_column_that_is_not_carried_is_absent_and_did_not_change() -> None:
    none, null = "NONE", "NULL"
    found = changes(
        wire("UPDATE", fields=FIELDS, beforeImages=A, afterImages=[integer(103), none]),
        wire("UPDATE", fields=FIELDS, beforeImages=[integer(103), none], afterImages=[integer(104), none]),
        wire("INSERT", fields=FIELDS, afterImages=[integer(103), null]),
    )
    assert image(found[0]["after"]) == IMAGE_A
    assert [image(found[1][side]) for side in ("before", "after")] == [{"id": "103"}, {"id": "104"}]
    assert image(found[2]["after"]) == {"id": "103", "v": None}
    wire_format = open_format("drs-avro", OPTIONS)
    assert [wire_format.describe(c["columns"]).complete for c in found] == [True, False, True]


def typed(given: Any, kind: str, options: Any = OPTIONS) -> Any:
    """Return the value of a column of this type, or why there is none."""
    (change,) = changes(wire("INSERT", fields=FIELDS[1:], afterImages=[given]), options=options)
    assert change["kind"] == "row", change["error"]
    wire_format, column = open_format("drs-avro", options), parse_type(kind)
    encoding = wire_format.encoding_of("v", column, wire_format.describe(change["columns"]))
    result = type_images(pa.array([change["after"]]), [Field(encoding, column, arrow_type(column))])
    return result.failures[0].reason if result.failures else result.columns[0][0].as_py()


def instant(seconds: int, millis: int) -> Any:
    return value("Timestamp", timestamp=seconds, millis=millis)


def civil(*parts: int | None) -> Any:
    names = ("year", "month", "day", "hour", "minute", "second", "millis")
    return value("DateTime", **dict(zip(names, parts, strict=True)))


@pytest.mark.parametrize(
    ("given", "kind", "expected"),
    [
        (integer(-128), "tinyint", -128),
        (integer(2**64 - 1), "bigint unsigned", Decimal(2**64 - 1)),
        (integer(5), "bit(8)", 5),
        (value("Decimal", value="-1.10", precision=10, scale=2), "decimal(10,2)", Decimal("-1.10")),
        (value("Decimal", value="1" * 40 + ".5", precision=41, scale=1), "decimal(41,1)", "1" * 40 + ".5"),
        (value("Float", value=0.1, precision=0, scale=0), "double", 0.1),
        (value("Float", value=1.7976931348623157e308, precision=0, scale=0), "double", 1.7976931348623157e308),
        (characters("größe"), "varchar(20)", "größe"),
        (characters("gr\u00f6\u00dfe €", "latin1", "cp1252"), "varchar(20)", "größe €"),
        (characters("漢字", "gbk", "gbk"), "varchar(20)", "漢字"),
        (value("Character", charset="binary", value=b"\0\xff"), "varbinary(9)", b"\0\xff"),
        (value("BinaryObject", type="blob", value=b"\0\xff\x80"), "blob", b"\0\xff\x80"),
        (value("BinaryObject", type="binary", value=b"\1"), "binary(3)", b"\1\0\0"),
        (value("BinaryObject", type="bit", value=b"\1\2"), "bit(16)", 258),
        (value("BinaryObject", type="text", value="größe".encode()), "text", "größe"),
        (value("TextObject", type="json", value='{"a": 1.10}'), "json", '{"a": 1.10}'),
        (value("TextObject", type="enum", value="small"), "enum('small')", "small"),
        (instant(1624614713, 201), "timestamp(3)", datetime(2021, 6, 25, 9, 51, 53, 201000, UTC)),
        (instant(1624614713, 2), "timestamp(3)", datetime(2021, 6, 25, 9, 51, 53, 2000, UTC)),
        (civil(2021, 6, 25, 17, 51, 53, 0), "datetime", datetime(2021, 6, 25, 17, 51, 53)),
        (civil(2021, 6, 25, 17, 51, 53, 20), "datetime(3)", datetime(2021, 6, 25, 17, 51, 53, 20000)),
        (civil(None, None, None, 838, 59, 59, None), "time", "838:59:59"),
        (civil(None, None, None, 7, 5, 3, 20), "time(6)", "07:05:03.020000"),
        (civil(2155, None, None, None, None, None, None), "year", 2155),
        (civil(0, 0, 0, 0, 0, 0, 0), "datetime", None),
        (None, "blob", None),
    ],
)  # fmt: skip
def test_values_read_as_the_source_has_them(given: Any, kind: str, expected: object) -> None:
    assert typed(given, kind) == expected


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        (value("TextObject", type="blob", value="test"), "blob"),
        (value("TextObject", type="x", value="dGVzdA=="), "varbinary(9)"),
        (value("BinaryGeometry", type="point", value=b"\1\1\0\0\0"), "point"),
        (value("TextGeometry", type="point", value="POINT(1 1)"), "point"),
        (value("BinaryObject", type="x", value=b"\xff\xfe"), "varchar(9)"),
        (value("BinaryObject", type="x", value=b"1"), "bit(3)"),
        (civil(2021, 6, 25, 17, 51, 53, 0), "timestamp"),
        (instant(1624614713, 0), "datetime"),
    ],
)
def test_values_of_another_form_than_their_column_are_refused(given: Any, kind: str) -> None:
    assert isinstance(typed(given, kind), str)


def test_civil_text_in_a_timestamp_column_needs_a_stated_zone() -> None:
    # a schema without instants
    options = {**OPTIONS, "schema": json.dumps(schema_of({"v": "string"}))}
    options = {name: text for name, text in options.items() if not name.startswith(("field.", "operation."))}
    wire_format = open_format("drs-avro", {**options, **PLAIN})
    assert wire_format.encoding_of("t", parse_type("timestamp"), None).encoding == "zoned_text"
    wire_format = open_format("drs-avro", {**options, **PLAIN, "timezone": "+08:00"})
    encoding = wire_format.encoding_of("t", parse_type("timestamp"), None)
    assert (encoding.encoding, encoding.zone) == ("text", "+08:00")


# ---- other shapes

PLAIN = {
    "field.operation": "type", "field.position": "id", "field.time": "es", "field.database": "head.db",
    "field.table": "head.tables.one", "field.before": "old", "field.after": "data",
}  # fmt: skip


def schema_of(columns: Any, kind: Any = None) -> dict[str, Any]:
    """Return a schema of our own: nested names, nullable fields, images of a given type."""
    if kind is None:
        fields = [{"name": name, "type": of} for name, of in columns.items()]
        kind = {"type": "record", "name": "Columns", "fields": fields}
    head = {"type": "record", "name": "Head", "fields": [
        {"name": "db", "type": "string"}, {"name": "tables", "type": {"type": "map", "values": "string"}},
    ]}  # fmt: skip
    return {"type": "record", "name": "Event", "namespace": "x.y", "fields": [
        {"name": "type", "type": ["null", "string"]}, {"name": "id", "type": "string"}, {"name": "es", "type": "long"},
        {"name": "head", "type": ["null", head]},
        {"name": "old", "type": ["null", kind]}, {"name": "data", "type": ["null", _again(kind)]},
    ]}  # fmt: skip


def _again(kind: dict[str, Any]) -> Any:
    """Return a type as its second use names it."""
    if kind["type"] == "array" and "name" in kind["items"]:
        return {**kind, "items": kind["items"]["name"]}
    return kind.get("name", kind)


def event(**more: Any) -> dict[str, Any]:
    head = {"db": "d", "tables": {"one": "t "}}
    return {"type": "INSERT", "id": "9", "es": 1624614713000, "head": head, "old": None, "data": None, **more}


def decoded(kind: Any, *events: dict[str, Any], columns: Any = None) -> list[dict[str, Any]]:
    tree = schema_of(columns, kind)
    return changes(
        *[encoded(fastavro.parse_schema(tree), e) for e in events], options={**PLAIN, "schema": json.dumps(tree)}
    )


VALUE = ["null", "boolean", "int", "long", "double", "string", "bytes"]


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
    found = decoded(kind, event(type="UPDATE", old=rows, data=rows[::-1]))
    assert [change["index"] for change in found] == list(range(12))
    assert [image(change["before"])["id"] for change in found] == [str(n) for n in range(12)]
    assert [image(change["after"])["id"] for change in found] == [str(11 - n) for n in range(12)]
    assert [c["position"] for c in found] == sorted({c["position"] for c in found})


def test_an_image_may_be_a_list_of_names_with_values() -> None:
    fields = [{"name": "name", "type": "string"}, {"name": "value", "type": VALUE}]
    kind = {"type": "array", "items": {"type": "record", "name": "Cell", "fields": fields}}
    cell = [{"name": "id", "value": 1}, {"name": "v", "value": "a"}]
    found = decoded(kind, event(data=cell), event(data=[*cell, cell[0]]))
    assert [change["kind"] for change in found] == ["row", "error"]
    assert image(found[0]["after"]) == {"id": "1", "v": "a"}


def logical(base: Any, name: str, **more: Any) -> dict[str, Any]:
    return {**(base if isinstance(base, dict) else {"type": base}), "logicalType": name, **more}


@pytest.mark.parametrize(
    ("kind", "given", "token"),
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
def test_every_avro_value_becomes_an_exact_token(kind: Any, given: Any, token: object) -> None:
    tree = schema_of({"c": ["null", kind]})
    # written without logical types: fastavro would convert
    plain = fastavro.parse_schema(json.loads(json.dumps(tree).replace("logicalType", "l")))
    (change,) = changes(encoded(plain, event(data={"c": given})), options={**PLAIN, "schema": json.dumps(tree)})
    assert change["kind"] == "row", change["error"]
    assert image(change["after"]) == {"c": token}


@pytest.mark.parametrize(
    ("kind", "given"),
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
def test_a_value_whose_meaning_is_not_known_is_an_error(kind: Any, given: Any) -> None:
    tree = schema_of({"c": kind})
    plain = fastavro.parse_schema(json.loads(json.dumps(tree).replace("logicalType", "l")))
    (change,) = changes(encoded(plain, event(data={"c": given})), options={**PLAIN, "schema": json.dumps(tree)})
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")


def test_a_column_that_is_text_before_and_bytes_after_is_an_error() -> None:
    found = decoded({"type": "map", "values": VALUE}, event(type="UPDATE", old={"c": "dGVzdA=="}, data={"c": b"test"}))
    assert [change["kind"] for change in found] == ["error"]


def test_lists_of_columns_that_take_turns_each_name_their_own_values() -> None:
    lists = [[{"name": f"c{n}", "dataTypeNumber": 3}] for n in range(40)]  # more than are remembered
    lists += [FIELDS[:1], FIELDS, FIELDS[::-1], [], None, FIELDS[:1] * 2]
    rows = [(fields, [integer(n + 1) for n in range(len(fields or ()))]) for fields in lists] * 3
    found = changes(*(wire("INSERT", fields=fields, afterImages=values) for fields, values in rows))
    for change, (fields, _) in zip(found, rows, strict=True):
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
    found = changes(*(encoded(fastavro.parse_schema(tree), e) for e in events), options=options)
    assert [image(change["after"]) for change in found] == [{"a": "1"}, {"b": "2"}, {"a": "3", "b": None}]


@pytest.mark.parametrize("kind", [{"type": "array", "items": "string"}, {"type": "map", "values": "string"}])
def test_a_name_that_is_no_text_is_an_error(kind: dict[str, Any]) -> None:
    name: Any = ["a"] if kind["type"] == "array" else {"a": "b"}
    cell = {
        "type": "record",
        "name": "Cell",
        "fields": [{"name": "name", "type": kind}, {"name": "value", "type": VALUE}],
    }
    (beside,) = decoded({"type": "array", "items": cell}, event(data=[{"name": name, "value": 1}]))
    tree = schema_of(None, {"type": "array", "items": VALUE})
    column = {"type": "record", "name": "Column", "fields": [{"name": "name", "type": kind}]}
    tree["fields"].insert(0, {"name": "names", "type": {"type": "array", "items": column}})
    options = {**PLAIN, "schema": json.dumps(tree), "field.columns": "names"}
    (listed,) = changes(encoded(fastavro.parse_schema(tree), event(names=[{"name": name}], data=[1])), options=options)
    assert [(c["kind"], c["error_code"]) for c in (beside, listed)] == [("error", "record.malformed")] * 2


def test_bytes_like_the_mark_of_an_absent_column_are_carried() -> None:
    (change,) = changes(
        wire("INSERT", fields=FIELDS, afterImages=["NONE", value("BinaryObject", type="x", value=ABSENT)])
    )
    assert image(change["after"]) == {"v": b64encode(ABSENT).decode()}


# ---- wrong schemas


def rows_of_every_kind() -> list[bytes]:
    values = [
        *A, value("Decimal", value="1.10", precision=10, scale=2), value("Float", value=0.5, precision=8, scale=1),
        instant(1624614713, 0), civil(2021, 6, 25, 17, 51, 53, 0),
        value("BinaryObject", type="blob", value=b"\0\1\2"), value("TextObject", type="json", value="{}"), None,
    ]  # fmt: skip
    fields = [{"name": f"c{n}", "dataTypeNumber": n} for n in range(len(values))]
    return [
        wire("INSERT", fields=fields[n : n + count], afterImages=values[n : n + count])
        for count in (1, 2, 4, 9)
        for n in range(len(values) - count + 1)
    ]


def test_a_schema_with_other_branches_gives_errors_and_no_rows_but_of_null() -> None:
    found = changes(*rows_of_every_kind(), options={**OPTIONS, "schema": json.dumps(SHORTENED)})
    rows = [change for change in found if change["kind"] != "error"]
    assert [image(change["after"]) for change in rows] == [{"c8": None}]
    assert {change["error_code"] for change in found if change["kind"] == "error"} <= {
        "record.schema_mismatch",
        "record.malformed",
    }


def test_an_older_edition_reads_what_it_knows_and_refuses_the_rest() -> None:
    options = {**OPTIONS, "schema": json.dumps(OLDER)}
    found = changes(
        wire("INSERT", fields=FIELDS, afterImages=A),
        wire("INSERT", fields=FIELDS, afterImages=[integer(1), "NULL"]),
        wire("INIT", fields=FIELDS, afterImages=A),
        options=options,
    )
    assert [change["kind"] for change in found] == ["row", "error", "error"]


def test_bytes_that_are_left_over_or_missing_are_an_error() -> None:
    whole = wire("INSERT", fields=FIELDS, afterImages=A)
    found = changes(*(whole[:n] for n in range(len(whole))), whole + b"\0", whole + whole, b"\xff" * 50)
    assert {change["kind"] for change in found} == {"error"}
    assert {change["error_code"] for change in found} == {"record.schema_mismatch"}
    assert found[-2]["raw"] == whole + whole


@pytest.mark.parametrize(
    "more",
    [
        {"fields": FIELDS[:1]},
        {"fields": None},
        {"fields": "id,v"},
        {"fields": [FIELDS[0], FIELDS[0]]},
        {"afterImages": None},
        {"afterImages": "text"},
        {"afterImages": []},
        {"beforeImages": B},
        {"id": -1},
        {"sourceTimestamp": 1},
        {"sourceTimestamp": -1624614713},
        {"sourceTimestamp": 16246147130},
        {"objectName": None},
        {"objectName": "orders"},
        {"objectName": "shop.public.orders"},
        {"objectName": "shop."},
        {"objectName": "sh\x01op.orders"},
        {"operation": "FINISH"},
        {"operation": "UPDATE"},
        {"operation": "DELETE", "afterImages": None},
        {"operation": "DDL", "afterImages": None},
        {"operation": "DDL", "afterImages": " "},
        {"operation": "DDL"},
        {"afterImages": [value("Integer", precision=1, value="x"), None]},
        {"afterImages": [value("Decimal", value="", precision=1, scale=1), None]},
        {"afterImages": [value("Float", value=float("nan"), precision=1, scale=1), None]},
        {"afterImages": [value("Character", charset="", value=b"x"), None]},
        {"afterImages": [value("Character", charset="klingon", value=b"x"), None]},
        {"afterImages": [value("Character", charset="utf8mb4", value=b"\xff"), None]},
        {"afterImages": [instant(1624614713201, 0), None]},
        {"afterImages": [instant(1624614713, 1000), None]},
        {"afterImages": [civil(2021, 13, 25, 0, 0, 0, 0), None]},
        {"afterImages": [civil(2021, 6, None, 0, 0, 0, 0), None]},
        {"afterImages": [civil(None, None, None, -1, 0, 0, 0), None]},
    ],
)
def test_what_is_implausible_is_an_error_with_the_bytes(more: dict[str, Any]) -> None:
    good = wire("INSERT", fields=FIELDS, afterImages=A)
    bad = wire(**{"operation": "INSERT", "fields": FIELDS, "afterImages": A, **more})
    found = changes(good, bad, good)
    assert [change["kind"] for change in found] == ["row", "error", "row"]
    assert (found[1]["error_code"], found[1]["raw"], found[1]["offset"]) == ("record.malformed", bad, 1)


@pytest.mark.parametrize(("time", "unit"), [(1624614713, 1_000_000), (1624614713000, 1000), (1624614713000000, 1)])
def test_the_digits_of_a_time_tell_its_unit(time: int, unit: int) -> None:
    (change,) = changes(wire("INSERT", fields=FIELDS, afterImages=A, sourceTimestamp=time))
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)


# ---- framings


def test_a_fingerprint_before_the_record_must_be_that_of_the_schema() -> None:
    tree = {"type": "record", "name": "R", "fields": [{"name": n, "type": "string"} for n in ("o", "p", "d", "t")]}
    tree["fields"].append({"name": "i", "type": ["null", {"type": "map", "values": "string"}]})  # type: ignore[attr-defined]
    options = {
        "schema": json.dumps(tree), "framing": "single-object", "field.operation": "o", "field.position": "p",
        "field.database": "d", "field.table": "t", "field.before": "i", "field.after": "i",
    }  # fmt: skip
    stream = encoded(fastavro.parse_schema(tree), {"o": "DELETE", "p": "1", "d": "d", "t": "t", "i": {"a": "1"}})
    mark = _rabin(fastavro.schema.to_parsing_canonical_form(tree).encode()).to_bytes(8, "little")
    found = changes(b"\xc3\x01" + mark + stream, b"\xc3\x01" + mark[::-1] + stream, stream, options=options)
    assert [change["kind"] for change in found] == ["row", "error", "error"]


def _rabin(text: bytes) -> int:
    """Return the CRC-64-AVRO fingerprint as Avro's specification defines it."""
    empty = 0xC15D213AA4D7A795
    table = []
    for byte in range(256):
        print_ = byte
        for _ in range(8):
            print_ = (print_ >> 1) ^ (empty if print_ & 1 else 0)
        table.append(print_)
    result = empty
    for byte in text:
        result = (result >> 8) ^ table[(result ^ byte) & 0xFF]
    return result


def test_the_number_of_a_registered_schema_is_passed_over_where_that_is_stated() -> None:
    bare = wire("INSERT", fields=FIELDS, afterImages=A)
    found = changes(b"\0\0\0\0\7" + bare, bare, options={**OPTIONS, "framing": "confluent"})
    assert [change["kind"] for change in found] == ["row", "error"]


@pytest.mark.parametrize(
    ("begin", "hint"), [(b"Obj\x01", "container"), (b"\xc3\x01", "single-object"), (b"\0\0\0\0\7", "registered")]
)
def test_a_record_that_does_not_fit_is_told_what_it_may_be(begin: bytes, hint: str) -> None:
    (change,) = changes(begin + wire("INSERT", fields=FIELDS, afterImages=A))
    assert change["kind"] == "error"
    assert hint in change["error"]


# ---- options


def test_the_schemas_file_is_read_once_and_its_text_travels(tmp_path: Path) -> None:
    file = tmp_path / "record.avsc"
    file.write_text("\ufeff" + OPTIONS["schema"], encoding="utf-8")
    stated = {**{name: text for name, text in OPTIONS.items() if name != "schema"}, "schema_file": str(file)}
    portable = portable_options("drs-avro", stated)
    assert portable == OPTIONS
    assert portable_options("debezium-json", {"a": "b"}) == {"a": "b"}
    row = wire("INSERT", fields=FIELDS, afterImages=A)
    (change,) = changes(row, options=stated)
    file.unlink()
    assert changes(row, options=portable) == [change]


@pytest.mark.parametrize("options", [{}, {"schema": "x", "schema_file": "y"}, {"schema_file": "no/such.avsc"}])
def test_a_batch_without_a_readable_schema_is_not_planned(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"source\.options\.schema_file"):
        portable_options("drs-avro", options)


def test_without_a_schema_nothing_is_read_and_the_sensor_says_why() -> None:
    wire_format = open_format("drs-avro")
    found = changes(b"x", None, options={})
    assert [(change["kind"], change["error_code"]) for change in found] == [
        ("error", "schema.missing"),
        ("ignored", None),
    ]
    with pytest.raises(ConfigurationError, match="schema_file"):
        wire_format.progress_of("t", None, b"x")


def test_every_missing_or_wrong_option_is_told_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_format("drs-avro", {
            "schema": OPTIONS["schema"], "timezone": "Mars", "framing": "none", "field.operation": "op",
            "field.time": "source.version", "field.name": "tags", "field.before": "version",
            "field.after": "afterImages", "field.statement": "source.sourceType.x",
        })  # fmt: skip
    told = " ".join(caught.value.problems)
    assert len(caught.value.problems) == 8
    for name in ("timezone", "framing", "field.operation", "field.position", "field.name", "field.before",
                 "field.columns", "field.statement"):  # fmt: skip
        assert f"source.options.{name}:" in told
    assert "sourceTimestamp" in told  # the fields that the schema has


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "no JSON"),
        ('"string"', "not a record"),
        ("[]", "not a record"),
        ('{"type":"record","fields":[]}', "no Avro schema"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"S"}]}', "no Avro schema"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"]}]}', "inside itself"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"null"}}]}',
            "take no bytes",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":0}}]}',
            "no bytes",
        ),
    ],
)
def test_a_text_that_is_no_schema_or_not_a_safe_one_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        open_format("drs-avro", {**OPTIONS, "schema": text})


def test_progress_is_read_from_rows_and_heartbeats() -> None:
    wire_format = open_format("drs-avro", OPTIONS)
    found = wire_format.progress_of("t", None, wire("INSERT", fields=FIELDS, afterImages=A))
    assert (found.source_time_ms, found.heartbeat) == (1624614713000, False)
    assert wire_format.progress_of("t", None, wire("HEARTBEAT")).heartbeat
    for given in (None, b"", b"garbage", wire("CHECKPOINT"), wire("INSERT", sourceTimestamp=5)):
        assert wire_format.progress_of("t", None, given) is None


def test_operations_may_have_other_names() -> None:
    tree = schema_of({"c": "string"})
    plain = fastavro.parse_schema(tree)
    values = [encoded(plain, event(type=name, data={"c": "1"})) for name in ("I", "C", "INSERT")]
    found = changes(*values, options={**PLAIN, "schema": json.dumps(tree), "operation.insert": "I, C"})
    assert [change["kind"] for change in found] == ["row", "row", "error"]


def test_positions_may_be_the_largest_long_and_never_more() -> None:
    plain = fastavro.parse_schema(schema_of({"c": "string"}))
    values = [encoded(plain, event(id=text, data={"c": "1"})) for text in (str(2**63 - 1), str(2**63), "x", "", "٣")]
    found = changes(*values, options={**PLAIN, "schema": json.dumps(schema_of({"c": "string"}))})
    assert [change["kind"] for change in found] == ["row", "error", "error", "error", "error"]
    assert found[0]["position"] == "0000.0000000000.09223372036854775807.0000000000"
