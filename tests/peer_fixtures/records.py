# SPDX-License-Identifier: Apache-2.0
"""The files of other projects as Kafka records, and what their tools write where a sample leaves it out."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from pathlib import Path
from typing import Any

from google.protobuf.json_format import ParseDict

from airflow_provider_cdc.core.formats.generated.dts_pb2 import Column, Entries, Entry, Envelope
from tests.decode_verb import Record

_LICENCE = re.compile(r"\s*/\*.*?\*/", re.DOTALL)
_BLANKS = re.compile(r"\s*")
_PLACE = {"db": "d", "table": "t", "file": "mysql-bin.000001"}


def documents(file: Path) -> list[str]:
    """Return the JSON documents of a file as they are spelled, without the licence at its head."""
    text = _LICENCE.sub("", file.read_text(encoding="utf-8"), count=1)
    decoder, result, begin = json.JSONDecoder(), [], _BLANKS.match(text).end()
    while begin < len(text):
        _, end = decoder.raw_decode(text, begin)
        result.append(text[begin:end])
        begin = _BLANKS.match(text, end).end()
    return result


def records_of(file: Path) -> list[Record]:
    """Return a file's documents as records; a document that is a record's key goes with the one after it."""
    if file.name == "eventbridge-update-event.json":
        return [_as_protobuf(json.loads(file.read_text(encoding="utf-8"))["data"])]
    result: list[Record] = []
    key: bytes | None = None
    for text in documents(file):
        document = json.loads(text)
        if _is_key(document):
            key = text.encode()
        elif "expected" in document:  # a script: SQL and the messages it gives
            result += [Record(json.dumps(message).encode()) for message in document["expected"]]
        elif document.keys() == {"partition", "key", "value"}:
            result.append(Record(*(json.dumps(document[name]).encode() for name in ("value", "key"))))
        else:
            result.append(Record(text.encode(), key))
            key = None
    return result if key is None else [*result, Record(key)]


def _is_key(document: dict[str, Any]) -> bool:
    schema = document.get("schema")
    return document.keys() == {"schema", "payload"} and str((schema or {}).get("name")).endswith("Key")


def _as_protobuf(event: dict[str, Any]) -> Record:
    """Return what DTS writes to Kafka for an event that EventBridge shows as JSON: the same messages and names."""
    dml = event["event"]["dmlEvent"]
    columns = [Column(**{**column, "originalType": column["originalType"].encode()}) for column in dml["columns"]]
    spelled = [
        b64encode(column.SerializeToString()).decode() for column in columns
    ]  # the product's proto reads them late
    entry = ParseDict({"header": event["header"], "event": {"dmlEvent": {**dml, "columns": spelled}}}, Entry())
    data = Entries(items=[entry]).SerializeToString()
    envelope = Envelope(version=1, total=1, index=0, data=data)
    return Record(envelope.SerializeToString(), headers=(("ps", str(event["partition_seq"]).encode()),))


def completed(record: Record, offset: int) -> Record:
    """Return a record with the members that its tool always writes and that the sample leaves out."""
    document = json.loads(record.value or b"")
    message = document.get("payload", document)
    if "op" in message:
        source = message.get("source") or {}
        message["source"] = {**_PLACE, **source, "file": source.get("file") or _PLACE["file"], "pos": offset}
        numbers = {name: 0 for name in ("ts_ms", "ts_us", "ts_ns") if isinstance(message.get(name), str)}
        message.update(numbers)
    elif "data" in message:
        message = document = {"database": "d", "table": "t", **message}
    return Record(json.dumps(document).encode(), record.key)
