# SPDX-License-Identifier: Apache-2.0
"""``oms-default``: the Default method of OceanBase OMS (docs/wire/oceanbase-oms.md 2, 7, 8, 10)."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError, DataError
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType

SEEDS = Path(__file__).parents[5] / ".." / "shared" / "seeds"
META = {
    "checkpoint": None,
    "record_primary_key": "id\x01no",
    "source_identity": None,
    "record_primary_value": "3\x01129",
    "dbType": "OB_MYSQL",
    "storeDataSequence": 160934467100017,
    "table_name": "orders",
    "db": "tenant.shop",
    "timestamp": "1609344671",
    "uniqueId": "tx-9",
}
ROW = '{"id":3,"no":129,"amount":1.10,"name":"hello \\ud83d\\ude00"}'
BEFORE = '{"id":3,"no":129,"amount":1.20,"name":"hello"}'
POSITION = "0000.1609344671.00000000000000000017.0000000000"


def message(kind: str | None = "INSERT", before: str = "null", after: str = ROW, **meta: Any) -> bytes:
    known = {name: value for name, value in {**META, **meta}.items() if value != "absent"}
    spelled = f'"allMetaData":{json.dumps(known)},"prevStruct":{before},"postStruct":{after}'
    return ("{" + spelled + ("" if kind is None else f',"recordType":"{kind}"') + "}").encode()


def changes(*values: bytes | None, **options: str) -> list[dict[str, Any]]:
    count = len(values)
    records = Records("t", 0, list(range(count)), [1_700_000_000_000 + i for i in range(count)], [None] * count, values)
    batch = open_format("oms-default", options).decode(records)
    batch.validate(full=True)
    return batch.to_pylist()


def change(value: bytes, **options: str) -> dict[str, Any]:
    (only,) = changes(value, **options)
    return only


def test_an_insert_is_its_image_with_every_token_as_received() -> None:
    actual = change(message())
    assert (actual["kind"], actual["op"], actual["database"], actual["table"]) == ("row", "insert", "shop", "orders")
    assert (actual["before"], actual["after"]) == (None, ROW)
    assert actual["position"] == POSITION
    assert actual["source_time"] == datetime(2020, 12, 30, 16, 11, 11, tzinfo=UTC)
    assert actual["transaction_id"] == "tx-9"


def test_an_update_has_both_images_in_full_and_a_delete_the_one_before() -> None:
    update, delete = changes(message("UPDATE", BEFORE), message("DELETE", BEFORE, "null"))
    assert (update["op"], update["before"], update["after"]) == ("update", BEFORE, ROW)
    assert (delete["op"], delete["before"], delete["after"]) == ("delete", BEFORE, None)


def test_a_row_of_the_full_load_is_a_snapshot_before_every_change_in_the_order_of_writing() -> None:
    values = [message("ROW", storeDataSequence=sequence, timestamp="absent") for sequence in ("absent", 0)]
    first, second = changes(*values)
    assert (first["op"], first["after"], first["source_time"]) == ("snapshot", ROW, None)
    assert first["position"] < second["position"] < change(message(storeDataSequence=160000000000))["position"]


def test_the_description_lists_the_images_members_and_the_key() -> None:
    actual = open_format("oms-default").describe(change(message())["columns"])
    assert actual.names == ("id", "no", "amount", "name")
    assert actual.key == ("id", "no")
    assert actual.details is None
    assert actual.complete


def test_members_are_known_by_name_never_by_place() -> None:
    first, second = changes(message(after='{"a":1,"b":2}'), message(after='{"a":1,"c":2}'))
    wire = open_format("oms-default")
    assert wire.describe(first["columns"]).names == ("a", "b")
    assert wire.describe(second["columns"]).names == ("a", "c")


@pytest.mark.parametrize("separator", ["/u0001", "\\u0001"])
def test_the_key_is_split_at_the_control_character_only(separator: str) -> None:
    image = json.dumps({f"id{separator}no": 1})
    actual = change(message(after=image, record_primary_key=f"id{separator}no"))
    assert open_format("oms-default").describe(actual["columns"]).key == (f"id{separator}no",)


def test_key_names_that_the_row_does_not_have_are_no_key() -> None:
    actual = change(message(record_primary_key="int8\x01int16"))
    assert open_format("oms-default").describe(actual["columns"]).key is None


@pytest.mark.parametrize("key", [None, "", "absent"])
def test_a_table_without_key_has_an_empty_one(key: str | None) -> None:
    actual = change(message(record_primary_key=key))
    assert open_format("oms-default").describe(actual["columns"]).key == ()


def test_a_bare_separator_in_key_values_is_read() -> None:
    value = message().replace(b"3\\u0001129", b"3\x01129")
    assert b"\x01" in value
    assert change(value)["after"] == ROW


def test_numbers_keep_all_their_digits() -> None:
    digits = "9." + "9" * 700 + "E-307"
    image = f'{{"id":10223372036854775806,"v":{digits}}}'
    assert change(message(after=image))["after"] == image


def test_every_member_of_the_metadata_but_names_and_sequence_may_be_missing() -> None:
    required = ("db", "table_name", "storeDataSequence", "dbType")
    actual = change(message(**{name: "absent" for name in META if name not in required}))
    assert (actual["kind"], actual["database"], actual["source_time"]) == ("row", "shop", None)


@pytest.mark.parametrize(
    ("kind", "database", "expected"),
    [
        ("OB_MYSQL", "tenant.shop", "shop"),
        ("ob_mysql", "tenant.shop", "shop"),
        ("OB_ORACLE", "tenant.SHOP", "SHOP"),
        ("OCEANBASE", "tenant.shop", "shop"),
        ("OB_IN_ORACLE_MODE", "tenant.shop", "shop"),
        ("OB_MYSQL", "shop", "shop"),
        ("OB_MYSQL", "tenant.a.b", "a.b"),
        ("MYSQL", "a.b", "a.b"),
        ("ORACLE", "a.b", "a.b"),
        (None, "a.b", "a.b"),
    ],
)
def test_the_tenant_before_the_database_is_dropped_for_oceanbase(
    kind: str | None, database: str, expected: str
) -> None:
    assert change(message(dbType=kind, db=database))["database"] == expected


def test_with_a_stated_tenant_tables_of_others_do_not_mix_with_its_own() -> None:
    mine, other = changes(message(), message(db="tenant2.shop"), tenant="tenant")
    assert (mine["database"], other["database"]) == ("shop", "tenant2.shop")
    assert change(message(dbType=None), tenant="tenant")["database"] == "shop"


@pytest.mark.parametrize(
    ("sequence", "position"),
    [
        (160934467100001, "0000.1609344671.00000000000000000001.0000000000"),
        (16093446719, "0000.1609344671.00000000000000000009.0000000000"),
        (160934467110, "0000.1609344671.00000000000000000010.0000000000"),
        ("160934467199999", "0000.1609344671.00000000000000099999.0000000000"),
    ],
)
def test_a_sequence_is_read_as_seconds_then_counter_padded_or_not(sequence: int | str, position: str) -> None:
    assert change(message(storeDataSequence=sequence))["position"] == position


NO_SEQUENCES = [1609344671000123456, 160934467100012345, 1609344671000001, 123456789, -1, "seventeen", 2**63]


@pytest.mark.parametrize("sequence", NO_SEQUENCES)
def test_a_number_that_is_no_sequence_is_an_error(sequence: int | str) -> None:
    assert change(message(storeDataSequence=sequence))["error_code"] == "record.malformed"


@pytest.mark.parametrize("sequence", ["absent", None, 0, ""])
def test_a_change_without_its_sequence_is_an_error_that_names_the_option(sequence: Any) -> None:
    actual = change(message(storeDataSequence=sequence))
    assert actual["error_code"] == "record.without_position"
    assert "sequenceEnabled" in actual["error"]


def test_without_sequences_changes_have_no_position() -> None:
    wire = open_format("oms-default", {"sequenceEnabled": "false"})
    assert (wire.order, wire.splits_partitions) == ("clock", False)
    values = [message(), message(storeDataSequence="absent"), message("DDL", "null", '{"ddl":"DROP TABLE a"}')]
    actual = changes(*values, sequenceEnabled="false")
    assert [item["kind"] for item in actual] == ["row", "row", "schema"]
    assert [item["position"] for item in actual] == [None] * 3


def test_without_sequences_a_row_of_the_full_load_is_older_than_every_change() -> None:
    actual = change(message("ROW", timestamp=None), sequenceEnabled="false")
    assert actual["tool_time"] == datetime(1970, 1, 1, tzinfo=UTC)


def test_ddl_is_a_statement_in_its_database() -> None:
    text = "ALTER TABLE orders ADD COLUMN c INT"
    actual = change(message("DDL", "null", json.dumps({"ddl": text}), ddlType="ALTER TABLE"))
    assert (actual["kind"], actual["statement"]) == ("schema", text)
    assert (actual["database"], actual["default_database"], actual["table"]) == ("shop", "shop", "orders")
    assert actual["position"] == POSITION
    assert actual["source_time"] == datetime(2020, 12, 30, 16, 11, 11, tzinfo=UTC)


@pytest.mark.parametrize(
    ("source", "dialect"),
    [
        *((name, "oracle") for name in ("OB_ORACLE", "ORACLE", "OB_IN_ORACLE_MODE")),
        *((name, None) for name in ("OB_MYSQL", "MYSQL", "OCEANBASE")),
        *((name, "db2") for name in ("DB2_LUW", "DB2")),
        (None, "mysql"),
    ],
)
def test_ddl_is_in_the_dialect_of_the_records_source(source: str | None, dialect: str | None) -> None:
    actual = change(message("DDL", "null", json.dumps({"ddl": "TRUNCATE TABLE T"}), dbType=source))
    assert (actual["kind"], actual["dialect"]) == ("schema", dialect)


@pytest.mark.parametrize("after", ["null", "{}", '{"ddl":""}', '{"ddl":null}', '{"ddl":"DROP TABLE a","b":1}'])
def test_ddl_that_does_not_say_what_it_did_is_an_error(after: str) -> None:
    assert change(message("DDL", "null", after))["error_code"] == "record.malformed"


def test_a_heartbeat_is_progress() -> None:
    assert change(message("HEARTBEAT", "null", "null", storeDataSequence="absent", db=None, table_name=None)) == {
        **{name: None for name in change(message())},
        **{"topic": "t", "partition": 0, "offset": 0, "index": 0, "kind": "progress"},
        "kafka_time": datetime.fromtimestamp(1_700_000_000, UTC),
        "source_time": datetime(2020, 12, 30, 16, 11, 11, tzinfo=UTC),
    }


def test_a_heartbeat_that_only_names_a_checkpoint_says_nothing() -> None:
    value = message("HEARTBEAT", "null", "null", timestamp=None, checkpoint="1609344671")
    assert change(value)["kind"] == "ignored"
    assert open_format("oms-default").progress_of("t", None, value) is None


def test_a_tombstone_is_ignored() -> None:
    assert [item["kind"] for item in changes(None, message())] == ["row", "ignored"]


@pytest.mark.parametrize(
    ("before", "after", "meta", "kind", "op"),
    [
        ("null", ROW, {}, "row", "insert"),
        (BEFORE, ROW, {}, "row", "update"),
        (BEFORE, "null", {}, "row", "delete"),
        ("null", '{"ddl":"DROP TABLE a"}', {}, "schema", None),
        ("null", "null", {}, "progress", None),
        ("null", "null", {"timestamp": None}, "error", None),
    ],
)
def test_without_recordtype_the_images_show_it(before: str, after: str, meta: Any, kind: str, op: str | None) -> None:
    actual = change(message(None, before, after, **meta))
    assert (actual["kind"], actual["op"]) == (kind, op)


@pytest.mark.parametrize(
    "value",
    [
        message("UPSERT"),
        message("insert"),
        message("INSERT", BEFORE),
        message("INSERT", "null", "null"),
        message("UPDATE"),
        message("UPDATE", BEFORE, "null"),
        message("DELETE"),
        message("ROW", BEFORE),
        message("INSERT", "null", "[1]"),
        message(db=None),
        message(db="tenant."),
        message(table_name=None),
        message("UPDATE", '{"id":1,"other":2}'),
        message().replace(b'"allMetaData"', b'"metaData"'),
        message()[:-1],
        message().replace(b'"no":129', b'"no":129,,'),
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"allMetaData":{}}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_an_error_that_keeps_its_bytes(value: bytes) -> None:
    actual = change(value)
    assert (actual["kind"], actual["error_code"], actual["raw"]) == ("error", "record.malformed", value)
    assert "hello" not in actual["error"]


def test_a_comma_too_many_as_in_the_documents_samples_is_an_error() -> None:
    actual = change(message().replace(b'ude00"}', b'ude00",}'))
    assert actual["error_code"] == "record.malformed"
    assert "trailing comma" in actual["error"]


def test_invalid_utf8_in_an_image_is_an_error_of_that_record_only() -> None:
    bad = message().replace(b"hello", b"h\xff")
    assert [item["error_code"] for item in changes(message(), bad, message())] == [None, "record.not_utf8", None]


@pytest.mark.parametrize("time", ["1609344671000", 1609344671000, "2020-12-30", "-5", "16.5"])
def test_a_timestamp_that_is_not_in_seconds_is_an_error(time: str | int) -> None:
    actual = change(message(timestamp=time))
    assert actual["error_code"] == "record.malformed"
    assert actual["error"].endswith("not in seconds")


def test_a_timestamp_may_be_a_number() -> None:
    assert change(message(timestamp=1609344671))["source_time"] == datetime(2020, 12, 30, 16, 11, 11, tzinfo=UTC)


def test_empty_images_of_the_documents_template_are_none() -> None:
    assert change(message("INSERT", "{}"))["before"] is None
    assert change(message("INSERT", "{\n  }"))["before"] is None


def test_names_and_texts_may_hold_anything() -> None:
    image = json.dumps({"größe 😀": "x" * 1_000_000, 'a"b\\': "\x00", "": None}, ensure_ascii=False)
    actual = change(message(after=image, record_primary_key=""))
    assert actual["after"] == image
    assert open_format("oms-default").describe(actual["columns"]).names == ("größe 😀", 'a"b\\', "")


def test_an_update_before_image_may_lack_columns() -> None:
    assert change(message("UPDATE", '{"id":3,"no":129}'))["before"] == '{"id":3,"no":129}'


def test_null_in_both_images_of_an_update_stays_null_unless_stated_otherwise() -> None:
    before, after = '{"id":1,"a":null,"b":null,"c":1}', '{"id":1,"a":null,"b":2.50,"c":null}'
    assert change(message("UPDATE", before, after))["after"] == after
    wire = open_format("oms-default", {"null_in_both": "unchanged"})
    assert wire.partial_images
    actual = change(message("UPDATE", before, after), null_in_both="unchanged")
    assert (actual["before"], actual["after"]) == (before, '{"id":1,"b":2.50,"c":null}')
    described = wire.describe(actual["columns"])
    assert (described.names, described.complete) == (("id", "b", "c"), False)
    assert change(message(after=after), null_in_both="unchanged")["after"] == after


def test_no_split_of_the_input_changes_anything() -> None:
    values = [message(), message("UPDATE", BEFORE), message(table_name="b"), message("X"), message(after='{"a":1}')]
    whole = changes(*values)
    for index, value in enumerate(values):
        actual = change(value)
        assert {**actual, "offset": index, "kafka_time": whole[index]["kafka_time"]} == whole[index]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (message(), Progress(1_609_344_671_000, heartbeat=False)),
        (message("HEARTBEAT", "null", "null"), Progress(1_609_344_671_000, heartbeat=True)),
        (message(None, "null", "null"), Progress(1_609_344_671_000, heartbeat=True)),
        (message("ROW"), None),
        (message(timestamp=None), None),
        (message(timestamp="1609344671000"), None),
        (b"{", None),
        (None, None),
    ],
)
def test_progress_is_the_source_time_of_changes_and_heartbeats(value: bytes | None, expected: Progress | None) -> None:
    assert open_format("oms-default").progress_of("t", None, value) == expected


def test_wrong_options_are_reported_all_at_once() -> None:
    wrong = {"sequenceEnabled": "maybe", "timezone": "Mars/Olympus", "tenant": "a.b", "null_in_both": "no"}
    with pytest.raises(ConfigurationError) as error:
        open_format("oms-default", wrong)
    assert len(error.value.problems) == 4


def test_types_come_from_the_timeline_and_the_source_speaks_its_dialect() -> None:
    wire = open_format("oms-default", {"timezone": "Asia/Shanghai"})
    mysql = wire.describe(change(message())["columns"])
    oracle = wire.describe(change(message(dbType="OB_ORACLE"))["columns"])
    assert wire.encoding_of("amount", ColumnType("double"), mysql).encoding is Encoding.NUMBER
    with pytest.raises(DataError, match="would round"):
        wire.encoding_of("amount", ColumnType("double"), oracle)
    encoded = wire.encoding_of("at", ColumnType("timestamp"), oracle)
    assert (encoded.encoding, encoded.zone) == (Encoding.MIXED_DATETIME, "Asia/Shanghai")
    assert wire.encoding_of("at", ColumnType("timestamp"), mysql).encoding is Encoding.EPOCH_SECONDS


def test_nothing_is_inferred_where_no_types_are_reported() -> None:
    wire = open_format("oms-default")
    assert wire.infer(wire.describe(change(message())["columns"])) is None
    assert wire.structure("[]") == []


def samples() -> list[bytes]:
    result = sorted(SEEDS.glob("003_*.txt"))
    if not result:
        pytest.skip("the seed document is not there")
    text = result[0].read_text(encoding="utf-8")
    part = text[text.index("Default JSON 消息格式\n\n数据同步") : text.index("Canal JSON 消息格式\n\n数据同步")]
    return [block.encode() for block in re.findall(r"^    (\{\n.*?^    \})", part, re.DOTALL | re.MULTILINE)]


def test_of_the_vendors_samples_the_delete_is_json() -> None:
    insert, update, delete = changes(*samples(), sequenceEnabled="false")
    assert [item["error_code"] for item in (insert, update)] == ["record.malformed"] * 2
    assert (delete["op"], delete["database"], delete["table"]) == ("delete", "database", "table_name")
    wire = open_format("oms-default")
    described = wire.describe(delete["columns"])
    assert described.names[5] == "col16"  # where the other samples have col6
    assert described.key is None  # int8 and int16 are no columns of it


def test_the_vendors_insert_and_update_are_rows_without_their_comma_too_many() -> None:
    fixed = [re.sub(rb",(\s*\})", rb"\1", sample) for sample in samples()]
    actual = changes(*fixed, sequenceEnabled="false")
    assert [item["op"] for item in actual] == ["insert", "update", "delete"]
    assert '"col5":10223372036854775806' in actual[0]["after"].replace(" ", "")
