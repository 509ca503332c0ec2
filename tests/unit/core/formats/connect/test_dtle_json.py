# SPDX-License-Identifier: Apache-2.0
"""dtle's JSON: rows, false tombstones, DDL messages, types and options (docs/wire/debezium-dtle.md A)."""

from __future__ import annotations

import base64
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import ConfigurationError, DataError
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type

SOURCE = {
    "version": "0.0.1",
    "name": "dt",
    "server_id": 1,
    "ts_sec": 1_700_000_000,
    "gtid": "acd7d195-06cd-11e9-928f-02000aba3e28:21",
    "file": "bin.000012",
    "pos": 4711,
    "query": None,
    "row": 2,
    "snapshot": False,
    "thread": None,
    "db": "shop",
    "table": "t",
}
SNAPSHOT = {"server_id": 0, "ts_sec": 0, "gtid": None, "file": "", "pos": 0, "row": 0, "snapshot": True}
FALSE_TOMBSTONE = b'{"schema":null,"payload":null}'
ID = {"type": "int64", "optional": False, "field": "id"}
NAME = {"type": "string", "optional": True, "field": "name"}


def envelope(*fields: dict[str, Any]) -> dict[str, Any]:
    images = [
        {"type": "struct", "optional": True, "field": image, "fields": list(fields), "name": "dt.shop.t.Value"}
        for image in ("before", "after")
    ]
    return {"type": "struct", "optional": False, "fields": images, "name": "dt.shop.t.Envelope", "version": 1}


def row(
    op: str, before: object = None, after: object = None, fields: tuple[dict[str, Any], ...] = (ID, NAME), **source: Any
) -> bytes:
    payload = {"before": before, "after": after, "source": {**SOURCE, **source}, "op": op, "ts_ms": 1_700_000_000_123}
    return json.dumps({"schema": envelope(*fields), "payload": payload}, separators=(",", ":")).encode()


def key(*names: str) -> bytes:
    fields = {"fields": [{**ID, "field": name} for name in names]} if names else {}
    schema = {"type": "struct", "optional": False, **fields, "name": "dt.shop.t.Key"}
    return json.dumps({"schema": schema, "payload": dict.fromkeys(names, 1)}, separators=(",", ":")).encode()


def ddl(text: str, database: str | None = "shop", **position: Any) -> bytes:
    source = {"ts_sec": 1_700_000_000, "file": "bin.000012", "pos": 900, "gtids": "acd7:1-20", **position}
    named = {} if database is None else {"databaseName": database}
    message = {"source": {"server": ""}, "position": source, **named, "ddl": text, "tableChanges": None}
    return json.dumps(message, separators=(",", ":")).encode()


def changes(*values: bytes | None, keys: list[bytes | None] | None = None, **options: str) -> list[dict[str, Any]]:
    count = len(values)
    records = Records("dt.shop.t", 1, list(range(count)), [None] * count, keys or [key("id")] * count, values)
    return open_format("dtle-json", options).decode(records).to_pylist()


# ---- rows


@pytest.mark.parametrize(
    ("op", "name", "before", "after"),
    [
        ("c", "insert", None, {"id": 1, "name": "a"}),
        ("u", "update", {"id": 1, "name": "a"}, {"id": 2, "name": "a"}),
        ("d", "delete", {"id": 1, "name": None}, None),
    ],
)
def test_a_row_keeps_its_images_its_place_and_its_transaction(op: str, name: str, before: Any, after: Any) -> None:
    (change,) = changes(row(op, before, after))
    assert (change["kind"], change["op"], change["database"], change["table"]) == ("row", name, "shop", "t")
    assert change["position"] == "0000.0000000012.00000000000000004711.0000000002"
    assert change["transaction_id"] == "acd7d195-06cd-11e9-928f-02000aba3e28:21"
    assert [None if x is None else json.loads(x) for x in (change["before"], change["after"])] == [before, after]


def test_dtles_clock_is_not_reported_as_the_time_of_the_source() -> None:
    value = row("c", None, {"id": 1, "name": "a"})
    assert changes(value)[0]["source_time"] is None
    assert open_format("dtle-json").progress_of("dt.shop.t", key("id"), value) is None


def test_a_snapshot_row_is_reported_as_one_and_stands_before_the_whole_log() -> None:
    snapshot, first = changes(
        row("c", None, {"id": 1, "name": "a"}, **SNAPSHOT),
        row("c", None, {"id": 2, "name": "b"}, file="bin.000001", pos=4),
    )
    assert (snapshot["op"], first["op"]) == ("snapshot", "insert")
    assert snapshot["position"] < first["position"]
    assert snapshot["transaction_id"] is None


def test_both_kinds_of_tombstone_are_ignored() -> None:
    assert [change["kind"] for change in changes(None, FALSE_TOMBSTONE)] == ["ignored", "ignored"]


def test_tokens_of_images_stay_as_they_were_received() -> None:
    value = row("c", None, {"id": 1, "name": "?"}).replace(
        b'{"id":1,"name":"?"}', b'{"id":1e20,"name":"\\u003c\xc3\xa9"}'
    )
    assert changes(value)[0]["after"] == '{"id":1e20,"name":"\\u003cé"}'


def test_the_columns_and_the_key_are_reported_with_the_row() -> None:
    wire = open_format("dtle-json")
    with_key, without = changes(*[row("c", None, {"id": 1, "name": "a"})] * 2, keys=[key("name", "id"), key()])
    described = wire.describe(with_key["columns"])
    assert (described.names, described.key) == (("id", "name"), ("name", "id"))
    assert wire.describe(without["columns"]).key == ()


def test_a_record_that_lost_its_key_does_not_show_the_tables() -> None:
    wire = open_format("dtle-json")
    (change,) = changes(row("c", None, {"id": 1, "name": "a"}), keys=[None])
    described = wire.describe(change["columns"])
    assert (change["kind"], described.key, wire.infer(described)) == ("row", None, None)


def test_an_update_may_move_its_key() -> None:
    assert open_format("dtle-json").updates_move_keys


# ---- DDL


def test_ddl_is_reported_with_its_place_its_time_and_its_database() -> None:
    (change,) = changes(ddl("ALTER TABLE shop.t ADD c INT"), keys=[b"null"])
    assert (change["kind"], change["statement"]) == ("schema", "ALTER TABLE shop.t ADD c INT")
    assert (change["default_database"], change["database"], change["table"]) == ("shop", "shop", None)
    assert change["position"] == "0000.0000000012.00000000000000000900.0000000000"
    assert change["source_time"].timestamp() == 1_700_000_000
    assert change["table_changes"] is None


def test_ddl_and_rows_stand_in_one_order() -> None:
    actual = changes(
        row("c", None, {"id": 1, "name": "a"}, pos=899),
        ddl("TRUNCATE TABLE shop.t"),
        row("c", None, {"id": 1, "name": "a"}, pos=901),
    )
    positions = [change["position"] for change in actual]
    assert positions == sorted(positions)


def test_snapshot_ddl_stands_before_the_whole_log_and_has_no_time() -> None:
    zeros = {"ts_sec": 0, "file": "", "pos": 0, "gtids": "", "snapshot": True}
    actual = changes(
        ddl("SET session.sql_mode = ''", None, **zeros),
        ddl("CREATE DATABASE IF NOT EXISTS `shop`", **zeros),
        ddl("DROP TABLE IF EXISTS `t`", **zeros),
        ddl("CREATE TABLE `t` (id INT)", **zeros),
    )
    assert [change["kind"] for change in actual] == ["schema"] * 4
    assert {change["position"] for change in actual} == {"0000.0000000000.00000000000000000000.0000000000"}
    assert actual[3]["default_database"] == "shop"
    assert actual[3]["source_time"] is None


@pytest.mark.parametrize("space", [" ", "  ", "\n"])
def test_the_comment_that_dtle_appends_to_ddl_is_taken_off(space: str) -> None:
    mark = "/*dtle_gtid1 job-1 acd7d195-06cd-11e9-928f-02000aba3e28 21 dtle_gtid*/"
    (change,) = changes(ddl(f"DROP TABLE `shop`.`t` /* generated by server */{space}{mark}"))
    assert change["statement"] == "DROP TABLE `shop`.`t` /* generated by server */"


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD c INT",
        "CREATE TABLE t (id INT)",
        "CREATE TABLE shop.t LIKE u",
        "TRUNCATE t",
        "DROP TABLE shop.t, u",
        "RENAME TABLE shop.t TO shop.u, v TO w",
        "ALTER TABLE shop.t RENAME u",
    ],
)
def test_ddl_with_a_name_of_no_known_database_is_an_error_unless_the_option_says_it(text: str) -> None:
    (refused,) = changes(ddl(text, None))
    assert (refused["kind"], refused["error_code"]) == ("error", "record.database_unknown")
    assert "source.options.default_database" in refused["error"]
    (taken,) = changes(ddl(text, None), default_database="shop")
    assert (taken["kind"], taken["default_database"]) == ("schema", "shop")


@pytest.mark.parametrize("text", ["FLUSH TABLES", "ALTER TABLE shop.t ADD c INT", "CREATE TEMPORARY TABLE x (id INT)"])
def test_ddl_that_needs_no_database_may_have_none(text: str) -> None:
    (change,) = changes(ddl(text, None))
    assert (change["kind"], change["default_database"]) == ("schema", "")


# ---- what is not a message


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"{}",
        b"[" * 100_000,
        b'{"schema":null,"payload":{}}',
        json.dumps({"payload": json.loads(row("c", None, {"id": 1}))["payload"]}).encode(),  # without its schema
        row("r", None, {"id": 1}),
        row("t"),
        row("c"),
        row("c", {"id": 1}, {"id": 1}),
        row("u", None, {"id": 1}),
        row("d", None, {"id": 1}),
        row("c", None, 5),
        row("d", {"id": 1}, None, **SNAPSHOT),
        row("c", None, {"id": 1}, file=""),
        row("c", None, {"id": 1}, file="nonumber"),
        row("c", None, {"id": 1}, pos=-1),
        row("c", None, {"id": 1}, table=""),
        row("c", None, {"id": 1}, snapshot="false"),  # Debezium's
        ddl(""),
        ddl("DROP TABLE shop.t", file=""),
        ddl("DROP TABLE shop.t").replace(b'"position"', b'"place"'),
        row("c", None, {"id": 1}).replace(b'{"id":1}', b'{"id":"\xff"}'),
    ],
)
def test_bytes_that_are_no_message_become_an_error_with_the_bytes(value: bytes) -> None:
    good = row("c", None, {"id": 1, "name": "a"})
    before, bad, after = changes(good, value, good)
    assert (before["kind"], bad["kind"], after["kind"]) == ("row", "error", "row")
    assert bad["error_code"] in ("record.malformed", "record.not_utf8")
    assert (bad["raw"], bad["offset"]) == (value, 1)


# ---- values


def connect(kind: str, name: str | None = None, **parameters: str) -> dict[str, Any]:
    more = {"name": name, "version": 1} if name else {}
    return {"type": kind, "optional": True, "field": "c", **more, **({"parameters": parameters} if parameters else {})}


DECIMAL = connect("bytes", "org.apache.kafka.connect.data.Decimal", **{"scale": "2", "connect.decimal.precision": "10"})
ENUM = ColumnType("enum", labels=("it's", "b"))
VALUES = [
    (ColumnType("tinyint", unsigned=True), connect("int16"), 255, 255),
    (ColumnType("smallint", unsigned=True), connect("int32"), 65535, 65535),
    (ColumnType("mediumint"), connect("int32"), -8388608, -8388608),
    (ColumnType("int", unsigned=True), connect("int64"), 4294967295, 4294967295),
    (ColumnType("bigint", unsigned=True), connect("int64"), -1, Decimal(2**64 - 1)),
    (ColumnType("float"), connect("float64"), 1.5, 1.5),
    (ColumnType("double"), connect("float64"), -0.1, -0.1),
    (ColumnType("decimal", 10, 2), DECIMAL, base64.b64encode(b"\x30\x39").decode(), Decimal("123.45")),
    (ColumnType("bit", 1), connect("boolean"), True, True),
    (ColumnType("bit", 59), connect("bytes", "io.debezium.data.Bits", length="59"), "EwAAAAAAAAA=", 19),
    (ColumnType("date"), connect("int32", "io.debezium.time.Date"), 19691, date(2023, 11, 30)),
    (ColumnType("time", 1), connect("int64", "io.debezium.time.MicroTime"), 3723000001, "01:02:03.1"),
    (ColumnType("time", 6), connect("int64", "io.debezium.time.MicroTime"), -2880123100000, "-800:02:03.100000"),
    (
        ColumnType("datetime", 3),
        connect("int64", "io.debezium.time.Timestamp"),
        1701347696123,
        datetime(2023, 11, 30, 12, 34, 56, 123000),
    ),
    (ColumnType("year"), connect("int32", "io.debezium.time.Year"), 2022, 2022),
    (ENUM, connect("string", "io.debezium.data.Enum", allowed="its,b"), "b", "b"),
    (ENUM, connect("string", "io.debezium.data.Enum", allowed="its,b"), "its", "it's"),  # dtle takes the quote off
    (ColumnType("set", labels=("a", "b")), connect("string", "io.debezium.data.EnumSet", allowed="a,b"), "a,b", "a,b"),
    (ColumnType("json"), connect("string", "io.debezium.data.Json"), '{"a": 1}', '{"a": 1}'),
    (ColumnType("varchar", 9), connect("string"), "é", "é"),
    (ColumnType("text"), connect("string"), "abcd", "abcd"),  # not taken for base64
    (ColumnType("binary", 4), connect("bytes"), "YQ==", b"a\0\0\0"),  # not padded by dtle (#776)
    (ColumnType("varbinary", 4), connect("bytes"), "YQ==", b"a"),
]


def in_lake(value: object, column: ColumnType, field: dict[str, Any], options: dict[str, str], **source: Any) -> Any:
    wire = open_format("dtle-json", options)
    message = row("c", None, {"c": value}, (field,), **source)
    change = wire.decode(Records("t", 0, [0], [None], [key()], [message])).to_pylist()[0]
    encoded = wire.encoding_of("c", column, wire.describe(change["columns"]))
    result = type_images(pa.array([change["after"]]), [Field(encoded, column, arrow_type(column))])
    if result.failures:
        return result.failures[0].reason
    return result.columns[0][0].as_py()


@pytest.mark.parametrize(("column", "field", "token", "value"), VALUES, ids=[str(v[0]) for v in VALUES])
def test_values_of_every_type(column: ColumnType, field: dict[str, Any], token: object, value: object) -> None:
    assert in_lake(token, column, field, {}) == value
    assert in_lake(None, column, field, {}) is None


@pytest.mark.parametrize(
    ("token", "year"), [(122, 2022), (2050, 1950), (1999, 1999), (100, 2000), (255, 2155), (2001, 1901), (-1900, 0)]
)
def test_a_year_of_a_snapshot_is_set_right(token: int, year: int) -> None:
    field = connect("int32", "io.debezium.time.Year")
    assert in_lake(token, ColumnType("year"), field, {}, **SNAPSHOT) == year


def test_datetime_is_local_time_in_the_zone_of_the_job() -> None:
    column, field = ColumnType("datetime"), connect("int64", "io.debezium.time.Timestamp")
    millis = 1701318896000  # 2023-11-30 04:34:56 UTC
    assert in_lake(millis, column, field, {}) == datetime(2023, 11, 30, 4, 34, 56)
    assert in_lake(millis, column, field, {"timezone": "Asia/Shanghai"}) == datetime(2023, 11, 30, 12, 34, 56)
    assert in_lake(millis, column, field, {"timezone": "+08:00"}) == datetime(2023, 11, 30, 12, 34, 56)


def test_timestamp_is_an_instant_whatever_the_zone_and_its_zero_is_null() -> None:
    column, field = ColumnType("timestamp"), connect("string", "io.debezium.time.ZonedTimestamp")
    for options in ({}, {"timezone": "Asia/Shanghai"}):
        assert in_lake("2023-11-30T12:34:56Z", column, field, options).isoformat() == "2023-11-30T12:34:56+00:00"
        assert in_lake("0001-01-01T00:00:00Z", column, field, options) is None


@pytest.mark.parametrize("kind", ["tinytext", "text", "mediumtext", "longtext", "json"])
def test_text_of_binlog_rows_is_base64_if_the_option_says_so(kind: str) -> None:
    column, field = ColumnType(kind), connect("string")
    stated = {"text_as_base64": "true"}
    assert in_lake(base64.b64encode("größe".encode()).decode(), column, field, stated) == "größe"
    assert in_lake("", column, field, stated) == ""
    assert in_lake("no base64!", column, field, stated) == "base64_invalid"
    assert in_lake("größe", column, field, stated, **SNAPSHOT) == "größe"
    assert in_lake("YQ==", column, field, {}) == "YQ=="


def test_base64_text_is_in_the_character_set_of_its_column() -> None:
    column = ColumnType("text", charset="latin1")
    token = base64.b64encode("größe".encode("latin1")).decode()
    assert in_lake(token, column, connect("string"), {"text_as_base64": "true"}) == "größe"


def test_short_text_is_never_base64() -> None:
    column = ColumnType("varchar", 9)
    assert in_lake("YQ==", column, connect("string"), {"text_as_base64": "true"}) == "YQ=="


def test_a_geometry_is_refused() -> None:
    with pytest.raises(DataError, match="geometry"):
        open_format("dtle-json").encoding_of("g", ColumnType("geometry"), None)


def test_without_description_the_types_show_the_encoding() -> None:
    wire = open_format("dtle-json")
    assert wire.encoding_of("c", ColumnType("decimal", 9, 3), None) == Encoded("c", Encoding.DECIMAL_BASE64, 3)
    assert wire.encoding_of("c", ColumnType("year"), None) == Encoded("c", Encoding.NUMBER)


# ---- inferring


def inferred(*fields: dict[str, Any], **options: str) -> Any:
    wire = open_format("dtle-json", options)
    (change,) = changes(row("c", None, {field["field"]: None for field in fields}, fields), **options)
    return wire.infer(wire.describe(change["columns"]))


def test_a_schema_is_inferred_from_the_record() -> None:
    schema = inferred(ID, NAME, {**DECIMAL, "field": "d"})
    assert [str(column.type) for column in schema.columns] == ["bigint", "longtext", "decimal(10,2)"]
    assert [column.name for column in schema.key_columns] == ["id"]


def test_an_inferred_time_takes_no_fraction() -> None:
    field = connect("int64", "io.debezium.time.MicroTime")
    schema = inferred(ID, field)
    assert str(schema.columns[1].type) == "time"
    assert in_lake(3723000000, schema.columns[1].type, field, {}) == "01:02:03"
    assert in_lake(3723000001, schema.columns[1].type, field, {}) == "fraction_lost"


def test_no_schema_is_inferred_where_types_leave_a_value_open() -> None:
    assert inferred(ID, {"type": "", "optional": True, "field": "g"}) is None
    assert inferred(ID, NAME, text_as_base64="true") is None  # a string may be TEXT or VARCHAR


# ---- options


def test_all_wrong_options_are_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as reported:
        open_format("dtle-json", {"timezone": "Mars/Olympus", "text_as_base64": "maybe", "default_database": ""})
    assert len(reported.value.problems) == 3
