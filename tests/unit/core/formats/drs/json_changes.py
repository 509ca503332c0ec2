# SPDX-License-Identifier: Apache-2.0
"""Changes that DRS's JSON formats make of messages, for tests."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.images import Field, type_images
from airflow_provider_cdc.core.values.types import arrow_type

BOTH = ("drs-json", "drs-json-c")

# the types of the table in the vendor's sample; the lengths are ours
SAMPLE_TYPES = {
    "id": "int", "c1": "varchar(80)", "c2": "varbinary(200)", "c3": "int", "c4": "datetime", "c5": "timestamp(3)",
    "c6": "char(40)", "c7": "float", "c8": "double", "c9": "decimal(20,2)", "c10": "varchar(80)", "c11": "binary(3)",
    "c12": "varbinary(400)", "c13": "text", "c14": "blob",
}  # fmt: skip


def changes(*values: object, format: str = "drs-json", **options: str) -> list[dict[str, Any]]:
    raw = [v if v is None or isinstance(v, bytes) else json.dumps(v).encode() for v in values]
    count = len(raw)
    records = Records("drs", 1, list(range(count)), [1000] * count, [None] * count, raw)
    return open_format(format, options).decode(records).to_pylist()


def message(kind: str, data: object = None, old: object = None, **more: object) -> dict[str, Any]:
    columns = {"id": "int", "v": "varchar"}
    return {
        "mysqlType": columns, "id": 27677, "es": 1624614713000, "ts": 1625058726990, "database": "test01",
        "table": "test ", "type": kind, "isDdl": False, "sql": "", "sqlType": {"id": 4, "v": 12}, "data": data,
        "old": old, "pkNames": ["id"], **more,
    }  # fmt: skip


def image(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def values(change: dict[str, Any], which: str, types: dict[str, str], format: str = "drs-json", **options: str) -> Any:
    """Return the typed values of an image, or the reasons why there are none."""
    wire = open_format(format, options)
    description = None if change["columns"] is None else wire.describe(change["columns"])
    fields = []
    for name, text in types.items():
        kind = parse_type(text)
        fields.append(Field(wire.encoding_of(name, kind, description), kind, arrow_type(kind)))
    typed = type_images(pa.array([change[which]]), fields)
    failed = {failure.column: failure.reason for failure in typed.failures}
    return failed or {name: column[0].as_py() for name, column in zip(types, typed.columns, strict=True)}


def value(text: object, kind: str, format: str = "drs-json", named: str | None = None, **options: str) -> Any:
    """Return the value of one column, given how it stands in the image."""
    reported = {"mysqlType": {"c": named or kind.partition("(")[0]}}
    (change,) = changes(message("INSERT", [{"c": text}], **reported), format=format, **options)
    result = values(change, "after", {"c": kind}, format, **options)
    return result["c"]


OLD, NEW = {"id": "1", "v": "a"}, {"id": "1", "v": "b"}
