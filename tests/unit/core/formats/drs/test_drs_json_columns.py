# SPDX-License-Identifier: Apache-2.0
"""Read what DRS's messages say of columns, and how the values of each type read."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from tests.unit.core.formats.drs.json_changes import NEW, changes, image, message, value

# ---- what messages say of columns


def test_the_record_names_its_columns_types_and_key_whatever_their_order() -> None:
    turned = message("INSERT", [NEW], mysqlType={"v": "varchar", "id": "int"})
    first, second = changes(message("INSERT", [NEW]), turned)
    assert first["columns"] == second["columns"]
    description = open_format("drs-json").describe(first["columns"])
    assert description.names == ("id", "v")
    assert description.key == ("id",)
    assert description.details == {"id": "int", "v": "varchar"}
    assert description.complete


@pytest.mark.parametrize(("stated", "key"), [([], ()), (None, None), (["v", "id"], ("v", "id"))])
def test_a_key_may_be_empty_or_not_reported(stated: object, key: object) -> None:
    (change,) = changes(message("INSERT", [NEW], pkNames=stated))
    assert open_format("drs-json").describe(change["columns"]).key == key


def test_without_types_the_members_show_the_columns() -> None:
    (change,) = changes(message("INSERT", [NEW], mysqlType=None))
    description = open_format("drs-json").describe(change["columns"])
    assert (description.names, description.details, description.complete) == (("id", "v"), None, True)


def test_a_column_that_one_image_lacks_did_not_change() -> None:
    actual = changes(
        message("UPDATE", [{"id": "1", "v": "b"}], [{"v": None}]),
        message("UPDATE", [{"v": "b"}], [{"id": "1", "v": "a"}]),
    )
    assert [image(c["before"]) for c in actual] == [{"id": "1", "v": None}, {"id": "1", "v": "a"}]
    assert [image(c["after"]) for c in actual] == [{"id": "1", "v": "b"}, {"id": "1", "v": "b"}]
    assert [open_format("drs-json").describe(c["columns"]).complete for c in actual] == [True, True]


def test_an_image_that_lacks_a_named_column_is_reported_as_partial() -> None:
    # Oracle: what the redo record does not have is absent and means "not updated"
    (change,) = changes(message("UPDATE", [{"id": "1"}], [{"id": "2"}]))
    wire = open_format("drs-json")
    description = wire.describe(change["columns"])
    assert (description.names, description.complete, wire.partial_images) == (("id",), False, True)
    assert wire.infer(description) is None


def test_columns_of_any_name_are_reported() -> None:
    names = ['quo"te', "back\\slash", "größe", "", "f0", " trailing ", "emoji 😀"]
    row = dict.fromkeys(names, "1")
    (change,) = changes(message("INSERT", [row], mysqlType=dict.fromkeys(names, "int"), pkNames=[]))
    assert set(open_format("drs-json").describe(change["columns"]).names) == set(names)
    assert image(change["after"]) == row


def test_a_schema_is_made_that_holds_every_value_of_the_bare_types() -> None:
    reported = {"id": "bigint", "n": "int", "d": "decimal", "t": "datetime", "b": "blob", "v": "varchar"}
    (change,) = changes(message("INSERT", [dict.fromkeys(reported, "1")], mysqlType=reported))
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
    assert value("2021-06-25 17:51:53", "timestamp", "drs-json-c") == "zone_unknown"


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
    actual = value(text, kind)
    assert isinstance(actual, str)
    assert actual in {"byte_invalid", "number_invalid", "date_invalid", "time_invalid", "token_unexpected"}


def test_the_type_that_the_record_names_decides() -> None:
    wire = open_format("drs-json")
    (change,) = changes(message("INSERT", [{"id": "1", "v": "[1]"}], mysqlType={"id": "int", "v": "VARBINARY(20)"}))
    description = wire.describe(change["columns"])
    assert wire.encoding_of("v", ColumnType("varchar", 20), description) == Encoded("v", Encoding.BYTE_LIST)
    assert wire.encoding_of("v", ColumnType("varchar", 20), None) == Encoded("v", Encoding.TEXT)
    assert wire.encoding_of("v", ColumnType("timestamp"), None) == Encoded("v", Encoding.EPOCH_SECONDS)
