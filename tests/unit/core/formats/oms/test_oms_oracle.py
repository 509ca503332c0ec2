# SPDX-License-Identifier: Apache-2.0
"""An Oracle tenant's records: its DDL makes the table, and its rows read as the values of Oracle's types."""

from __future__ import annotations

import json

import pyarrow as pa

from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type
from spark_jobs.tasks.land import schema_changes

CREATE = """CREATE TABLE orders (
  id NUMBER(19) NOT NULL, "Note" VARCHAR2(20 CHAR) DEFAULT 'n/a', rate NUMBER, amount NUMBER(12,2), placed DATE,
  changed TIMESTAMP(6), token RAW(16), period INTERVAL YEAR TO MONTH, CONSTRAINT orders_pk PRIMARY KEY (id))
  PCTFREE 10 TABLESPACE users"""
# values as docs/wire/oceanbase-oms.md 7 has them
ROW = {
    "ID": 9007199254740993,
    "Note": "größer",
    "RATE": 0.125,
    "AMOUNT": 12.50,
    "PLACED": "2020-11-25 00:01:02",
    "CHANGED": "2020-11-25 00:01:02.012345",
    "TOKEN": "aGVsbG8=",
    "PERIOD": "INTERVAL '4' YEAR",
}


def record(kind: str, number: int, after: object) -> bytes:
    """Return a record of the method Default."""
    meta = {
        "dbType": "OB_ORACLE",
        "db": "tenant.SHOP",
        "table_name": "ORDERS",
        "record_primary_key": "ID",
        "timestamp": "1609344671",
        "storeDataSequence": 160934467100000 + number,
    }
    return json.dumps({"allMetaData": meta, "prevStruct": None, "postStruct": after, "recordType": kind}).encode()


def test_an_oracle_tenants_table_comes_from_its_own_ddl() -> None:
    wire = open_format("oms-default")
    values = [
        record("DDL", 1, {"ddl": CREATE}),
        record("INSERT", 2, ROW),
        record("DDL", 3, {"ddl": "ALTER TABLE shop.orders ADD (state CHAR(4) DEFAULT 'new' NOT NULL)"}),
        record("DDL", 4, {"ddl": "RENAME orders TO sales"}),
    ]
    batch = wire.decode(Records("t", 0, list(range(4)), [1000] * 4, [None] * 4, values))
    assert batch.column("kind").to_pylist() == ["schema", "row", "schema", "schema"]
    statements = batch.filter(pa.array([True, False, True, True]))
    timeline = build_timeline(map(SchemaChange.from_document, schema_changes(wire, statements, 1)))

    (table,) = timeline.tables.values()
    assert table.name == TableName("SHOP", "SALES")
    assert table.blocked == []
    assert [column.name for column in table.schema.key_columns] == ["ID"]
    (added,) = (column for column in table.schema.columns if column.name == "STATE")
    assert table.fills[added.id].text == "new "  # CHAR is padded with blanks

    row = batch.slice(1, 1).to_pylist()[0]
    description = wire.describe(row["columns"])
    columns = table.versions[0].schema.columns
    fields = [
        Field(wire.encoding_of(column.name, column.type, description), column.type, arrow_type(column.type))
        for column in columns
    ]
    typed = type_images(pa.array([row["after"]]), fields)
    assert typed.failures == []
    actual = {column.name: str(values[0]) for column, values in zip(columns, typed.columns, strict=True)}
    assert actual == {
        "ID": "9007199254740993",
        "Note": "größer",
        "RATE": "0.125",
        "AMOUNT": "12.50",
        "PLACED": "2020-11-25 00:01:02",
        "CHANGED": "2020-11-25 00:01:02.012345",
        "TOKEN": str(b"hello"),
        "PERIOD": "INTERVAL '4' YEAR",
    }
