# SPDX-License-Identifier: Apache-2.0
"""Read what Canal's flat JSON says of columns, and how it writes their values."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.contract import Description, Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType


def rows(kind: str, data: list[Any], **members: object) -> dict[str, Any]:
    types = dict.fromkeys(data[0], "VARCHAR(9)")
    named = {"database": "shop", "table": "t", "es": 1_700_000_000_000, "ts": 1_700_000_000_780, "pkNames": ["id"]}
    return {**named, "type": kind, "data": data, "mysqlType": types, **members}


def texts(*values: object) -> list[str]:
    raw = [json.dumps(value).encode() for value in values]
    count = len(raw)
    records = Records("shop_t", 1, list(range(count)), [1000] * count, [None] * count, raw)
    result: list[str] = open_format("canal-json").decode(records).column("columns").to_pylist()
    return result


def described(value: dict[str, Any]) -> Description:
    (text,) = texts(value)
    return open_format("canal-json").describe(text)


def encoded(name: str, column: ColumnType, description: Description | None, **options: str) -> Encoded:
    return open_format("canal-json", options).encoding_of(name, column, description)


# ---- what a record says


def test_a_row_shows_names_key_and_types() -> None:
    description = described(
        rows("INSERT", [{"id": "1", "v": None}], mysqlType={"id": "INT(11) unsigned", "v": "varchar(10)"})
    )
    assert (description.names, description.key, description.complete) == (("id", "v"), ("id",), True)
    schema = open_format("canal-json").infer(description)
    assert schema is not None
    assert [(c.name, str(c.type), c.nullable) for c in schema.columns] == [
        ("id", "int(11) unsigned", False),
        ("v", "varchar(10)", True),
    ]
    assert [c.name for c in schema.key_columns] == ["id"]


def test_names_are_those_of_the_image_not_of_the_types() -> None:
    types = {"v": "INT", "id": "INT"}
    actual = texts(rows("INSERT", [{"id": "1", "v": "1"}, {"id": "2"}, {"id": "3", "w": "1"}], mysqlType=types))
    wire = open_format("canal-json")
    assert [wire.describe(text).names for text in actual] == [("id", "v"), ("id",), ("id", "w")]
    assert wire.infer(wire.describe(actual[2])) is None


def test_types_in_another_order_give_the_same_text() -> None:
    data = [{"id": "1", "v": "1"}]
    actual = texts(
        rows("INSERT", data, mysqlType={"id": "int", "v": "int"}),
        rows("INSERT", data, mysqlType={"v": "int", "id": "int"}, sqlType={"id": 4, "v": -5}),
    )
    assert actual[0] == actual[1]


def test_without_types_only_names_are_reported() -> None:
    description = described(rows("INSERT", [{"id": "1"}], mysqlType=None))
    assert (description.names, description.key, description.details) == (("id",), ("id",), None)
    assert open_format("canal-json").infer(description) is None


def test_without_key_names_the_key_is_unknown() -> None:
    description = described(rows("INSERT", [{"a": "1"}], pkNames=None))
    assert description.key is None
    assert open_format("canal-json").infer(description) is None


def test_a_delete_with_nothing_but_the_key_is_partial() -> None:
    assert not described(rows("DELETE", [{"id": "1"}])).complete
    assert described(rows("DELETE", [{"id": "1", "v": "1"}])).complete
    assert described(rows("INSERT", [{"id": "1"}])).complete


def test_a_doubled_backtick_in_a_name_is_one() -> None:
    types = {"or``der": "INT", "a`b": "INT"}
    description = described(rows("INSERT", [dict.fromkeys(types, "1")], mysqlType=types, pkNames=["or``der"]))
    assert (description.names, description.key) == (("or`der", "a`b"), ("or`der",))
    assert encoded("or`der", ColumnType("int"), description).name == "or``der"
    assert encoded("a`b", ColumnType("int"), description).name == "a`b"


@pytest.mark.parametrize("name", ["__#alibaba_rds_row_id#__", "#alibaba_rds_row_id#", "_drds_implicit_id_"])
def test_columns_that_a_service_hides_are_hidden(name: str) -> None:
    types = {"v": "INT", name: "BIGINT"}
    description = described(rows("INSERT", [dict.fromkeys(types, "1")], mysqlType=types, pkNames=[name]))
    assert (description.names, description.key) == (("v",), None)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("DECIMAL(5,2) unsigned", ColumnType("decimal", 5, 2, unsigned=True)),
        ("INT(8) unsigned zerofill", ColumnType("int", 8, unsigned=True)),
        ("DOUBLE PRECISION(10,7) unsigned zerofill", ColumnType("double", 10, 7, unsigned=True)),
        ("double(53)", ColumnType("double")),
        ("NUMERIC(20,0)", ColumnType("decimal", 20, 0)),
        ("SERIAL", ColumnType("bigint", unsigned=True)),
        ("BOOL", ColumnType("tinyint", 1)),
        ("ENUM('x''y','a,b','')", ColumnType("enum", labels=("x'y", "a,b", ""))),
        ("varchar", ColumnType("longtext")),
        ("varbinary", ColumnType("longblob")),
        ("bigint unsigned", ColumnType("bigint", unsigned=True)),
    ],
)
def test_types_are_read_as_canal_and_ticdc_spell_them(text: str, kind: ColumnType) -> None:
    schema = open_format("canal-json").infer(described(rows("INSERT", [{"id": "1"}], mysqlType={"id": text})))
    assert schema is not None
    assert schema.columns[0].type == kind


@pytest.mark.parametrize("text", ["enum", "set", "hyperint(3)", "", None])
def test_a_type_that_cannot_be_known_is_not_inferred(text: str | None) -> None:
    types = {"id": "INT", "v": text}
    assert open_format("canal-json").infer(described(rows("INSERT", [{"id": "1", "v": "1"}], mysqlType=types))) is None


# ---- how values are written


@pytest.mark.parametrize(
    "names", ["tinyint bigint decimal float double bit year", "date time datetime", "char text json"]
)
def test_most_values_are_text(names: str) -> None:
    for name in names.split():
        assert encoded("c", ColumnType(name), None) == Encoded("c", Encoding.TEXT)


@pytest.mark.parametrize("name", ["binary", "varbinary", "tinyblob", "blob", "longblob", "geometry", "point"])
def test_bytes_are_one_character_each(name: str) -> None:
    assert encoded("c", ColumnType(name), None) == Encoded("c", Encoding.LATIN1_BYTES)


def test_enum_and_set_are_numbers_of_the_records_own_labels() -> None:
    types = {"id": "INT", "e": "ENUM('b','a')", "s": "set('x','y')", "w": "ENUM('a\\\\b')"}
    description = described(rows("INSERT", [dict.fromkeys(types, "1")], mysqlType=types))
    old = ColumnType("enum", labels=("a", "b"))
    assert encoded("e", old, description) == Encoded("e", Encoding.ENUM_INDEX, labels=("b", "a"))
    assert encoded("s", ColumnType("set"), description) == Encoded("s", Encoding.SET_BITMASK, labels=("x", "y"))
    assert encoded("w", old, description) == Encoded("w", Encoding.ENUM_INDEX)
    assert encoded("e", old, None) == Encoded("e", Encoding.ENUM_INDEX)


def test_mariadb_json_comes_as_the_bytes_of_its_text() -> None:
    types = {"id": "INT", "j": "JSON", "k": "json", "b": "BLOB"}
    data = [dict.fromkeys(types, "1")]
    json_type = ColumnType("json")

    def encodings(**sql_types: int) -> list[Encoding]:
        description = described(rows("INSERT", data, mysqlType=types, sqlType={"id": 4, "b": 2004, **sql_types}))
        return [encoded(name, json_type, description).encoding for name in ("j", "k")]

    assert encodings(j=2004, k=2004) == [Encoding.LATIN1_BYTES] * 2
    assert encodings(j=-4, k=12) == [Encoding.LATIN1_BYTES, Encoding.TEXT]  # NULL before 1.1.7
    assert encodings(j=12, k=1111) == [Encoding.TEXT] * 2  # MySQL, a value and NULL
    assert encodings() == [Encoding.TEXT] * 2


def test_the_records_type_decides_how_a_value_is_written() -> None:
    types = {"id": "INT", "cb": "CHAR(5)", "b": "BLOB", "x": "unheard_of"}
    description = described(rows("INSERT", [dict.fromkeys(types, "1")], mysqlType=types))
    # CHAR(5) CHARACTER SET binary is read as text by Canal
    assert encoded("cb", ColumnType("binary", 5), description).encoding is Encoding.TEXT
    assert encoded("b", ColumnType("text"), description).encoding is Encoding.LATIN1_BYTES
    assert encoded("x", ColumnType("blob"), description).encoding is Encoding.LATIN1_BYTES


def test_timestamps_are_in_the_stated_zone_and_datetimes_in_none() -> None:
    zone = "Asia/Shanghai"
    assert encoded("c", ColumnType("timestamp", 3), None, timezone=zone) == Encoded("c", Encoding.TEXT, zone=zone)
    assert encoded("c", ColumnType("datetime", 3), None, timezone=zone) == Encoded("c", Encoding.TEXT)
    assert encoded("c", ColumnType("timestamp"), None) == Encoded("c", Encoding.TEXT)
