# SPDX-License-Identifier: Apache-2.0
"""``oms-dataworks``: the Dataworks 2.0 method of OceanBase OMS (docs/wire/oceanbase-oms.md 5, 7, 8, 10)."""

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
SOURCE = {"dbType": "ob_mysql", "dbVersion": None, "dbName": "shop", "schema": None, "table": "orders"}
COLUMNS = [{"name": "id", "type": "bigint"}, {"name": "v", "type": "decimal(10,2)"}]
TIMES = {"eventTime": 1647581000000, "systemTime": 1647581000795, "checkpointTime": 1647581000}
ROW, BEFORE = '{"id":3,"v":1.10}', '{"id":3,"v":1.20}'


def schema(columns: Any = COLUMNS, pk: Any = ("id",), **source: Any) -> str:
    return json.dumps({"source": {**SOURCE, **source}, "column": columns, "pk": pk})


def message(
    op: str, before: str | None = None, after: str | None = None, described: str | None = None, **more: Any
) -> bytes:
    images = {"before": before, "after": after}
    spelled = [f'"{name}":' + ("null" if data is None else f'{{"data":{data}}}') for name, data in images.items()]
    rest = {"op": op, "timestamp": TIMES, "ddl": None, "scn": "null", **more}
    payload = ",".join([*spelled, json.dumps(rest)[1:-1]])
    return f'{{"version":"2.0","schema":{described or schema()},"payload":{{{payload}}},"extend":{{"a":1}}}}'.encode()


def changes(*values: bytes | None, **options: str) -> list[dict[str, Any]]:
    count = len(values)
    records = Records("t", 0, list(range(count)), [1_700_000_000_000 + i for i in range(count)], [None] * count, values)
    batch = open_format("oms-dataworks", options).decode(records)
    batch.validate(full=True)
    return batch.to_pylist()


def change(value: bytes, **options: str) -> dict[str, Any]:
    (only,) = changes(value, **options)
    return only


def test_rows_have_their_images_with_every_token_as_received() -> None:
    insert, update, delete = changes(
        message("INSERT", None, ROW), message("UPDATE", BEFORE, ROW), message("DELETE", BEFORE)
    )
    assert [item["op"] for item in (insert, update, delete)] == ["insert", "update", "delete"]
    assert [item["before"] for item in (insert, update, delete)] == [None, BEFORE, BEFORE]
    assert [item["after"] for item in (insert, update, delete)] == [ROW, ROW, None]
    assert {(item["database"], item["table"]) for item in (insert, update, delete)} == {("shop", "orders")}


def test_times_are_read_each_in_its_unit() -> None:
    actual = change(message("INSERT", None, ROW))
    assert actual["source_time"] == datetime(2022, 3, 18, 5, 23, 20, tzinfo=UTC)
    assert actual["tool_time"] == datetime(2022, 3, 18, 5, 23, 20, 795000, tzinfo=UTC)
    assert actual["position"] is None


def test_order_is_that_of_clocks_unless_records_are_said_to_carry_scn() -> None:
    wire = open_format("oms-dataworks")
    assert (wire.order, wire.splits_partitions) == ("clock", False)
    wire = open_format("oms-dataworks", {"sequenceEnabled": "true"})
    assert (wire.order, wire.splits_partitions) == ("exact", True)
    actual = change(message("INSERT", None, ROW, scn="164758100000017"), sequenceEnabled="true")
    assert actual["position"] == "0000.1647581000.00000000000000000017.0000000000"
    assert actual["tool_time"] is None


@pytest.mark.parametrize("scn", ["null", None, "", "0"])
def test_a_change_without_the_scn_it_is_said_to_carry_is_an_error(scn: str | None) -> None:
    assert change(message("DELETE", ROW, scn=scn), sequenceEnabled="true")["error_code"] == "record.without_position"


def test_a_number_that_only_counts_is_no_scn() -> None:
    actual = change(message("DELETE", ROW, scn="123456789"), sequenceEnabled="true")
    assert actual["error_code"] == "record.malformed"


def test_a_row_of_the_full_load_is_a_snapshot_before_every_change() -> None:
    snapshot, insert = changes(
        message("ROW", None, ROW), message("INSERT", None, ROW, scn="10000000001"), sequenceEnabled="true"
    )
    assert snapshot["op"] == "snapshot"
    assert snapshot["position"] < insert["position"]


def test_the_description_has_names_types_and_key() -> None:
    actual = open_format("oms-dataworks").describe(change(message("INSERT", None, ROW))["columns"])
    assert (actual.names, actual.key, actual.details) == (
        ("id", "v"),
        ("id",),
        {"id": "bigint", "v": "decimal(10,2)"},
    )


def test_columns_that_are_named_otherwise_than_the_rows_are_not_matched_by_place() -> None:
    named = schema([{"name": "int8", "type": "TINYINT"}, {"name": "int16", "type": "SMALLINT"}], ["pkName1"])
    actual = open_format("oms-dataworks").describe(change(message("INSERT", None, ROW, named))["columns"])
    assert (actual.names, actual.key, actual.details) == (("id", "v"), None, None)


@pytest.mark.parametrize("pk", [None, []])
def test_a_table_without_key_has_an_empty_one(pk: Any) -> None:
    actual = change(message("INSERT", None, ROW, schema(pk=pk)))
    assert open_format("oms-dataworks").describe(actual["columns"]).key == ()


def test_types_with_lengths_are_taken_as_they_are_and_bare_ones_as_wide_as_they_can_be() -> None:
    columns = [
        {"name": "id", "type": "BIGINT(20) UNSIGNED"},
        {"name": "a", "type": "varchar(20)"},
        {"name": "b", "type": "decimal(10,2)"},
        {"name": "c", "type": "bigint"},
        {"name": "d", "type": "binary"},
    ]
    wire = open_format("oms-dataworks")
    image = json.dumps({column["name"]: None for column in columns})
    inferred = wire.infer(wire.describe(change(message("INSERT", None, image, schema(columns)))["columns"]))
    assert inferred is not None
    assert [column.type for column in inferred.columns] == [
        ColumnType("bigint", 20, unsigned=True),
        ColumnType("varchar", 20),
        ColumnType("decimal", 10, 2),
        ColumnType("decimal", 38, 0),
        ColumnType("longblob"),
    ]
    assert [column.name for column in inferred.key_columns] == ["id"]


def test_where_there_are_schemas_they_distinguish_tables() -> None:
    actual = change(message("INSERT", None, ROW, schema(dbType="OB_ORACLE", schema="SALES")))
    assert (actual["database"], actual["table"]) == ("SALES", "orders")


@pytest.mark.parametrize("dialect", ["ORACLE", "ob_oracle", "OB_IN_ORACLE_MODE"])
def test_an_oracle_source_is_known_by_its_type_in_any_case(dialect: str) -> None:
    wire = open_format("oms-dataworks")
    actual = change(message("INSERT", None, ROW, schema(dbType=dialect)))
    with pytest.raises(DataError, match="would round"):
        wire.encoding_of("v", ColumnType("double"), wire.describe(actual["columns"]))


def test_moments_are_read_in_every_form() -> None:
    wire = open_format("oms-dataworks", {"timezone": "Asia/Shanghai"})
    columns = [{"name": "id", "type": "DATETIME"}, {"name": "v", "type": "TIMESTAMP"}]
    description = wire.describe(change(message("INSERT", None, ROW, schema(columns)))["columns"])
    for name, kind in (("id", "datetime"), ("v", "timestamp")):
        encoded = wire.encoding_of(name, ColumnType(kind), description)
        assert (encoded.encoding, encoded.zone) == (Encoding.MIXED_DATETIME, "Asia/Shanghai")


@pytest.mark.parametrize("op", ["CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"])
def test_ddl_is_a_statement_in_its_database(op: str) -> None:
    actual = change(message(op, ddl={"text": "ALTER TABLE orders ADD c INT"}))
    assert (actual["kind"], actual["statement"]) == ("schema", "ALTER TABLE orders ADD c INT")
    assert (actual["database"], actual["default_database"], actual["table"]) == ("shop", "shop", "orders")
    assert actual["source_time"] == datetime(2022, 3, 18, 5, 23, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("source", "dialect"), [("OB_ORACLE", "oracle"), ("ORACLE", "oracle"), ("OB_MYSQL", None), (None, "mysql")]
)
def test_ddl_is_in_the_dialect_of_the_records_source(source: str | None, dialect: str | None) -> None:
    actual = change(message("TRUNCATE", described=schema(dbType=source), ddl={"text": "TRUNCATE TABLE T"}))
    assert actual["dialect"] == dialect
    without_text = change(message("TRUNCATE", described=schema(dbType=source)))
    assert without_text["dialect"] is None


def test_ddl_without_schema_is_a_statement_without_a_database() -> None:
    actual = change(message("CREATE", described="null", ddl={"text": "CREATE DATABASE d"}))
    assert (actual["kind"], actual["database"], actual["table"]) == ("schema", "", None)


@pytest.mark.parametrize(
    ("op", "statement"), [("TRUNCATE", "TRUNCATE TABLE `shop`.`a``b`"), ("ERASE", "DROP TABLE `shop`.`a``b`")]
)
def test_what_the_op_alone_makes_clear_needs_no_text(op: str, statement: str) -> None:
    assert change(message(op, described=schema(table="a`b")))["statement"] == statement


@pytest.mark.parametrize("op", ["CREATE", "ALTER", "QUERY", "RENAME", "CINDEX", "DINDEX"])
@pytest.mark.parametrize("ddl", [None, {"text": None}, {"text": " "}])
def test_other_ddl_without_text_is_an_error(op: str, ddl: Any) -> None:
    assert change(message(op, ddl=ddl))["error_code"] == "record.malformed"


def test_a_heartbeat_is_progress() -> None:
    beat = b'{"version":"2.0","payload":{"timestamp":{"eventTime":1620457659000},"op":"HEARTBEAT"}}'
    actual = change(beat)
    assert (actual["kind"], actual["source_time"]) == ("progress", datetime(2021, 5, 8, 7, 7, 39, tzinfo=UTC))
    timeless = beat.replace(b'"eventTime":1620457659000', b"")
    assert change(timeless)["kind"] == "ignored"


@pytest.mark.parametrize(
    ("op", "mark"),
    [
        ("TRANSACTION_BEGIN", "begin"),
        ("TRANSACTION_END", "commit"),
        ("XACOMMIT", "commit"),
    ],
)
def test_ends_of_transactions_are_marks(op: str, mark: str) -> None:
    actual = change(message(op))
    assert (actual["kind"], actual["op"]) == ("transaction", mark)


def test_the_rollback_of_a_prepared_transaction_is_an_error() -> None:
    actual = change(message("XAROLLBACK"))
    assert (actual["kind"], actual["error_code"]) == ("error", "record.xa_rollback")


def test_a_gtid_and_a_tombstone_change_nothing() -> None:
    assert [item["kind"] for item in changes(message("GTID"), None)] == ["ignored", "ignored"]


def test_an_update_in_the_spelling_of_dataworks_itself_is_one_if_it_has_both_images() -> None:
    assert change(message("UPDATE_AFTER", BEFORE, ROW))["op"] == "update"
    assert change(message("UPDATE_AFTER", None, ROW))["error_code"] == "record.malformed"
    assert change(message("UPDATE_BEFOR", BEFORE))["error_code"] == "record.malformed"


@pytest.mark.parametrize(
    "value",
    [
        message("insert", None, ROW),
        message("UPSERT", None, ROW),
        message("MHEARTBEAT"),
        message("INSERT", BEFORE, ROW),
        message("INSERT"),
        message("UPDATE", None, ROW),
        message("DELETE", BEFORE, ROW),
        message("INSERT", None, "{}"),
        message("INSERT", None, "[]"),
        message("INSERT", None, ROW, schema(dbName=None)),
        message("INSERT", None, ROW, schema(table=None)),
        message("INSERT", None, ROW, "null"),
        message("INSERT", None, ROW, '{"column":[]}'),
        message("INSERT", None, ROW, schema([{"name": "id"}])),
        message("INSERT", None, ROW, timestamp={"eventTime": -1}),
        message("INSERT", None, ROW, timestamp={"eventTime": 10**17}),
        message("INSERT", None, ROW).replace(b'"2.0"', b'"3.0"'),
        message("INSERT", None, ROW).replace(b'"version":"2.0",', b""),
        message("INSERT", None, ROW).replace(b'"op"', b'"po"'),
        message("INSERT", None, ROW)[:-1],
        b"",
        b"null",
        b"{}",
    ],
)
def test_what_is_no_message_is_an_error_that_keeps_its_bytes(value: bytes) -> None:
    actual = change(value)
    assert (actual["kind"], actual["error_code"], actual["raw"]) == ("error", "record.malformed", value)


def test_invalid_utf8_in_an_image_is_an_error_of_that_record_only() -> None:
    good = message("INSERT", None, '{"id":"x"}')
    actual = changes(good, good.replace(b'"x"', b'"\xff"'), good)
    assert [item["error_code"] for item in actual] == [None, "record.not_utf8", None]


def test_null_in_both_images_of_an_update_may_mean_unchanged() -> None:
    before, after = '{"id":3,"v":null}', '{"id":4,"v":null}'
    actual = change(message("UPDATE", before, after), null_in_both="unchanged")
    assert (actual["before"], actual["after"]) == (before, '{"id":4}')
    assert change(message("UPDATE", before, after))["after"] == after


def test_no_split_of_the_input_changes_anything() -> None:
    values = [message("INSERT", None, ROW), message("UPDATE", BEFORE, ROW, schema(table="b")), message("X")]
    values += [message("INSERT", None, '{"id":1}'), message("DELETE", BEFORE)]
    whole = changes(*values)
    for index, value in enumerate(values):
        assert {**change(value), "offset": index, "kafka_time": whole[index]["kafka_time"]} == whole[index]


def test_progress_is_the_source_time_of_changes_and_heartbeats() -> None:
    wire = open_format("oms-dataworks")
    row, beat = message("INSERT", None, ROW), message("HEARTBEAT")
    assert wire.progress_of("t", None, row) == Progress(1_647_581_000_000, heartbeat=False)
    assert wire.progress_of("t", None, beat) == Progress(1_647_581_000_000, heartbeat=True)
    silent = (b"{", None, message("GTID", timestamp=None), message("ROW", None, ROW))
    assert [wire.progress_of("t", None, value) for value in silent] == [None] * 4


def test_wrong_options_are_reported_all_at_once() -> None:
    with pytest.raises(ConfigurationError) as error:
        open_format("oms-dataworks", {"sequenceEnabled": "maybe", "timezone": "Mars/Olympus", "null_in_both": "no"})
    assert len(error.value.problems) == 3


def samples() -> list[bytes]:
    result = sorted(SEEDS.glob("003_*.txt"))
    if not result:
        pytest.skip("the seed document is not there")
    text = result[0].read_text(encoding="utf-8")
    part = text[text.index("Dataworks JSON 消息格式\n\n数据同步") : text.index("SharePlex JSON 消息格式\n\n数据同步")]
    return [block.encode() for block in re.findall(r"^    (\{\n.*?^    \})", part, re.DOTALL | re.MULTILINE)]


def test_the_vendors_samples_are_an_insert_an_update_and_a_delete_with_unusable_columns() -> None:
    actual = changes(*samples())
    assert [item["op"] for item in actual] == ["insert", "update", "delete"]
    assert {(item["database"], item["table"]) for item in actual} == {("db", "tab")}
    wire = open_format("oms-dataworks")
    for item in actual:
        description = wire.describe(item["columns"])
        assert (description.names[:2], description.key, description.details) == (("col1", "col2"), None, None)
    exact = json.loads(actual[0]["after"], parse_float=str)["col6"]
    assert (len(exact), float(exact)) == (1074, 1e-307)
    assert exact in actual[0]["after"]
