# SPDX-License-Identifier: Apache-2.0
"""The Avro schema of docs/wire/huawei-drs.md A, newer edition, and the options that say how to read it.

The vendor's own schema is not public; this one of another vendor has every shape that a reader by schema must master.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import Any

import fastavro

SPACE = "com.alibaba.dts.formats.avro"
_SOURCES = "MySQL Oracle SQLServer PostgreSQL MongoDB Redis DB2 PPAS DRDS HBASE HDFS FILE OTHER"
_OPERATIONS = "INSERT UPDATE DELETE DDL BEGIN COMMIT ROLLBACK ABORT HEARTBEAT CHECKPOINT COMMAND FILL FINISH"
_NEWER_OPERATIONS = "CONTROL RDB NOOP INIT"
_LOCAL = ("year", "month", "day", "hour", "minute", "second", "millis")


def _record(record_name: str, /, **fields: Any) -> dict[str, Any]:
    members = [{"name": name, "type": kind} for name, kind in fields.items()]
    return {"type": "record", "name": record_name, "fields": members}


def _enum(name: str, symbols: str) -> dict[str, Any]:
    return {"type": "enum", "name": name, "symbols": symbols.split()}


VALUES: dict[str, Any] = {
    "Integer": _record("Integer", precision="int", value="string"),
    "Character": _record("Character", charset="string", value="bytes"),
    "Decimal": _record("Decimal", value="string", precision="int", scale="int"),
    "Float": _record("Float", value="double", precision="int", scale="int"),
    "Timestamp": _record("Timestamp", timestamp="long", millis="int"),
    "DateTime": _record("DateTime", **{part: ["null", "int"] for part in _LOCAL}),
    "TimestampWithTimeZone": _record("TimestampWithTimeZone", value="DateTime", timezone="string"),
    "BinaryGeometry": _record("BinaryGeometry", type="string", value="bytes"),
    "TextGeometry": _record("TextGeometry", type="string", value="string"),
    "BinaryObject": _record("BinaryObject", type="string", value="bytes"),
    "TextObject": _record("TextObject", type="string", value="string"),
    "EmptyObject": _enum("EmptyObject", "NULL NONE"),
}


def schema(*names: str, operations: str = f"{_OPERATIONS} {_NEWER_OPERATIONS}") -> dict[str, Any]:
    """Return the schema with these branches of a value, in their order; all of them without names."""
    branches = names or tuple(VALUES)
    before = ["null", *(VALUES[name] for name in branches)]
    after = ["null", *branches]
    field = _record("Field", name="string", dataTypeNumber="int")
    whole = _record(
        "Record",
        version="int",
        id="long",
        sourceTimestamp="long",
        sourcePosition="string",
        safeSourcePosition="string",
        sourceTxid="string",
        source=_record("Source", sourceType=_enum("SourceType", _SOURCES), version="string"),
        operation=_enum("Operation", operations),
        objectName=["null", "string"],
        processTimestamps=["null", {"type": "array", "items": "long"}],
        tags={"type": "map", "values": "string"},
        fields=["null", "string", {"type": "array", "items": field}],
        beforeImages=["null", "string", {"type": "array", "items": before}],
        afterImages=["null", "string", {"type": "array", "items": after}],
    )
    return {**whole, "namespace": SPACE}


OLDER = schema(*list(VALUES)[:-1], operations=_OPERATIONS)  # 12 branches, 13 operations
SHORTENED = schema("Character", "Float", "Timestamp", "EmptyObject")  # a cut-down copy that misreads real data

OPTIONS: Mapping[str, str] = {
    "schema": json.dumps(schema(), separators=(",", ":")),
    "field.operation": "operation",
    "field.position": "id",
    "field.time": "sourceTimestamp",
    "field.name": "objectName",
    "field.columns": "fields",
    "field.before": "beforeImages",
    "field.after": "afterImages",
    "field.statement": "afterImages",
    "field.transaction": "sourceTxid",
    "operation.begin": "BEGIN",
    "operation.commit": "COMMIT",
    "operation.progress": "HEARTBEAT",
    "operation.ignored": "CHECKPOINT, NOOP",
    "null_symbols": "NULL",
    "absent_symbols": "NONE",
}
_PARSED = fastavro.parse_schema(schema())


def encoded(tree: Any, datum: Any) -> bytes:
    """Return a datum as a bare record of a schema; a value of a named branch is a pair of full name and value."""
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, tree, datum)
    return stream.getvalue()


def record(operation: str, **more: Any) -> dict[str, Any]:
    """Return a record's fields, with plain values for those that are not given."""
    plain = {
        "version": 1, "id": 27677, "sourceTimestamp": 1624614713, "sourcePosition": "4711@12",
        "safeSourcePosition": "4711@12", "sourceTxid": "77", "source": {"sourceType": "MySQL", "version": "8.0"},
        "operation": operation, "objectName": "shop.orders", "processTimestamps": [1625058726990], "tags": {},
        "fields": None, "beforeImages": None, "afterImages": None,
    }  # fmt: skip
    return {**plain, **more}


def wire(operation: str, **more: Any) -> bytes:
    """Return a record of the newer edition in bytes."""
    return encoded(_PARSED, record(operation, **more))


def value(branch: str, **fields: Any) -> tuple[str, Any]:
    """Return a value of a union by the short name of its branch."""
    return f"{SPACE}.{branch}", fields
