# SPDX-License-Identifier: Apache-2.0
"""Tencent DTS records made by hand, and what decoding gives for them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Records
from airflow_provider_cdc.core.formats.generated.dts_pb2 import (
    Column,
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
    MessageType,
    RowChange,
)
from airflow_provider_cdc.core.formats.registry import open_format

# the vectors of docs/wire/tencent-dts.md 10
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
    fields = {"sourceType": 1, "timestamp": 1_648_109_734, "schemaName": "shop", "tableName": "t", "seqId": seq, **more}
    return Header(messageType=kind, **fields)


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
    for index, result in enumerate(numbers or ()):
        headers[index].append(("ps", str(result).encode()))
    for index, shard in enumerate(shards):
        headers[index].append(("ShardId", shard.encode()))
    wire = open_format("dts-protobuf", more.pop("options", None))
    records = Records(
        "t", 3, list(range(count)), [1000] * count, [None] * count, values, headers if numbers or shards else [], **more
    )
    batch = wire.decode(records)
    assert batch.schema.equals(CHANGE_SCHEMA)
    batch.validate(full=True)
    return batch.to_pylist()


def change(*entries: Entry, **more: Any) -> dict[str, Any]:
    (result,) = changes(record(*entries), **more)
    return result


def kinds(decoded: list[dict]) -> list[tuple[int, str]]:
    return [(item["offset"], item["error_code"] or item["op"] or item["kind"]) for item in decoded]


def value(kind: str, data: Data, **more: Any) -> Any:
    """Return what a value of a column type becomes in the image, or the error's code."""
    result = change(dml([ID, Column(name="c", originalType=kind.encode())], new(number("1"), data)), **more)
    return result["error_code"] or json.loads(result["after"])["c"]
