# SPDX-License-Identifier: Apache-2.0
"""Tencent DTS: vectors, every kind of entry, progress, types; what is not known is refused."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.generated.dts_pb2 import (
    CheckpointEvent,
    Column,
    CommitEvent,
    DMLType,
    Entry,
    Envelope,
    Event,
    HeartbeatEvent,
    MessageType,
    RollbackEvent,
    RowChange,
)
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from tests.unit.core.formats.dts.dts_messages import (
    CHECKPOINT,
    ID,
    INSERT,
    MARKS,
    NULL,
    SLICES,
    TIME,
    UPDATE,
    change,
    changes,
    ddl,
    dml,
    header,
    kinds,
    new,
    number,
    record,
)

# ---- the vectors of docs/wire/tencent-dts.md 10


def test_a_checkpoint_is_progress() -> None:
    (actual,) = changes(CHECKPOINT)
    assert (actual["kind"], actual["source_time"], actual["position"]) == ("progress", TIME, None)


def test_an_insert_has_its_row_place_time_and_description() -> None:
    (actual,) = changes(INSERT)
    assert (actual["kind"], actual["op"], actual["database"], actual["table"]) == ("row", "insert", "dts", "t1")
    assert (actual["before"], actual["after"]) == (None, '{"id":"3","n":null,"d":"1","s":"tmp"}')
    assert actual["position"] == "0000.0000000000.00000000000000016017.0000000000"
    assert actual["transaction_id"] == "38cecd93-a9c2-11ec-b952-043f72d8da53:16"
    assert (actual["source_time"], actual["partition"], actual["index"]) == (TIME, 3, 0)
    wire = open_format("dts-protobuf")
    description = wire.describe(actual["columns"])
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
    (actual,) = changes(UPDATE)
    assert (actual["op"], actual["before"], actual["after"]) == ("update", '{"id":"3"}', '{"id":"3","n":null}')


def test_an_empty_transaction_is_two_marks() -> None:
    actual = changes(MARKS)
    assert [(c["kind"], c["op"], c["transaction_id"], c["index"]) for c in actual] == [
        ("transaction", "begin", "g:16", 0),
        ("transaction", "commit", "g:16", 1),
    ]


# ---- entries


def test_every_entry_of_a_record_and_every_row_of_an_entry_is_a_change() -> None:
    actual = changes(
        record(
            Entry(header=header(MessageType.BEGIN, 4), event=Event(beginEvent={"threadId": 1})),
            dml([ID], new(number("1")), new(number("2")), seq=5),
            dml([ID], RowChange(oldColumns=[number("1")]), op=DMLType.DELETE, seq=6, tableName="u"),
            Entry(
                header=header(MessageType.COMMIT, 8, gtid=""), event=Event(commitEvent=CommitEvent(transactionId="x"))
            ),
        )
    )
    assert [(c["op"], c["table"], c["index"]) for c in actual] == [
        ("begin", "t", 0),
        ("insert", "t", 1),
        ("insert", "t", 2),
        ("delete", "u", 3),
        ("commit", "t", 4),
    ]
    assert [c["position"] and c["position"][-22:] for c in actual] == [
        None,
        "00000000005.0000000000",
        "00000000005.0000000001",
        "00000000006.0000000000",
        None,
    ]
    assert actual[4]["transaction_id"] == "x"
    assert actual[3]["before"] == '{"id":"1"}' and actual[3]["after"] is None


def test_entries_of_one_number_continue_its_count_of_rows() -> None:
    (one, two, three) = changes(record(dml([ID], new(number("1")), new(number("2"))), dml([ID], new(number("3")))))
    assert [c["position"][-10:] for c in (one, two, three)] == ["0000000000", "0000000001", "0000000002"]


def test_a_statement_has_its_text_its_default_database_and_its_place_among_rows() -> None:
    entries = [dml([ID], new(number("1")), seq=7), ddl("ALTER TABLE t ADD é INT".encode(), 8, b"other", tableName="")]
    row, actual = changes(record(*entries))
    assert (actual["kind"], actual["statement"], actual["default_database"]) == (
        "schema",
        "ALTER TABLE t ADD é INT",
        "other",
    )
    assert (actual["database"], actual["table"]) == ("shop", None)
    assert row["position"] < actual["position"]


def test_a_statement_without_a_default_database_takes_the_headers() -> None:
    assert change(ddl(b"TRUNCATE t"))["default_database"] == "shop"


def test_the_same_statement_in_several_partitions_has_the_same_place() -> None:
    sent = record(ddl(b"DROP TABLE t", 12))
    positions = set()
    for partition in (0, 1):
        (actual,) = (
            open_format("dts-protobuf").decode(Records("t", partition, [5], [0], [None], [sent], [])).to_pylist()
        )
        positions.add((actual["position"], actual["statement"]))
    assert len(positions) == 1


def test_a_heartbeat_is_progress() -> None:
    actual = change(Entry(header=header(MessageType.HEARTBEAT), event=Event(heartbeatEvent=HeartbeatEvent(epoch=5))))
    assert (actual["kind"], actual["source_time"]) == ("progress", TIME)


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
        (dml([ID], new(number("1")), sourceType=2), "record.source_unknown"),
        (dml([ID], new(number("1")), sourceType=4), "record.source_unknown"),
        (ddl(b"CREATE TABLE t (a INT)", sourceType=2), "record.source_unknown"),
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
    actual = changes(record(good), record(good, entry, good), record(good))
    assert kinds(actual) == [(0, "insert"), (1, "insert"), (1, code), (1, "insert"), (2, "insert")]
    assert [c["index"] for c in actual] == [0, 0, 1, 2, 0]
    assert actual[2]["raw"] == record(good, entry, good)


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
    actual = changes(INSERT, broken, UPDATE)
    assert kinds(actual) == [(0, "insert"), (1, "record.malformed"), (2, "update")]
    assert actual[1]["raw"] == broken


def test_only_the_first_error_of_a_record_has_its_bytes() -> None:
    sent = record(dml([ID], *[new()] * 3))
    assert [c["raw"] for c in changes(sent)] == [sent, None, None]


def test_an_envelope_without_a_total_is_whole() -> None:
    envelope = Envelope.FromString(INSERT)
    envelope.total = 0
    assert kinds(changes(envelope.SerializeToString())) == [(0, "insert")]


def test_a_tombstone_is_passed_over() -> None:
    assert kinds(changes(None, INSERT)) == [(0, "ignored"), (1, "insert")]


# ---- progress, types, options


def test_progress_is_the_oldest_event_of_a_record_or_the_newest_mark() -> None:
    wire = open_format("dts-protobuf")

    def reported(*entries: Entry) -> tuple[int, bool] | None:
        actual = wire.progress_of("t", None, record(*entries))
        return actual and (actual.source_time_ms, actual.heartbeat)

    def row(time: int) -> Entry:
        return dml([ID], new(number("1")), timestamp=time)

    def mark(time: int) -> Entry:
        checkpoint = CheckpointEvent(syncedGtid="g:1-5")
        return Entry(header=header(MessageType.CHECKPOINT, timestamp=time), event=Event(checkpointEvent=checkpoint))

    assert reported(row(20), row(10), mark(30)) == (10_000, False)
    assert reported(mark(30), mark(20)) == (30_000, True)
    assert reported(mark(0)) is None
    assert wire.progress_of("t", None, CHECKPOINT).heartbeat
    assert not wire.progress_of("t", None, MARKS).heartbeat
    for nothing in (None, b"", b"x", *SLICES):
        assert wire.progress_of("t", None, nothing) is None


def test_the_records_own_type_shows_the_encoding_before_the_timelines() -> None:
    wire = open_format("dts-protobuf", {"timezone": "+08:00"})
    (actual,) = changes(record(dml([ID, Column(name="b", originalType=b"blob")], new(number("1"), NULL))))
    description = wire.describe(actual["columns"])
    assert wire.encoding_of("b", ColumnType("text"), description) == Encoded("b", Encoding.BASE64)
    assert wire.encoding_of("b", ColumnType("varbinary", 3), None) == Encoded("b", Encoding.BASE64)
    assert wire.encoding_of("id", ColumnType("int"), description) == Encoded("id", Encoding.TEXT)
    assert wire.encoding_of("x", ColumnType("timestamp"), None) == Encoded("x", Encoding.TEXT, zone="+08:00")
    assert wire.encoding_of("x", ColumnType("datetime"), None) == Encoded("x", Encoding.TEXT)
    assert open_format("dts-protobuf").encoding_of("x", ColumnType("timestamp"), None).zone is None


def test_a_schema_with_a_type_that_is_not_known_is_not_inferred() -> None:
    wire = open_format("dts-protobuf")
    actual = change(dml([ID, Column(name="b", originalType=b"bytea")], new(number("1"), NULL)))
    assert wire.infer(wire.describe(actual["columns"])) is None


def test_a_timezone_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="timezone"):
        open_format("dts-protobuf", {"timezone": "Mars/Olympus"})
