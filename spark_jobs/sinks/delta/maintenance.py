# SPDX-License-Identifier: Apache-2.0
"""Maintain one table: put small files together, remove files that nobody needs, write a checkpoint of its log."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from deltalake.transaction import AddAction

from airflow_provider_cdc.core.apply.target_schema import row_order
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta import by_delta_rs
from spark_jobs.sinks.delta.deletion_vectors import file_of
from spark_jobs.sinks.delta.logged_files import logged_files
from spark_jobs.sinks.delta.stored_files import StoredFile, all_files
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.table_commits import TableCommits

_SMALL = 0.75  # of the target size: a file that is nearly as large as it should be is left as it is
_CHECKPOINT_AFTER = 10  # versions


def maintain(
    target: DeltaLocation,
    storage: Storage,
    report: TableMaintenance,
    maintenance: Maintenance,
    first: str | None,
    layout: TableLayout | None = None,
) -> None:
    """Do what is due; doing it again does nothing (``Sink.maintain``).

    :param storage: the table's folder.
    """
    order: list[str] = []
    if layout is not None:
        TableCommits(target).set_properties(layout)
        target.newest_version()
        order = row_order(target.schema, layout)
    gone, written = compact(target, maintenance.target_file_bytes, first, order)
    report.compacted += gone
    report.written += written
    target.newest_version()
    table = target.table
    with target.writing():
        old = table.vacuum(maintenance.keep_hours, dry_run=True, enforce_retention_duration=False)
        if old:
            removed = table.vacuum(maintenance.keep_hours, dry_run=False, enforce_retention_duration=False)
            report.vacuumed += len(removed)
        report.vacuumed += _remove_vectors(target, storage, maintenance.keep_hours)
    _write_checkpoint(target, storage, report)


def _remove_vectors(target: DeltaLocation, storage: Storage, keep_hours: int) -> int:
    """Remove files of deletion vectors that are old and that no data file of the newest version needs.

    delta-rs leaves them where they are (1.6.6).
    """
    names = [name.rsplit("/", 1)[-1] for name, _ in storage.files("", ".bin")]
    names = [name for name in names if name.startswith("deletion_vector_")]
    if not names:
        return 0
    paths = [file.path for file in all_files(target.live, None) if file.deleted is not None]
    stated = logged_files(storage, target.table.version(), paths).values()
    needed = {file_of(one["deletionVector"]) for one in stated}
    until = time.time() - keep_hours * 3600
    infos = storage.filesystem.get_file_info([storage.path(name) for name in names if name not in needed])
    old = [info.path for info in infos if info.mtime is not None and info.mtime.timestamp() < until]
    for path in old:
        storage.filesystem.delete_file(path)
    return len(old)


def _write_checkpoint(target: DeltaLocation, storage: Storage, report: TableMaintenance) -> None:
    """Write a checkpoint where the log has grown since the last one: readers need not read each commit then."""
    last = storage.read_unfinished("_delta_log/_last_checkpoint") or {"version": -1}
    report.version = target.newest_version()
    if report.version - int(last["version"]) >= _CHECKPOINT_AFTER:
        with target.writing():
            target.table.create_checkpoint()
        report.checkpoint = True


def compact(target: DeltaLocation, file_bytes: int, first: str | None, order: Sequence[str] = ()) -> tuple[int, int]:
    """Write small files again as fewer ones, in one commit; return how many went, and how many came.

    A row group is in memory at a time, however many files there are.

    :param file_bytes: size that a file should have.
    :param first: column in whose order neighbours are found.
    :param order: columns in whose order rows are written, and neighbours found; none for that in which they are.
    :raises UnavailableError: ``sink.commit_conflict``, one of the files went meanwhile.
    """
    if not target.takes_files:
        return by_delta_rs.compact(target, file_bytes, small=_SMALL)
    added: list[AddAction] = []
    gone: list[StoredFile] = []
    for group in _groups(all_files(target.live, order[0] if order else first), file_bytes):
        added += target.written_as_one(group, file_bytes, order)
        gone += group
    if gone:
        TableCommits(target).replace_files(added, [file.removal(changes_rows=False) for file in gone])
    return len(gone), len(added)


def _groups(files: Sequence[StoredFile], file_bytes: int) -> Iterator[list[StoredFile]]:
    """Yield files that become one: neighbours of which each is small, as many as the size has room for."""
    group: list[StoredFile] = []
    for file in files:
        if file.size >= _SMALL * file_bytes:
            continue
        if group and sum(member.size for member in group) + file.size > file_bytes:
            if len(group) > 1:
                yield group
            group = []
        group.append(file)
    if len(group) > 1:
        yield group
