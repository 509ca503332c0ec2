# SPDX-License-Identifier: Apache-2.0
"""Commits that are written without delta-rs: one JSON document each, which the store lets one writer create.

The first commit of a table, because delta-rs takes 3 to 4 ms for it (1.6.6), mostly to hand work from thread to thread:
a third of what a new small table costs. And commits that change a table's columns or features together with its files,
because delta-rs has no such commit. All others are delta-rs'.

The actions and their members are those of Delta's protocol, "Actions". A local timestamp is the only type of ours that
needs a table feature.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, Schema
from deltalake.transaction import AddAction, RemoveAction

from airflow_provider_cdc.core.json_documents import json_bytes, json_data
from spark_jobs.sinks.delta.comments import Said, said_by
from spark_jobs.sinks.delta.deletion_vectors import FEATURE

_CHECKPOINT_EVERY = 10  # versions: Delta's default
_LOCAL_TIMES = "timestampNtz"
_LEGACY = ("appendOnly", "invariants")  # features of writer version 2, which version 7 has to list


def first_commit(
    schema: pa.Schema,
    added: Sequence[AddAction],
    custom: dict[str, str],
    transaction: tuple[str, int],
    configuration: Mapping[str, str | None],
    said: Said,
) -> tuple[str, bytes]:
    """Return name and content of the file that makes a table.

    :param added: the table's files, none for an empty table.
    :param custom: metadata of the commit.
    :param transaction: application and batch.
    :param configuration: the table's properties.
    :param said: what it says of itself.
    """
    operation = {"operation": "CREATE TABLE", "operationParameters": {"mode": "ErrorIfExists"}}
    metadata = {"id": str(uuid.uuid4()), "name": None, "createdTime": _now()}
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if has_local_times(schema):
        protocol = _protocol([], [], [_LOCAL_TIMES])
    actions = [
        {"protocol": protocol},
        {"metaData": _metadata({**metadata, "configuration": configuration}, Schema.from_arrow(schema), said)},
        *map(_add, added),
    ]
    return _document(0, operation, custom, actions, transaction)


@dataclass(frozen=True, slots=True)
class LaterFiles:
    """The files that a commit adds and removes.

    :param vectors: of each data file of which only rows go what the log states of its deletion vector.
    :param before: the ``add`` actions of these files, and of those removed that have a vector.
    """

    added: Sequence[AddAction]
    removed: Sequence[RemoveAction]
    vectors: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    before: Mapping[str, dict[str, Any]] = field(default_factory=dict)

    def actions(self) -> Iterator[dict[str, Any]]:
        """Yield the log's actions."""
        for file in self.removed:
            yield _removed(_remove(file), self.before.get(file.path, {}))
        for path, vector in self.vectors.items():
            stated = self.before[path]
            gone = RemoveAction(path, True, _now(), stated["size"], {})
            yield _removed(_remove(gone), stated)
            yield _with_vector(stated, vector)
        yield from map(_add, self.added)


def later_commit(
    table: DeltaTable,
    schema: pa.Schema | None,
    files: LaterFiles,
    custom: dict[str, str],
    transaction: tuple[str, int] | None,
    configuration: Mapping[str, str | None] | None = None,
    said: Said | None = None,
) -> tuple[str, bytes]:
    """Return name and content of the file behind a table's newest one that gives it other columns, or deletes rows.

    :param table: writer version 2, or 7 with features whose files need nothing more.
    :param schema: the table's columns then, None where they stay.
    :param transaction: application and batch; None for maintenance.
    :param configuration: the table's properties then, None where they stay.
    :param said: what the table says of itself then, None where that stays.
    """
    known, protocol = table.metadata(), table.protocol()
    metadata = {
        "id": str(known.id),
        "name": known.name,
        "createdTime": known.created_time,
        "configuration": known.configuration if configuration is None else configuration,
    }
    actions: list[dict[str, Any]] = []
    if schema is not None or configuration is not None or said is not None:
        columns = table.schema() if schema is None else Schema.from_arrow(schema)
        actions.append({"metaData": _metadata(metadata, columns, said or said_by(table))})
    needed = [_LOCAL_TIMES] if schema is not None and has_local_times(schema) else []
    needed += [FEATURE] if files.vectors else []
    features = list(protocol.writer_features or ())
    if missing := [feature for feature in needed if feature not in features]:
        listed = features if protocol.min_writer_version >= 7 else list(_LEGACY)
        actions.insert(0, {"protocol": _protocol(list(protocol.reader_features or ()), listed, missing)})
    actions += files.actions()
    mode = "Append" if not files.removed and not files.vectors else "Overwrite"
    operation = {"operation": "WRITE", "operationParameters": {"mode": mode}}
    if transaction is None:
        operation = {"operation": "OPTIMIZE" if custom else "SET TBLPROPERTIES", "operationParameters": {}}
    return _document(table.version() + 1, operation, custom, actions, transaction)


def checkpoint_is_due(version: int, properties: Mapping[str, str | None]) -> bool:
    """Return whether a commit that made a version has to write a checkpoint of the log.

    delta-rs writes one at each hundredth version, or as often as the table's property says: then we write none.
    """
    return version > 0 and version % _CHECKPOINT_EVERY == 0 and "delta.checkpointInterval" not in properties


def has_local_times(schema: pa.Schema) -> bool:
    """Return whether a schema has a type that needs a feature of the table."""
    return any(pa.types.is_timestamp(field.type) and field.type.tz is None for field in schema)


def _document(
    version: int,
    operation: dict[str, Any],
    custom: dict[str, str],
    actions: list[dict[str, Any]],
    transaction: tuple[str, int] | None,
) -> tuple[str, bytes]:
    info = {"timestamp": _now(), **operation, "engineInfo": "airflow-provider-cdc", **custom}
    every = [{"commitInfo": info}, *actions]
    if transaction is not None:
        every.append({"txn": {"appId": transaction[0], "version": transaction[1]}})
    return f"_delta_log/{version:020d}.json", b"\n".join(map(json_bytes, every))


def _now() -> int:
    return int(time.time() * 1000)


def _metadata(known: dict[str, Any], schema: Schema, said: Said) -> dict[str, Any]:
    files = {"format": {"provider": "parquet", "options": {}}, "partitionColumns": []}
    return {**known, "description": said.description or None, **files, "schemaString": said.on(schema).to_json()}


def _protocol(readers: list[str], writers: list[str], features: list[str]) -> dict[str, Any]:
    return {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": [*readers, *features],
        "writerFeatures": [*writers, *features],
    }


def _removed(action: dict[str, Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return a removal with the vector that the file had: the log knows a file by both."""
    if vector := stated.get("deletionVector"):
        action["remove"]["deletionVector"] = vector
    return action


def _with_vector(stated: Mapping[str, Any], vector: dict[str, Any]) -> dict[str, Any]:
    """Return the addition of a file of which more rows are deleted; its bounds are those of all its rows."""
    stats = str(stated["stats"])
    if "tightBounds" not in json_data(stats.encode()):
        stats = stats.rstrip().removesuffix("}") + ',"tightBounds":false}'
    file = {
        "path": stated["path"],
        "partitionValues": {},
        "size": stated["size"],
        "modificationTime": stated["modificationTime"],
        "dataChange": True,
        "stats": stats,
        "deletionVector": vector,
    }
    return {"add": file}


def _add(file: AddAction) -> dict[str, Any]:
    return {
        "add": {
            "path": file.path,
            "partitionValues": {},
            "size": file.size,
            "modificationTime": file.modification_time,
            "dataChange": file.data_change,
            "stats": file.stats,
        }
    }


def _remove(file: RemoveAction) -> dict[str, Any]:
    return {
        "remove": {
            "path": file.path,
            "deletionTimestamp": file.deletion_timestamp,
            "dataChange": file.data_change,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": file.size,
        }
    }
