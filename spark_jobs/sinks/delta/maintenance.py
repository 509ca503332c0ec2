# SPDX-License-Identifier: Apache-2.0
"""Maintain one table: put small files together, remove files that nobody needs, write a checkpoint of its log."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import unquote

from deltalake.transaction import AddAction

from airflow_provider_cdc.core.apply.target_schema import row_order
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta import by_delta_rs
from spark_jobs.sinks.delta.deletion_vectors import file_of
from spark_jobs.sinks.delta.logged_files import logged_files
from spark_jobs.sinks.delta.sink_errors import refused
from spark_jobs.sinks.delta.stored_files import StoredFile, all_files
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.table_commits import TableCommits
from spark_jobs.sinks.small_files import SMALL, small_groups

_CHECKPOINT_AFTER = 10  # versions
_LOG = "_delta_log"


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
    purges = bool(maintenance.purge)
    if purges and not target.takes_files:
        raise refused("no purge knows all files of its features", target.location, target.properties)
    gone, written = compact(target, maintenance.target_file_bytes, first, order, folds=purges)
    report.compacted += gone
    report.written += written
    target.newest_version()
    table = target.table
    with target.writing():
        how: dict[str, Any] = {"enforce_retention_duration": False, "full": purges}
        old = table.vacuum(maintenance.keep_hours, dry_run=True, **how)
        if old:
            removed = table.vacuum(maintenance.keep_hours, dry_run=False, **how)
            report.vacuumed += len(removed)
        report.vacuumed += _remove_vectors(target, storage, maintenance.keep_hours)
    version = _write_checkpoint(target, storage, report, due=1 if purges else _CHECKPOINT_AFTER)
    if purges:
        report.vacuumed += _remove_rest(target, storage) + _forget_versions(target, storage, version)


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
    old = [name for name in names if name not in needed and storage.modified(name) < until]
    for name in old:
        storage.delete_file(name)
    return len(old)


def _remove_rest(target: DeltaLocation, storage: Storage) -> int:
    """Remove data files that the newest version does not have, also where a clock makes them younger than now."""
    target.newest_version()
    live = {unquote(path).rsplit("/", 1)[-1] for path in target.actions.column("path").to_pylist()}
    names = [name.rsplit("/", 1)[-1] for name, _ in storage.files("", ".parquet")]
    rest = [name for name in names if name not in live]
    for name in rest:
        storage.delete_file(name)
    return len(rest)


def _forget_versions(target: DeltaLocation, storage: Storage, version: int) -> int:
    """Remove the log of older versions, which states bounds of files that are gone; return how many files went.

    The newest commit that may have changed rows stays: it says whose the table is.

    :param version: of a checkpoint, which stands for the log before it.
    """
    names = [name for name, _ in storage.files(_LOG, "")]
    assert any(f"/{version:020d}.checkpoint." in name for name in names), "it was written"
    newest = target.newest_rows_version()
    oldest = version if newest is None else min(newest, version)
    gone = 0
    for name in names:
        number = name.rsplit("/", 1)[-1].split(".", 1)[0]
        if number.isdecimal() and int(number) < (oldest if name.endswith(f"{number}.json") else version):
            storage.delete_file(name)
            gone += 1
    return gone


def _write_checkpoint(target: DeltaLocation, storage: Storage, report: TableMaintenance, *, due: int) -> int:
    """Write a checkpoint where the log has grown since the last one: readers need not read each commit then.

    :param due: versions after which there has to be one.
    :return: the table's version.
    """
    last = storage.read_unfinished(f"{_LOG}/_last_checkpoint") or {"version": -1}
    report.version = version = target.newest_version()
    if version - int(last["version"]) >= due:
        with target.writing():
            target.table.create_checkpoint()
        report.checkpoint = True
    return version


def compact(
    target: DeltaLocation, file_bytes: int, first: str | None, order: Sequence[str] = (), *, folds: bool = False
) -> tuple[int, int]:
    """Write small files again as fewer ones, in one commit; return how many went, and how many came.

    A row group is in memory at a time, however many files there are.

    :param file_bytes: size that a file should have.
    :param first: column in whose order neighbours are found.
    :param order: columns in whose order rows are written, and neighbours found; none for that in which they are.
    :param folds: whether each file with deleted rows is written again without them.
    :raises UnavailableError: ``sink.commit_conflict``, one of the files went meanwhile.
    """
    if not target.takes_files:
        return by_delta_rs.compact(target, file_bytes, small=SMALL)
    added: list[AddAction] = []
    gone: list[StoredFile] = []
    files = all_files(target.live, order[0] if order else first)
    folded = lambda file: folds and file.deleted is not None  # noqa: E731
    for group in small_groups(files, file_bytes, lambda file: file.size, folded):
        added += target.written_as_one(group, file_bytes, order)
        gone += group
    if gone:
        TableCommits(target).replace_files(added, [file.removal(changes_rows=False) for file in gone])
    return len(gone), len(added)
