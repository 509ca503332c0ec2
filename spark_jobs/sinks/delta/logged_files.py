# SPDX-License-Identifier: Apache-2.0
"""Read from a table's log what it states of data files word by word; delta-rs hands over only part of it (1.6.6)."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.lake.storage import Storage

_COLUMNS = ["add.path", "add.size", "add.modificationTime", "add.stats", "add.deletionVector"]


def logged_files(storage: Storage, version: int, paths: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the ``add`` action of each of some files of a version.

    :param storage: folder of the table.
    :param paths: as the log states them.
    :raises SinkError: the log does not state one of them in a form that is read here.
    """
    names, actions = set(paths), dict[str, dict[str, Any]]()
    checkpoint = (storage.read_unfinished("_delta_log/_last_checkpoint") or {"version": -1})["version"]
    last = int(checkpoint) if int(checkpoint) <= version else -1
    for number in range(version, last, -1):
        if names <= actions.keys():
            return actions
        for action in _commit(storage, number):
            file = action.get("add")
            if file is not None and file["path"] in names:
                actions.setdefault(file["path"], file)
    if last >= 0 and not names <= actions.keys():
        for path, file in _checkpoint(storage, last, names).items():
            actions.setdefault(path, file)
    if not names <= actions.keys() or not all("numRecords" in str(one.get("stats")) for one in actions.values()):
        raise SinkError(
            "sink.refused",
            "the table's log states its files in a way that deletes cannot be written next to",
            where={"location": storage.root, "version": version},
            hint="set sink.writes to copy-on-write, or let delta-rs write a checkpoint of the table",
        )
    return actions


def added_bytes(storage: Storage, version: int) -> int:
    """Return the bytes of the data files that a version's commit added; one whose rows only go is none of them."""
    actions = _commit(storage, version)
    removed = {action["remove"]["path"] for action in actions if "remove" in action}
    return sum(action["add"]["size"] for action in actions if "add" in action and action["add"]["path"] not in removed)


def _commit(storage: Storage, number: int) -> list[dict[str, Any]]:
    name = f"_delta_log/{number:020d}.json"
    with storage.open_file(name) as stream:
        return [json.loads(line) for line in bytes(stream.read()).splitlines() if line.strip()]


def _checkpoint(storage: Storage, number: int, paths: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return files of a checkpoint in one part; one in several, or with parts of its own, is not read."""
    with storage.open_file(f"_delta_log/{number:020d}.checkpoint.parquet") as stream:
        file = pq.ParquetFile(stream)
        if "add" not in file.schema_arrow.names:
            return {}
        rows = file.read(columns=_COLUMNS).column("add").combine_chunks()
    some = rows.filter(pc.is_in(pc.struct_field(rows, "path"), pa.array(sorted(paths))))
    return {one["path"]: {key: value for key, value in one.items() if value is not None} for one in some.to_pylist()}
