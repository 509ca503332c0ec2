# SPDX-License-Identifier: Apache-2.0
"""Packets of Canal whose fields come more than once."""

from __future__ import annotations

import pytest

from airflow_provider_cdc.core.formats.canal.statements import changes_one_table
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.generated.canal_entry_pb2 import INSERT, ROWDATA, Column, Entry, RowChange
from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import MESSAGES, Messages, Packet
from airflow_provider_cdc.core.formats.registry import open_format


def _body(*tables: str) -> bytes:
    messages = Messages()
    for table in tables:
        change = RowChange(eventType=INSERT)
        change.rowDatas.add().afterColumns.append(
            Column(index=0, sqlType=4, name="id", isKey=True, updated=True, value="1", mysqlType="int")
        )
        entry = Entry(entryType=ROWDATA, storeValue=change.SerializeToString())
        entry.header.logfileName, entry.header.logfileOffset = "mysql-bin.000001", 120
        entry.header.schemaName, entry.header.tableName = "shop", table
        messages.messages.append(entry.SerializeToString())
    return messages.SerializeToString()


def _packet(*bodies: bytes) -> bytes:
    # concatenated messages are one message with the fields of both
    return b"".join(Packet(magic_number=1, type=MESSAGES, body=body).SerializeToString() for body in bodies)


@pytest.mark.parametrize("repeats", [1, 40], ids=["short", "long"])
def test_of_several_bodies_the_last_counts(repeats: int) -> None:
    """As protobuf says of a field of bytes that comes more than once, and as Canal's own client reads it."""
    plain, doubled = _packet(_body("a")), _packet(_body("b"), _body(*["c"] * repeats))
    values = [plain, doubled, plain, _packet(_body(*["d"] * 40), _body("e")), b"", b"*"]
    records = Records("t", 0, list(range(6)), [0] * 6, [None] * 6, values, [None] * 6)
    changes = open_format("canal-protobuf").decode(records).to_pylist()
    rows = [(change["offset"], change["table"]) for change in changes if change["kind"] == "row"]
    assert rows == [(0, "a"), *[(1, "c")] * repeats, (2, "a"), (3, "e")]


def test_a_body_that_comes_twice_may_hold_what_cannot_be_applied() -> None:
    statement = RowChange(eventType=INSERT, sql="INSERT INTO t SELECT 1")
    entry = Entry(entryType=ROWDATA, storeValue=statement.SerializeToString())
    entry.header.logfileName, entry.header.logfileOffset = "mysql-bin.000001", 120
    entry.header.schemaName, entry.header.tableName = "shop", "t"
    messages = Messages(messages=[entry.SerializeToString()])
    value = _packet(_body("a", "b"), messages.SerializeToString())
    records = Records("t", 0, [0], [0], [None], [value], [None])
    (change,) = open_format("canal-protobuf").decode(records).to_pylist()
    assert (change["kind"], change["error_code"]) == ("error", "record.statement_format")
    assert change["raw"] == entry.SerializeToString()
    assert (change["database"], change["table"]) == ("shop", "t")


@pytest.mark.parametrize(
    ("statement", "one"),
    [
        ("INSERT INTO a SELECT * FROM b", True),
        ("/* x */ REPLACE a VALUES (1)", True),
        ("UPDATE `a b`.`c` SET v = 1", True),
        ("update low_priority a as x set v = 1", True),
        ("UPDATE a JOIN b ON a.id = b.id SET a.v = b.v", False),
        ("UPDATE a, b SET a.v = 1", False),
        ("DELETE FROM a WHERE id = 1", True),
        ("DELETE FROM a", True),
        ("DELETE a, b FROM a JOIN b", False),
        ("DELETE FROM a, b USING a JOIN b", False),
        ("LOAD DATA INFILE 'x' INTO TABLE a", False),
        ("CALL p()", False),
        ("", False),
    ],
)
def test_a_statement_is_about_one_table_only_where_that_is_certain(statement: str, one: bool) -> None:
    assert changes_one_table(statement) is one
