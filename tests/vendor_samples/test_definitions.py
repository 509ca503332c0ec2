# SPDX-License-Identifier: Apache-2.0
"""The messages, enums, outlines and type tables in the vendors' documents on their protobuf forms."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.generated import canal_entry_pb2, canal_packet_pb2, dts_pb2
from airflow_provider_cdc.core.formats.generated.dts_pb2 import (
    Column,
    Data,
    DataType,
    DMLEvent,
    Entries,
    Entry,
    Envelope,
    Event,
    Header,
    MessageType,
    RowChange,
)
from tests.decode_verb import Record, decoded, typed
from tests.vendor_samples.documents import FOLDER, definitions, document

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the vendors' documents are not next to this project")

DTS, CANAL = "000", "001"
PRODUCT = {DTS: dts_pb2.DESCRIPTOR, CANAL: canal_packet_pb2.DESCRIPTOR}
KEPT = {
    DTS: {"Entry", "Header", "Event", "Entries", "Envelope", "Data", "DataType"},
    CANAL: {"PacketType", "Ack", "Messages"},
}
# Canal's own TCP session (docs/wire/canal.md 3); the product reads what Canal writes to Kafka (docs/wire/canal.md 5)
SESSION = {
    *("HeartBeat", "Handshake", "ClientAuth", "ClientAck", "Sub", "Unsub", "Get", "Dump", "ClientRollback"),
}  # fmt: skip
# the document runs a comment's last word into the name after it
MISPRINTS = {"NULLINT8": "INT8"}


def known(number: str, name: str) -> Mapping[str, int]:
    """Return the numbers by name that the product has for a message or enum."""
    file = PRODUCT[number]
    if name in file.enum_types_by_name:
        return {value.name: value.number for value in file.enum_types_by_name[name].values}
    return {field.name: field.number for field in file.message_types_by_name[name].fields}


@pytest.mark.parametrize("number", [DTS, CANAL])
def test_every_definition_has_a_verdict(number: str) -> None:
    assert definitions(number).keys() == KEPT[number] | (SESSION if number == CANAL else set())


@pytest.mark.parametrize(
    ("number", "name"), [(number, name) for number, names in KEPT.items() for name in sorted(names)]
)
def test_a_definition_is_that_of_the_document(number: str, name: str) -> None:
    stated = {MISPRINTS.get(field, field): field_number for field, field_number in definitions(number)[name].items()}
    product = known(number, name)
    assert stated.items() <= product.items()
    # Canal's newer enums have a member for 0, as proto3 wants it (docs/wire/canal.md 1.2)
    assert {field for field in product if not field.endswith("COMPATIBLEPROTO2")} == stated.keys()


def outline() -> dict[str, set[str]]:
    """Return the fields that Canal's document lists under each heading."""
    result: dict[str, set[str]] = {}
    heading = ""
    for line in document(CANAL).splitlines():
        if re.fullmatch(r"Entry|Header|RowChange|Column|Packet", line):
            heading = line
        elif heading and (listed := re.match(r"(\w+) \[", line)):
            result.setdefault(heading, set()).add(listed[1])
    return result


OUTLINE = {
    "Header": (canal_entry_pb2.Header, canal_entry_pb2.Entry),
    "RowChange": (canal_entry_pb2.RowChange, canal_entry_pb2.RowData),
    "Column": (canal_entry_pb2.Column,),
    "Packet": (canal_packet_pb2.Packet,),
}


def test_canals_entries_have_the_fields_that_the_document_lists() -> None:
    listed = outline()
    assert listed.keys() == OUTLINE.keys()
    for heading, kinds in OUTLINE.items():
        fields = {field.name for kind in kinds for field in kind.DESCRIPTOR.fields}
        # the fields that hold what another heading lists
        assert fields - {"header"} == listed[heading], heading


# of each MySQL type: a column of that type, the value as DTS sends it, and what the table gets
VALUES: dict[str, tuple[str, str | bytes | None, Any]] = {
    "NULL": ("int(11)", None, None),
    "INT8": ("tinyint(4)", "-128", -128),
    "INT16": ("smallint(6)", "-32768", -32768),
    "INT24": ("mediumint(9)", "8388607", 8388607),
    "INT32": ("int(11)", "-2147483648", -2147483648),
    "INT64": ("bigint(20)", "9223372036854775807", 2**63 - 1),
    "BIT": ("bit(10)", "515", 515),
    "YEAR": ("year(4)", "2024", 2024),
    "FLOAT": ("float", "1.5", 1.5),
    "DOUBLE": ("double", "1", 1.0),
    "VARCHAR": ("varchar(20)", "hé".encode(), "hé"),
    "STRING": ("char(20)", b"a", "a"),
    "VAR_STRING": ("varchar(20)", b"", ""),
    "TIMESTAMP": ("timestamp", b"2021-05-17 07:22:42", datetime(2021, 5, 17, 7, 22, 42, tzinfo=UTC)),
    "DATE": ("date", b"2024-02-29", date(2024, 2, 29)),
    "TIME": ("time", b"-20:12:22", "-20:12:22"),
    "DATETIME": ("datetime", b"2021-05-17 07:22:42", datetime(2021, 5, 17, 7, 22, 42)),
    "TIMESTAMP_NEW": ("timestamp(6)", b"2021-05-17 07:22:42.000001", datetime(2021, 5, 17, 7, 22, 42, 1, UTC)),
    "DATE_NEW": ("date", b"0001-01-01", date(1, 1, 1)),
    "TIME_NEW": ("time(3)", b"838:59:59.123", "838:59:59.123"),
    "DATETIME_NEW": ("datetime(3)", b"2021-05-17 07:22:42.123", datetime(2021, 5, 17, 7, 22, 42, 123000)),
    "ENUM": ("enum('a','b')", b"b", "b"),
    "SET": ("set('a','b')", b"a,b", "a,b"),
    "DECIMAL": ("decimal(10,2)", "1.10", Decimal("1.10")),
    "DECIMAL_NEW": ("decimal(38,0)", "9" * 38, Decimal("9" * 38)),
    "JSON": ("json", b'{"a": 1}', '{"a": 1}'),
    "BLOB": ("blob", b"\x00\xff", b"\x00\xff"),
    "TINY_BLOB": ("tinyblob", b"", b""),
    "MEDIUM_BLOB": ("mediumblob", b"\x01", b"\x01"),
    "LONG_BLOB": ("longblob", b"\x02", b"\x02"),
    # a point, as the server stores it: its reference system, then WKB
    "GEOMETRY": ("geometry", bytes(4) + b"\1\1" + bytes(19), b"\1\1" + bytes(19)),
}


def mapped() -> dict[str, str]:
    """Return the document's table: MySQL type to the data type of its values."""
    return dict(re.findall(r"^MYSQL_TYPE_(\w+) \| (\w+) \|$", document(DTS), re.MULTILINE))


def insert(kind: str, data: Data) -> bytes:
    """Return the entries of an insert of one row."""
    columns = [Column(name="id", originalType=b"int(11)", isKey=True), Column(name="c", originalType=kind.encode())]
    row = RowChange(newColumns=[Data(dataType=DataType.INT32, sv="1"), data])
    event = DMLEvent(columns=[column.SerializeToString() for column in columns], rows=[row])
    header = Header(messageType=MessageType.DML, timestamp=1648109734, schemaName="d", tableName="t", seqId=7)
    return Entries(items=[Entry(header=header, event=Event(dmlEvent=event))]).SerializeToString()


def record(entries: bytes, index: int = 0, total: int = 1, number: int = 1) -> Record:
    envelope = Envelope(version=1, total=total, index=index, data=entries)
    return Record(envelope.SerializeToString(), headers=(("ps", str(number).encode()),))


def test_every_type_of_the_documents_table_has_a_value() -> None:
    assert mapped().keys() == VALUES.keys()


@pytest.mark.parametrize("name", VALUES)
def test_a_value_sent_as_the_document_maps_its_type_is_the_tables(name: str, tmp_path: Path) -> None:
    kind, sent, value = VALUES[name]
    data = Data(dataType=DataType.Value(mapped()[name]))
    if isinstance(sent, str):
        data.sv = sent
    elif sent is not None:
        data.bv = sent
        data.charset = "utf8" if data.dataType == DataType.STRING else ""
    (change,) = decoded([record(insert(kind, data))], "dts-protobuf", tmp_path)
    assert (change["kind"], change["op"], change["database"], change["table"]) == ("row", "insert", "d", "t")
    assert typed(change, "c", kind, "dts-protobuf") == value


def test_slices_are_joined_as_the_documents_code_joins_them(tmp_path: Path) -> None:
    entries = insert("varchar(20)", Data(dataType=DataType.STRING, charset="utf8", bv="hé".encode()))
    cuts = (0, 1, len(entries) // 2, len(entries))  # anywhere, also inside a character
    parts = [entries[start:end] for start, end in pairwise(cuts)]
    slices = [record(part, index, len(parts), index + 1) for index, part in enumerate(parts)]
    changes = decoded(slices, "dts-protobuf", tmp_path)
    assert [(change["offset"], change["after"]) for change in changes if change["kind"] == "row"] == [
        (2, '{"id":"1","c":"hé"}')
    ]
