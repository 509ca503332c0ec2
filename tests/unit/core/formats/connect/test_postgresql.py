# SPDX-License-Identifier: Apache-2.0
"""Places, types and values of Debezium's PostgreSQL connector; values as recorded in tests/captures/data."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import ConfigurationError, DataError
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord
from airflow_provider_cdc.core.formats.connect.connectors.postgresql import PostgreSqlConnector, PostgreSqlSource
from airflow_provider_cdc.core.formats.connect.connectors.postgresql_beat import BeatTable
from airflow_provider_cdc.core.formats.connect.connectors.registry import open_connector
from airflow_provider_cdc.core.formats.connect.connectors.unchanged_values import UnchangedValues
from airflow_provider_cdc.core.formats.connect.messages import Transaction
from airflow_provider_cdc.core.formats.contract import Description, IdentifiesTables, Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type

WIRE = PostgreSqlConnector({})
DECIMAL = "org.apache.kafka.connect.data.Decimal"
PLACEHOLDER = "__debezium_unavailable_value"


def source(sequence: str, snapshot: str = "null") -> PostgreSqlSource:
    return PostgreSqlSource(connector="postgresql", sequence=sequence, snapshot=msgspec.Raw(snapshot.encode()))


@pytest.mark.parametrize(
    ("sequence", "snapshot", "number", "position"),
    [
        ('[null,"28359600"]', '"first"', None, (28359600, 28359600, 0)),
        ('[null,"28359600"]', "null", 1, (28359600, 28359600, 1)),
        ('["29144368","29142664"]', '"false"', 2, (29144368, 29142664, 2)),
        ('["29132160","29132160"]', '"incremental"', None, (29132160, 0, 0)),
        ('["29132160",null]', '"incremental"', None, (29132160, 0, 0)),
        ('["29143984","29143984"]', '"last"', None, (29143984, 0, 0)),
        ('["9223372036854775807","1"]', "null", None, (9223372036854775807, 1, 0)),
    ],
)
def test_place(sequence: str, snapshot: str, number: int | None, position: tuple[int, int, int]) -> None:
    transaction = None if number is None else Transaction(number)
    assert WIRE.position(source(sequence, snapshot), transaction) == position


@pytest.mark.parametrize("snapshot", ['"first"', '"true"', '"last"'])
def test_rows_without_key_of_a_later_snapshot_at_one_place_stand_behind_those_of_the_one_before(snapshot: str) -> None:
    first, again = (source('[null,"28359600"]', snapshot) for _ in range(2))
    first.ts_us, again.ts_us = 1_795_820_732_999_089, 1_795_820_732_999_090
    streamed = WIRE.position(source('[null,"28359600"]'), None, keyed=False)
    assert WIRE.position(first, None, keyed=False) < WIRE.position(again, None, keyed=False) < streamed
    # several sessions may read a table that has a key, and each has a time of its own
    assert WIRE.position(first, None, keyed=True) == WIRE.position(again, None, keyed=True) == (28359600, 28359600, 0)


@pytest.mark.parametrize("sequence", ["[null,null]", "[]", "{}", '["x","1"]'])
def test_a_place_that_cannot_be_read_is_refused(sequence: str) -> None:
    with pytest.raises(ValueError):
        WIRE.position(source(sequence), None)


def test_a_transaction_that_was_open_stands_behind_the_snapshot_that_read_its_row_before() -> None:
    # recorded: by its place alone the change would stand before the snapshot's row
    read = WIRE.position(source('["29132160","29132160"]', '"incremental"'), None)
    committed = WIRE.position(source('["29132160","29111864"]'), None)
    assert read < committed


def detail(kind: str, name: str | None = None, **parameters: str) -> dict[str, Any]:
    return {
        "type": kind,
        "optional": True,
        **({"name": name} if name else {}),
        **({"parameters": parameters} if parameters else {}),
    }


def values(described: dict[str, Any], *tokens: str, options: dict[str, str] | None = None) -> tuple[ColumnType, Any]:
    """Return the type that a column has, and its values: of one that fails its reason."""
    wire = PostgreSqlConnector(options or {})
    said = Description(("c",), None, {"c": described})
    schema = wire.infer(said)
    assert schema is not None
    column = schema.columns[0].type
    field = Field(wire.encoding("c", column, said), column, arrow_type(column))
    typed = type_images(pa.array([f'{{"c":{token}}}' for token in tokens], pa.string()), [field])
    failed = {failure.row: str(failure.reason) for failure in typed.failures}
    return column, [failed.get(row, value) for row, value in enumerate(typed.columns[0].to_pylist())]


ARRAY_OF_DATES = {"type": "array", "items": detail("int32", "io.debezium.time.Date")}
ARRAY_OF_NUMBERS = {"type": "array", "items": detail("bytes", DECIMAL, scale="2")}
ARRAY_OF_TEXTS = {"type": "array", "items": detail("string")}
ARRAY_OF_INSTANTS = {"type": "array", "items": detail("string", "io.debezium.time.ZonedTimestamp")}
VARIABLE = detail("struct", "io.debezium.data.VariableScaleDecimal")
PRECISE = {"scale": "2", "connect.decimal.precision": "10"}
# numeric(5,-2), whose scale wraps: 12300 and -100 as recorded are multiples of 10^2046
NEGATIVE = {"scale": "2046", "connect.decimal.precision": "5"}


@pytest.mark.parametrize(
    ("described", "tokens", "kind", "expected"),
    [
        (detail("int16"), ["-32768", "null"], "smallint", [-32768, None]),
        (detail("int64"), ["9223372036854775807"], "bigint", [9223372036854775807]),
        (detail("boolean"), ["true", "false"], "bit(1)", [True, False]),
        (detail("double"), ["0.1", "-0.0", "1e308"], "double", [0.1, -0.0, 1e308]),
        (
            detail("bytes", DECIMAL, **PRECISE),
            ['"bg=="', '"ANw="'],
            "decimal(10,2)",
            [Decimal("1.10"), Decimal("2.20")],
        ),
        (VARIABLE, ['{"scale":3,"value":"AQ=="}', '{"scale":0,"value":"A+g="}'], "longtext", ["0.001", "1000"]),
        (VARIABLE, ['{"scale":-2,"value":"/w=="}', '{"scale":1,"value":"AA=="}'], "longtext", ["-100", "0.0"]),
        (
            VARIABLE,
            ['{"scale":1}', '{"scale":true,"value":"AA=="}'],
            "longtext",
            ["token_unexpected", "number_invalid"],
        ),
        (detail("string", "io.debezium.data.Json"), [r'"{\"n\": 1.50}"'], "json", ['{"n": 1.50}']),
        (detail("string", "io.debezium.data.Uuid"), ['"123e"'], "longtext", ["123e"]),
        (detail("bytes", "io.debezium.data.Bits", length="3"), ['"BQ=="'], "bit(3)", [5]),
        (detail("bytes", "io.debezium.data.Bits", length="2147483647"), ['"VQU="'], "longblob", [b"U\x05"]),
        # infinity and -infinity, as streamed and as read by a snapshot
        (
            detail("int32", "io.debezium.time.Date"),
            ["-2147472692", "-2147472691", "-622191234", "-625821272"],
            "date",
            ["out_of_range"] * 4,
        ),
        (
            detail("int64", "io.debezium.time.MicroTimestamp"),
            ["9223372036825200000", "-9223372036832400000"],
            "datetime(6)",
            ["out_of_range"] * 2,
        ),
        (
            detail("int64", "io.debezium.time.Timestamp"),
            ["9223372036825200", "-9223372036832400"],
            "datetime(3)",
            ["out_of_range"] * 2,
        ),
        (ARRAY_OF_DATES, ["[-2147472692]", "[-625821272]"], "json", ["out_of_range"] * 2),
        (ARRAY_OF_INSTANTS, ['["infinity","-infinity"]'], "json", ['["infinity","-infinity"]']),
        (detail("int64", "io.debezium.time.MicroTime"), ["86400000000"], "time(6)", ["24:00:00.000000"]),
        (detail("int32", "io.debezium.time.Time"), ["45296789"], "time(3)", ["12:34:56.789"]),
        (ARRAY_OF_DATES, ["[20454,-1,null]", "[]"], "json", ['["2026-01-01","1969-12-31",null]', "[]"]),
        (ARRAY_OF_NUMBERS, ['["bg==","ANw=",null]'], "json", ["[1.10,2.20,null]"]),
        (
            ARRAY_OF_TEXTS,
            ['["a,b","NULL","\\u00fc"]', "[null,null]"],
            "json",
            ['["a,b","NULL","ü"]', "dimensions_lost"],
        ),
        (ARRAY_OF_INSTANTS, ['["2025-12-31T22:00:00Z"]'], "json", ['["2025-12-31T22:00:00Z"]']),
        ({"type": "map"}, ['{"a":"1","b":null}'], "json", ['{"a":"1","b":null}']),
    ],
)
def test_values(described: dict[str, Any], tokens: list[str], kind: str, expected: list[Any]) -> None:
    column, converted = values(described, *tokens)
    assert str(column) == kind
    assert converted == expected


def test_floats_that_are_no_numbers() -> None:
    _, converted = values(detail("float"), '"NaN"', '"Infinity"', '"-Infinity"', "0.5")
    assert math.isnan(converted[0])
    assert converted[1:] == [math.inf, -math.inf, 0.5]
    assert values(detail("double"), '"Inf"')[1] == ["number_invalid"]


def test_a_negative_scale_is_an_integer() -> None:
    number = 12300 * 10**2046
    raw = number.to_bytes((number.bit_length() + 8) // 8, "big", signed=True)
    column, converted = values(detail("bytes", DECIMAL, **NEGATIVE), json.dumps(msgspec.to_builtins(raw)))
    assert (str(column), converted) == ("decimal(7,0)", [Decimal(12300)])


def test_instants_are_what_they_say_in_the_year_1_too() -> None:
    kind = detail("string", "io.debezium.time.ZonedTimestamp")
    column, converted = values(kind, '"0001-01-01T00:00:00Z"', '"infinity"', '"2026-03-01T10:00:00.123456Z"')
    assert str(column) == "timestamp(6)"
    assert converted[0] == datetime(1, 1, 1, tzinfo=UTC)
    assert converted[1] == "date_invalid"
    assert converted[2] == datetime(2026, 3, 1, 10, 0, 0, 123456, tzinfo=UTC)


def test_numbers_of_intervals_are_taken_only_where_that_is_stated() -> None:
    kind = detail("int64", "io.debezium.time.MicroDuration")
    with pytest.raises(DataError, match=r"format\.interval_inexact"):
        values(kind, "1")
    assert values(kind, "2629800000000", options={"interval.handling.mode": "numeric"})[1] == [2629800000000]


def test_a_row_without_a_key_describes_a_table_without_one() -> None:
    schema = WIRE.infer(Description(("a",), None, {"a": detail("int32")}))
    assert schema is not None and schema.key == ()
    assert WIRE.infer(Description(("a",), None, None)) is None


@pytest.mark.parametrize(
    "shape",
    [
        PLACEHOLDER,
        "X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ==",
        [PLACEHOLDER],
        list(PLACEHOLDER.encode()),
        {PLACEHOLDER: PLACEHOLDER},
        json.dumps({PLACEHOLDER: PLACEHOLDER}, separators=(",", ":")),
    ],
)
def test_unchanged_values_in_all_shapes(shape: Any) -> None:
    image = json.dumps({"id": 1, "a": shape}, separators=(",", ":")).encode()
    unchanged = UnchangedValues(None)
    assert unchanged.may_be_in(image)
    assert unchanged.without(image, None) == b'{"id":1}'
    assert unchanged.without(image, b'{"id":1,"a":"was"}') == b'{"id":1,"a":"was"}'


def test_a_text_with_the_placeholder_in_it_is_a_text() -> None:
    image = json.dumps({"a": f"{PLACEHOLDER}!"}).encode()
    assert json.loads(UnchangedValues(None).without(image, None)) == {"a": f"{PLACEHOLDER}!"}
    assert not UnchangedValues("hex:2d2d").may_be_in(image)


@pytest.mark.parametrize(
    "options", [{"interval.handling.mode": "x"}, {"bigint.unsigned.handling.mode": "long"}, {"timezone": "UTC"}]
)
def test_options_of_other_connectors_are_refused(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError):
        open_connector({"connector": "postgresql", **options})


BEAT = b'{"id":1,"system_identifier":"7713","timeline":"00000002","at":"2026-11-28T00:06:24.153398Z"}'


def test_a_heartbeat_names_its_server() -> None:
    log = BeatTable()
    change = log.change("update", (200, 201, 1), BEAT)
    assert change is not None
    relation = log.relation(change.text)
    assert relation is not None
    assert (relation.event, relation.system, relation.text, relation.read) == ("server", "7713", "00000002", False)
    read = log.change("snapshot", (100, 100, 0), BEAT)
    assert read is not None
    assert (relation := log.relation(read.text)) is not None and relation.read
    assert log.change("incremental", (100, 0, 0), BEAT) is None
    assert log.change("delete", (100, 0, 0), None) is None
    assert log.relation('{"id":1,"event":"sql_drop"}') is None


@pytest.mark.parametrize("row", [b'{"id":1}', b'{"system_identifier":null,"timeline":"1"}', b"[]"])
def test_a_table_of_the_default_name_may_be_another_one_and_a_stated_one_may_not(row: bytes) -> None:
    assert BeatTable().change("insert", (1, 1, 1), row) is None
    with pytest.raises(ValueError, match="system_identifier"):
        BeatTable("ctl.beat").change("insert", (1, 1, 1), row)
    with pytest.raises(ConfigurationError, match="heartbeat_table"):
        BeatTable("beat")


def test_rows_of_heartbeats_stay_rows_and_a_server_is_said_once() -> None:
    row = b'{"op":"c","before":null,"after":%s,"source":{"connector":"postgresql","name":"x","schema":"ctl",' % BEAT
    row += b'"table":"beat","sequence":"[\\"10\\",\\"10\\"]","snapshot":"false","txId":7}}'
    other = row.replace(b'"00000002"', b'"00000003"')
    values = [row, row, other]
    wire = open_format("debezium-json", {"connector": "postgresql"})
    changes = wire.decode(Records("x.ctl.beat", 0, [0, 1, 2], [0, 0, 0], [None] * 3, values)).to_pylist()
    assert [(change["kind"], change["offset"], change["index"]) for change in changes] == [
        ("row", 0, 0),
        ("schema", 0, 1),
        ("row", 1, 0),
        ("row", 2, 0),
        ("schema", 2, 1),
    ]
    assert isinstance(wire, IdentifiesTables)
    shown = [wire.relation(change["table_changes"]) for change in changes if change["kind"] == "schema"]
    assert [relation.text for relation in shown if relation is not None] == ["00000002", "00000003"]


COLUMNS = ('{"type":"int32","optional":false,"field":"id"}', '{"type":"int32","optional":false,"field":"u"}')
NULLABLE = '{"type":"string","optional":true,"field":"v"}'


@pytest.mark.parametrize(
    ("row", "columns", "made_up"),
    [
        (b'{"id":0,"u":99,"v":null}', (*COLUMNS, NULLABLE), True),  # USING INDEX over u
        (b'{"id":0,"u":99,"v":null}', None, True),
        (b'{"id":0,"u":99,"v":"x"}', (*COLUMNS, NULLABLE), False),  # FULL: no index of an identity is over v
        (b'{"id":0,"u":99,"v":"x"}', None, True),  # nothing says that v may be NULL
        (b'{"id":0,"u":99,"v":"x"}', (*COLUMNS, NULLABLE.replace("true", "false")), True),
        (b'{"id":0,"u":0,"v":null}', (*COLUMNS, NULLABLE), False),  # DEFAULT
        (b'{"id":7,"u":99,"v":null}', None, False),
    ],
)
def test_a_deleted_row_whose_key_is_truly_0(row: bytes, columns: tuple[str, ...] | None, made_up: bool) -> None:
    if made_up:
        with pytest.raises(UnsupportedRecord, match="REPLICA IDENTITY"):
            WIRE.images("delete", row, None, ("id",), columns)
    else:
        assert WIRE.images("delete", row, None, ("id",), columns) == (row, None)
