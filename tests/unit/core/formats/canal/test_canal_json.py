# SPDX-License-Identifier: Apache-2.0
"""Canal's flat JSON: rows with several images a record, DDL with little around it, and what cannot be applied."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError, KnownValuesError
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format

TIMES = {"es": 1_700_000_000_000, "ts": 1_700_000_000_780}
NAMED = {"database": "shop", "table": "t", "id": 3, "isDdl": False, "sql": "", **TIMES}


def message(**members: object) -> dict[str, Any]:
    """Return a message with every member that Canal 1.1.7 writes."""
    empty = {"data": None, "old": None, "pkNames": None, "mysqlType": None, "sqlType": None, "gtid": ""}
    return {**NAMED, **empty, **members}


def rows(kind: str, data: list[Any], **members: object) -> dict[str, Any]:
    types = dict.fromkeys(data[0], "VARCHAR(9)") if data and data[0] else {}
    return message(type=kind, data=data, **{"mysqlType": types, "pkNames": ["id"], **members})


def ddl(kind: str, sql: str, **members: object) -> dict[str, Any]:
    return message(type=kind, sql=sql, **{"isDdl": True, **members})


def changes(*values: object, **options: str) -> list[dict[str, Any]]:
    raw = [v if v is None or isinstance(v, bytes) else json.dumps(v, ensure_ascii=False).encode() for v in values]
    count = len(raw)
    records = Records("shop_t", 1, list(range(count)), [1000] * count, [None] * count, raw)
    return open_format("canal-json", options).decode(records).to_pylist()


def images(change: dict[str, Any]) -> tuple[Any, Any]:
    before, after = change["before"], change["after"]
    return before and json.loads(before), after and json.loads(after)


# ---- rows


def test_every_row_of_a_record_is_a_change_with_its_number() -> None:
    actual = changes(rows("INSERT", [{"id": "1"}, {"id": "2"}, {"id": "3"}]), rows("DELETE", [{"id": "4"}]))
    assert [(c["offset"], c["index"], c["op"]) for c in actual] == [
        (0, 0, "insert"),
        (0, 1, "insert"),
        (0, 2, "insert"),
        (1, 0, "delete"),
    ]
    assert [images(c) for c in actual[2:]] == [(None, {"id": "3"}), ({"id": "4"}, None)]


def test_a_row_has_both_times_and_no_position() -> None:
    (change,) = changes(rows("INSERT", [{"id": "1"}]))
    assert change["position"] is None
    assert change["source_time"].timestamp() == 1_700_000_000
    assert change["tool_time"].timestamp() == pytest.approx(1_700_000_000.78)


def test_each_old_belongs_to_the_data_at_its_place() -> None:
    data = [{"id": "1", "v": "a", "w": "x"}, {"id": "2", "v": None, "w": "y"}]
    actual = changes(rows("UPDATE", data, old=[{"v": None}, {"v": "b", "w": "y"}]))
    assert [images(c)[0] for c in actual] == [{"v": None}, {"v": "b", "w": "y"}]
    assert [images(c)[1] for c in actual] == data


def test_tokens_of_both_images_stay_as_they_were_received() -> None:
    value = (
        b'{"type":"UPDATE","database":"shop","table":"t","es":1,"ts":1,"pkNames":["id"],"data":[ {"id":"1",'
        b'"a" : 1.10,"b":"\\u00e9\xc3\xa9\\/","c":12345678901234567890123456789012345678901.0} ],"old":[{"a":1e400}]}'
    )
    (change,) = changes(value)
    assert change["after"] == (
        '{"id":"1","a" : 1.10,"b":"\\u00e9é\\/","c":12345678901234567890123456789012345678901.0}'
    )
    assert change["before"] == '{"a":1e400}'


def test_a_value_of_a_megabyte_is_kept() -> None:
    long = "x" * (1 << 20)
    (change,) = changes(rows("UPDATE", [{"id": "1", "v": long, "w": "b"}], old=[{"w": "a"}]))
    assert images(change) == ({"w": "a"}, {"id": "1", "v": long, "w": "b"})


def test_of_a_doubled_member_both_images_mean_the_last() -> None:
    value = (
        b'{"type":"UPDATE","database":"shop","table":"t","es":1,"ts":1,"pkNames":["id"],'
        b'"data":[{"id":"1","v":"a","v":"b"}],"old":[{"id":"0"}]}'
    )
    (change,) = changes(value)
    assert images(change) == ({"id": "0"}, {"id": "1", "v": "b"})


def test_old_with_every_column_is_the_whole_row_before() -> None:
    (change,) = changes(rows("UPDATE", [{"id": "2", "v": "b"}], old=[{"v": "a", "id": "1"}]))
    assert images(change)[0] == {"id": "1", "v": "a"}


def test_a_full_load_row_is_a_snapshot() -> None:
    (change,) = changes(rows("INIT", [{"id": "1"}], old=[]))
    assert (change["op"], images(change)) == ("snapshot", (None, {"id": "1"}))


def test_invalid_utf8_in_one_row_leaves_the_others() -> None:
    value = json.dumps(rows("INSERT", [{"id": "1"}, {"id": "@"}, {"id": "3"}])).encode().replace(b"@", b"\xff")
    actual = changes(value)
    assert [(c["kind"], c["error_code"]) for c in actual] == [
        ("row", None),
        ("error", "record.not_utf8"),
        ("row", None),
    ]


# ---- what cannot be applied


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (message(type="INSERT", sql="INSERT INTO t VALUES (1)"), "record.statement_format"),
        (message(type="DELETE", sql="DELETE FROM t WHERE id=1"), "record.statement_format"),
        (rows("UPDATE", [{"id": "1"}, {"id": "2"}], old=[{}]), "record.old_incomplete"),
        (rows("UPDATE", [{"id": "1"}], old=[]), "record.old_incomplete"),
        (rows("UPDATE", [{"id": "1"}], old=None), "record.old_incomplete"),
        (rows("UPDATE", [{"a": "9"}], old=[{}], pkNames=None), "record.partial_image"),
        (rows("UPDATE", [{"id": "1"}], old=[{}], _tidb={"onlyHandleKey": True}), "record.partial_image"),
        (rows("INSERT", [{"id": "1"}], _tidb={"claimCheckLocation": "s3:/c/1.json"}), "record.rows_elsewhere"),
        (message(type="XAROLLBACK", sql="XA ROLLBACK X'7832',X'',1", database="", table=""), "record.xa_rollback"),
    ],
)
def test_a_record_that_cannot_be_applied_says_why(value: dict[str, Any], code: str) -> None:
    (change,) = changes(value)
    assert (change["kind"], change["error_code"]) == ("error", code)
    assert change["raw"] == json.dumps(value, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"[]",
        b"null",
        b"{}",
        b'{"type":"INSERT"',
        rows("INSERT", []),
        rows("INSERT", [None]),
        rows("INSERT", [["a"]]),
        rows("UPDATE", [{"id": "1"}], old=[None]),
        rows("UPDATE", [{"id": "1"}], old=[{"other": "1"}]),
        rows("INSERT", [{"id": "1"}], table=None),
        rows("INSERT", [{"id": "1"}], database=""),
        rows("INSERT", [{"id": "1"}], isDdl=True),
        rows("MERGE", [{"id": "1"}]),
        rows("ALTER", [{"id": "1"}]),
        rows("INSERT", [{"id": "1"}], es="yesterday"),
        rows("INSERT", [{"id": "1"}], es=10**18),
        rows("INSERT", [{"id": "1"}], pkNames="id"),
        message(type="ALTER", isDdl=True),
        message(type="MHEARTBEAT"),
        message(type=None),
    ],
)
def test_what_is_no_message_is_an_error_without_its_values(value: object) -> None:
    (change,) = changes(value)
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")
    assert "yesterday" not in change["error"]


def test_a_partial_json_update_is_refused() -> None:
    data = {"id": "1", "j": "JSON_REPLACE(`j`, '$.a', 5)"}
    types = {"id": "INT", "j": "JSON"}
    (change,) = changes(rows("UPDATE", [data], old=[{"j": '{"a": 1}'}], mysqlType=types))
    assert change["error_code"] == "record.partial_json"
    text = {**types, "j": "TEXT"}
    (change,) = changes(rows("UPDATE", [data], old=[{"j": "b"}], mysqlType=text))
    assert change["kind"] == "row"


def test_a_refused_record_leaves_none_of_its_rows() -> None:
    actual = changes(rows("UPDATE", [{"id": "1"}, {"id": "2"}], old=[{"id": "0"}, {"other": "1"}]))
    assert [c["kind"] for c in actual] == ["error"]


def test_an_update_of_a_table_without_key_names_what_it_changed() -> None:
    (change,) = changes(rows("UPDATE", [{"a": "1", "c": "9.0"}], old=[{"c": "1.10"}], pkNames=None))
    assert images(change)[0] == {"c": "1.10"}


@pytest.mark.parametrize("kind", ["INSERT", "UPDATE", "DELETE"])
@pytest.mark.parametrize("entry", [5, "x", []])
def test_an_entry_of_old_that_is_no_object_is_an_error(kind: str, entry: object) -> None:
    (change,) = changes(rows(kind, [{"id": "1"}], old=[entry]))
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")


def test_an_update_without_an_object_in_old_is_an_error() -> None:
    (change,) = changes(rows("UPDATE", [{"id": "1"}], old=[None]))
    assert (change["kind"], change["error_code"]) == ("error", "record.malformed")
    (change,) = changes(rows("INSERT", [{"id": "1"}], old=[None]))
    assert change["kind"] == "row"


def test_names_of_changed_columns_are_written_in_one_way() -> None:
    written = b'"old": [ { "\\u0069d" : "1" } ]'
    value = json.dumps(rows("UPDATE", [{"id": "2"}], old=[{"id": "1"}])).encode()
    (change,) = changes(value.replace(b'"old": [{"id": "1"}]', written))
    assert change["before"] == '{"id":"1"}'


# ---- statements


@pytest.mark.parametrize("kind", ["CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX", "QUERY"])
def test_ddl_is_a_schema_change(kind: str) -> None:
    (change,) = changes(ddl(kind, "ALTER TABLE t ADD c INT"))
    assert (change["kind"], change["statement"]) == ("schema", "ALTER TABLE t ADD c INT")
    assert (change["database"], change["table"], change["default_database"]) == ("shop", "t", "shop")
    assert change["source_time"].timestamp() == 1_700_000_000
    assert change["tool_time"] is not None


@pytest.mark.parametrize("kind", ["CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"])
def test_ddl_of_servers_that_do_not_mark_it_is_a_schema_change(kind: str) -> None:
    (change,) = changes(ddl(kind, "TRUNCATE t", isDdl=False))
    assert change["kind"] == "schema"


@pytest.mark.parametrize(
    ("sql", "database", "kind"),
    [
        ("CREATE DATABASE shop", "shop", "schema"),
        ("/* by admin */ drop database shop", "shop", "schema"),
        ("ALTER TABLE t ADD s POINT SRID 4326", "", "schema"),
        ("-- why\n# and\n/*!40000 ALTER TABLE t ENABLE KEYS */", "", "schema"),
        ("CREATE TABLE ctas AS SELECT id FROM t", "", "ignored"),
        ("INSERT INTO t VALUES (1)", "", "ignored"),
        ("/* ALTER */ INSERT INTO t VALUES (1)", "", "ignored"),
        ("SET @a := 5", "", "ignored"),
        ("'", "", "ignored"),
    ],
)
def test_an_unmarked_query_is_ddl_by_its_first_word_only(sql: str, database: str, kind: str) -> None:
    (change,) = changes(message(type="QUERY", sql=sql, database=database, table=""))
    assert change["kind"] == kind


@pytest.mark.parametrize(
    ("sql", "database", "table", "default"),
    [
        ("ALTER TABLE t ADD c INT", "shop", "t", "shop"),
        ("ALTER TABLE far.t ADD c INT", "far", "t", "far"),
        ("RENAME TABLE a TO b, b TO c", "shop", "b", "shop"),
        ("RENAME TABLE a TO far.b", "far", "b", ""),
        ("RENAME TABLE far.a TO b", "shop", "b", "shop"),
        ("ALTER TABLE a RENAME TO far.b", "far", "b", ""),
        ("CREATE TABLE far.a LIKE b", "far", "a", ""),
        ("CREATE TABLE a LIKE far.b", "shop", "a", "shop"),
        ("DROP TABLE far.a, b", "far", "a", ""),
        ("DROP TABLE far.a, a", "far", "a", ""),
        ("RENAME TABLE nonsense", "shop", "t", "shop"),
    ],
)
def test_the_database_of_unqualified_names_is_reported_only_where_it_is_certain(
    sql: str, database: str, table: str, default: str
) -> None:
    (change,) = changes(ddl("RENAME", sql, database=database, table=table))
    assert (change["database"], change["default_database"]) == (database, default)


def test_an_xa_commit_is_a_transaction_mark() -> None:
    (change,) = changes(message(type="XACOMMIT", sql="XA COMMIT X'7831',X'',1", database="", table=""))
    assert (change["kind"], change["op"], change["transaction_id"]) == ("transaction", "commit", "X'7831',X'',1")


# ---- images like those of earlier records


UPDATE = rows("UPDATE", [{"id": "1", "a": "x", "b": None}], old=[{"a": "w"}])
OTHERS = json.dumps(UPDATE, separators=(",", ":")).encode()
ALIKE = json.dumps(dict(sorted(UPDATE.items())), separators=(",", ":")).encode()  # Canal sorts a message's members


@pytest.mark.parametrize(
    "change",
    [
        (b'"id":"1","a":"x"', b'"a":"x","id":"1"'),  # members in another order
        (b'"a":"x"', b'"a": "x"'),
        (b'"a":"x"', b'"a":"x","a":"y"'),
        (b'"a":"x"', b'"\\u0061":"x"'),
        (b'"a":"x",', b""),
        (b'"a":"x"', b'"a":"x","c":"y"'),
        (b'"a":"x"', b'"a":x'),
        (b'"a":"x"', b'"a":{"JSON_":["\\"",{}]}'),
        (b'{"a":"w"}', b'{"a":"w","b":"v","a":"u"}'),
        (b'{"a":"w"}', b'{"c":"w"}'),
        (b'{"a":"w"}', b"{ }"),
        (b'{"a":"w"}', b'["a"]'),
        (b'{"a":"w"}', b'{"a":"\xff"}'),
        (b'"VARCHAR(9)"', b'"JSON"'),
    ],
)
@pytest.mark.parametrize("alike", [ALIKE, OTHERS], ids=["of Canal", "of others"])
def test_what_earlier_records_were_like_changes_nothing(change: tuple[bytes, bytes], alike: bytes) -> None:
    other = alike.replace(*change)
    assert other != alike
    values = [alike, alike, other, alike, other, other, other, alike]
    actual = [{**one, "offset": 0} for one in changes(*values)]
    assert actual == [changes(value)[0] for value in values]


@pytest.mark.parametrize(
    "change",
    [
        (b'"id":"1","a":"x"', b'"a":"x","id":"1"'),
        (b'"a":"x"', b'"a": "x"'),
        (b'"a":"x"', b'"a":"y","a":"x"'),
        (b'"a":"x",', b""),
        (b'"a":"x"', b'"a":"x","c":"y"'),
        (b'"b":null}', b'"b":"JSON_"}'),
    ],
)
def test_images_of_canal_are_those_of_others(change: tuple[bytes, bytes]) -> None:
    sent = [alike.replace(*change) for alike in (ALIKE, OTHERS)]
    assert sent[0].startswith(b'{"data":[') and not sent[1].startswith(b'{"data":[')
    (ours,), (others,) = changes(sent[0]), changes(sent[1])
    assert images(ours) == images(others)
    assert (ours["kind"], ours["error_code"], ours["error"]) == (others["kind"], others["error_code"], others["error"])
    if ours["kind"] == "row":
        described = [open_format("canal-json").describe(change["columns"]) for change in (ours, others)]
        assert sorted(described[0].names) == sorted(described[1].names)
        assert described[0].details == described[1].details


def test_a_row_without_key_and_former_values_is_refused_among_rows_alike() -> None:
    keyless = ALIKE.replace(b'["id"]', b"null")
    actual = changes(keyless, keyless, keyless, keyless.replace(b'{"a":"w"}', b"{}"))
    assert [c["error_code"] for c in actual] == [None, None, None, "record.partial_image"]


def test_a_change_to_a_json_value_is_refused_among_rows_alike() -> None:
    typed = ALIKE.replace(b'"b":"VARCHAR(9)"', b'"b":"JSON"')
    partial = typed.replace(b'"b":null', b'"b":"JSON_SET(b, 1)"')
    actual = changes(typed, typed, typed.replace(b'"x"', b'"JSON_"'), partial)
    assert [c["kind"] for c in actual] == ["row"] * 3 + ["error"]
    assert actual[3]["error_code"] == "record.partial_json"
    assert images(actual[2]) == ({"a": "w"}, {"id": "1", "a": "JSON_", "b": None})


def test_the_sql_type_of_a_json_column_counts_in_each_record() -> None:
    typed = ALIKE.replace(b'"b":"VARCHAR(9)"', b'"b":"JSON"')
    sent = [typed.replace(b'"sqlType":null', b'"sqlType":{"b":%d}' % number) for number in (12, 12, 2004, 2004, 12)]
    sent += [typed, sent[2], typed.replace(b'"sqlType":null', b'"sqlType":7'), sent[2]]
    actual = [{**one, "offset": 0} for one in changes(*sent)]
    assert actual == [changes(value)[0] for value in sent]
    assert len({one["columns"] for one in actual if one["kind"] == "row"}) == 2


def test_a_wrong_row_spoils_its_record_alone() -> None:
    wrong = ALIKE.replace(b'"b":null}', b'"b":null},["x"]').replace(b'{"a":"w"}', b'{"a":"w"},{}')
    actual = changes(ALIKE, ALIKE, wrong, ALIKE)
    assert [(c["offset"], c["kind"], c["tool_time"] is None) for c in actual] == [
        (0, "row", False),
        (1, "row", False),
        (2, "error", True),
        (3, "row", False),
    ]


# ---- progress


def test_any_record_shows_progress_and_a_watermark_is_a_heartbeat() -> None:
    wire = open_format("canal-json")
    watermark = message(type="TIDB_WATERMARK", database="", table="")
    for value, heartbeat in ((rows("INSERT", [{"id": "1"}]), False), (ddl("ALTER", "x"), False), (watermark, True)):
        progress = wire.progress_of("t", None, json.dumps(value).encode())
        assert progress is not None
        assert (progress.source_time_ms, progress.heartbeat) == (1_700_000_000_000, heartbeat)
    assert changes(watermark)[0]["kind"] == "progress"


@pytest.mark.parametrize("value", [None, b"", b"x", b"[1]", b'{"es":0}', b'{"es":"1"}', b'{"type":"INSERT"}'])
def test_a_record_without_a_time_shows_no_progress(value: bytes | None) -> None:
    assert open_format("canal-json").progress_of("t", None, value) is None


def test_an_option_that_is_wrong_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="timezone"):
        open_format("canal-json", {"timezone": "Mars/Olympus"})
    with pytest.raises(ConfigurationError, match="unknown option"):
        open_format("canal-json", {"zone": "UTC"})
    with pytest.raises(KnownValuesError):
        open_format("canal-jsn")
    open_format("canal-json", {"timezone": "+08:00"})


def test_a_protobuf_record_is_named_as_such() -> None:
    for prefix in ("18072a", "100118072a"):
        (change,) = changes(bytes.fromhex(prefix) + b"rest")
        assert change["error"] == "not a Canal message: this is Canal's protobuf form (canal.mq.flatMessage=false)"
