"""Tencent DTS: every kind of entry, values of every type, and what is refused rather than guessed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Records
from airflow_provider_cdc.core.formats.generated.dts_pb2 import (
    CheckpointEvent,
    Column,
    CommitEvent,
    Data,
    DataType,
    DDLEvent,
    DMLEvent,
    DMLType,
    Entries,
    Entry,
    Envelope,
    Event,
    Header,
    HeartbeatEvent,
    MessageType,
    RollbackEvent,
    RowChange,
)
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType

# the vectors of specs/tencent-dts.md, section 10
CHECKPOINT = bytes.fromhex(
    "0801100122570a550a0d1001180620a6d1f0910658947d12443a420a2933386365636439332d613963322d313165632d"
    "623935322d3034336637326438646135333a312d31361a106d7973716c2d62696e2e30303030303520dbb18801"
)
INSERT = bytes.fromhex(
    "0801100122c0010abd010a5c1001180220a6d1f0910628add90632106d7973716c2d62696e2e30303030303538dbb188"
    "01422733386365636439332d613963322d313165632d623935322d3034336637326438646135333a31364a0364747352"
    "02743158917d6801125d125b120f0a0269641207696e74283131291801120f0a016e120a74696e79696e74283429120b"
    "0a01641206646f75626c6512090a01731204746578741a1f120508031a013312001205080a1a0131120d080d12047574"
    "66382203746d70"
)
SLICES = (
    bytes.fromhex(
        "0801100222640abd010a5c1001180220a6d1f0910628add90632106d7973716c2d62696e2e30303030303538dbb18801"
        "422733386365636439332d613963322d313165632d623935322d3034336637326438646135333a31364a036474735202"
        "743158917d6801125d12"
    ),
    bytes.fromhex(
        "080110021801225c5b120f0a0269641207696e74283131291801120f0a016e120a74696e79696e74283429120b0a0164"
        "1206646f75626c6512090a01731204746578741a1f120508031a013312001205080a1a0131120d080d12047574663822"
        "03746d70"
    ),
)
UPDATE = bytes.fromhex(
    "0801100122550a530a161001180220a7d1f091064a036474735202743158927d123912370801120f0a0269641207696e"
    "74283131291801120f0a016e120a74696e79696e742834291a110a0508031a01330a02080e1202080e1200"
)
MARKS = bytes.fromhex(
    "08011001223d0a190a11100120a6d1f091064204673a313658907d12040a02104d0a200a131001180120a6d1f0910642"
    "04673a313658907d12091a070a053131383636"
)
TIME = datetime(2022, 3, 24, 8, 15, 34, tzinfo=UTC)
ID = Column(name="id", originalType=b"int(11)", isKey=True)
NULL, ABSENT = Data(), Data(dataType=DataType.NA)


def number(text: str, kind: int = DataType.INT32) -> Data:
    return Data(dataType=kind, sv=text)


def text(content: str | bytes, charset: str = "utf8") -> Data:
    return Data(dataType=DataType.STRING, charset=charset, bv=content.encode() if isinstance(content, str) else content)


def raw(content: bytes) -> Data:
    return Data(dataType=DataType.BYTES, bv=content)


def header(kind: int, seq: int = 7, **more: Any) -> Header:
    fields = {"timestamp": 1_648_109_734, "schemaName": "shop", "tableName": "t", "seqId": seq, **more}
    return Header(sourceType=1, messageType=kind, **fields)


def dml(columns: list[Column], *rows: RowChange, op: int = DMLType.INSERT, seq: int = 7, **more: Any) -> Entry:
    described = [column.SerializeToString() for column in columns]
    event = Event(dmlEvent=DMLEvent(dmlEventType=op, columns=described, rows=rows))
    return Entry(header=header(MessageType.DML, seq, **more), event=event)


def ddl(sql: bytes, seq: int = 7, default: bytes = b"", **more: Any) -> Entry:
    return Entry(
        header=header(MessageType.DDL, seq, **more), event=Event(ddlEvent=DDLEvent(sql=sql, schemaName=default))
    )


def new(*values: Data) -> RowChange:
    return RowChange(newColumns=values)


def record(*entries: Entry) -> bytes:
    return Envelope(version=1, total=1, data=Entries(items=entries).SerializeToString()).SerializeToString()


def sliced(count: int, *entries: Entry) -> list[bytes]:
    data = Entries(items=entries).SerializeToString()
    cuts = [len(data) * i // count for i in range(count + 1)]
    return [
        Envelope(version=1, total=count, index=i, data=data[cuts[i] : cuts[i + 1]]).SerializeToString()
        for i in range(count)
    ]


def changes(*values: bytes | None, numbers: list[int] | None = None, shards: str = "", **more: Any) -> list[dict]:
    """Decode values as records of one partition.

    :param numbers: header ``ps`` of each.
    :param shards: header ``ShardId`` of each, a letter.
    """
    count = len(values)
    headers = [[] for _ in values]
    for place, found in enumerate(numbers or ()):
        headers[place].append(("ps", str(found).encode()))
    for place, shard in enumerate(shards):
        headers[place].append(("ShardId", shard.encode()))
    wire = open_format("dts-protobuf", more.pop("options", None))
    records = Records(
        "t", 3, list(range(count)), [1000] * count, [None] * count, values, headers if numbers or shards else [], **more
    )
    batch = wire.decode(records)
    assert batch.schema.equals(CHANGE_SCHEMA)
    batch.validate(full=True)
    return batch.to_pylist()


def change(*entries: Entry, **more: Any) -> dict[str, Any]:
    (found,) = changes(record(*entries), **more)
    return found


def kinds(found: list[dict]) -> list[tuple[int, str]]:
    return [(item["offset"], item["error_code"] or item["op"] or item["kind"]) for item in found]


def value(kind: str, data: Data, **more: Any) -> Any:
    """What a value of a column type becomes in the image, or the error's code."""
    found = change(dml([ID, Column(name="c", originalType=kind.encode())], new(number("1"), data)), **more)
    return found["error_code"] or json.loads(found["after"])["c"]


# ---- the fact sheet's vectors


def test_a_checkpoint_is_progress() -> None:
    (found,) = changes(CHECKPOINT)
    assert (found["kind"], found["source_time"], found["position"]) == ("progress", TIME, None)


def test_an_insert_has_its_row_place_time_and_description() -> None:
    (found,) = changes(INSERT)
    assert (found["kind"], found["op"], found["database"], found["table"]) == ("row", "insert", "dts", "t1")
    assert (found["before"], found["after"]) == (None, '{"id":"3","n":null,"d":"1","s":"tmp"}')
    assert found["position"] == "0000.0000000000.00000000000000016017.0000000000"
    assert found["transaction_id"] == "38cecd93-a9c2-11ec-b952-043f72d8da53:16"
    assert (found["source_time"], found["partition"], found["index"]) == (TIME, 3, 0)
    wire = open_format("dts-protobuf")
    description = wire.describe(found["columns"])
    assert (description.names, description.key) == (("id", "n", "d", "s"), ("id",))
    schema = wire.infer(description)
    assert [str(column.type) for column in schema.columns] == ["int(11)", "tinyint(4)", "double", "text"]
    assert [column.name for column in schema.key_columns] == ["id"]


def test_slices_are_one_record_and_stand_with_the_last() -> None:
    (whole,) = changes(INSERT)
    first, last = changes(*SLICES)
    assert (first["kind"], first["offset"]) == ("ignored", 0)
    assert {**last, "offset": 0} == whole
    assert last["offset"] == 1


def test_what_an_update_does_not_carry_is_as_before() -> None:
    (found,) = changes(UPDATE)
    assert (found["op"], found["before"], found["after"]) == ("update", '{"id":"3"}', '{"id":"3","n":null}')


def test_an_empty_transaction_is_two_marks() -> None:
    found = changes(MARKS)
    assert [(c["kind"], c["op"], c["transaction_id"], c["index"]) for c in found] == [
        ("transaction", "begin", "g:16", 0),
        ("transaction", "commit", "g:16", 1),
    ]


# ---- entries


def test_every_entry_of_a_record_and_every_row_of_an_entry_is_a_change() -> None:
    found = changes(
        record(
            Entry(header=header(MessageType.BEGIN, 4), event=Event(beginEvent={"threadId": 1})),
            dml([ID], new(number("1")), new(number("2")), seq=5),
            dml([ID], RowChange(oldColumns=[number("1")]), op=DMLType.DELETE, seq=6, tableName="u"),
            Entry(
                header=header(MessageType.COMMIT, 8, gtid=""), event=Event(commitEvent=CommitEvent(transactionId="x"))
            ),
        )
    )
    assert [(c["op"], c["table"], c["index"]) for c in found] == [
        ("begin", "t", 0),
        ("insert", "t", 1),
        ("insert", "t", 2),
        ("delete", "u", 3),
        ("commit", "t", 4),
    ]
    assert [c["position"] and c["position"][-22:] for c in found] == [
        None,
        "00000000005.0000000000",
        "00000000005.0000000001",
        "00000000006.0000000000",
        None,
    ]
    assert found[4]["transaction_id"] == "x"
    assert found[3]["before"] == '{"id":"1"}' and found[3]["after"] is None


def test_entries_of_one_number_continue_its_count_of_rows() -> None:
    (one, two, three) = changes(record(dml([ID], new(number("1")), new(number("2"))), dml([ID], new(number("3")))))
    assert [c["position"][-10:] for c in (one, two, three)] == ["0000000000", "0000000001", "0000000002"]


def test_a_statement_has_its_text_its_default_database_and_its_place_among_rows() -> None:
    entries = [dml([ID], new(number("1")), seq=7), ddl("ALTER TABLE t ADD é INT".encode(), 8, b"other", tableName="")]
    row, found = changes(record(*entries))
    assert (found["kind"], found["statement"], found["default_database"]) == (
        "schema",
        "ALTER TABLE t ADD é INT",
        "other",
    )
    assert (found["database"], found["table"]) == ("shop", None)
    assert row["position"] < found["position"]


def test_a_statement_without_a_default_database_takes_the_headers() -> None:
    assert change(ddl(b"TRUNCATE t"))["default_database"] == "shop"


def test_the_same_statement_in_several_partitions_has_the_same_place() -> None:
    sent = record(ddl(b"DROP TABLE t", 12))
    places = set()
    for partition in (0, 1):
        (found,) = open_format("dts-protobuf").decode(Records("t", partition, [5], [0], [None], [sent], [])).to_pylist()
        places.add((found["position"], found["statement"]))
    assert len(places) == 1


def test_a_heartbeat_is_progress() -> None:
    found = change(Entry(header=header(MessageType.HEARTBEAT), event=Event(heartbeatEvent=HeartbeatEvent(epoch=5))))
    assert (found["kind"], found["source_time"]) == ("progress", TIME)


def test_a_rollback_of_nothing_is_a_mark_and_any_other_an_error() -> None:
    begin = Entry(header=header(MessageType.BEGIN), event=Event(beginEvent={"threadId": 1}))
    back = Entry(header=header(MessageType.ROLLBACK), event=Event(rollbackEvent=RollbackEvent()))
    rows = dml([ID], new(number("1")))
    assert [c["op"] for c in changes(record(begin, back))] == ["begin", "rollback"]
    assert kinds(changes(record(begin, rows, back))) == [(0, "begin"), (0, "insert"), (0, "record.rolled_back")]
    assert kinds(changes(record(begin), record(back))) == [(0, "begin"), (1, "record.rolled_back")]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (Entry(header=header(77), event=Event(beginEvent={"threadId": 1})), "record.unknown_entry"),
        (Entry(header=header(-1), event=Event(beginEvent={"threadId": 1})), "record.unknown_entry"),
        (dml([ID], new(number("1")), op=9), "record.unknown_entry"),
        (Entry(header=header(MessageType.DML), event=Event(beginEvent={"threadId": 1})), "record.malformed"),
        (Entry(header=header(MessageType.BEGIN), event=Event()), "record.malformed"),
        (Entry(header=header(MessageType.COMMIT)), "record.malformed"),
        (Entry(event=Event(beginEvent={"threadId": 1})), "record.malformed"),
        (Entry(), "record.malformed"),
        (dml([ID]), "record.malformed"),
        (ddl(b""), "record.malformed"),
        (ddl("ALTER TABLE t COMMENT '中'".encode("gbk")), "record.not_utf8"),
        (ddl(b"DROP TABLE t", default=b"\xff"), "record.not_utf8"),
        (ddl(b"DROP TABLE t", 0), "record.without_position"),
        (dml([ID], new(number("1")), seq=0), "record.without_position"),
        (dml([ID], new(number("1")), seq=1 << 63), "record.without_position"),
        (dml([ID], new(number("1")), tableName=""), "record.without_position"),
        (dml([ID, ID], new(number("1"), number("1"))), "record.malformed"),
        (dml([Column(name="a")], new(number("1"))), "record.malformed"),
        (dml([Column(name="a", originalType=b"\xff")], new(number("1"))), "record.not_utf8"),
        (dml([], new()), "record.malformed"),
        (dml([ID], new()), "record.columns_differ"),
        (dml([ID], new(number("1"), number("2"))), "record.columns_differ"),
        (dml([ID], RowChange(oldColumns=[number("1")], newColumns=[number("1")])), "record.columns_differ"),
        (dml([ID], new(number("1")), op=DMLType.DELETE), "record.columns_differ"),
        (dml([ID], new(number("1")), op=DMLType.UPDATE), "record.columns_differ"),
    ],
)
def test_what_is_not_known_is_one_error_and_its_neighbours_are_read(entry: Entry, code: str) -> None:
    good = dml([ID], new(number("5")))
    found = changes(record(good), record(good, entry, good), record(good))
    assert kinds(found) == [(0, "insert"), (1, "insert"), (1, code), (1, "insert"), (2, "insert")]
    assert [c["index"] for c in found] == [0, 0, 1, 2, 0]
    assert found[2]["raw"] == record(good, entry, good)


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"{}",
        b"\xff" * 9,
        INSERT[:-1],
        INSERT[:5],
        Envelope(version=2, total=1, data=b"").SerializeToString(),
        Envelope(version=1, total=1).SerializeToString(),
        Envelope(version=1, total=1, data=b"\x0a\x05\x01").SerializeToString(),
        Envelope(version=1, total=1, index=1, data=b"x").SerializeToString(),
        Envelope(version=1, index=1, data=b"x").SerializeToString(),
        Envelope(version=1, total=1, data=b"\x0a\x06\x0a\x04\x4a\x02\xff\xfe").SerializeToString(),
    ],
)
def test_a_record_that_does_not_decode_is_one_error_with_its_bytes(broken: bytes) -> None:
    found = changes(INSERT, broken, UPDATE)
    assert kinds(found) == [(0, "insert"), (1, "record.malformed"), (2, "update")]
    assert found[1]["raw"] == broken


def test_only_the_first_error_of_a_record_has_its_bytes() -> None:
    sent = record(dml([ID], *[new()] * 3))
    assert [c["raw"] for c in changes(sent)] == [sent, None, None]


def test_an_envelope_without_a_total_is_whole() -> None:
    envelope = Envelope.FromString(INSERT)
    envelope.total = 0
    assert kinds(changes(envelope.SerializeToString())) == [(0, "insert")]


def test_a_tombstone_is_passed_over() -> None:
    assert kinds(changes(None, INSERT)) == [(0, "ignored"), (1, "insert")]


# ---- values


@pytest.mark.parametrize(
    ("kind", "data", "token"),
    [
        ("bigint(20) unsigned", number("18446744073709551615", DataType.UINT64), "18446744073709551615"),
        ("decimal(40,2)", number("1234567890123456789012345678901234567.10", DataType.DECIMAL), None),
        ("decimal(10,2)", number("1.10", DataType.DECIMAL), "1.10"),
        ("float", number("1e-05", DataType.FLOAT32), "1e-05"),
        ("double", number("-0.5", DataType.FLOAT64), "-0.5"),
        ("bit(64)", number("9223372036854775807", DataType.INT64), "9223372036854775807"),
        ("year(4)", number("2024", DataType.INT64), "2024"),
        ("year(4)", text("2024"), "2024"),
        ("varchar(9)", text(""), ""),
        ("varchar(9)", text('a"b\\c\n\x00\x1f😀é'), 'a"b\\c\n\x00\x1f😀é'),
        ("varchar(9)", text("x", ""), "x"),
        ("text", text("中".encode("gbk"), "gbk"), "中"),
        ("text", text("é€".encode("cp1252"), "latin1"), "é€"),
        ("text", text(b"\x81", "latin1"), "\x81"),
        ("text", text("é😀", "utf8mb4"), "é😀"),
        ("text", text("abc", "binary"), "abc"),
        ("enum('a','b')", text("b"), "b"),
        ("set('a','b')", text("a,b"), "a,b"),
        ("time", text("-838:59:59.5"), "-838:59:59.5"),
        ("date", text("0000-00-00"), "0000-00-00"),
        ("datetime(6)", text("2024-01-02 03:04:05.000001"), "2024-01-02 03:04:05.000001"),
        ("timestamp", text("2021-05-17 07:22:42"), "2021-05-17 07:22:42"),
        ("timestamp", text("2021-05-17 07:22:42 +00:00"), "2021-05-17 07:22:42"),
        ("timestamp(3)", text("2021-05-17 07:22:42.123+00:00"), "2021-05-17 07:22:42.123"),
        ("varchar(30)", text("2021-05-17 07:22:42 +00:00"), "2021-05-17 07:22:42 +00:00"),
        ("json", raw('{"a": "é\\n"}'.encode()), '{"a": "é\\n"}'),
        ("json", text('[1.10,"x"]'), '[1.10,"x"]'),
        ("blob", raw(b"\x00\xff\x10"), "AP8Q"),
        ("blob", raw(b""), ""),
        ("varbinary(3)", text(b"\xff\x00", "binary"), "/wA="),
        ("binary(3)", text(b"ab", "latin1"), "YWI="),
        ("geometry", raw(b"\x00\x01"), "AAE="),
        ("int4", number("5"), "5"),
        ("no_such_type", number("5"), "5"),
        ("no_such_type", text("x"), "x"),
        ("int(11)", NULL, None),
        ("blob", NULL, None),
    ],
)
def test_values_stand_in_images_as_they_were_received(kind: str, data: Data, token: str | None) -> None:
    wanted = data.sv if token is None and data.sv else token
    assert value(kind, data) == wanted


@pytest.mark.parametrize(
    ("kind", "data", "code"),
    [
        ("varchar(9)", text(b"\xff\xfe"), "value.not_text"),
        ("varchar(9)", text(b"\xe4\xb8"), "value.not_text"),
        ("varchar(9)", text(b'"\xff'), "value.not_text"),
        ("varchar(9)", text(b"\xff", "gbk"), "value.not_text"),
        ("varchar(9)", text("x", "klingon"), "value.not_text"),
        ("varchar(9)", text(b"\xe9", "ascii"), "value.not_text"),
        ("varchar(9)", text(b"\xe9", "binary"), "value.not_text"),
        ("varchar(9)", raw(b"abc"), "value.wrong_type"),
        ("varchar(9)", number("5"), "value.wrong_type"),
        ("enum('a','b')", number("1", DataType.INT64), "value.wrong_type"),
        ("datetime", number("5", DataType.INT64), "value.wrong_type"),
        ("blob", number("5"), "value.wrong_type"),
        ("int(11)", raw(b"5"), "value.wrong_type"),
        ("no_such_type", raw(b"5"), "value.wrong_type"),
        ("int(11)", Data(dataType=15, sv="5"), "value.wrong_type"),
        ("int(11)", Data(dataType=-1, sv="5"), "value.wrong_type"),
        ("int(11)", Data(dataType=DataType.INT32), "value.malformed"),
        ("int(11)", Data(dataType=DataType.INT32, bv=b"5"), "value.malformed"),
        ("int(11)", Data(dataType=DataType.INT32, sv="5", bv=b"5"), "value.malformed"),
        ("int(11)", Data(sv="5"), "value.malformed"),
        ("varchar(9)", Data(bv=b"5"), "value.malformed"),
        ("varchar(9)", Data(dataType=DataType.STRING, sv="5"), "value.malformed"),
        ("int(11)", number("0x10"), "value.malformed"),
        ("int(11)", number('"'), "value.malformed"),
        ("double", number("nan", DataType.FLOAT64), "value.malformed"),
        ("int(11)", number("1,2"), "value.malformed"),
        ("int(10) unsigned", number("-1"), "value.malformed"),
        ("bigint(20) unsigned", number("-1", DataType.INT64), "value.malformed"),
        ("json", raw(b"\x00\x01\x00\x0b"), "value.not_json"),
        ("json", raw(b'{"a":'), "value.not_json"),
        ("json", raw(b""), "value.not_json"),
    ],
)
def test_a_value_that_is_not_what_it_says_is_refused_with_its_row_only(kind: str, data: Data, code: str) -> None:
    assert value(kind, data) == code
    columns = [ID, Column(name="c", originalType=kind.encode())]
    good = new(number("1"), NULL)
    found = changes(record(dml(columns, good, new(number("2"), data), good)))
    assert kinds(found) == [(0, "insert"), (0, code), (0, "insert")]
    assert [c["index"] for c in found] == [0, 1, 2]


def test_with_another_timezone_a_timestamp_that_states_utc_keeps_doing_so() -> None:
    zone = {"timezone": "Asia/Shanghai"}
    assert value("timestamp", text("2021-05-17 07:22:42 +00:00"), options=zone) == "2021-05-17 07:22:42 +00:00"


def test_names_of_columns_and_tables_are_kept_as_they_are() -> None:
    columns = [Column(name='we"ird\\é', originalType=b"int", isKey=True)]
    found = change(dml(columns, new(number("1")), schemaName="Shop ", tableName="T"))
    assert json.loads(found["after"]) == {'we"ird\\é': "1"}
    assert (found["database"], found["table"]) == ("Shop ", "T")
    assert open_format("dts-protobuf").describe(found["columns"]).names == ('we"ird\\é',)


def test_tables_of_one_record_do_not_mix_their_columns() -> None:
    ab, c = Column(name="ab", originalType=b"int"), Column(name="c", originalType=b"int")
    a, bc = Column(name="a", originalType=b"int"), Column(name="bc", originalType=b"int")
    one, two = new(number("1"), number("2")), new(number("3"), number("4"))
    found = changes(record(dml([ab, c], one), dml([a, bc], two), dml([ab, c], two, tableName="u")))
    assert [x["after"] for x in found] == ['{"ab":"1","c":"2"}', '{"a":"3","bc":"4"}', '{"ab":"3","c":"4"}']
    assert found[0]["columns"] == found[2]["columns"] != found[1]["columns"]


# ---- values that are not carried

V = Column(name="v", originalType=b"int(11)")
W = Column(name="w", originalType=b"text")


def update(old: list[Data], fresh: list[Data], columns: list[Column] | None = None) -> Entry:
    return dml(columns or [ID, V, W], RowChange(oldColumns=old, newColumns=fresh), op=DMLType.UPDATE)


def images(entry: Entry) -> Any:
    found = change(entry)
    return found["error_code"] or [found[name] and json.loads(found[name]) for name in ("before", "after")]


def test_an_update_carries_what_changed_and_takes_the_rest_from_before() -> None:
    entry = update([number("1"), number("2"), text("x")], [ABSENT, number("3"), ABSENT])
    assert images(entry) == [{"id": "1", "v": "2", "w": "x"}, {"id": "1", "v": "3", "w": "x"}]


def test_what_neither_image_of_an_update_carries_is_left_out() -> None:
    entry = update([number("1"), ABSENT, ABSENT], [ABSENT, NULL, ABSENT])
    assert images(entry) == [{"id": "1"}, {"id": "1", "v": None}]


def test_a_delete_needs_its_key_only() -> None:
    entry = dml([ID, V], RowChange(oldColumns=[number("1"), ABSENT]), op=DMLType.DELETE)
    assert images(entry) == [{"id": "1"}, None]


@pytest.mark.parametrize(
    "entry",
    [
        dml([ID, V], new(number("1"), ABSENT)),
        dml([ID, V], new(ABSENT, number("1"))),
        dml([ID, V], RowChange(oldColumns=[ABSENT, number("1")]), op=DMLType.DELETE),
        dml([V, W], RowChange(oldColumns=[number("1"), ABSENT]), op=DMLType.DELETE),
        update([ABSENT, number("1"), NULL], [number("1"), number("2"), NULL]),
        update([number("1"), ABSENT], [number("2"), NULL], [V, W]),
        update([ABSENT, number("1"), NULL], [ABSENT, number("2"), NULL]),
    ],
)
def test_a_row_that_cannot_do_without_what_is_not_carried_is_refused(entry: Entry) -> None:
    assert images(entry) == "record.partial_image"


def test_an_update_may_move_the_key() -> None:
    entry = update([number("1"), NULL, NULL], [number("2"), NULL, NULL])
    assert images(entry) == [{"id": "1", "v": None, "w": None}, {"id": "2", "v": None, "w": None}]


# ---- slices and running numbers


def test_slices_cut_anywhere_give_the_same_rows() -> None:
    entry = dml([ID, W], *[new(number(str(i)), text("é" * 10)) for i in range(5)])
    whole = [c["after"] for c in changes(record(entry))]
    for count in (2, 3, 7, 40):
        found = changes(*sliced(count, entry))
        assert [c["after"] for c in found if c["kind"] == "row"] == whole
        assert {c["offset"] for c in found if c["kind"] == "row"} == {count - 1}


def test_slices_of_shards_that_share_a_partition_are_put_together_apart() -> None:
    one, other = sliced(2, dml([ID], new(number("1")))), sliced(2, dml([ID], new(number("2"))))
    found = changes(one[0], other[0], INSERT, other[1], one[1], shards="abcba")
    assert kinds(found) == [(0, "ignored"), (1, "ignored"), (2, "insert"), (3, "insert"), (4, "insert")]
    assert [found[3]["after"], found[4]["after"]] == ['{"id":"2"}', '{"id":"1"}']


def test_the_rest_of_a_group_that_began_before_the_log_is_passed_over() -> None:
    assert kinds(changes(SLICES[1], INSERT)) == [(0, "ignored"), (1, "insert")]


def test_a_group_that_lacks_a_slice_is_one_error() -> None:
    parts = sliced(4, dml([ID, W], new(number("1"), text("x" * 50))))
    assert kinds(changes(INSERT, parts[0], parts[2], parts[3], INSERT)) == [
        (0, "insert"),
        (1, "ignored"),
        (2, "ignored"),
        (3, "record.slices_missing"),
        (4, "insert"),
    ]
    assert kinds(changes(INSERT, parts[1], parts[2], parts[3])) == [
        (0, "insert"),
        (1, "ignored"),
        (2, "ignored"),
        (3, "record.slices_missing"),
    ]
    assert kinds(changes(parts[0], INSERT)) == [(0, "record.slices_missing"), (1, "insert")]


def test_a_group_that_is_begun_anew_loses_nothing() -> None:
    parts = sliced(3, dml([ID], new(number("1"))))
    found = kinds(changes(parts[0], parts[1], *parts))
    assert found == [*[(place, "ignored") for place in range(4)], (4, "insert")]


def test_a_record_that_is_no_envelope_does_not_tear_a_group() -> None:
    assert kinds(changes(SLICES[0], b"x", SLICES[1])) == [(0, "ignored"), (1, "record.malformed"), (2, "insert")]


def test_a_group_whose_bytes_are_no_entries_is_one_error_with_all_of_them() -> None:
    pieces = (b"\x0a\xff", b"\x01\x02")
    sent = [Envelope(version=1, total=2, index=i, data=data).SerializeToString() for i, data in enumerate(pieces)]
    found = changes(*sent, INSERT)
    assert kinds(found) == [(0, "ignored"), (1, "record.malformed"), (2, "insert")]
    assert found[1]["raw"] == b"\x0a\xff\x01\x02"


def test_a_record_sent_again_is_passed_over() -> None:
    found = changes(INSERT, UPDATE, INSERT, UPDATE, MARKS, numbers=[5, 6, 5, 6, 7])
    assert kinds(found)[:4] == [(0, "insert"), (1, "update"), (2, "ignored"), (3, "ignored")]
    assert len(found) == 6


def test_records_that_are_missing_are_told_after_the_one_behind_them() -> None:
    found = changes(INSERT, MARKS, UPDATE, numbers=[5, 8, 9])
    assert kinds(found) == [(0, "insert"), (1, "begin"), (1, "commit"), (1, "record.lost"), (2, "update")]
    assert [c["index"] for c in found] == [0, 0, 1, 2, 0]
    assert found[3]["error"].startswith("2 records")


def test_records_missing_between_stretches_are_told() -> None:
    assert kinds(changes(INSERT, numbers=[8], heard={"": 5})) == [(0, "insert"), (0, "record.lost")]
    assert kinds(changes(INSERT, numbers=[5], heard={"": 5})) == [(0, "ignored")]
    assert kinds(changes(SLICES[1], numbers=[6], heard={"": 5})) == [(0, "record.slices_missing")]


def test_the_number_one_begins_anew() -> None:
    assert kinds(changes(INSERT, UPDATE, numbers=[500, 1])) == [(0, "insert"), (1, "update")]


def test_shards_count_on_their_own() -> None:
    found = changes(INSERT, INSERT, INSERT, INSERT, numbers=[5, 90, 6, 92], shards="abab")
    assert kinds(found) == [(0, "insert"), (1, "insert"), (2, "insert"), (3, "insert"), (3, "record.lost")]


@pytest.mark.parametrize("number", [b"", b"x", b"-1", b"1" * 30])
def test_a_number_that_is_none_is_an_error(number: bytes) -> None:
    records = Records("t", 0, [0], [0], [None], [INSERT], [[("ps", number)]])
    (found,) = open_format("dts-protobuf").decode(records).to_pylist()
    assert found["error_code"] == "record.malformed"


def test_the_part_of_a_record_is_told_by_value_and_headers() -> None:
    part_of = open_format("dts-protobuf").part_of
    assert part_of(SLICES[1], [("ps", b"17"), ("ShardId", b"set_1")]) == ("set_1", 17, 1, 2)
    assert part_of(INSERT, None) == ("", None, 0, 1)
    for nothing in (None, b"", b"\xff", Envelope(version=3).SerializeToString()):
        assert part_of(nothing, None) is None


# ---- progress, types, options


def test_progress_is_the_oldest_event_of_a_record_or_the_newest_mark() -> None:
    wire = open_format("dts-protobuf")

    def told(*entries: Entry) -> tuple[int, bool] | None:
        found = wire.progress_of("t", None, record(*entries))
        return found and (found.source_time_ms, found.heartbeat)

    def row(time: int) -> Entry:
        return dml([ID], new(number("1")), timestamp=time)

    def mark(time: int) -> Entry:
        kept = CheckpointEvent(syncedGtid="g:1-5")
        return Entry(header=header(MessageType.CHECKPOINT, timestamp=time), event=Event(checkpointEvent=kept))

    assert told(row(20), row(10), mark(30)) == (10_000, False)
    assert told(mark(30), mark(20)) == (30_000, True)
    assert told(mark(0)) is None
    assert wire.progress_of("t", None, CHECKPOINT).heartbeat
    assert not wire.progress_of("t", None, MARKS).heartbeat
    for nothing in (None, b"", b"x", *SLICES):
        assert wire.progress_of("t", None, nothing) is None


def test_the_records_own_type_tells_the_encoding_before_the_timelines() -> None:
    wire = open_format("dts-protobuf", {"timezone": "+08:00"})
    (found,) = changes(record(dml([ID, Column(name="b", originalType=b"blob")], new(number("1"), NULL))))
    description = wire.describe(found["columns"])
    assert wire.encoding_of("b", ColumnType("text"), description) == Encoded("b", Encoding.BASE64)
    assert wire.encoding_of("b", ColumnType("varbinary", 3), None) == Encoded("b", Encoding.BASE64)
    assert wire.encoding_of("id", ColumnType("int"), description) == Encoded("id", Encoding.TEXT)
    assert wire.encoding_of("x", ColumnType("timestamp"), None) == Encoded("x", Encoding.TEXT, zone="+08:00")
    assert wire.encoding_of("x", ColumnType("datetime"), None) == Encoded("x", Encoding.TEXT)
    assert open_format("dts-protobuf").encoding_of("x", ColumnType("timestamp"), None).zone is None


def test_a_schema_with_a_type_that_is_not_known_is_not_inferred() -> None:
    wire = open_format("dts-protobuf")
    found = change(dml([ID, Column(name="b", originalType=b"bytea")], new(number("1"), NULL)))
    assert wire.infer(wire.describe(found["columns"])) is None


def test_a_timezone_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="timezone"):
        open_format("dts-protobuf", {"timezone": "Mars/Olympus"})
