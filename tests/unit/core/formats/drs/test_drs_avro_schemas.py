# SPDX-License-Identifier: Apache-2.0
"""Records of another schema than the stated one, what stands before a record, and the options that state all of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fastavro
import pytest

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.registry import open_format, portable_options
from tests.cross_format.avro_schema import OLDER, OPTIONS, SHORTENED, encoded, value, wire
from tests.unit.core.formats.drs.avro_changes import (
    FIELDS,
    PLAIN,
    A,
    B,
    changes,
    event,
    image,
    instant,
    integer,
    local_time,
    schema_of,
)

# ---- wrong schemas


def rows_of_every_kind() -> list[bytes]:
    values = [
        *A, value("Decimal", value="1.10", precision=10, scale=2), value("Float", value=0.5, precision=8, scale=1),
        instant(1624614713, 0), local_time(2021, 6, 25, 17, 51, 53, 0),
        value("BinaryObject", type="blob", value=b"\0\1\2"), value("TextObject", type="json", value="{}"), None,
    ]  # fmt: skip
    fields = [{"name": f"c{n}", "dataTypeNumber": n} for n in range(len(values))]
    return [
        wire("INSERT", fields=fields[n : n + count], afterImages=values[n : n + count])
        for count in (1, 2, 4, 9)
        for n in range(len(values) - count + 1)
    ]


def test_a_schema_with_other_branches_gives_errors_and_no_rows_but_of_null() -> None:
    actual = changes(*rows_of_every_kind(), options={**OPTIONS, "schema": json.dumps(SHORTENED)})
    rows = [change for change in actual if change["kind"] != "error"]
    assert [image(change["after"]) for change in rows] == [{"c8": None}]
    assert {change["error_code"] for change in actual if change["kind"] == "error"} <= {
        "record.schema_mismatch",
        "record.malformed",
    }


def test_an_older_edition_reads_what_it_knows_and_refuses_the_rest() -> None:
    options = {**OPTIONS, "schema": json.dumps(OLDER)}
    actual = changes(
        wire("INSERT", fields=FIELDS, afterImages=A),
        wire("INSERT", fields=FIELDS, afterImages=[integer(1), "NULL"]),
        wire("INIT", fields=FIELDS, afterImages=A),
        options=options,
    )
    assert [change["kind"] for change in actual] == ["row", "error", "error"]


def test_bytes_that_are_left_over_or_missing_are_an_error() -> None:
    whole = wire("INSERT", fields=FIELDS, afterImages=A)
    actual = changes(*(whole[:n] for n in range(len(whole))), whole + b"\0", whole + whole, b"\xff" * 50)
    assert {change["kind"] for change in actual} == {"error"}
    assert {change["error_code"] for change in actual} == {"record.schema_mismatch"}
    assert actual[-2]["raw"] == whole + whole


@pytest.mark.parametrize(
    "more",
    [
        {"fields": FIELDS[:1]},
        {"fields": None},
        {"fields": "id,v"},
        {"fields": [FIELDS[0], FIELDS[0]]},
        {"afterImages": None},
        {"afterImages": "text"},
        {"afterImages": []},
        {"beforeImages": B},
        {"id": -1},
        {"sourceTimestamp": 1},
        {"sourceTimestamp": -1624614713},
        {"sourceTimestamp": 16246147130},
        {"objectName": None},
        {"objectName": "orders"},
        {"objectName": "shop.public.orders"},
        {"objectName": "shop."},
        {"objectName": "sh\x01op.orders"},
        {"operation": "FINISH"},
        {"operation": "UPDATE"},
        {"operation": "DELETE", "afterImages": None},
        {"operation": "DDL", "afterImages": None},
        {"operation": "DDL", "afterImages": " "},
        {"operation": "DDL"},
        {"afterImages": [value("Integer", precision=1, value="x"), None]},
        {"afterImages": [value("Decimal", value="", precision=1, scale=1), None]},
        {"afterImages": [value("Float", value=float("nan"), precision=1, scale=1), None]},
        {"afterImages": [value("Character", charset="", value=b"x"), None]},
        {"afterImages": [value("Character", charset="klingon", value=b"x"), None]},
        {"afterImages": [value("Character", charset="utf8mb4", value=b"\xff"), None]},
        {"afterImages": [instant(1624614713201, 0), None]},
        {"afterImages": [instant(1624614713, 1000), None]},
        {"afterImages": [local_time(2021, 13, 25, 0, 0, 0, 0), None]},
        {"afterImages": [local_time(2021, 6, None, 0, 0, 0, 0), None]},
        {"afterImages": [local_time(None, None, None, -1, 0, 0, 0), None]},
    ],
)
def test_what_is_implausible_is_an_error_with_the_bytes(more: dict[str, Any]) -> None:
    good = wire("INSERT", fields=FIELDS, afterImages=A)
    bad = wire(**{"operation": "INSERT", "fields": FIELDS, "afterImages": A, **more})
    actual = changes(good, bad, good)
    assert [change["kind"] for change in actual] == ["row", "error", "row"]
    assert (actual[1]["error_code"], actual[1]["raw"], actual[1]["offset"]) == ("record.malformed", bad, 1)


@pytest.mark.parametrize(("time", "unit"), [(1624614713, 1_000_000), (1624614713000, 1000), (1624614713000000, 1)])
def test_the_digits_of_a_time_show_its_unit(time: int, unit: int) -> None:
    (change,) = changes(wire("INSERT", fields=FIELDS, afterImages=A, sourceTimestamp=time))
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)


# ---- framings


def test_a_fingerprint_before_the_record_must_be_that_of_the_schema() -> None:
    tree = {"type": "record", "name": "R", "fields": [{"name": n, "type": "string"} for n in ("o", "p", "d", "t")]}
    tree["fields"].append({"name": "i", "type": ["null", {"type": "map", "values": "string"}]})  # type: ignore[attr-defined]
    options = {
        "schema": json.dumps(tree), "framing": "single-object", "field.operation": "o", "field.position": "p",
        "field.database": "d", "field.table": "t", "field.before": "i", "field.after": "i",
    }  # fmt: skip
    stream = encoded(fastavro.parse_schema(tree), {"o": "DELETE", "p": "1", "d": "d", "t": "t", "i": {"a": "1"}})
    mark = _rabin(fastavro.schema.to_parsing_canonical_form(tree).encode()).to_bytes(8, "little")
    actual = changes(b"\xc3\x01" + mark + stream, b"\xc3\x01" + mark[::-1] + stream, stream, options=options)
    assert [change["kind"] for change in actual] == ["row", "error", "error"]


def _rabin(text: bytes) -> int:
    """Return the CRC-64-AVRO fingerprint as Avro's specification defines it."""
    empty = 0xC15D213AA4D7A795
    table = []
    for byte in range(256):
        print_ = byte
        for _ in range(8):
            print_ = (print_ >> 1) ^ (empty if print_ & 1 else 0)
        table.append(print_)
    result = empty
    for byte in text:
        result = (result >> 8) ^ table[(result ^ byte) & 0xFF]
    return result


def test_the_number_of_a_registered_schema_is_passed_over_where_that_is_stated() -> None:
    bare = wire("INSERT", fields=FIELDS, afterImages=A)
    actual = changes(b"\0\0\0\0\7" + bare, bare, options={**OPTIONS, "framing": "confluent"})
    assert [change["kind"] for change in actual] == ["row", "error"]


@pytest.mark.parametrize(
    ("begin", "hint"), [(b"Obj\x01", "container"), (b"\xc3\x01", "single-object"), (b"\0\0\0\0\7", "registered")]
)
def test_a_record_that_does_not_fit_is_shown_what_it_may_be(begin: bytes, hint: str) -> None:
    (change,) = changes(begin + wire("INSERT", fields=FIELDS, afterImages=A))
    assert change["kind"] == "error"
    assert hint in change["error"]


# ---- options


def test_the_schemas_file_is_read_once_and_its_text_travels(tmp_path: Path) -> None:
    file = tmp_path / "record.avsc"
    file.write_text("\ufeff" + OPTIONS["schema"], encoding="utf-8")
    stated = {**{name: text for name, text in OPTIONS.items() if name != "schema"}, "schema_file": str(file)}
    portable = portable_options("drs-avro", stated)
    assert portable == OPTIONS
    assert portable_options("debezium-json", {"a": "b"}) == {"a": "b"}
    row = wire("INSERT", fields=FIELDS, afterImages=A)
    (change,) = changes(row, options=stated)
    file.unlink()
    assert changes(row, options=portable) == [change]


@pytest.mark.parametrize("options", [{}, {"schema": "x", "schema_file": "y"}, {"schema_file": "no/such.avsc"}])
def test_a_batch_without_a_readable_schema_is_not_planned(options: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"source\.options\.schema_file"):
        portable_options("drs-avro", options)


def test_without_a_schema_nothing_is_read_and_the_sensor_says_why() -> None:
    wire_format = open_format("drs-avro")
    actual = changes(b"x", None, options={})
    assert [(change["kind"], change["error_code"]) for change in actual] == [
        ("error", "schema.missing"),
        ("ignored", None),
    ]
    with pytest.raises(ConfigurationError, match="schema_file"):
        wire_format.progress_of("t", None, b"x")


def test_every_missing_or_wrong_option_is_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        open_format("drs-avro", {
            "schema": OPTIONS["schema"], "timezone": "Mars", "framing": "none", "field.operation": "op",
            "field.time": "source.version", "field.name": "tags", "field.before": "version",
            "field.after": "afterImages", "field.statement": "source.sourceType.x",
        })  # fmt: skip
    reported = " ".join(caught.value.problems)
    assert len(caught.value.problems) == 8
    for name in ("timezone", "framing", "field.operation", "field.position", "field.name", "field.before",
                 "field.columns", "field.statement"):  # fmt: skip
        assert f"source.options.{name}:" in reported
    assert "sourceTimestamp" in reported  # the fields that the schema has


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "not JSON"),
        ('"string"', "not a record"),
        ("[]", "not a record"),
        ('{"type":"record","fields":[]}', "not an Avro schema"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":"S"}]}', "not an Avro schema"),
        ('{"type":"record","name":"R","fields":[{"name":"a","type":["null","R"]}]}', "inside itself"),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"null"}}]}',
            "take no bytes",
        ),
        (
            '{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"fixed","name":"F","size":0}}]}',
            "no bytes",
        ),
    ],
)
def test_a_text_that_is_no_schema_or_not_a_safe_one_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        open_format("drs-avro", {**OPTIONS, "schema": text})


def test_progress_is_read_from_rows_and_heartbeats() -> None:
    wire_format = open_format("drs-avro", OPTIONS)
    actual = wire_format.progress_of("t", None, wire("INSERT", fields=FIELDS, afterImages=A))
    assert (actual.source_time_ms, actual.heartbeat) == (1624614713000, False)
    assert wire_format.progress_of("t", None, wire("HEARTBEAT")).heartbeat
    for record in (None, b"", b"garbage", wire("CHECKPOINT"), wire("INSERT", sourceTimestamp=5)):
        assert wire_format.progress_of("t", None, record) is None


def test_operations_may_have_other_names() -> None:
    tree = schema_of({"c": "string"})
    plain = fastavro.parse_schema(tree)
    values = [encoded(plain, event(type=name, data={"c": "1"})) for name in ("I", "C", "INSERT")]
    actual = changes(*values, options={**PLAIN, "schema": json.dumps(tree), "operation.insert": "I, C"})
    assert [change["kind"] for change in actual] == ["row", "row", "error"]


def test_positions_may_be_the_largest_long_and_never_more() -> None:
    plain = fastavro.parse_schema(schema_of({"c": "string"}))
    values = [encoded(plain, event(id=text, data={"c": "1"})) for text in (str(2**63 - 1), str(2**63), "x", "", "٣")]
    actual = changes(*values, options={**PLAIN, "schema": json.dumps(schema_of({"c": "string"}))})
    assert [change["kind"] for change in actual] == ["row", "error", "error", "error", "error"]
    assert actual[0]["position"] == "0000.0000000000.09223372036854775807.0000000000"
