# SPDX-License-Identifier: Apache-2.0
"""Maintain one table: put small files together, fold deletes in, expire snapshots, remove files that nobody needs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import inf
from typing import Any

from pyarrow import fs
from pyiceberg.table.snapshots import Operation

from airflow_provider_cdc.core.apply.target_schema import row_order
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.sinks.iceberg.catalogs import reaching
from spark_jobs.sinks.iceberg.committing import TableCommit, expire, set_properties
from spark_jobs.sinks.iceberg.live_files import LiveFile, LiveFiles, bounds_of, only_path
from spark_jobs.sinks.iceberg.snapshots import FileChange
from spark_jobs.sinks.iceberg.table import IcebergTable
from spark_jobs.sinks.small_files import small_groups
from spark_jobs.sinks.sorted_rows import in_order

_HOUR = 3_600_000  # milliseconds
_ORPHAN_DAYS = 3  # a writer may be at work on younger files


def maintain(
    target: IcebergTable,
    report: TableMaintenance,
    maintenance: Maintenance,
    first: str | None,
    layout: TableLayout | None = None,
) -> None:
    """Do what is due; doing it again does nothing (``Sink.maintain``)."""
    if layout is not None and set_properties(target, layout):
        target = target.newest()
    order = [] if layout is None else row_order(target.schema, layout)
    gone, written = compact(target, maintenance.target_file_bytes, first, order)
    report.compacted += gone
    report.written += written
    target = target.newest()
    old = _old_snapshots(target, None if maintenance.purge else maintenance.keep_hours)
    if old:
        before = _known_files(target)
        expire(target, old)
        target = target.newest()
        report.vacuumed += _remove(target, before - _known_files(target))
    report.vacuumed += _remove_orphans(target)
    report.version = target.version
    if maintenance.purge and len(target.table.metadata.snapshots) > 1:
        raise SinkError(
            "maintain.versions_named",
            "branches or tags of others name older versions of the table, whose files stay",
            where=target.where,
            hint="remove them, and purge the table again",
        )


def compact(target: IcebergTable, file_bytes: int, first: str | None, order: Sequence[str] = ()) -> tuple[int, int]:
    """Write small files, and files with deletes, again as fewer ones; return how many went, and how many came.

    :param order: columns in whose order rows are written, and neighbours found; none for that in which they are.

    :raises UnavailableError: ``sink.commit_conflict``, somebody committed meanwhile.
    """
    parts = _by_partition(_by_column(target, order[0] if order else first))
    groups = [
        group for files in parts for group in small_groups(files, file_bytes, _size, lambda file: bool(file.deletes))
    ]
    if not groups:
        return 0, 0
    commit, change = TableCommit(target, None, None), FileChange()
    files = commit.new_files(file_bytes, order)
    try:
        for group in groups:
            for file in group:
                change.remove(file.file, *(one for one in file.deletes if only_path(one) == file.path))
            stored = (rows for file in group for rows in target.read(file, commit.fields))
            for rows in in_order(stored, files.schema, order):
                files.add(rows)
        with reaching(target.where):
            change.added += files.close()
    except BaseException:
        files.discard()
        raise
    commit.make(change, Operation.REPLACE)
    return sum(map(len, groups)), len(change.added)


def _by_column(target: IcebergTable, first: str | None) -> list[LiveFile]:
    """Return the data files in the order of a column's least value, those behind for which it is not known."""
    files = target.files()
    if first is None or first not in target.schema.names:
        return files
    number = {first: target.fields.fields[target.schema.get_field_index(first)]}
    low: dict[str, Any] = {
        file.path: bounds_of(file.file, target.iceberg_schema, number).get(first, (None,))[0] for file in files
    }
    known = sorted((file for file in files if low[file.path] is not None), key=lambda file: low[file.path])
    return [*known, *(file for file in files if low[file.path] is None)]


def _by_partition(files: Sequence[LiveFile]) -> list[list[LiveFile]]:
    """Return the files of each partition."""
    parts: dict[Any, list[LiveFile]] = {}
    for file in files:
        parts.setdefault((file.file.spec_id, file.file.partition), []).append(file)
    return list(parts.values())


def _old_snapshots(target: IcebergTable, keep_hours: int | None) -> list[int]:
    """Return the snapshots that are older than the time to keep, and that no branch or tag names.

    :param keep_hours: None for those of any age.
    """
    metadata, newest = target.table.metadata, target.snapshot
    named = {reference.snapshot_id for reference in metadata.refs.values()}
    until = inf if keep_hours is None else int(time.time() * 1000) - keep_hours * _HOUR
    return [
        one.snapshot_id
        for one in metadata.snapshots
        if one != newest and one.snapshot_id not in named and one.timestamp_ms < until
    ]


def _known_files(target: IcebergTable) -> set[str]:
    """Return the files that any snapshot of a table names."""
    known: set[str] = set()
    with reaching(target.where):
        for snapshot in target.table.metadata.snapshots:
            known.add(snapshot.manifest_list)
            known |= {manifest.manifest_path for manifest in snapshot.manifests(target.table.io)}
            known |= set(LiveFiles(snapshot, target.table.io).paths())
    return known


def _remove(target: IcebergTable, paths: set[str]) -> int:
    with reaching(target.where):
        for path in paths:
            target.table.io.delete(path)
    return len(paths)


def _remove_orphans(target: IcebergTable) -> int:
    """Remove old files below a table's own folder on a local disk that nothing of the table names."""
    table = target.table
    if not table.location().startswith("file://"):
        return 0
    folder, limit = table.location().removeprefix("file://"), time.time() - _ORPHAN_DAYS * 86_400
    known = {path.removeprefix("file://") for path in _known_files(target)}
    known |= {entry.metadata_file.removeprefix("file://") for entry in table.metadata.metadata_log}
    known.add(table.metadata_location.removeprefix("file://"))
    store, selector = fs.LocalFileSystem(), fs.FileSelector(folder, recursive=True, allow_not_found=True)
    orphans = [
        info.path
        for info in store.get_file_info(selector)
        if info.type == fs.FileType.File and info.path not in known and info.mtime.timestamp() < limit
    ]
    for path in orphans:
        store.delete_file(path)
    return len(orphans)


def _size(file: LiveFile) -> int:
    return int(file.file.file_size_in_bytes)
