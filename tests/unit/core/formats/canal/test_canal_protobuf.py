# SPDX-License-Identifier: Apache-2.0
"""Canal's protobuf records: entries with their place in the binlog, lists of columns, and what cannot be applied.

What a record of each kind gives is in the golden records; here is what more there is to it.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf.message import DecodeError

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.canal import canal_protobuf
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.generated import canal_entry_pb2 as wire
from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import MESSAGES, Messages, Packet
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from tests.locations import binlog_position

MILLIS = 1_700_000_000_000
EVENTS = {"insert": wire.INSERT, "update": wire.UPDATE, "delete": wire.DELETE}


def column(name: str, value: str | None, index: int = 0, *, key: bool = False, **more: Any) -> wire.Column:
    known = {"sqlType": 12, "mysqlType": "varchar(9)", **more}
    return wire.Column(name=name, index=index, isKey=key, isNull=value is None, value=value or "", **known)


def columns(image: dict[str, str | None] | None) -> list[wire.Column]:
    """Return columns as an image with all of a table has them; the first is the key."""
    return [column(name, value, index, key=not index) for index, (name, value) in enumerate((image or {}).items())]


def row(before: dict[str, str | None] | None, after: dict[str, str | None] | None) -> wire.RowData:
    return wire.RowData(beforeColumns=columns(before), afterColumns=columns(after))


def header(offset: int = 219, **more: Any) -> wire.Header:
    known = {"logfileName": "mysql-bin.000007", "schemaName": "shop", "tableName": "t", "executeTime": MILLIS, **more}
    return wire.Header(logfileOffset=offset, **known)


def rows(op: str, *data: wire.RowData, offset: int = 219, **more: Any) -> wire.Entry:
    change = wire.RowChange(eventType=EVENTS[op], isDdl=False, rowDatas=data)
    return entry(change, header(offset, **more))


def entry(body: Any, head: wire.Header, kind: int = wire.ROWDATA) -> wire.Entry:
    return wire.Entry(header=head, entryType=kind, storeValue=body.SerializeToString())


def inserted(*ids: str, offset: int = 219, **more: Any) -> wire.Entry:
    return rows("insert", *(row(None, {"id": number}) for number in ids), offset=offset, **more)


def record(*entries: wire.Entry, batch: int = 1) -> bytes:
    body = Messages(batch_id=batch, messages=[one.SerializeToString() for one in entries])
    return Packet(type=MESSAGES, body=body.SerializeToString()).SerializeToString()


def records(values: list[bytes | None], first: int = 0) -> Records:
    count = len(values)
    return Records("shop", 1, list(range(first, first + count)), [1000] * count, [None] * count, values)


def changes(*values: bytes | None, **options: str) -> list[dict[str, Any]]:
    return open_format("canal-protobuf", options).decode(records(list(values))).to_pylist()


def images(change: dict[str, Any]) -> tuple[Any, Any]:
    before, after = change["before"], change["after"]
    return before and json.loads(before), after and json.loads(after)


# ---- order


def test_a_rows_position_is_the_file_the_events_offset_and_its_number_in_the_event() -> None:
    actual = changes(record(inserted("1", "2"), inserted("3", offset=500), inserted("4", logfileName="bin.1000000")))
    coordinates = [(7, 219, 0), (7, 219, 1), (7, 500, 0), (1_000_000, 219, 0)]
    assert [change["position"] for change in actual] == [binlog_position(*coordinate) for coordinate in coordinates]
    assert [change["index"] for change in actual] == [0, 1, 2, 3]


def test_rows_of_one_event_that_are_entries_of_their_own_are_numbered_on_and_those_of_others_again() -> None:
    actual = changes(
        record(inserted("1"), inserted("2", "3"), inserted("4", offset=300)),
        record(inserted("5", offset=300), inserted("6", offset=300)),
    )
    assert [change["position"][-1] for change in actual] == ["0", "1", "2", "0", "0", "1"]


@pytest.mark.parametrize(
    "coordinates",
    [{"logfileName": ""}, {"logfileName": "binlog"}, {"logfileName": "b.99999999999"}, {"offset": -1}],
)
def test_rows_without_a_place_in_the_log_are_an_error(coordinates: dict[str, Any]) -> None:
    actual = changes(record(inserted("1"), inserted("2", **coordinates)), record(inserted("3")))
    assert [(change["kind"], change["error_code"]) for change in actual] == [
        ("error", "record.without_position"),
        ("row", None),
    ]
    assert actual[0]["raw"] == record(inserted("1"), inserted("2", **coordinates))


def test_any_split_and_any_amount_decoded_at_once_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    values: list[bytes | None] = [
        record(inserted(str(number)), rows("delete", row({"other": str(number)}, None), offset=300 + number))
        for number in range(40)
    ]
    values[7], values[23] = b"\xff", None
    whole = changes(*values)
    monkeypatch.setattr(canal_protobuf, "_TOGETHER", 100)
    assert changes(*values) == whole
    wire_format = open_format("canal-protobuf")
    parts = [wire_format.decode(records(values[a:b], a)).to_pylist() for a, b in pairwise([0, 1, 7, 8, 30, 40])]
    assert [change for part in parts for change in part] == whole


# ---- images


def test_null_the_empty_text_and_what_is_not_there_are_three_things() -> None:
    (change,) = changes(record(rows("update", row({"id": "1", "v": None}, {"id": "1", "v": ""}))))
    assert images(change) == ({"id": "1", "v": None}, {"id": "1", "v": ""})
    (change,) = changes(record(rows("insert", wire.RowData(afterColumns=[column("v", "x", 3)]))))
    assert images(change) == (None, {"v": "x"})


def test_values_stand_as_they_came() -> None:
    texts = ["1.10", "0" * 40 + "1", 'quo"te\\', "\0\x01\n\x7f\x80ÿ", "漢 😀", "null", "x" * 1_000_000, "\u2028"]
    image: dict[str, str | None] = {f"c{index}": text for index, text in enumerate(texts)}
    (change,) = changes(record(rows("insert", row(None, image))))
    assert images(change) == (None, image)


def test_a_value_next_to_null_does_not_count() -> None:
    reported = wire.Column(name="v", isNull=True, value="x", mysqlType="int")
    (change,) = changes(record(rows("insert", wire.RowData(afterColumns=[reported]))))
    assert change["after"] == '{"v":null}'


@pytest.mark.parametrize(
    "entries",
    [
        rows("insert", row({"id": "1"}, {"id": "1"})),
        rows("insert", row(None, None)),
        rows("update", row(None, {"id": "1"})),
        rows("update", row({"id": "1"}, None)),
        rows("delete", row(None, {"id": "1"})),
        rows("insert", wire.RowData(afterColumns=[column("id", "1"), column("id", "2", 1)])),
        rows("insert", wire.RowData(afterColumns=[column("", "1")])),
        rows("insert", row(None, {"id": "1"}), schemaName=""),
        rows("insert", row(None, {"id": "1"}), tableName=""),
        rows("insert", row(None, {"id": "1"}), executeTime=-1),
        rows("insert", row(None, {"id": "1"}), executeTime=253_402_300_800_000),
        entry(wire.RowChange(isDdl=True, rowDatas=[row({"id": "1"}, {"id": "1"})]), header()),
    ],
    ids=lambda case: "",
)
def test_what_canal_never_writes_makes_an_error_of_the_record_and_of_no_other(entries: wire.Entry) -> None:
    actual = changes(record(inserted("1")), record(inserted("2"), entries), record(inserted("3")))
    assert [change["error_code"] for change in actual] == [None, "record.malformed", None]
    assert [change["offset"] for change in actual] == [0, 1, 2]


def test_a_row_change_without_rows_and_statement_is_an_error_of_its_own() -> None:
    actual = changes(record(entry(wire.RowChange(eventType=wire.INSERT), header()), inserted("2")))
    assert [change["error_code"] for change in actual] == ["record.unknown_kind", None]
    assert actual[0]["raw"] == entry(wire.RowChange(eventType=wire.INSERT), header()).SerializeToString()


# ---- columns


def said(change: dict[str, Any]) -> Any:
    return open_format("canal-protobuf").describe(change["columns"])


def test_a_row_says_names_types_and_key() -> None:
    reported = [column("id", "1", key=True, mysqlType="INT"), column("v", "x", 1, mysqlType="enum('a','b')")]
    (change,) = changes(record(rows("insert", wire.RowData(afterColumns=reported))))
    description = said(change)
    assert (description.names, description.key, description.complete) == (("id", "v"), ("id",), False)
    schema = open_format("canal-protobuf").infer(description)
    assert schema is not None
    assert [(c.name, c.type) for c in schema.columns] == [
        ("id", ColumnType("int")),
        ("v", ColumnType("enum", labels=("a", "b"))),
    ]
    assert schema.key == (schema.columns[0].id,)


def test_the_same_columns_share_one_text_whatever_the_values_say_of_their_sql_type() -> None:
    wide = wire.RowData(afterColumns=[column("id", str(2**63), mysqlType="BIGINT unsigned", sqlType=3)])
    small = wire.RowData(afterColumns=[column("id", "1", mysqlType="BIGINT unsigned", sqlType=-5)])
    actual = changes(record(rows("insert", wide, small), rows("insert", small, offset=300)))
    assert len({change["columns"] for change in actual}) == 1


def test_names_that_run_into_each_other_are_distinguished() -> None:
    data = [{"ab": "1", "c": "2"}, {"a": "1", "bc": "2"}, {"abc": "1"}]
    actual = changes(record(rows("insert", *(row(None, image) for image in data))))
    assert [said(change).names for change in actual] == [("ab", "c"), ("a", "bc"), ("abc",)]
    assert [images(change)[1] for change in actual] == data


@pytest.mark.parametrize(
    ("op", "before", "after", "names", "complete"),
    [
        ("insert", [], [("id", 0), ("w", 2)], ("id", "w"), False),
        ("update", [("id", 0)], [("v", 1)], ("id", "v"), False),
        ("update", [("id", 0), ("v", 1)], [("id", 0), ("v", 1), ("b", 2)], ("id", "v", "b"), False),
        # nothing shows whether the table ends here
        ("insert", [], [("id", 0), ("v", 1)], ("id", "v"), False),
        ("update", [("id", 0), ("v", 1)], [("id", 0), ("v", 1)], ("id", "v"), False),
        ("delete", [("id", 0), ("v", 1)], [], ("id", "v"), False),
    ],
)
def test_images_that_may_lack_columns_say_so(
    op: str, before: list[Any], after: list[Any], names: tuple[str, ...], complete: bool
) -> None:
    sides = [[column(name, "1", index, key=not index) for name, index in side] for side in (before, after)]
    (change,) = changes(record(rows(op, wire.RowData(beforeColumns=sides[0], afterColumns=sides[1]))))
    assert (said(change).names, said(change).complete) == (names, complete)
    assert images(change) == tuple({name: "1" for name, _ in side} or None for side in (before, after))


def test_a_full_update_is_enough_to_infer_a_table_and_a_partial_one_is_not() -> None:
    full, partial = changes(
        record(rows("update", row({"id": "1", "v": "a"}, {"id": "1", "v": "b"}))),
        record(rows("update", row({"id": "1"}, {"v": "b"}))),
    )
    schema = open_format("canal-protobuf").infer(said(full))
    assert schema is not None
    assert [c.name for c in schema.columns] == ["id", "v"]
    assert open_format("canal-protobuf").infer(said(partial)) is None


def test_a_table_without_a_key_says_that_it_has_none() -> None:
    (change,) = changes(record(rows("insert", wire.RowData(afterColumns=[column("v", "1")]))))
    schema = open_format("canal-protobuf").infer(said(change))
    assert schema is not None
    assert schema.key == ()


def encoded(kind: str, sql_type: int = 12, zone: str | None = None) -> Encoded:
    wire_format = open_format("canal-protobuf", {} if zone is None else {"timezone": zone})
    reported = wire.RowData(afterColumns=[column("c", "1", mysqlType=kind, sqlType=sql_type)])
    (change,) = wire_format.decode(records([record(rows("insert", reported))])).to_pylist()
    return wire_format.encoding_of("c", ColumnType("longtext"), wire_format.describe(change["columns"]))


def test_a_columns_own_type_says_how_its_values_are_written() -> None:
    actual = {
        kind: encoded(kind).encoding for kind in ("int(11)", "VARBINARY(10)", "point", "enum('a')", "SET('a','b')")
    }
    assert actual == {
        "int(11)": Encoding.TEXT,
        "VARBINARY(10)": Encoding.LATIN1_BYTES,
        "point": Encoding.LATIN1_BYTES,
        "enum('a')": Encoding.ENUM_INDEX,
        "SET('a','b')": Encoding.SET_BITMASK,
    }
    assert encoded("timestamp(3)", 93, "Asia/Shanghai") == Encoded("c", Encoding.TEXT, zone="Asia/Shanghai")
    assert encoded("datetime(3)", 93, "Asia/Shanghai") == Encoded("c", Encoding.TEXT)


def test_json_of_mariadb_comes_as_bytes_and_that_of_mysql_as_text() -> None:
    assert encoded("JSON", 2004).encoding is Encoding.LATIN1_BYTES
    assert encoded("json", 12).encoding is Encoding.TEXT
    assert encoded("json", 1111).encoding is Encoding.TEXT
    assert encoded("set('a')", 2004).encoding is Encoding.SET_BITMASK


def test_a_json_change_is_distinguished_from_json_and_from_text_that_looks_like_it() -> None:
    def update(kind: str, value: str) -> wire.Entry:
        sides = [[column("id", "1", key=True), column("j", text, 1, mysqlType=kind)] for text in ("{}", value)]
        return rows("update", wire.RowData(beforeColumns=sides[0], afterColumns=sides[1]))

    actual = changes(
        record(update("json", "JSON_REPLACE(`j`, '$.a', 1)")),
        record(update("json", '"JSON_REPLACE"')),
        record(update("text", "JSON_REPLACE(")),
    )
    assert [change["error_code"] for change in actual] == ["record.partial_json", None, None]


def test_a_zone_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="timezone"):
        open_format("canal-protobuf", {"timezone": "Mars/Olympus"})


# ---- progress


def test_progress_is_the_oldest_time_in_a_record() -> None:
    wire_format = open_format("canal-protobuf")
    begin = entry(wire.TransactionBegin(), header(executeTime=MILLIS + 2000), wire.TRANSACTIONBEGIN)
    progress = wire_format.progress_of("t", None, record(inserted("1"), begin, inserted("2")))
    assert progress is not None
    assert (progress.source_time_ms, progress.heartbeat) == (MILLIS, False)
    beat = wire_format.progress_of("t", None, record(wire.Entry(header=header(), entryType=wire.HEARTBEAT)))
    assert beat is not None
    assert (beat.source_time_ms, beat.heartbeat) == (MILLIS, True)


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"{}", record(), record(inserted("1", executeTime=0))])
def test_what_shows_no_time_shows_no_progress(value: bytes | None) -> None:
    assert open_format("canal-protobuf").progress_of("t", None, value) is None


# ---- bytes


def test_deeply_nested_groups_are_an_error_and_end_no_process() -> None:
    actual = changes(b"\x7b" * 3_000_000, record(inserted("1")))
    assert [change["kind"] for change in actual] == ["error", "row"]


def test_a_bad_record_among_good_ones_is_one_error() -> None:
    good = [record(inserted(str(number))) for number in range(50)]
    values = [value if number % 7 else value[:-3] for number, value in enumerate(good)]
    actual = changes(*values)
    assert [change["kind"] for change in actual] == ["row" if number % 7 else "error" for number in range(50)]
    assert [change["raw"] for change in actual if change["kind"] == "error"] == values[::7]


def layered(value: bytes) -> list[tuple[str, Any, Any]]:
    """Read rows with python-protobuf, message by message."""
    result = []
    for message in Messages.FromString(Packet.FromString(value).body).messages:
        one = wire.Entry.FromString(message)
        change = wire.RowChange.FromString(one.storeValue)
        for data in change.rowDatas:
            sides = [
                {c.name: None if c.isNull else c.value for c in side} or None
                for side in (data.beforeColumns, data.afterColumns)
            ]
            result.append((one.header.tableName, *sides))
    return result


def test_mutated_records_give_what_protobuf_reads_or_no_rows() -> None:
    chance = random.Random(17)
    entries = [inserted("1", "2"), rows("update", row({"id": "é", "v": None}, {"id": "漢", "v": "x"}), offset=400)]
    whole = record(*entries)
    values = []
    for _ in range(3000):
        data = bytearray(whole)
        for _ in range(chance.randint(1, 3)):
            index = chance.randrange(len(data))
            data[index : index + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        values.append(bytes(data))
    batch = open_format("canal-protobuf").decode(records(list(values)))
    batch.validate(full=True)
    actual: dict[int, list[Any]] = {}
    for change in batch.to_pylist():
        if change["kind"] == "row":
            actual.setdefault(change["offset"], []).append((change["table"], *images(change)))
    for offset, reported in actual.items():
        try:
            expected = layered(values[offset])
        except DecodeError:
            continue  # protobuf is stricter with unknown groups
        assert [one for one in reported if one not in expected] == []
    assert len(actual) > 100


def test_no_records_give_no_changes() -> None:
    batch = open_format("canal-protobuf").decode(records([]))
    assert batch.num_rows == 0
    assert batch.schema.field("columns").type == pa.dictionary(pa.int32(), pa.string())
