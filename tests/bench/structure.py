# SPDX-License-Identifier: Apache-2.0
"""The bench's tables: their names and topics, their structure, and how Debezium describes it.

The structure is written by hand in three forms (DDL, embedded schema, Arrow), none derived from the code under
measurement.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

SERVER = "bench"
DATABASE = "shop"
SCHEMA_TOPIC = SERVER
DATA_TOPICS = rf"{SERVER}\.{DATABASE}\..*"
ONE_TOPIC = f"{SERVER}.{DATABASE}.all"

START = 1_780_000_000  # seconds since the epoch of the first change

_DDL = """\
CREATE TABLE `{table}` (
  `id` bigint(20) NOT NULL,
  `customer` varchar(64) NOT NULL,
  `email` varchar(120) DEFAULT NULL,
  `street` varchar(120) NOT NULL,
  `note` varchar(255) NOT NULL,
  `amount` decimal(12,2) NOT NULL,
  `quantity` int(11) NOT NULL,
  `created` datetime NOT NULL,
  `weight` double DEFAULT NULL,
  `due` date DEFAULT NULL,
  `status` tinyint(4) NOT NULL,
  `updated` timestamp NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"""

Column = tuple[str, int, str, int | None, int | None, bool]
"""Name, JDBC type, type, length, scale, optional: what `tableChanges` says of a column."""

COLUMNS: list[Column] = [
    ("id", -5, "BIGINT", 20, None, False),
    ("customer", 12, "VARCHAR", 64, None, False),
    ("email", 12, "VARCHAR", 120, None, True),
    ("street", 12, "VARCHAR", 120, None, False),
    ("note", 12, "VARCHAR", 255, None, False),
    ("amount", 3, "DECIMAL", 12, 2, False),
    ("quantity", 4, "INT", 11, None, False),
    ("created", 93, "DATETIME", None, None, False),
    ("weight", 8, "DOUBLE", None, None, True),
    ("due", 91, "DATE", None, None, True),
    ("status", 5, "TINYINT", 4, None, False),
    ("updated", 2014, "TIMESTAMP", None, None, False),
]

EXPECTED = pa.schema(
    [
        ("id", pa.int64()),
        ("customer", pa.string()),
        ("email", pa.string()),
        ("street", pa.string()),
        ("note", pa.string()),
        ("amount", pa.decimal128(12, 2)),
        ("quantity", pa.int32()),
        ("created", pa.timestamp("us")),
        ("weight", pa.float64()),
        ("due", pa.date32()),
        ("status", pa.int8()),
        ("updated", pa.timestamp("us", "UTC")),
    ]
)


def _field(field: str, kind: str, optional: bool = False, /, **more: Any) -> dict[str, Any]:
    return {"type": kind, "optional": optional, **more, "field": field}


_DECIMAL = {
    "name": "org.apache.kafka.connect.data.Decimal",
    "version": 1,
    "parameters": {"scale": "2", "connect.decimal.precision": "12"},
}
_ROW_FIELDS = [
    _field("id", "int64"),
    _field("customer", "string"),
    _field("email", "string", True),
    _field("street", "string"),
    _field("note", "string"),
    _field("amount", "bytes", **_DECIMAL),
    _field("quantity", "int32"),
    _field("created", "int64", name="io.debezium.time.Timestamp", version=1),
    _field("weight", "double", True),
    _field("due", "int32", True, name="io.debezium.time.Date", version=1),
    _field("status", "int16"),
    _field("updated", "string", name="io.debezium.time.ZonedTimestamp", version=1),
]
_SNAPSHOT = "true,first,first_in_data_collection,last_in_data_collection,last,false,incremental"
_SOURCE_FIELDS = [
    _field("version", "string"),
    _field("connector", "string"),
    _field("name", "string"),
    _field("ts_ms", "int64"),
    {
        **_field("snapshot", "string", True, name="io.debezium.data.Enum", version=1),
        "parameters": {"allowed": _SNAPSHOT},
        "default": "false",
    },
    _field("db", "string"),
    _field("sequence", "string", True),
    _field("ts_us", "int64", True),
    _field("ts_ns", "int64", True),
    _field("table", "string", True),
    _field("server_id", "int64"),
    _field("gtid", "string", True),
    _field("file", "string"),
    _field("pos", "int64"),
    _field("row", "int32"),
    _field("thread", "int64", True),
    _field("query", "string", True),
]
_BLOCK_FIELDS = [_field("id", "string"), _field("total_order", "int64"), _field("data_collection_order", "int64")]
_SOURCE_NAME = "io.debezium.connector.mysql.Source"


def envelope_schema(prefix: str) -> str:
    """Return the schema of a table's row records, as text.

    prefix: of the names of its parts.
    """
    image = {"type": "struct", "fields": _ROW_FIELDS, "optional": True, "name": f"{prefix}.Value"}
    source = {"type": "struct", "fields": _SOURCE_FIELDS, "optional": False, "name": _SOURCE_NAME, "version": 1}
    block = {"type": "struct", "fields": _BLOCK_FIELDS, "optional": True, "name": "event.block", "version": 1}
    fields = [
        {**image, "field": "before"},
        {**image, "field": "after"},
        {**source, "field": "source"},
        {**block, "field": "transaction"},
        _field("op", "string"),
        *(_field(name, "int64", True) for name in ("ts_ms", "ts_us", "ts_ns")),
    ]
    envelope = {"type": "struct", "fields": fields, "optional": False, "name": f"{prefix}.Envelope", "version": 2}
    return _compact(envelope)


def key_schema(prefix: str) -> str:
    """Return the schema of a table's record keys, as text."""
    key = {"type": "struct", "fields": [_field("id", "int64")], "optional": False, "name": f"{prefix}.Key"}
    return _compact(key)


def creation(table: str, number: int) -> bytes:
    """Return the value of the schema topic's record of a table's creation, as a snapshot states it.

    number: of the table; each was created a little later than the one before.
    """
    ms = START * 1000 - 60_000 + number
    origin = {"snapshot": "true", "server_id": 0, "file": "mysql-bin.000001", "pos": 4}
    return _schema_change("CREATE", table, _DDL.format(table=table), COLUMNS, ms, origin)


def alteration(table: str, statement: str, columns: Sequence[Column], ms: int, file: str, pos: int) -> bytes:
    """Return the value of the schema topic's record of an ALTER TABLE.

    columns: all that the table has after it.
    """
    origin = {"snapshot": "false", "server_id": 4711, "file": file, "pos": pos}
    return _schema_change("ALTER", table, statement, columns, ms, origin)


def _schema_change(
    kind: str, table: str, statement: str, columns: Sequence[Column], ms: int, origin: Mapping[str, Any]
) -> bytes:
    source = {
        "version": "3.1.2.Final", "connector": "mysql", "name": SERVER, "ts_ms": ms, "snapshot": None, "db": DATABASE,
        "sequence": None, "ts_us": ms * 1000, "ts_ns": ms * 1_000_000, "table": table, "server_id": 0, "gtid": None,
        "file": "", "pos": 0, "row": 0, "thread": None, "query": None, **origin,
    }  # fmt: skip
    described = [
        {
            "name": name, "jdbcType": jdbc, "nativeType": None, "typeName": type_, "typeExpression": type_,
            "charsetName": "utf8mb4" if type_ == "VARCHAR" else None, "length": length, "scale": scale,
            "position": position, "optional": optional, "autoIncremented": False, "generated": False, "comment": None,
            "defaultValueExpression": None, "enumValues": None,
        }
        for position, (name, jdbc, type_, length, scale, optional) in enumerate(columns, 1)
    ]  # fmt: skip
    structure = {
        "defaultCharsetName": "utf8mb4",
        "primaryKeyColumnNames": ["id"],
        "columns": described,
        "comment": None,
    }
    payload = {
        "source": source,
        "ts_ms": ms + 5,
        "databaseName": DATABASE,
        "schemaName": None,
        "ddl": statement,
        "tableChanges": [{"type": kind, "id": f'"{DATABASE}"."{table}"', "table": structure}],
    }
    return _compact(payload).encode()


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
