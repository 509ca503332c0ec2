# SPDX-License-Identifier: Apache-2.0
"""Debezium's JSON envelope: each kind of message, both layouts of ``source``, with and without schema."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError, KnownValuesError
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType

SOURCE = {"db": "shop", "table": "t", "file": "mariadb-bin.000012", "pos": 4711, "row": 2, "ts_ms": 1_700_000_000_123}
POSITION = "0000.0000000012.00000000000000004711.0000000002"


def changes(*values: object, keys: list[bytes | None] | None = None, **options: str) -> list[dict[str, Any]]:
    raw = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    count = len(raw)
    records = Records("p.shop.t", 1, list(range(count)), [1000] * count, keys or [None] * count, raw)
    return open_format("debezium-json", options).decode(records).to_pylist()


def row(op: str, before: object = None, after: object = None, **source: object) -> dict[str, Any]:
    return {"before": before, "after": after, "op": op, "ts_ms": 5, "source": {**SOURCE, **source}}


@pytest.mark.parametrize(
    ("op", "name", "before", "after"),
    [
        ("r", "snapshot", None, {"id": 1}),
        ("c", "insert", None, {"id": 1}),
        ("u", "update", {"id": 1}, {"id": 2}),
        ("d", "delete", {"id": 1}, None),
    ],
)
def test_a_row_keeps_its_images_position_and_time(op: str, name: str, before: object, after: object) -> None:
    (change,) = changes(row(op, before, after))
    assert (change["kind"], change["op"], change["database"], change["table"]) == ("row", name, "shop", "t")
    assert change["position"] == POSITION
    assert change["source_time"].timestamp() == pytest.approx(1_700_000_000.123)
    assert [None if x is None else json.loads(x) for x in (change["before"], change["after"])] == [before, after]


def test_tokens_of_images_stay_as_they_were_received() -> None:
    value = (
        b'{"op":"c","source":'
        + json.dumps(SOURCE).encode()
        + b',"after":{"a":1.10,"b":1e400,"c": "\\u00e9\xc3\xa9","a":2}}'
    )
    (change,) = changes(value)
    assert change["after"] == '{"a":1.10,"b":1e400,"c": "\\u00e9é","a":2}'


def test_the_embedded_schema_is_reported_with_the_row() -> None:
    schema = {
        "type": "struct",
        "fields": [
            {"field": "before", "type": "struct", "fields": []},
            {
                "field": "after",
                "type": "struct",
                "fields": [
                    {"field": "id", "type": "int64", "optional": False},
                    {"field": "payload", "type": "int32", "name": "io.debezium.time.Date"},
                ],
            },
        ],
    }
    value = {"schema": schema, "payload": row("c", None, {"id": 1, "payload": 3})}
    key = json.dumps({"schema": {"fields": []}, "payload": {"id": 1}}).encode()
    actual = changes(value, value, keys=[key, key])
    assert [change["after"] for change in actual] == ['{"id": 1, "payload": 3}'] * 2
    wire = open_format("debezium-json")
    description = wire.describe(actual[1]["columns"])
    assert (description.names, description.key) == (("id", "payload"), ("id",))
    assert wire.encoding_of("payload", ColumnType("date"), description) == Encoded("payload", Encoding.EPOCH_DAYS)
    assert wire.infer(description).columns[1].type == ColumnType("date")


def test_without_schema_the_members_and_the_key_are_reported() -> None:
    (change,) = changes(row("c", None, {"id": 1, "v": 2}), keys=[b'{"id":1}'])
    description = open_format("debezium-json").describe(change["columns"])
    assert (description.names, description.key, description.details) == (("id", "v"), ("id",), None)


def test_a_schema_next_to_a_row_of_another_table_is_not_mistaken() -> None:
    def enveloped(name: str) -> dict[str, Any]:
        fields = [{"field": "after", "fields": [{"field": name, "type": "int32"}]}]
        return {"schema": {"fields": fields}, "payload": row("c", None, {name: 1})}

    actual = changes(*[enveloped(name) for name in ("a", "b", "a", "b")])
    wire = open_format("debezium-json")
    assert [wire.describe(change["columns"]).names for change in actual] == [("a",), ("b",), ("a",), ("b",)]


def test_the_layout_of_source_before_0_10_is_read() -> None:
    old = {k: v for k, v in SOURCE.items() if k != "ts_ms"} | {"ts_sec": 1_500_000_000, "snapshot": False}
    (change,) = changes({"after": {"id": 1}, "op": "c", "source": old})
    assert change["source_time"].timestamp() == 1_500_000_000


def test_file_numbers_compare_as_numbers() -> None:
    actual = changes(
        row("c", None, {}, file="b.999999"), row("c", None, {}, file="b.1000000"), row("c", None, {}, pos=10**15)
    )
    assert actual[0]["position"] < actual[1]["position"]
    assert actual[2]["position"] < actual[0]["position"]


def test_truncate_tombstone_heartbeat_and_transaction_marks() -> None:
    actual = changes(
        row("t"),
        None,
        {"ts_ms": 1_700_000_000_000},
        {"status": "BEGIN", "id": "3-1-1", "event_count": None, "data_collections": None, "ts_ms": 4},
        {"status": "END", "id": "3-1-1", "event_count": 1, "data_collections": []},
        {"schema": None, "payload": None},
    )
    kinds = [(change["kind"], change["op"]) for change in actual]
    assert kinds == [
        ("row", "truncate"),
        ("progress", None),
        ("transaction", "begin"),
        ("transaction", "commit"),
        ("error", None),
        ("ignored", None),
    ]


def test_a_schema_change_keeps_text_database_and_structure() -> None:
    table = {
        "primaryKeyColumnNames": ["id"],
        "columns": [_column("id", 1, "INT UNSIGNED", 10), _column("e", 2, "ENUM", 1, ["'a'", "'b''c'"])],
    }
    payload = {
        "source": {**SOURCE, "row": 0},
        "databaseName": "shop",
        "ddl": "CREATE TABLE t (id INT UNSIGNED)",
        "tableChanges": [{"type": "CREATE", "id": '"shop"."we""ird"', "table": table}],
    }
    (change,) = changes(payload)
    assert (change["kind"], change["statement"], change["default_database"]) == ("schema", payload["ddl"], "shop")
    ((database, name, schema),) = open_format("debezium-json").structure(change["table_changes"])
    assert (database, name) == ("shop", 'we"ird')
    assert [str(column.type) for column in schema.columns] == ["int(10) unsigned", "enum('a','b''c')"]
    assert [column.name for column in schema.key_columns] == ["id"]


def test_a_schema_change_as_flink_cdc_sends_it_has_its_text_in_the_history_record() -> None:
    history = {"source": {}, "position": {"pos": 379}, "databaseName": "shop", "ddl": "ALTER TABLE t ADD c INT"}
    payload = {"source": {**SOURCE, "row": 0}, "historyRecord": json.dumps({**history, "tableChanges": []})}
    (change,) = changes({"schema": None, "payload": payload})
    assert (change["kind"], change["statement"], change["table"]) == ("schema", history["ddl"], "t")
    assert (change["database"], change["default_database"]) == ("shop", "shop")
    assert change["position"] == POSITION[:-1] + "0"  # of source, where the event begins; position says where it ends


@pytest.mark.parametrize("history", ["", "{", "[]", "{}", '{"ddl": 1}'])
def test_a_history_record_that_is_none_is_an_error(history: str) -> None:
    (change,) = changes({"source": SOURCE, "historyRecord": history})
    assert change["error_code"] == "record.malformed"


def _column(name: str, position: int, kind: str, length: int, labels: list[str] | None = None) -> dict[str, Any]:
    reported = {"name": name, "position": position, "typeName": kind, "length": length, "scale": None, "optional": True}
    return {**reported, "enumValues": labels, "charsetName": None, "generated": False, "autoIncremented": False}


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b'{"op":"c"}',
        b'{"op":"x","source":{"db":"d","table":"t"},"after":{}}',
        b'{"op":"c","source":{"db":"d","table":"t","file":"nonumber","pos":1},"after":{}}',
        b'{"op":"c","source":{"db":"d","table":"t","file":"b.1","pos":-1},"after":{}}',
        b'{"op":"c","source":{"db":"d","table":"t","file":"b.1","pos":1,"ts_ms":99999999999999999999},"after":{}}',
        b'{"op":"c","source":{"db":"d","table":"t","file":"b.1","pos":1},"after":{"a":"\xff"}}',
        b'{"op":"d","source":{"db":"d","table":"t","file":"b.1","pos":1},"before":null,"after":null}',
        b"[" * 100_000,
    ],
)
def test_bytes_that_are_no_message_become_an_error_with_the_bytes(value: bytes) -> None:
    good = json.dumps(row("c", None, {"id": 1})).encode()
    before, bad, after = changes(good, value, good)
    assert (before["kind"], bad["kind"], after["kind"]) == ("row", "error", "row")
    assert bad["error_code"] in ("record.malformed", "record.not_utf8")
    assert bad["raw"] == value
    assert bad["offset"] == 1


def test_a_record_longer_than_the_limit_keeps_its_beginning() -> None:
    (change,) = changes(b"x" * (3 << 20))
    assert len(change["raw"]) == 1 << 20


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        (ColumnType("decimal", 10, 2), {}, Encoded("c", Encoding.DECIMAL_BASE64, 2)),
        (ColumnType("decimal", 10, 2), {"decimal.handling.mode": "string"}, Encoded("c", Encoding.TEXT)),
        (ColumnType("decimal", 10, 2), {"decimal.handling.mode": "double"}, Encoded("c", Encoding.NUMBER)),
        (ColumnType("bigint", unsigned=True), {}, Encoded("c", Encoding.WRAPPED_UNSIGNED)),
        (
            ColumnType("bigint", unsigned=True),
            {"bigint.unsigned.handling.mode": "precise"},
            Encoded("c", Encoding.DECIMAL_BASE64, 0),
        ),
        (ColumnType("datetime", 3), {}, Encoded("c", Encoding.EPOCH_MILLIS)),
        (ColumnType("datetime", 4), {}, Encoded("c", Encoding.EPOCH_MICROS)),
        (ColumnType("datetime"), {"time.precision.mode": "microseconds"}, Encoded("c", Encoding.EPOCH_MICROS)),
        (ColumnType("datetime", 6), {"time.precision.mode": "connect"}, Encoded("c", Encoding.EPOCH_MILLIS)),
        (ColumnType("time", 3), {"time.precision.mode": "adaptive"}, Encoded("c", Encoding.TIME_MILLIS)),
        (ColumnType("time"), {}, Encoded("c", Encoding.TIME_MICROS)),
        (ColumnType("date"), {"time.precision.mode": "isostring"}, Encoded("c", Encoding.ISO_TEXT)),
        (ColumnType("timestamp", 6), {"time.precision.mode": "connect"}, Encoded("c", Encoding.ZONED_TEXT)),
        (ColumnType("blob"), {"binary.handling.mode": "hex"}, Encoded("c", Encoding.HEX)),
        (ColumnType("bit", 1), {}, Encoded("c", Encoding.BOOLEAN)),
        (ColumnType("bit", 9), {}, Encoded("c", Encoding.BITS_LE)),
        (ColumnType("point"), {}, Encoded("c", Encoding.GEOMETRY)),
        (ColumnType("json"), {}, Encoded("c", Encoding.TEXT)),
    ],
)
def test_without_schema_the_stated_modes_show_the_encoding(
    kind: ColumnType, options: dict[str, str], expected: Encoded
) -> None:
    assert open_format("debezium-json", options).encoding_of("c", kind, None) == expected


def test_an_unknown_option_value_or_format_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="precise, double, string"):
        open_format("debezium-json", {"decimal.handling.mode": "exact"})
    with pytest.raises(ConfigurationError, match=r"time\.precision\.mode"):
        open_format("debezium-json", {"time.precision": "connect"})
    with pytest.raises(KnownValuesError, match="debezium-json"):
        open_format("debezium")


def test_progress_is_read_from_rows_and_heartbeats() -> None:
    wire = open_format("debezium-json")
    actual = wire.progress_of("p.shop.t", None, json.dumps(row("c", None, {"id": 1})).encode())
    assert (actual.source_time_ms, actual.heartbeat) == (1_700_000_000_123, False)
    beat = wire.progress_of("__debezium-heartbeat.p", None, b'{"ts_ms":42}')
    assert (beat.source_time_ms, beat.heartbeat) == (42, True)
    assert wire.progress_of("p.shop.t", None, None) is None
    assert wire.progress_of("p.shop.t", None, b"garbage") is None


def test_a_column_may_be_named_like_json() -> None:
    (change,) = changes(row("c", None, {'{"field": "x"}': 1}))
    assert open_format("debezium-json").describe(change["columns"]).names == ('{"field": "x"}',)
