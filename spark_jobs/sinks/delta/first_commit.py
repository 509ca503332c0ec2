# SPDX-License-Identifier: Apache-2.0
"""The first commit of a Delta table, written without delta-rs.

delta-rs takes 3 to 4 ms for it (1.6.6), mostly to hand work from thread to thread: a third of what a new small table
costs. The commit is one JSON document; every later one, which depends on what stands in the log, is delta-rs'.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
from deltalake import Schema
from deltalake.transaction import AddAction

from airflow_provider_cdc.core.json_documents import json_bytes

_FILE = "_delta_log/00000000000000000000.json"


def first_commit(
    schema: pa.Schema, added: Sequence[AddAction], custom: dict[str, str], app: str, seq: int
) -> tuple[str, bytes]:
    """Return name and content of the file that makes a table.

    The actions and their members are those of Delta's protocol, "Actions"; a local timestamp is the only type of ours
    that needs a table feature.

    :param added: the table's files, none for an empty table.
    :param custom: metadata of the commit.
    :param app: application id of the transaction, whose version is ``seq``.
    """
    now = int(time.time() * 1000)
    operation = {"operation": "CREATE TABLE", "operationParameters": {"mode": "ErrorIfExists"}}
    columns = Schema.from_arrow(schema).to_json()
    metadata = {
        "id": str(uuid.uuid4()),
        "name": None,
        "description": None,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": columns,
        "partitionColumns": [],
        "createdTime": now,
        "configuration": {},
    }
    actions: list[dict[str, Any]] = [
        {"commitInfo": {"timestamp": now, **operation, "engineInfo": "airflow-provider-cdc", **custom}},
        {"protocol": _protocol(schema)},
        {"metaData": metadata},
        *({"add": _added(file)} for file in added),
        {"txn": {"appId": app, "version": seq}},
    ]
    return _FILE, b"\n".join(map(json_bytes, actions))


def _protocol(schema: pa.Schema) -> dict[str, Any]:
    if not any(pa.types.is_timestamp(field.type) and field.type.tz is None for field in schema):
        return {"minReaderVersion": 1, "minWriterVersion": 2}
    features = ["timestampNtz"]
    return {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}


def _added(file: AddAction) -> dict[str, Any]:
    return {
        "path": file.path,
        "partitionValues": {},
        "size": file.size,
        "modificationTime": file.modification_time,
        "dataChange": file.data_change,
        "stats": file.stats,
    }
