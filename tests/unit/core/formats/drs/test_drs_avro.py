# SPDX-License-Identifier: Apache-2.0
"""Huawei DRS, Avro by a stated schema: shapes of images, exact values, wrong schemas, framings, options."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type
from tests.cross_format.avro_schema import OPTIONS, value, wire
from tests.unit.core.formats.drs.avro_changes import (
    FIELDS,
    IMAGE_A,
    IMAGE_B,
    PLAIN,
    A,
    B,
    changes,
    characters,
    image,
    instant,
    integer,
    local_time,
    schema_of,
)

# ---- the shape of appendix A: values next to a list of columns


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


def test_a_statements_dialect_is_the_one_that_the_option_states() -> None:
    ddl = wire("DDL", afterImages='ALTER TABLE "orders" ADD c INT')
    assert [change["dialect"] for change in changes(ddl)] == ["mysql"]
    assert [change["dialect"] for change in changes(ddl, options={**OPTIONS, "dialect": "oracle"})] == ["oracle"]


def test_a_statement_of_mysql_refuses_the_dialect_of_oracle() -> None:
    ddl = wire("DDL", afterImages="ALTER TABLE `orders` ADD c INT")
    (refused,) = changes(ddl, options={**OPTIONS, "dialect": "oracle"})
    assert (refused["kind"], refused["error_code"]) == ("error", "format.option_contradicted")


def test_schema_changes_marks_and_heartbeats() -> None:
    actual = changes(
        wire("DDL", afterImages="ALTER TABLE orders ADD c INT"),
        wire("BEGIN", objectName=None),
        wire("COMMIT", objectName=None),
        wire("HEARTBEAT", objectName=None),
        wire("CHECKPOINT", objectName=None),
        None,
    )
    assert [(c["kind"], c["op"]) for c in actual] == [
        ("schema", None), ("transaction", "begin"), ("transaction", "commit"), ("progress", None),
        ("ignored", None), ("ignored", None),
    ]  # fmt: skip
    assert (actual[0]["statement"], actual[0]["default_database"]) == ("ALTER TABLE orders ADD c INT", "shop")
    assert actual[0]["position"] == "0000.0000000000.00000000000000027677.0000000000"
    assert actual[1]["transaction_id"] == "77"
    assert actual[3]["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)


def test_a_column_that_is_not_carried_is_absent_and_did_not_change() -> None:
    none, null = "NONE", "NULL"
    actual = changes(
        wire("UPDATE", fields=FIELDS, beforeImages=A, afterImages=[integer(103), none]),
        wire("UPDATE", fields=FIELDS, beforeImages=[integer(103), none], afterImages=[integer(104), none]),
        wire("INSERT", fields=FIELDS, afterImages=[integer(103), null]),
    )
    assert image(actual[0]["after"]) == IMAGE_A
    assert [image(actual[1][side]) for side in ("before", "after")] == [{"id": "103"}, {"id": "104"}]
    assert image(actual[2]["after"]) == {"id": "103", "v": None}
    wire_format = open_format("drs-avro", OPTIONS)
    assert [wire_format.describe(c["columns"]).complete for c in actual] == [True, False, True]


def typed(written: Any, kind: str, options: Any = OPTIONS) -> Any:
    """Return the value of a column of this type, or why there is none."""
    (change,) = changes(wire("INSERT", fields=FIELDS[1:], afterImages=[written]), options=options)
    assert change["kind"] == "row", change["error"]
    wire_format, column = open_format("drs-avro", options), parse_type(kind)
    encoding = wire_format.encoding_of("v", column, wire_format.describe(change["columns"]))
    result = type_images(pa.array([change["after"]]), [Field(encoding, column, arrow_type(column))])
    return result.failures[0].reason if result.failures else result.columns[0][0].as_py()


@pytest.mark.parametrize(
    ("written", "kind", "expected"),
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
        (local_time(2021, 6, 25, 17, 51, 53, 0), "datetime", datetime(2021, 6, 25, 17, 51, 53)),
        (local_time(2021, 6, 25, 17, 51, 53, 20), "datetime(3)", datetime(2021, 6, 25, 17, 51, 53, 20000)),
        (local_time(None, None, None, 838, 59, 59, None), "time", "838:59:59"),
        (local_time(None, None, None, 7, 5, 3, 20), "time(6)", "07:05:03.020000"),
        (local_time(2155, None, None, None, None, None, None), "year", 2155),
        (local_time(0, 0, 0, 0, 0, 0, 0), "datetime", None),
        (None, "blob", None),
    ],
)  # fmt: skip
def test_values_read_as_the_source_has_them(written: Any, kind: str, expected: object) -> None:
    assert typed(written, kind) == expected


@pytest.mark.parametrize(
    ("written", "kind"),
    [
        (value("TextObject", type="blob", value="test"), "blob"),
        (value("TextObject", type="x", value="dGVzdA=="), "varbinary(9)"),
        (value("BinaryGeometry", type="point", value=b"\1\1\0\0\0"), "point"),
        (value("TextGeometry", type="point", value="POINT(1 1)"), "point"),
        (value("BinaryObject", type="x", value=b"\xff\xfe"), "varchar(9)"),
        (value("BinaryObject", type="x", value=b"1"), "bit(3)"),
        (local_time(2021, 6, 25, 17, 51, 53, 0), "timestamp"),
        (instant(1624614713, 0), "datetime"),
    ],
)
def test_values_of_another_form_than_their_column_are_refused(written: Any, kind: str) -> None:
    assert isinstance(typed(written, kind), str)


def test_local_time_text_in_a_timestamp_column_needs_a_stated_zone() -> None:
    # a schema without instants
    options = {**OPTIONS, "schema": json.dumps(schema_of({"v": "string"}))}
    options = {name: text for name, text in options.items() if not name.startswith(("field.", "operation."))}
    wire_format = open_format("drs-avro", {**options, **PLAIN})
    assert wire_format.encoding_of("t", parse_type("timestamp"), None).encoding == "zoned_text"
    wire_format = open_format("drs-avro", {**options, **PLAIN, "timezone": "+08:00"})
    encoding = wire_format.encoding_of("t", parse_type("timestamp"), None)
    assert (encoding.encoding, encoding.zone) == ("text", "+08:00")
