# SPDX-License-Identifier: Apache-2.0
"""OMS's Canal method: the vendor's samples, types, keys, schema changes without text."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import ConfigurationError, DataError
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type

SEEDS = Path(__file__).parents[5] / ".." / "shared" / "seeds"
TYPES = {"id": "int64", "d": "decimal", "b": "blob"}


def message(data: Any = None, kind: str = "INSERT", **more: Any) -> dict[str, Any]:
    return {
        "database": "shop",
        "table": "t",
        "type": kind,
        "data": data,
        "pkNames": ["id"],
        "mysqlType": TYPES,
        "es": 1_609_344_671_000,
        "ts": 1_618_323_429_026,
        "isDdl": False,
        "sql": "",
        **more,
    }


def changes(*values: Any, **options: str) -> list[dict[str, Any]]:
    raw = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    count = len(raw)
    records = Records("t", 0, list(range(count)), [1000] * count, [None] * count, raw)
    return open_format("oms-canal", options).decode(records).to_pylist()


def samples() -> list[bytes]:
    result = sorted(SEEDS.glob("003_*.txt"))
    if not result:
        pytest.skip("the seed document is not there")
    text = result[0].read_text(encoding="utf-8")
    part = text[text.index("Canal JSON 消息格式") : text.index("Dataworks JSON 消息格式")]
    # the blocks before the samples are the template's
    return [b.encode() for b in re.findall(r"^    (\{\n.*?^    \})", part, re.DOTALL | re.MULTILINE)][-3:]


def test_the_vendors_samples_are_an_insert_an_update_and_a_delete() -> None:
    insert, update, delete = changes(*samples())
    assert [c["op"] for c in (insert, update, delete)] == ["insert", "update", "delete"]
    assert {(c["database"], c["table"], c["position"]) for c in (insert, update, delete)} == {
        ("database", "table", None)
    }
    assert json.loads(insert["after"])["col13"] == 10223372036854775806
    assert '"col3":1.2222,' in insert["after"]
    assert insert["source_time"].timestamp() == 1_609_344_671
    assert insert["tool_time"].timestamp() == 1_618_323_429.026
    assert delete["before"] == insert["after"]
    # the changed column it names is none of the row's
    assert json.loads(update["before"], parse_float=str) == json.loads(update["after"], parse_float=str)


def test_the_samples_values_are_those_of_the_database() -> None:
    insert = changes(samples()[0])[0]
    wire = open_format("oms-canal")
    description = wire.describe(insert["columns"])
    expected = {
        "col3": (ColumnType("float"), pytest.approx(1.2222)),
        "col4": (ColumnType("double"), 1e-307),
        "col9": (ColumnType("blob"), b"hello world"),
        "col13": (ColumnType("bigint", unsigned=True), 10223372036854775806),
        "col14": (ColumnType("timestamp", 6), 1_606_233_662_012_345),
    }
    fields = [
        Field(wire.encoding_of(n, kind, description), kind, arrow_type(kind)) for n, (kind, _) in expected.items()
    ]
    typed = type_images(pa.array([insert["after"]]), fields)
    assert typed.failures == []
    got = [c.cast(pa.int64())[0].as_py() if pa.types.is_timestamp(c.type) else c[0].as_py() for c in typed.columns]
    assert got == [value for _, value in expected.values()]


def test_a_key_that_is_not_in_the_row_is_no_key() -> None:
    wire = open_format("oms-canal")
    row = {"id": 1, "d": 1, "b": None}
    keys = [["id"], ["int8", "int16"], [], None]
    actual = changes(*(message([row], pkNames=key) for key in keys))
    assert [wire.describe(change["columns"]).key for change in actual] == [("id",), None, (), ()]
    # without knowing the key nothing is inferred
    assert wire.infer(wire.describe(actual[1]["columns"])) is None
    schema = wire.infer(wire.describe(actual[0]["columns"]))
    assert schema is not None
    assert [column.name for column in schema.key_columns] == ["id"]
    assert schema.named("d").type == ColumnType("longtext")  # the scale is not stated


def test_a_record_without_pk_names_does_not_say_its_key() -> None:
    value = message([{"id": 1}])
    del value["pkNames"]
    wire = open_format("oms-canal")
    assert wire.describe(changes(value)[0]["columns"]).key is None


def test_a_type_without_known_meaning_is_not_guessed() -> None:
    wire = open_format("oms-canal")
    (change,) = changes(message([{"id": 1, "x": 1}], mysqlType={"id": "int64", "x": "number_of_mystery"}))
    assert wire.infer(wire.describe(change["columns"])) is None


def test_columns_are_those_of_the_row_not_of_the_types() -> None:
    wire = open_format("oms-canal")
    short, long = changes(message([{"id": 1}]), message([{"id": 1, "d": 1, "b": None, "x": 2}]))
    assert wire.describe(short["columns"]).names == ("id",)
    assert wire.describe(long["columns"]).names == ("id", "d", "b", "x")
    assert wire.infer(wire.describe(long["columns"])) is None  # of x no type is stated


def test_the_same_description_is_the_same_text() -> None:
    values = [message([{"id": n, "d": n, "b": None}]) for n in range(10)]
    assert len({change["columns"] for change in changes(*values)}) == 1


@pytest.mark.parametrize("kind", ["ALTER", "CREATE", "CINDEX", "DINDEX", "QUERY"])
def test_a_schema_change_without_text_is_not_dropped(kind: str) -> None:
    (change,) = changes(message(kind=kind, isDdl=True, pkNames=None, mysqlType=None))
    assert (change["kind"], change["statement"], change["table"]) == ("schema", "", "t")


def test_dropping_and_emptying_a_table_need_no_text() -> None:
    odd = {"database": "a`b", "table": "c"}
    actual = changes(*(message(kind=kind, isDdl=True, **odd) for kind in ("TRUNCATE", "ERASE")))
    assert [change["statement"] for change in actual] == ["TRUNCATE TABLE `a``b`.`c`", "DROP TABLE `a``b`.`c`"]


@pytest.mark.parametrize(
    ("source", "dialect"),
    [
        *((name, "oracle") for name in ("OB_ORACLE", "ORACLE", "OB_IN_ORACLE_MODE")),
        *((name, None) for name in ("OB_MYSQL", "MYSQL", "OCEANBASE")),
        *((name, "db2") for name in ("DB2_LUW", "DB2")),
        (None, "mysql"),
    ],
)
def test_ddl_is_in_the_dialect_that_the_option_states(source: str | None, dialect: str | None) -> None:
    options = {} if source is None else {"dbType": source}
    (change,) = changes(message(kind="TRUNCATE", isDdl=True, sql="TRUNCATE TABLE T"), **options)
    assert change["dialect"] == dialect


def test_what_stands_for_a_text_that_is_missing_is_mysqls() -> None:
    (change,) = changes(message(kind="TRUNCATE", isDdl=True), dbType="OB_ORACLE")
    assert (change["statement"], change["dialect"]) == ("TRUNCATE TABLE `shop`.`t`", None)


def test_a_statement_counts_even_if_it_is_not_marked() -> None:
    (change,) = changes(message(kind="ALTER", sql="ALTER TABLE t ADD c INT"))
    assert (change["kind"], change["statement"], change["default_database"]) == (
        "schema",
        "ALTER TABLE t ADD c INT",
        "shop",
    )


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"null",
        b'{"type":"INSERT"}',
        message([]),
        message([None]),
        message([{}]),
        message([[1]]),
        message([{"id": 1}], database=""),
        message([{"id": 1}], table=None),
        message([{"id": 1}], "UPDATE", old=[]),
        message([{"id": 1}], "UPDATE", old=[None]),
        message([{"id": 1}], "insert"),
        message([{"id": 1}], es="yesterday"),
        message([{"id": 1}], pkNames="id"),
        message([{"id": 1}], mysqlType=["int"]),
        message(kind="RENAME", isDdl=True),
        message(kind="TRUNCATE", isDdl=True, table=None),
        message(kind="HEARTBEAT"),
        b"\x00" + json.dumps(message([{"id": 1}])).encode(),
        json.dumps(message([{"id": "\u00e9"}]), ensure_ascii=False).encode("latin-1"),
        b'{"a":' * 2000,
    ],
)
def test_what_is_no_message_is_one_error(value: Any) -> None:
    (change,) = changes(value)
    assert change["kind"] == "error"
    assert change["raw"] is not None


def test_a_bad_row_among_several_makes_the_record_one_error() -> None:
    actual = changes(message([{"id": 1}, 5]), message([{"id": 2, "d": 0, "b": None}]))
    assert [change["kind"] for change in actual] == ["error", "row"]


def test_odd_values_stay_as_they_are() -> None:
    row = {"id": 1, "d": "NaN", "b": "x" * 1_000_000, "😀": 'emoji " \\ \u0000'}
    (change,) = changes(json.dumps(message([row]), ensure_ascii=False).encode())
    assert json.loads(change["after"]) == row


def test_an_updates_names_keep_their_spelling_in_both_images() -> None:
    row = {"id": 1, 'q"\\ü😀': "new"}
    (change,) = changes(message([row], "UPDATE", old=[{'q"\\ü😀': None}]))
    assert json.loads(change["before"]) == {"id": 1, 'q"\\ü😀': None}
    assert json.loads(change["after"]) == row


def test_progress_is_the_source_time_of_a_record() -> None:
    wire = open_format("oms-canal")
    value = json.dumps(message([{"id": 1}])).encode()
    assert wire.progress_of("t", None, value) == Progress(1_609_344_671_000, heartbeat=False)
    for other in (None, b"", b"{}", b"[1]", b'{"es":5}'):
        assert wire.progress_of("t", None, other) is None


def test_types_of_an_oracle_tenant_are_taken_as_such() -> None:
    wire = open_format("oms-canal", {"dbType": "OB_ORACLE", "timezone": "Asia/Shanghai"})
    (change,) = changes(message([{"c": "2020-11-25 00:01:02"}]), dbType="OB_ORACLE")
    encoded = wire.encoding_of("c", ColumnType("timestamp", 6), wire.describe(change["columns"]))
    assert (encoded.encoding, encoded.zone) == (Encoding.MIXED_DATETIME, "Asia/Shanghai")
    with pytest.raises(DataError, match="decimal"):
        wire.encoding_of("c", ColumnType("double"), wire.describe(change["columns"]))


@pytest.mark.parametrize(("kind", "refused"), [("mediumtext", True), ("ENUM('a')", True), ("VARCHAR2", False)])
def test_a_type_of_mysql_refuses_a_source_that_speaks_oracle(kind: str, refused: bool) -> None:
    row = message([{"id": 1, "v": "a"}], mysqlType={"id": "int64", "v": kind})
    (change,) = changes(row, dbType="ORACLE")
    assert change["error_code"] == ("format.option_contradicted" if refused else None)
    assert [change["kind"] for change in changes(row, dbType="MYSQL")] == ["row"]


def test_null_in_both_images_may_say_that_nothing_changed() -> None:
    rows = [message([{"id": 1, "d": 2, "b": None}], "UPDATE", old=[{"d": 1}]), message([{"id": 1, "b": None}])]
    wire = open_format("oms-canal", {"null_in_both": "unchanged"})
    update, insert = changes(*rows, null_in_both="unchanged")
    assert wire.partial_images
    assert (json.loads(update["before"]), json.loads(update["after"])) == (
        {"id": 1, "d": 1, "b": None},
        {"id": 1, "d": 2},
    )
    assert not wire.describe(update["columns"]).complete
    assert json.loads(insert["after"]) == {"id": 1, "b": None}
    assert json.loads(changes(rows[0])[0]["after"]) == {"id": 1, "d": 2, "b": None}


@pytest.mark.parametrize("word", ["OCEANBASE", "OB_IN_ORACLE_MODE", "DB2"])
def test_older_words_for_the_source_are_taken(word: str) -> None:
    assert open_format("oms-canal", {"dbType": word}).name == "oms-canal"


def test_wrong_options_are_reported_all_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_format("oms-canal", {"dbType": "POSTGRES", "timezone": "Mars/Olympus"})
    assert len(caught.value.problems) == 2


def test_an_image_is_read_alike_whatever_the_one_before_it_was() -> None:
    images = [
        b'{"id":1,"d":2.50}',
        b'{"d":2.50,"id":1}',
        b'{"id":1, "d":2.50}',
        b'{"id":1,"d":9,"d":2.50}',
        b'{"id":1,"d":2.50,"b":null}',
    ]
    head = json.dumps({**message("DATA", "UPDATE"), "old": [{"d": 1.5, "x": 0}]}).encode()
    values = [head.replace(b'"DATA"', b"[%b]" % image) for image in images]
    reported = ("kind", "before", "after", "columns")
    alone = [{name: changes(value)[0][name] for name in reported} for value in values]
    assert alone[0]["before"] == '{"id":1,"d":1.5}'
    for first in values:
        actual = [{name: change[name] for name in reported} for change in changes(first, *values)]
        assert actual[1:] == alone
