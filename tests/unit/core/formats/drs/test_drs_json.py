# SPDX-License-Identifier: Apache-2.0
"""Huawei DRS, JSON and JSON-C: each cell of the operation matrix, schema changes, values by type, bad messages."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.registry import open_format
from tests.unit.core.formats.drs.json_changes import BOTH, NEW, OLD, SAMPLE_TYPES, changes, image, message, values

SHARED = Path(__file__).parents[6] / "shared"
DOCUMENT = SHARED / "seeds" / "004_24fae3500a2cd3e4.txt"

# ---- the vendor's document


def document() -> str:
    if not DOCUMENT.is_file():
        pytest.skip("the vendor's document is not here")
    return DOCUMENT.read_text(encoding="utf-8")


def test_the_sample_of_the_vendors_document_decodes_to_its_row() -> None:
    text = document()
    sample = text[text.index("{") : text.rindex("}") + 1]
    (change,) = changes(sample.encode())
    assert (change["kind"], change["op"], change["error"]) == ("row", "update", None)
    assert (change["database"], change["table"]) == ("test01", "test ")
    assert change["position"] == "0000.0000000000.00000000000000027677.0000000000"
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)
    assert image(change["before"])["id"] == "103"
    data = json.loads(sample)["data"][0]
    listed = json.loads(data["c14"])
    assert values(change, "after", SAMPLE_TYPES) == {
        "id": 104, "c1": "cf3f70a7-7565-44b0-ae3c-83bec549ea8e:104", "c2": b"", "c3": 103,
        "c4": datetime(2021, 6, 25, 17, 51, 53), "c5": datetime(2021, 6, 25, 9, 51, 53, 201000, tzinfo=UTC),
        "c6": "!@#$%90weurtg103", "c7": 10357.0, "c8": 12510357.0, "c9": Decimal("9874510357.00"),
        "c10": "华为云huaweicloud", "c11": b"\0\0\0", "c12": bytes(json.loads(data["c12"])), "c13": data["c13"],
        "c14": bytes(listed),
    }  # fmt: skip


def test_the_row_of_the_escape_table_that_is_wrong_is_not_followed() -> None:
    # the document prints \u003d for <, which is the escape of =
    assert re.search(r"<\s+\\u003d", document())
    escaped = b'"[\\u003c\\u003e\\u0026\\u003d\\u0027]"'
    value = json.dumps(message("INSERT", ["@"])).encode().replace(b'["@"]', b'[{"id":"1","v":' + escaped + b"}]")
    (change,) = changes(value)
    assert values(change, "after", {"v": "varchar(20)"}) == {"v": "[<>&=']"}
    assert escaped.decode() in change["after"]


def test_the_sample_that_another_cloud_publishes_decodes_to_the_changes_stated_for_it() -> None:
    name = "kafka_message_format.rst.jsonl"
    actual = sorted((SHARED / "fixtures" / "peers" / "data-replication-service").rglob(name))
    if not actual:
        pytest.skip("the published sample is not here")
    stated = [json.loads(line) for line in actual[0].with_name(f"{name}.expected.jsonl").read_text().splitlines()]
    (change,) = changes(*[line.encode() for line in actual[0].read_text(encoding="utf-8").splitlines()])
    assert [item["op"] for item in stated] == ["update_before", "update_after"]
    assert (change["database"], change["table"]) == (stated[0]["db"], stated[0]["table"])
    assert [image(change["before"]), image(change["after"])] == [item["row"] for item in stated]


# ---- rows


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize("nothing", [None, []])
def test_inserted_and_initial_rows_stand_in_data(format: str, nothing: object) -> None:
    actual = changes(message("INSERT", [NEW], nothing), message("INIT", [NEW], nothing), format=format)
    assert [(c["op"], c["before"], image(c["after"])) for c in actual] == [
        ("insert", None, NEW),
        ("snapshot", None, NEW),
    ]


@pytest.mark.parametrize("format", BOTH)
def test_an_update_has_both_images_and_may_move_the_key(format: str) -> None:
    (change,) = changes(message("UPDATE", [{"id": "104", "v": "x"}], [{"id": "103", "v": "x"}]), format=format)
    assert change["op"] == "update"
    assert (image(change["before"])["id"], image(change["after"])["id"]) == ("103", "104")
    assert open_format(format).updates_move_keys


@pytest.mark.parametrize(
    ("format", "data", "old", "row"),
    [
        ("drs-json", None, [OLD], OLD),
        ("drs-json", [], [OLD], OLD),
        ("drs-json", [OLD], None, OLD),
        ("drs-json", [NEW], [OLD], OLD),
        ("drs-json-c", [OLD], None, OLD),
        ("drs-json-c", [OLD], [], OLD),
        ("drs-json-c", None, [OLD], OLD),
        ("drs-json-c", [OLD], [NEW], OLD),
    ],
)
def test_a_deleted_row_is_taken_from_where_the_format_puts_it(format: str, data: Any, old: Any, row: Any) -> None:
    (change,) = changes(message("DELETE", data, old), format=format)
    assert (change["op"], image(change["before"]), change["after"]) == ("delete", row, None)


def test_members_that_are_absent_mean_no_image() -> None:
    deleted = {name: item for name, item in message("DELETE", old=[OLD]).items() if name != "data"}
    (change,) = changes(deleted)
    assert (change["op"], image(change["before"])) == ("delete", OLD)


def test_several_rows_of_one_message_keep_their_order() -> None:
    rows = [[{"id": str(n), "v": side} for n in range(12)] for side in "ab"]
    actual = changes(message("UPDATE", rows[1], rows[0]))
    assert [change["index"] for change in actual] == list(range(12))
    assert [image(change["before"]) for change in actual] == rows[0]
    assert [image(change["after"]) for change in actual] == rows[1]
    assert [c["position"] for c in actual] == sorted({c["position"] for c in actual})


def test_positions_follow_the_sequence_number_and_not_the_clock() -> None:
    actual = changes(message("INSERT", [NEW], id=9, es=2000), message("INSERT", [NEW], id=10, es=1000))
    assert actual[0]["position"] < actual[1]["position"]


def test_numbers_of_the_envelope_may_be_strings() -> None:
    (change,) = changes(message("INSERT", [NEW], id="27677", es="1624614713000"))
    assert change["position"].startswith("0000.0000000000.00000000000000027677.")
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)


def test_a_sequence_number_may_be_the_largest_long() -> None:
    (change,) = changes(message("INSERT", [NEW], id=2**63 - 1))
    assert change["position"].startswith("0000.0000000000.09223372036854775807.")


def test_tokens_stay_as_they_were_received() -> None:
    raw = b'{"id":1.10,"v":"\\u003dA\\u0000\xf0\x9f\x98\x80"}'
    value = json.dumps(message("INSERT", ["@"])).encode().replace(b'["@"]', b"[" + raw + b"]")
    (change,) = changes(value)
    assert change["after"] == raw.decode()


def test_members_of_newer_editions_are_passed_over() -> None:
    (change,) = changes(message("INSERT", [NEW], schema="x", gtid=None, extra={"a": [1]}))
    assert change["kind"] == "row"


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize(
    "other",
    [
        message("INSERT", [{"v": "b", "id": "2"}]),
        message("INSERT", [{"id": "2"}]),
        message("INSERT", [{"id": "2", "v": "b", "w": "c"}]),
        message("INSERT", [{"id": "2", "v": "b"}, {"id": "3"}]),
        message("INSERT", [{"id": "2", "v": "b"}, {}]),
        message("UPDATE", [{"id": "2", "v": "b"}], [{"v": "a"}]),
        message("UPDATE", [{"v": "b"}], [{"id": "2", "v": "a"}]),
        message("UPDATE", [{"id": "2", "v": "b"}], [["a"]]),
        message("DELETE", [{"id": "2"}], [{"id": "2", "v": "b"}]),
        message("INSERT", [{"id": "2", "v": "b"}], mysqlType={"v": "varchar", "id": "int"}),
        message("INSERT", [{"id": "2", "v": "b"}], mysqlType=None),
        message("INSERT", [{"id": "2", "v": "b"}], pkNames=["v"]),
    ],
)
def test_what_earlier_messages_were_like_changes_nothing(other: dict[str, Any], format: str) -> None:
    usual = message("INSERT", [{"id": "1", "v": "a"}])
    sent = [usual, other, usual, other, other, usual]
    actual = [{**change, "offset": 0} for change in changes(*sent, format=format)]
    assert actual == [change for value in sent for change in changes(value, format=format)]


# ---- schema changes


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize("kind", ["DDL", "INIT_DDL"])
def test_a_schema_change_stands_among_the_rows(format: str, kind: str) -> None:
    statement = "ALTER TABLE t ADD c INT"
    ddl = message(kind, isDdl=True, sql=statement, table=None, mysqlType=None, sqlType=None, pkNames=None, id=5)
    row = message("INSERT", [NEW], id=6)
    change, after = changes(ddl, row, format=format)
    assert (change["kind"], change["statement"], change["default_database"]) == ("schema", statement, "test01")
    assert (change["table"], change["table_changes"]) == (None, None)
    assert change["source_time"] == datetime(2021, 6, 25, 9, 51, 53, tzinfo=UTC)
    assert change["position"] < after["position"]
    assert open_format(format).ddl_among_rows


@pytest.mark.parametrize("format", BOTH)
def test_a_statements_dialect_is_the_one_that_the_option_states(format: str) -> None:
    ddl = {"type": "DDL", "sql": "DROP TABLE a.t", "id": 1}
    assert [change["dialect"] for change in changes(ddl, format=format)] == ["mysql"]
    assert [change["dialect"] for change in changes(ddl, format=format, dialect="oracle")] == ["oracle"]
    with pytest.raises(ConfigurationError, match=r"source\.options\.dialect: 'db2' is not one of mysql, oracle"):
        open_format(format, {"dialect": "db2"})


@pytest.mark.parametrize(
    ("sql", "table", "refused"),
    [
        ("CREATE TABLE `t` (id INT)", "t", "names in backticks"),
        ("ALTER TABLE a.Orders ADD v INT", "Orders", "a name in lower case without quotes"),
        ('CREATE TABLE `t` (`q"c` INT)', "t", "names in backticks"),
        ("CREATE TABLE t (id INT)", "t", "a name in lower case without quotes"),
        ("CREATE TABLE T (id INT)", "T", None),
        ('CREATE TABLE "t" (id INT)', "t", None),
        ("COMMENT ON TABLE T IS 'of `t`'", "T", None),
        ("DROP TABLE a.T -- `t`", "T", None),
        ("DROP TABLE a.other", "t", None),
        ("CREATE TABLE T (id INT DEFAULT 'x", "t", None),
        ("DROP TABLE a.t", None, None),
    ],
)
def test_a_statement_of_mysql_refuses_the_dialect_of_oracle(sql: str, table: str | None, refused: str | None) -> None:
    ddl = {"type": "DDL", "sql": sql, "id": 1, "table": table}
    (change,) = changes(ddl, dialect="oracle")
    assert change["error_code"] == ("format.option_contradicted" if refused else None)
    assert (refused or "") in (change["error"] or "")
    assert [change["kind"] for change in changes(ddl)] == ["schema"]


def test_a_schema_change_needs_its_type_only() -> None:
    bare = {"type": "DDL", "sql": "DROP TABLE a.t", "id": 1}
    (change,) = changes(bare)
    assert (change["kind"], change["default_database"], change["source_time"]) == ("schema", "", None)


# ---- progress, options, bad messages


@pytest.mark.parametrize("format", BOTH)
def test_progress_is_the_source_time_of_rows_and_schema_changes(format: str) -> None:
    wire = open_format(format)
    for kind in ("INSERT", "INIT", "DDL"):
        actual = wire.progress_of("t", None, json.dumps(message(kind, [NEW])).encode())
        assert actual is not None
        assert (actual.source_time_ms, actual.heartbeat) == (1624614713000, False)
    for value in (None, b"garbage", b"{}", b'{"type":"OTHER","es":1}', b'{"type":"INSERT","es":null}', b"[" * 100_000):
        assert wire.progress_of("t", None, value) is None


def test_options_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="neither the name of a time zone"):
        open_format("drs-json-c", {"timezone": "Mars/Olympus"})
    with pytest.raises(ConfigurationError, match="unknown option"):
        open_format("drs-json", {"timezone": "UTC"})


@pytest.mark.parametrize("format", BOTH)
@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b"\xff\xfe",
        b"[" * 100_000,
        message("UPSERT", [NEW]),
        message("insert", [NEW]),
        message("", [NEW]),
        message("INSERT"),
        message("INSERT", []),
        message("INSERT", [{}]),
        message("INSERT", [None]),
        message("INSERT", ["text"]),
        message("INSERT", NEW),
        message("INSERT", [NEW], [OLD]),
        message("INIT", None, [OLD]),
        message("INSERT", [NEW], id=None),
        message("INSERT", [NEW], id=-1),
        message("INSERT", [NEW], id=2**63),
        message("INSERT", [NEW], id="x"),
        message("INSERT", [NEW], id=1.5),
        message("INSERT", [NEW], es=-5),
        message("INSERT", [NEW], es=10**18),
        message("INSERT", [NEW], database=None),
        message("INSERT", [NEW], table=""),
        message("INSERT", [NEW], mysqlType=["id"]),
        message("INSERT", [NEW], pkNames="id"),
        message("UPDATE", [NEW]),
        message("UPDATE", None, [OLD]),
        message("UPDATE", [NEW, NEW], [OLD]),
        message("UPDATE", [], []),
        message("DELETE"),
        message("DELETE", [], []),
        message("DDL", isDdl=True, sql=""),
        message("DDL", isDdl=True, sql=None),
        message("DDL", isDdl=True, sql="DROP TABLE t", id=None),
        b'{"type":"INSERT","id":1,"database":"d","table":"t","data":[{"a":"\xff"}]}',
        b'{"type":"INSERT","id":1,"database":"\xff","table":"t","data":[{"a":"1"}]}',
    ],
)
def test_what_is_no_message_becomes_one_error_with_its_bytes(value: Any, format: str) -> None:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    good = message("INSERT", [NEW])
    before, bad, after = changes(good, raw, good, format=format)
    assert (before["kind"], bad["kind"], after["kind"]) == ("row", "error", "row")
    assert bad["error_code"] in ("record.malformed", "record.not_utf8")
    assert (bad["raw"], bad["offset"]) == (raw, 1)


def test_a_tombstone_is_ignored() -> None:
    assert [change["kind"] for change in changes(None)] == ["ignored"]


def test_a_value_of_a_megabyte_is_kept() -> None:
    long = "x😀" * 300_000
    (change,) = changes(message("INSERT", [{"id": "1", "v": long}]))
    assert image(change["after"])["v"] == long
