# SPDX-License-Identifier: Apache-2.0
"""``oms-default-extended``: the DefaultExtendColumnType method of OceanBase OMS (docs/wire/oceanbase-oms.md 3)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType

SEEDS = Path(__file__).parents[5] / ".." / "shared" / "seeds"
LIGHT = '"__light_type":{"id":{"schemaType":"INT64"},"v":{"schemaType":"DECIMAL"}}'
PLAIN = '{"id":3,"v":1.10}'
TYPED = f'{{"id":3,"v":1.10,{LIGHT}}}'
META = {
    "record_primary_key": "id",
    "dbType": "OB_MYSQL",
    "storeDataSequence": 160934467100017,
    "table_name": "orders",
    "db": "tenant.shop",
    "timestamp": "1609344671",
}


def message(kind: str = "INSERT", before: str = "null", after: str = TYPED, **meta: Any) -> bytes:
    spelled = f'"allMetaData":{json.dumps({**META, **meta})},"prevStruct":{before},"postStruct":{after}'
    return f'{{{spelled},"recordType":"{kind}"}}'.encode()


def changes(*values: bytes, **options: str) -> list[dict[str, Any]]:
    count = len(values)
    records = Records("t", 0, list(range(count)), [None] * count, [None] * count, values)
    return open_format("oms-default-extended", options).decode(records).to_pylist()


def change(value: bytes, **options: str) -> dict[str, Any]:
    (only,) = changes(value, **options)
    return only


def details(decoded_change: dict[str, Any]) -> Any:
    return open_format("oms-default-extended").describe(decoded_change["columns"]).details


def test_types_are_taken_out_of_the_image_and_describe_it() -> None:
    first, again = changes(message(), message())
    for actual in (first, again):
        assert actual["after"] == PLAIN
        assert details(actual) == {"id": "INT64", "v": "DECIMAL"}


def test_types_that_cannot_be_read_fail_each_time() -> None:
    bad = message(after='{"id":3,"__light_type":{"id":{"schemaType":5}}}')
    assert [actual["kind"] for actual in changes(message(), bad, bad, message())] == ["row", "error", "error", "row"]


def test_of_an_update_both_images_are_without_types() -> None:
    actual = change(message("UPDATE", TYPED))
    assert (actual["before"], actual["after"]) == (PLAIN, PLAIN)


def test_types_of_a_delete_stand_in_the_image_before() -> None:
    actual = change(message("DELETE", TYPED, "null"))
    assert (actual["before"], actual["after"]) == (PLAIN, None)
    assert details(actual) == {"id": "INT64", "v": "DECIMAL"}


@pytest.mark.parametrize(("before", "after"), [(TYPED, PLAIN), (PLAIN, TYPED)])
def test_whichever_image_has_types_shows_them(before: str, after: str) -> None:
    actual = change(message("UPDATE", before, after))
    assert (actual["before"], actual["after"]) == (PLAIN, PLAIN)
    assert details(actual) == {"id": "INT64", "v": "DECIMAL"}


def test_types_of_one_record_say_nothing_of_the_next() -> None:
    other = f'{{"id":3,"v":1.10,{LIGHT.replace("DECIMAL", "DOUBLE")}}}'
    actual = changes(message(), message(after=PLAIN), message(after=other), message())
    assert [details(item) for item in actual] == [
        {"id": "INT64", "v": "DECIMAL"},
        None,
        {"id": "INT64", "v": "DOUBLE"},
        {"id": "INT64", "v": "DECIMAL"},
    ]


@pytest.mark.parametrize(
    "image",
    [f'{{{LIGHT},"id":3,"v":1.10}}', f'{{"id":3,{LIGHT},"v":1.10}}', f'{{ "id":3, "v":1.10,\n {LIGHT} }}'],
)
def test_types_are_found_wherever_they_stand(image: str) -> None:
    actual = changes(message(), message(after=image))[1]
    assert actual["after"] == PLAIN
    assert details(actual) == {"id": "INT64", "v": "DECIMAL"}


def test_tokens_are_as_received_also_where_types_are_cut_out_of_the_middle() -> None:
    image = f'{{{LIGHT},"id":10223372036854775806,"v":1.1000E-307,"t":"\\u00fc\\/"}}'
    assert change(message(after=image))["after"] == '{"id":10223372036854775806,"v":1.1000E-307,"t":"\\u00fc\\/"}'


def test_a_nested_object_that_ends_like_the_types_is_not_cut() -> None:
    nested = f'{{"id":{{"x":1,{LIGHT}}}}}'
    first, second = changes(message(), message(after=nested))
    assert first["after"] == PLAIN
    assert second["kind"] == "error" or second["after"] == nested


def test_types_count_only_for_columns_of_exactly_their_name() -> None:
    light = '"__light_type":{"int8":{"schemaType":"TINYINT"},"v":{"schemaType":"DECIMAL"}}'
    assert details(change(message(after=f'{{"col1":3,"v":1.10,{light}}}'))) == {"v": "DECIMAL"}
    other = '"__light_type":{"int8":{"schemaType":"TINYINT"},"int16":{"schemaType":"INT"}}'
    assert details(change(message(after=f'{{"col1":3,"v":1.10,{other}}}'))) is None


@pytest.mark.parametrize("light", ["1", "[]", '{"id":"INT64"}', '{"id":{}}', '{"id":{"schemaType":null}}'])
def test_a_member_of_that_name_that_is_no_list_of_types_is_an_error(light: str) -> None:
    actual = change(message(after=f'{{"id":3,"__light_type":{light}}}'))
    assert actual["error_code"] == "record.malformed"


def test_an_image_of_nothing_but_types_is_an_error() -> None:
    assert change(message(after=f"{{{LIGHT}}}"))["error_code"] == "record.malformed"


def test_ddl_may_come_with_types_and_heartbeats_without() -> None:
    ddl, beat = changes(
        message("DDL", after='{"ddl":"DROP TABLE a","__light_type":{"ddl":{"schemaType":"VARCHAR"}}}'),
        message("HEARTBEAT", after="null"),
    )
    assert (ddl["kind"], ddl["statement"]) == ("schema", "DROP TABLE a")
    assert beat["kind"] == "progress"


def test_the_method_default_leaves_a_column_of_that_name_alone() -> None:
    records = Records("t", 0, [0], [None], [None], [message()])
    (actual,) = open_format("oms-default").decode(records).to_pylist()
    assert actual["after"] == TYPED


def inferred(types: dict[str, str], key: str = "id", dialect: str = "OB_MYSQL") -> dict[str, ColumnType] | None:
    light = {name: {"schemaType": word} for name, word in types.items()}
    image = json.dumps({**dict.fromkeys(types, None), "__light_type": light})
    wire = open_format("oms-default-extended")
    (result,) = wire.decode(
        Records("t", 0, [0], [None], [None], [message(after=image, record_primary_key=key, dbType=dialect)])
    ).to_pylist()
    schema = wire.infer(wire.describe(result["columns"]))
    if schema is None:
        return None
    assert [column.name for column in schema.key_columns] == ([key] if key else [])
    return {column.name: column.type for column in schema.columns}


def test_inferred_types_hold_every_value_of_the_named_type() -> None:
    assert inferred({"id": "INT64", "a": "TINYINT", "b": "SMALLINT", "c": "INT", "d": "BIGINT", "e": "BOOLEAN"}) == {
        "id": ColumnType("bigint"),
        "a": ColumnType("smallint"),  # whether it is unsigned is not stated
        "b": ColumnType("int"),
        "c": ColumnType("bigint"),
        "d": ColumnType("decimal", 38, 0),  # 10223372036854775806 in the samples
        "e": ColumnType("tinyint", 1),
    }
    assert inferred({"id": "VARCHAR", "a": "BLOB", "b": "FLOAT", "c": "DOUBLE", "d": "BIT"}) == {
        "id": ColumnType("longtext"),
        "a": ColumnType("longblob"),
        "b": ColumnType("float"),
        "c": ColumnType("double"),
        "d": ColumnType("bit", 64),
    }
    assert inferred({"id": "INT64", "a": "DATE", "b": "TIME", "c": "DATETIME", "d": "TIMESTAMP"}) == {
        "id": ColumnType("bigint"),
        "a": ColumnType("date"),
        "b": ColumnType("time", 6),
        "c": ColumnType("datetime", 6),
        "d": ColumnType("timestamp", 6),
    }


def test_what_has_no_type_of_ours_is_inferred_as_text() -> None:
    zoned = {"id": "INT64", "a": "ZONED_DATETIME", "b": "INTERVAL_DAY_TO_SECOND", "c": "INTERVAL_YEAR_TO_MONTH"}
    assert inferred(zoned) == {"id": ColumnType("bigint"), **dict.fromkeys("abc", ColumnType("longtext"))}


def test_a_decimal_whose_scale_is_not_reported_is_inferred_as_text_with_its_digits() -> None:
    assert inferred({"id": "INT64", "a": "DECIMAL"}) == {"id": ColumnType("bigint"), "a": ColumnType("longtext")}
    wire = open_format("oms-default-extended")
    description = wire.describe(change(message())["columns"])
    assert wire.encoding_of("v", ColumnType("longtext"), description).encoding is Encoding.NUMBER


@pytest.mark.parametrize(
    ("types", "key"),
    [
        ({"id": "DECIMAL", "a": "INT"}, "id"),  # a text of digits cannot tell rows apart: 1.0 and 1
        ({"id": "INT", "a": "DECIMAL"}, ""),
        ({"id": "INT", "a": "GEOMETRY"}, "id"),
        ({"id": "INT"}, "int8"),
    ],
)
def test_nothing_is_inferred_where_it_would_be_a_guess(types: dict[str, str], key: str) -> None:
    assert inferred(types, key) is None


def test_nothing_is_inferred_where_a_column_has_no_type() -> None:
    wire = open_format("oms-default-extended")
    light = '"__light_type":{"id":{"schemaType":"INT"}}'
    actual = change(message(after=f'{{"id":3,"v":1.10,{light}}}'))
    assert wire.infer(wire.describe(actual["columns"])) is None


def test_of_an_oracle_tenant_date_has_a_time_and_float_is_decimal() -> None:
    types = {"id": "INT64", "a": "DATE", "b": "FLOAT", "c": "DOUBLE"}
    assert inferred(types, dialect="OB_ORACLE") == {
        "id": ColumnType("bigint"),
        "a": ColumnType("datetime", 6),
        "b": ColumnType("longtext"),
        "c": ColumnType("double"),
    }


def test_of_an_oracle_tenant_a_double_is_one_only_if_the_record_says_so() -> None:
    wire = open_format("oms-default-extended")
    light = '"__light_type":{"id":{"schemaType":"DOUBLE"},"v":{"schemaType":"DECIMAL"}}'
    description = wire.describe(change(message(after=f'{{"id":3,"v":1.10,{light}}}', dbType="ORACLE"))["columns"])
    assert wire.encoding_of("id", ColumnType("double"), description).encoding is Encoding.NUMBER
    with pytest.raises(DataError, match="would round"):
        wire.encoding_of("v", ColumnType("double"), description)


def samples() -> list[bytes]:
    result = sorted(SEEDS.glob("003_*.txt"))
    if not result:
        pytest.skip("the seed document is not there")
    text = result[0].read_text(encoding="utf-8")
    part = text[text.index("DefaultExtendColumnType JSON 消息格式\n\n数据同步") :]
    return [block.encode() for block in re.findall(r"^    (\{\n.*?^    \})", part, re.DOTALL | re.MULTILINE)]


def test_the_vendors_samples_are_an_insert_an_update_and_a_delete_with_unusable_types() -> None:
    actual = changes(*samples(), sequenceEnabled="false")
    assert [item["op"] for item in actual] == ["insert", "update", "delete"]
    assert {(item["database"], item["table"]) for item in actual} == {("database", "table")}
    assert all("__light_type" not in (item["before"] or "") + (item["after"] or "") for item in actual)
    assert {details(item) for item in actual} == {None}
    exact = json.loads(actual[0]["after"], parse_float=str)["col7"]
    assert len(exact) > 700
    assert exact.endswith("E-308")
    assert f'"col7":{exact}' in actual[0]["after"]
