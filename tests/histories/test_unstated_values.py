# SPDX-License-Identifier: Apache-2.0
"""Values whose meaning only a type or an option shows: read, or refused, never assumed."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.histories.debezium_records import ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

ID = {"type": "int32", "optional": False, "field": "id"}


def described(fields: list[dict[str, Any]], image: dict[str, Any], pos: int = 20) -> Record:
    """Return an insert with its embedded schema; the key is ``id``."""
    columns = [ID, *({"optional": True, **field} for field in fields)]
    after = {"type": "struct", "optional": True, "field": "after", "fields": columns}
    source = {"connector": "mysql", "name": "src", "ts_ms": pos, "db": "shop", "table": "t"}
    source |= {"file": "mysql-bin.000001", "pos": pos, "row": 0}
    payload = {"before": None, "after": image, "source": source, "op": "c"}
    value = {"schema": {"type": "struct", "fields": [after]}, "payload": payload}
    key = {"schema": {"type": "struct", "fields": [ID]}, "payload": {"id": image["id"]}}
    return Record("src.shop.t", 0, pos, json.dumps(key).encode(), json.dumps(value).encode())


def field(kind: str, name: str | None = None, source_type: str | None = None, **parameters: str) -> dict[str, Any]:
    """Return the column ``c``."""
    more = {} if source_type is None else {"__debezium.source.column.type": source_type}
    stated = {"parameters": {**more, **parameters}} if more or parameters else {}
    return {"type": kind, "field": "c", **({} if name is None else {"name": name}), **stated}


def inferred(log: Log, lake: Path, one: dict[str, Any], value: Any, **options: str) -> Script:
    """Return a pipeline without schema topic that read one row."""
    script = Script(log, lake, schema_topic=None, options=options)
    script.send(described([one], {"id": 1, "c": value}))
    script.sync()
    return script


def stated(log: Log, lake: Path, kind: str, one: dict[str, Any], value: Any, **options: str) -> Script:
    """Return a pipeline whose table has a CREATE TABLE, and that read one row."""
    script = Script(log, lake, options=options)
    script.send(ddl(f"CREATE TABLE shop.t (id int NOT NULL PRIMARY KEY, c {kind})", 4))
    script.send(described([one], {"id": 1, "c": value}))
    script.sync()
    return script


def reason(script: Script) -> str:
    (state,) = script.states.values()
    assert state.state == "parked" and not script.rows("shop", "t")
    return str(state.reason)


LOCAL = "2026-01-05 18:00:00"
INSTANT = datetime(2026, 1, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize("logical", [None, "com.example.MyTimestamp"])
@pytest.mark.parametrize("text", [LOCAL, "2026-01-05T18:00:00", "2026-01-05T18:00:00.000"])
def test_a_timestamp_without_zone_is_refused_until_its_zone_is_stated(
    log: Log, lake: Path, logical: str | None, text: str
) -> None:
    script = stated(log, lake, "timestamp NULL", field("string", logical), text)
    assert "zone_unknown" in reason(script) and "source.options.timezone" in reason(script)
    script.options["timezone"] = "Asia/Shanghai"
    script.sync()
    assert script.rows("shop", "t") == {(1, INSTANT): 1}
    assert script.states_of("shop", "t") == ["ok"]


def test_a_timestamp_with_its_offset_is_an_instant_whatever_zone_is_stated(log: Log, lake: Path) -> None:
    column = field("string", "com.example.MyTimestamp")
    script = stated(log, lake, "timestamp NULL", column, "2026-01-05T18:00:00+08:00", timezone="America/New_York")
    script.send(described([column], {"id": 2, "c": "2026-01-05T05:00:00"}, 30))
    script.sync()
    assert script.rows("shop", "t") == {(1, INSTANT): 1, (2, INSTANT): 1}


def test_a_timestamp_that_only_its_source_type_shows(log: Log, lake: Path) -> None:
    script = inferred(log, lake, field("string", None, "TIMESTAMP"), LOCAL)
    assert "zone_unknown" in reason(script)
    script.options["timezone"] = "+08:00"
    script.sync()
    assert script.rows("shop", "t") == {(1, INSTANT): 1}


def test_local_texts_of_a_datetime_need_no_zone(log: Log, lake: Path) -> None:
    script = stated(log, lake, "datetime", field("string"), LOCAL)
    assert script.rows("shop", "t") == {(1, datetime(2026, 1, 5, 18)): 1}


def test_a_timestamp_without_schema_and_zone(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(ddl("CREATE TABLE shop.t (id int NOT NULL PRIMARY KEY, c timestamp NULL)", 4))
    record = described([field("string")], {"id": 1, "c": LOCAL})
    bare = json.dumps(json.loads(record.value or b"")["payload"]).encode()
    script.send(Record(record.topic, 0, 20, b'{"id":1}', bare))
    script.sync()
    assert "zone_unknown" in reason(script)
    script.options["timezone"] = "Asia/Shanghai"
    script.sync()
    assert script.rows("shop", "t") == {(1, INSTANT): 1}


def test_an_unsigned_bigint_is_known_by_its_source_type(log: Log, lake: Path) -> None:
    script = inferred(log, lake, field("int64", None, "BIGINT UNSIGNED"), -1)
    assert script.rows("shop", "t") == {(1, Decimal(2**64 - 1)): 1}


@pytest.mark.parametrize("kind", ["binary(4)", "varbinary(10)", "blob"])
@pytest.mark.parametrize(("mode", "text"), [("hex", "deadbeef"), ("base64", "3q2+7w=="), ("base64-url-safe", "3q2-7w")])
def test_bytes_as_text_need_their_mode(log: Log, lake: Path, kind: str, mode: str, text: str) -> None:
    script = stated(log, lake, kind, field("string"), text)
    assert "format.option_contradicted" in reason(script) and "binary.handling.mode" in reason(script)
    script.options["binary.handling.mode"] = mode
    script.sync()
    assert script.rows("shop", "t") == {(1, b"\xde\xad\xbe\xef"): 1}


def test_bytes_as_text_that_only_their_source_type_shows(log: Log, lake: Path) -> None:
    script = inferred(log, lake, field("string", None, "VARBINARY"), "deadbeef")
    assert "binary.handling.mode" in reason(script)
    script.options["binary.handling.mode"] = "hex"
    script.sync()
    assert script.rows("shop", "t") == {(1, b"\xde\xad\xbe\xef"): 1}


_TIME, _DATA, _CONNECT = "io.debezium.time.", "io.debezium.data.", "org.apache.kafka.connect.data."
NOON = datetime(2026, 1, 5, 12)
HALF = NOON.replace(microsecond=500000)
MILLIS = 1767614400000
WKB = "AQEAAAAAAAAAAADwPwAAAAAAAABA"
# every logical name that the page promises: Connect's type and name, value, type at the source, value in the table
LOGICAL: list[tuple[dict[str, Any], Any, str, Any]] = [
    (field("int32", _TIME + "Date"), 20458, "date", date(2026, 1, 5)),
    (field("int32", _CONNECT + "Date"), 20458, "date", date(2026, 1, 5)),
    (field("string", _TIME + "IsoDate"), "2026-01-05Z", "date", date(2026, 1, 5)),
    (field("int64", _TIME + "Timestamp"), MILLIS, "datetime", NOON),
    (field("int64", _CONNECT + "Timestamp"), MILLIS, "datetime", NOON),
    (field("int64", _TIME + "MicroTimestamp"), MILLIS * 1000, "datetime(6)", NOON),
    (field("int64", _TIME + "NanoTimestamp"), MILLIS * 1_000_000, "datetime(6)", NOON),
    (field("string", _TIME + "IsoTimestamp"), "2026-01-05T12:00:00Z", "datetime", NOON),
    (field("string", _TIME + "IsoTimestamp"), "2026-01-05T12:00:00.5Z", "datetime(6)", HALF),
    (field("string", _TIME + "ZonedTimestamp"), "2026-01-05T10:00:00Z", "timestamp", INSTANT),
    (field("int32", _TIME + "Time"), 36672000, "time(3)", "10:11:12.000"),
    (field("int32", _CONNECT + "Time"), 36672000, "time(3)", "10:11:12.000"),
    (field("int64", _TIME + "MicroTime"), 36672000001, "time(6)", "10:11:12.000001"),
    (field("int64", _TIME + "NanoTime"), 36672000001000, "time(6)", "10:11:12.000001"),
    (field("string", _TIME + "IsoTime"), "10:11:12Z", "time", "10:11:12"),
    (
        field("string", _TIME + "IsoTime", "TIME", **{"__debezium.source.column.length": "3"}),
        "10:11:12.500Z", "time(3)", "10:11:12.500",
    ),
    (field("int32", _TIME + "Year"), 2026, "year", 2026),
    (field("bytes", _DATA + "Bits", length="12"), "AQg=", "bit(12)", 2049),
    (
        field("bytes", _CONNECT + "Decimal", scale="2", **{"connect.decimal.precision": "5"}),
        "ANI=", "decimal(5,2)", Decimal("2.10"),
    ),
    (field("string", _DATA + "Json"), '{"a":1}', "json", '{"a":1}'),
    (field("string", _DATA + "Enum", allowed="a,b"), "b", "enum('a','b')", "b"),
    (field("string", _DATA + "EnumSet", allowed="a,b"), "a,b", "set('a','b')", "a,b"),
    (field("array", _DATA + "FloatVector"), [1.5, -2.0], "vector(2)", [1.5, -2.0]),
    (field("array", _DATA + "DoubleVector"), [1.5, -2.0], "vector(2)", [1.5, -2.0]),
]  # fmt: skip


@pytest.mark.parametrize(("column", "value", "kind", "right"), LOGICAL, ids=lambda item: str(item)[:60])
def test_inferred_and_stated_tables_are_equally_right(
    log: Log, lake: Path, column: dict[str, Any], value: Any, kind: str, right: Any
) -> None:
    for number, script in enumerate(
        [inferred(log, lake / "inferred", column, value), stated(log, lake / "stated", kind, column, value)]
    ):
        assert script.states_of("shop", "t") == ["ok"], (number, script.states)
        (state,) = script.states.values()
        content = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table()
        assert content.to_pylist() == [{"id": 1, "c": right}], (number, state)
        log.partitions.clear()
