"""Huawei DRS, JSON and JSON-C: each cell of the operation matrix, schema changes, values by type, bad messages."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type

SHARED = Path(__file__).parents[6] / "shared"
DOCUMENT = SHARED / "seeds" / "004_24fae3500a2cd3e4.txt"
BOTH = ("drs-json", "drs-json-c")

# the types of the table in the vendor's sample; the lengths are ours
SAMPLE_TYPES = {
    "id": "int", "c1": "varchar(80)", "c2": "varbinary(200)", "c3": "int", "c4": "datetime", "c5": "timestamp(3)",
    "c6": "char(40)", "c7": "float", "c8": "double", "c9": "decimal(20,2)", "c10": "varchar(80)", "c11": "binary(3)",
    "c12": "varbinary(400)", "c13": "text", "c14": "blob",
}  # fmt: skip


def changes(*values: object, format: str = "drs-json", **options: str) -> list[dict[str, Any]]:
    raw = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    count = len(raw)
    records = Records("drs", 1, list(range(count)), [1000] * count, [None] * count, raw)
    return open_format(format, options).decode(records).to_pylist()


def message(kind: str, data: object = None, old: object = None, **more: object) -> dict[str, Any]:
    columns = {"id": "int", "v": "varchar"}
    return {
        "mysqlType": columns, "id": 27677, "es": 1624614713000, "ts": 1625058726990, "database": "test01",
        "table": "test ", "type": kind, "isDdl": False, "sql": "", "sqlType": {"id": 4, "v": 12}, "data": data,
        "old": old, "pkNames": ["id"], **more,
    }  # fmt: skip


def image(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def values(change: dict[str, Any], which: str, types: dict[str, str], format: str = "drs-json", **options: str) -> Any:
    """Return the typed values of an image, or the reasons why there are none."""
    wire = open_format(format, options)
    description = None if change["columns"] is None else wire.describe(change["columns"])
    fields = []
    for name, text in types.items():
        kind = parse_type(text)
        fields.append(Field(wire.encoding_of(name, kind, description), kind, arrow_type(kind)))
    typed = type_images(pa.array([change[which]]), fields)
    failed = {failure.column: failure.reason for failure in typed.failures}
    return failed or {name: column[0].as_py() for name, column in zip(types, typed.columns, strict=True)}


def value(text: object, kind: str, format: str = "drs-json", named: str | None = None, **options: str) -> Any:
    """Return the value of one column, given how it stands in the image."""
    told = {"mysqlType": {"c": named or kind.partition("(")[0]}}
    (change,) = changes(message("INSERT", [{"c": text}], **told), format=format, **options)
    found = values(change, "after", {"c": kind}, format, **options)
    return found["c"]


# ---- the vendor's document


def document() -> str:
    if not DOCUMENT.is_file():
        pytest.skip("the vendor's document is not here")
    return DOCUMENT.read_text(encoding="utf-8")


def test_the_sample_of_the_vendors_document_decodes_to_its_row() -> None:
    text = document()
    sample = text[text.index("{") : text.rindex("}") + 1]
    (change,) = changes(sample.encode())
    assert (change["kind"], change["op"], change["error"]) == ("row", "update", None)
    assert (change["database"], change["table"]) == ("test01", "test ")
    assert change["position"] == "0000.0000000000.00000000000000027677.0000000000"
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)
    assert image(change["before"])["id"] == "103"
    data = json.loads(sample)["data"][0]
    listed = json.loads(data["c14"])
    assert values(change, "after", SAMPLE_TYPES) == {
        "id": 104, "c1": "cf3f70a7-7565-44b0-ae3c-83bec549ea8e:104", "c2": b"", "c3": 103,
        "c4": datetime(2021, 6, 25, 17, 51, 53), "c5": datetime(2021, 6, 25, 9, 51, 53, 201000, tzinfo=UTC),
        "c6": "!@#$%90weurtg103", "c7": 10357.0, "c8": 12510357.0, "c9": Decimal("9874510357.00"),
        "c10": "华为云huaweicloud", "c11": b"\0\0\0", "c12": bytes(json.loads(data["c12"])), "c13": data["c13"],
        "c14": bytes(listed),
    }  # fmt: skip


def test_the_row_of_the_escape_table_that_is_wrong_is_not_followed() -> None:
    # the document prints \u003d for <, which is the escape of =
    assert re.search(r"<\s+\\u003d", document())
    escaped = b'"[\\u003c\\u003e\\u0026\\u003d\\u0027]"'
    value = json.dumps(message("INSERT", ["@"])).encode().replace(b'["@"]', b'[{"id":"1","v":' + escaped + b"}]")
    (change,) = changes(value)
    assert values(change, "after", {"v": "varchar(20)"}) == {"v": "[<>&=']"}
    assert escaped.decode() in change["after"]


def test_the_sample_that_another_cloud_publishes_decodes_to_the_changes_stated_for_it() -> None:
    name = "kafka_message_format.rst.jsonl"
    found = sorted((SHARED / "fixtures" / "peers" / "data-replication-service").rglob(name))
    if not found:
        pytest.skip("the published sample is not here")
    stated = [json.loads(line) for line in found[0].with_name(f"{name}.expected.jsonl").read_text().splitlines()]
    (change,) = changes(*[line.encode() for line in found[0].read_text(encoding="utf-8").splitlines()])
    assert [item["op"] for item in stated] == ["update_before", "update_after"]
    assert (change["database"], change["table"]) == (stated[0]["db"], stated[0]["table"])
    assert [image(change["before"]), image(change["after"])] == [item["row"] for item in stated]


# ---- rows

OLD, NEW = {"id": "1", "v": "a"}, {"id": "1", "v": "b"}


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize("nothing", [None, []])
def test_inserted_and_initial_rows_stand_in_data(format: str, nothing: object) -> None:
    found = changes(message("INSERT", [NEW], nothing), message("INIT", [NEW], nothing), format=format)
    assert [(c["op"], c["before"], image(c["after"])) for c in found] == [
        ("insert", None, NEW),
        ("snapshot", None, NEW),
    ]


@pytest.mark.parametrize("format", BOTH)
def test_an_update_has_both_images_and_may_move_the_key(format: str) -> None:
    (change,) = changes(message("UPDATE", [{"id": "104", "v": "x"}], [{"id": "103", "v": "x"}]), format=format)
    assert change["op"] == "update"
    assert (image(change["before"])["id"], image(change["after"])["id"]) == ("103", "104")
    assert open_format(format).updates_move_keys


@pytest.mark.parametrize(
    ("format", "data", "old", "row"),
    [
        ("drs-json", None, [OLD], OLD),
        ("drs-json", [], [OLD], OLD),
        ("drs-json", [OLD], None, OLD),
        ("drs-json", [NEW], [OLD], OLD),
        ("drs-json-c", [OLD], None, OLD),
        ("drs-json-c", [OLD], [], OLD),
        ("drs-json-c", None, [OLD], OLD),
        ("drs-json-c", [OLD], [NEW], OLD),
    ],
)
def test_a_deleted_row_is_taken_from_where_the_format_puts_it(format: str, data: Any, old: Any, row: Any) -> None:
    (change,) = changes(message("DELETE", data, old), format=format)
    assert (change["op"], image(change["before"]), change["after"]) == ("delete", row, None)


def test_members_that_are_absent_mean_no_image() -> None:
    deleted = {name: item for name, item in message("DELETE", old=[OLD]).items() if name != "data"}
    (change,) = changes(deleted)
    assert (change["op"], image(change["before"])) == ("delete", OLD)


def test_several_rows_of_one_message_keep_their_order() -> None:
    rows = [[{"id": str(n), "v": side} for n in range(12)] for side in "ab"]
    found = changes(message("UPDATE", rows[1], rows[0]))
    assert [change["index"] for change in found] == list(range(12))
    assert [image(change["before"]) for change in found] == rows[0]
    assert [image(change["after"]) for change in found] == rows[1]
    assert [c["position"] for c in found] == sorted({c["position"] for c in found})


def test_positions_follow_the_sequence_number_and_not_the_clock() -> None:
    found = changes(message("INSERT", [NEW], id=9, es=2000), message("INSERT", [NEW], id=10, es=1000))
    assert found[0]["position"] < found[1]["position"]


def test_numbers_of_the_envelope_may_be_strings() -> None:
    (change,) = changes(message("INSERT", [NEW], id="27677", es="1624614713000"))
    assert change["position"].startswith("0000.0000000000.00000000000000027677.")
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)


def test_a_sequence_number_may_be_the_largest_long() -> None:
    (change,) = changes(message("INSERT", [NEW], id=2**63 - 1))
    assert change["position"].startswith("0000.0000000000.09223372036854775807.")


def test_tokens_stay_as_they_were_received() -> None:
    raw = b'{"id":1.10,"v":"\\u003dA\\u0000\xf0\x9f\x98\x80"}'
    value = json.dumps(message("INSERT", ["@"])).encode().replace(b'["@"]', b"[" + raw + b"]")
    (change,) = changes(value)
    assert change["after"] == raw.decode()


def test_members_of_newer_editions_are_passed_over() -> None:
    (change,) = changes(message("INSERT", [NEW], schema="x", gtid=None, extra={"a": [1]}))
    assert change["kind"] == "row"


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize(
    "other",
    [
        message("INSERT", [{"v": "b", "id": "2"}]),
        message("INSERT", [{"id": "2"}]),
        message("INSERT", [{"id": "2", "v": "b", "w": "c"}]),
        message("INSERT", [{"id": "2", "v": "b"}, {"id": "3"}]),
        message("INSERT", [{"id": "2", "v": "b"}, {}]),
        message("UPDATE", [{"id": "2", "v": "b"}], [{"v": "a"}]),
        message("UPDATE", [{"v": "b"}], [{"id": "2", "v": "a"}]),
        message("UPDATE", [{"id": "2", "v": "b"}], [["a"]]),
        message("DELETE", [{"id": "2"}], [{"id": "2", "v": "b"}]),
        message("INSERT", [{"id": "2", "v": "b"}], mysqlType={"v": "varchar", "id": "int"}),
        message("INSERT", [{"id": "2", "v": "b"}], mysqlType=None),
        message("INSERT", [{"id": "2", "v": "b"}], pkNames=["v"]),
    ],
)
def test_what_earlier_messages_were_like_changes_nothing(other: dict[str, Any], format: str) -> None:
    usual = message("INSERT", [{"id": "1", "v": "a"}])
    sent = [usual, other, usual, other, other, usual]
    found = [{**change, "offset": 0} for change in changes(*sent, format=format)]
    assert found == [change for value in sent for change in changes(value, format=format)]


# ---- what is told of columns


def test_the_record_names_its_columns_types_and_key_whatever_their_order() -> None:
    turned = message("INSERT", [NEW], mysqlType={"v": "varchar", "id": "int"})
    first, second = changes(message("INSERT", [NEW]), turned)
    assert first["columns"] == second["columns"]
    description = open_format("drs-json").describe(first["columns"])
    assert description.names == ("id", "v")
    assert description.key == ("id",)
    assert description.details == {"id": "int", "v": "varchar"}
    assert description.complete


@pytest.mark.parametrize(("given", "key"), [([], ()), (None, None), (["v", "id"], ("v", "id"))])
def test_a_key_may_be_empty_or_not_told(given: object, key: object) -> None:
    (change,) = changes(message("INSERT", [NEW], pkNames=given))
    assert open_format("drs-json").describe(change["columns"]).key == key


def test_without_types_the_members_tell_the_columns() -> None:
    (change,) = changes(message("INSERT", [NEW], mysqlType=None))
    description = open_format("drs-json").describe(change["columns"])
    assert (description.names, description.details, description.complete) == (("id", "v"), None, True)


def test_a_column_that_one_image_lacks_did_not_change() -> None:
    found = changes(
        message("UPDATE", [{"id": "1", "v": "b"}], [{"v": None}]),
        message("UPDATE", [{"v": "b"}], [{"id": "1", "v": "a"}]),
    )
    assert [image(c["before"]) for c in found] == [{"id": "1", "v": None}, {"id": "1", "v": "a"}]
    assert [image(c["after"]) for c in found] == [{"id": "1", "v": "b"}, {"id": "1", "v": "b"}]
    assert [open_format("drs-json").describe(c["columns"]).complete for c in found] == [True, True]


def test_an_image_that_lacks_a_named_column_is_told_to_be_partial() -> None:
    # Oracle: what the redo record does not have is absent and means "not updated"
    (change,) = changes(message("UPDATE", [{"id": "1"}], [{"id": "2"}]))
    wire = open_format("drs-json")
    description = wire.describe(change["columns"])
    assert (description.names, description.complete, wire.partial_images) == (("id",), False, True)
    assert wire.infer(description) is None


def test_columns_of_any_name_are_told() -> None:
    names = ['quo"te', "back\\slash", "größe", "", "f0", " trailing ", "emoji 😀"]
    row = dict.fromkeys(names, "1")
    (change,) = changes(message("INSERT", [row], mysqlType=dict.fromkeys(names, "int"), pkNames=[]))
    assert set(open_format("drs-json").describe(change["columns"]).names) == set(names)
    assert image(change["after"]) == row


def test_a_schema_is_made_that_holds_every_value_of_the_bare_types() -> None:
    told = {"id": "bigint", "n": "int", "d": "decimal", "t": "datetime", "b": "blob", "v": "varchar"}
    (change,) = changes(message("INSERT", [dict.fromkeys(told, "1")], mysqlType=told))
    wire = open_format("drs-json")
    schema = wire.infer(wire.describe(change["columns"]))
    assert schema is not None
    types = {column.name: str(column.type) for column in schema.columns}
    assert types == {
        "id": "decimal(20,0)", "n": "bigint", "d": "longtext", "t": "datetime(6)", "b": "longblob", "v": "longtext",
    }  # fmt: skip
    assert [column.name for column in schema.key_columns] == ["id"]


@pytest.mark.parametrize(
    "more", [{"mysqlType": {"id": "int", "v": "VARCHAR2"}}, {"mysqlType": None}, {"pkNames": None}, {"pkNames": ["x"]}]
)
def test_no_schema_is_made_of_unknown_types_or_keys(more: dict[str, Any]) -> None:
    (change,) = changes(message("INSERT", [NEW], **more))
    wire = open_format("drs-json")
    assert wire.infer(wire.describe(change["columns"])) is None


# ---- schema changes


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize("kind", ["DDL", "INIT_DDL"])
def test_a_schema_change_stands_among_the_rows(format: str, kind: str) -> None:
    statement = "ALTER TABLE t ADD c INT"
    ddl = message(kind, isDdl=True, sql=statement, table=None, mysqlType=None, sqlType=None, pkNames=None, id=5)
    row = message("INSERT", [NEW], id=6)
    change, after = changes(ddl, row, format=format)
    assert (change["kind"], change["statement"], change["default_database"]) == ("schema", statement, "test01")
    assert (change["table"], change["table_changes"]) == (None, None)
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)
    assert change["position"] < after["position"]
    assert open_format(format).ddl_among_rows


def test_a_schema_change_needs_its_type_only() -> None:
    bare = {"type": "DDL", "sql": "DROP TABLE a.t", "id": 1}
    (change,) = changes(bare)
    assert (change["kind"], change["default_database"], change["source_time"]) == ("schema", "", None)


# ---- values


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("-128", "tinyint", -128),
        ("18446744073709551615", "bigint unsigned", Decimal(2**64 - 1)),
        ("10357.0", "float", 10357.0),
        ("1.2510357E7", "double", 12510357.0),
        ("1.0E-5", "double", 1e-5),
        ("1E+3", "decimal(10,2)", Decimal("1000.00")),
        ("0.10", "decimal(10,2)", Decimal("0.10")),
        ("1" * 30 + "." + "2" * 10, "decimal(40,10)", "1" * 30 + "." + "2" * 10),
        ("2021-06-25 17:51:53", "datetime", datetime(2021, 6, 25, 17, 51, 53)),
        ("2021-06-25", "date", date(2021, 6, 25)),
        ("17:51:53", "time", "17:51:53"),
        ("17:51:53.2", "time(3)", "17:51:53.200"),
        ("-838:59:59", "time", "-838:59:59"),
        ("2021", "year", 2021),
        ("5", "bit(8)", 5),
        ("[]", "varbinary(9)", b""),
        ("[106, 103, 111]", "blob", b"jgo"),
        ("[-1, -128, 127, 0]", "blob", b"\xff\x80\x7f\x00"),
        ("[255,128]", "tinyblob", b"\xff\x80"),
        ("[1]", "binary(3)", b"\1\0\0"),
        ("[1, 2]", "varchar(20)", "[1, 2]"),
        (5, "int", 5),
        (0.5, "decimal(10,2)", Decimal("0.50")),
        (True, "tinyint(1)", 1),
        (None, "blob", None),
        (None, "int", None),
        ("", "varchar(20)", ""),
    ],
)
def test_values_read_as_the_source_has_them(text: object, kind: str, expected: object) -> None:
    assert value(text, kind) == expected


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("1624614713.201", datetime(2021, 6, 25, 9, 51, 53, 201000, tzinfo=UTC)),
        ("1624614713.2", datetime(2021, 6, 25, 9, 51, 53, 200000, tzinfo=UTC)),
        ("1624614713.000001", datetime(2021, 6, 25, 9, 51, 53, 1, tzinfo=UTC)),
        ("1624614713", datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)),
        ("-1.5", datetime(1969, 12, 31, 23, 59, 58, 500000, tzinfo=UTC)),
    ],
)
def test_a_timestamp_in_json_is_an_instant_in_seconds(text: str, instant: datetime) -> None:
    assert value(text, "timestamp(6)") == instant


def test_a_timestamp_in_json_c_is_text_in_the_stated_zone() -> None:
    instant = datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)
    for zone in ("Asia/Shanghai", "+08:00"):
        assert value("2021-06-25 17:51:53", "timestamp", "drs-json-c", timezone=zone) == instant
    assert value("2021-06-25 17:51:53", "datetime", "drs-json-c", timezone="+08:00") == datetime(
        2021, 6, 25, 17, 51, 53
    )


def test_without_a_stated_zone_a_timestamp_in_json_c_is_refused() -> None:
    assert value("2021-06-25 17:51:53", "timestamp", "drs-json-c") == "date_invalid"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[256]", "blob"),
        ("[-129]", "blob"),
        ("[1.5]", "blob"),
        ("test", "blob"),
        ("[1, 2", "blob"),
        ("x", "int"),
        ("1624614713.201", "datetime"),
        ("2021-06-25 17:51:53", "timestamp"),
        ("Thu Jan 01 17:51:53 CST 1970", "time"),
        ("POINT(1 1)", "point"),
        ("[0, 0, 0, 0, 1]", "geometry"),
        ("[1]", "bit(8)"),
    ],
)
def test_values_of_another_form_are_refused(text: object, kind: str) -> None:
    found = value(text, kind)
    assert isinstance(found, str)
    assert found in {"byte_invalid", "number_invalid", "date_invalid", "time_invalid", "token_unexpected"}


def test_the_type_that_the_record_names_decides() -> None:
    wire = open_format("drs-json")
    (change,) = changes(message("INSERT", [{"id": "1", "v": "[1]"}], mysqlType={"id": "int", "v": "VARBINARY(20)"}))
    description = wire.describe(change["columns"])
    assert wire.encoding_of("v", ColumnType("varchar", 20), description) == Encoded("v", Encoding.BYTE_LIST)
    assert wire.encoding_of("v", ColumnType("varchar", 20), None) == Encoded("v", Encoding.TEXT)
    assert wire.encoding_of("v", ColumnType("timestamp"), None) == Encoded("v", Encoding.EPOCH_SECONDS)


# ---- progress, options, bad messages


@pytest.mark.parametrize("format", BOTH)
def test_progress_is_the_source_time_of_rows_and_schema_changes(format: str) -> None:
    wire = open_format(format)
    for kind in ("INSERT", "INIT", "DDL"):
        found = wire.progress_of("t", None, json.dumps(message(kind, [NEW])).encode())
        assert found is not None
        assert (found.source_time_ms, found.heartbeat) == (1624614713000, False)
    for value in (None, b"garbage", b"{}", b'{"type":"OTHER","es":1}', b'{"type":"INSERT","es":null}', b"[" * 100_000):
        assert wire.progress_of("t", None, value) is None


def test_options_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="no time zone"):
        open_format("drs-json-c", {"timezone": "Mars/Olympus"})
    with pytest.raises(ConfigurationError, match="unknown option"):
        open_format("drs-json", {"timezone": "UTC"})


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        message("UPSERT", [NEW]),
        message("insert", [NEW]),
        message("", [NEW]),
        message("INSERT"),
        message("INSERT", []),
        message("INSERT", [{}]),
        message("INSERT", [None]),
        message("INSERT", ["text"]),
        message("INSERT", NEW),
        message("INSERT", [NEW], [OLD]),
        message("INIT", None, [OLD]),
        message("INSERT", [NEW], id=None),
        message("INSERT", [NEW], id=-1),
        message("INSERT", [NEW], id=2**63),
        message("INSERT", [NEW], id="x"),
        message("INSERT", [NEW], id=1.5),
        message("INSERT", [NEW], es=-5),
        message("INSERT", [NEW], es=10**18),
        message("INSERT", [NEW], database=None),
        message("INSERT", [NEW], table=""),
        message("INSERT", [NEW], mysqlType=["id"]),
        message("INSERT", [NEW], pkNames="id"),
        message("UPDATE", [NEW]),
        message("UPDATE", None, [OLD]),
        message("UPDATE", [NEW, NEW], [OLD]),
        message("UPDATE", [], []),
        message("DELETE"),
        message("DELETE", [], []),
        message("DDL", isDdl=True, sql=""),
        message("DDL", isDdl=True, sql=None),
        message("DDL", isDdl=True, sql="DROP TABLE t", id=None),
        b'{"type":"INSERT","id":1,"database":"d","table":"t","data":[{"a":"\xff"}]}',
        b'{"type":"INSERT","id":1,"database":"\xff","table":"t","data":[{"a":"1"}]}',
    ],
)
def test_what_is_no_message_becomes_one_error_with_its_bytes(value: Any, format: str) -> None:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    good = message("INSERT", [NEW])
    before, bad, after = changes(good, raw, good, format=format)
    assert (before["kind"], bad["kind"], after["kind"]) == ("row", "error", "row")
    assert bad["error_code"] in ("record.malformed", "record.not_utf8")
    assert (bad["raw"], bad["offset"]) == (raw, 1)


def test_a_tombstone_is_ignored() -> None:
    assert [change["kind"] for change in changes(None)] == ["ignored"]


def test_a_value_of_a_megabyte_is_kept() -> None:
    long = "x😀" * 300_000
    (change,) = changes(message("INSERT", [{"id": "1", "v": long}]))
    assert image(change["after"])["v"] == long
