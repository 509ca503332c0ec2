# SPDX-License-Identifier: Apache-2.0
"""Maintain one table: put small files together, remove files that nobody needs, write a checkpoint of its log."""

from __future__ import annotations

from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance, TableState
from airflow_provider_cdc.core.errors import Transient, UnavailableError
from airflow_provider_cdc.core.faults import may_be_caught
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.core.model.schema import TableSchema
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.compaction import compact
from spark_jobs.sinks.delta.ownership import Owner, demand_ours
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.tasks.parking import as_cdc_error

_TRIES = 3
_CHECKPOINT_AFTER = 10  # versions


def maintain_table(
    state: TableState, maintenance: Maintenance, options: dict[str, str], root: str, pipeline: str
) -> TableMaintenance:
    """Do to a table what is due; doing it again does nothing.

    A batch may commit at the same time: its commit comes first then, and what met it is done again. Errors are
    reported.
    """
    report, location = TableMaintenance(state.database, state.table), located(root, state.location)
    owner = Owner(f"cdc/{pipeline}/", {state.table_id})
    try:
        first = _first_key_column(state)
        for left in reversed(range(_TRIES)):
            try:
                target = DeltaLocation(location, options)
                demand_ours(target, owner)
                _maintain(target, report, maintenance, first)
                break
            except UnavailableError as error:
                if error.code != "sink.commit_conflict" or not left:
                    raise
        _write_checkpoint(DeltaLocation(location, options), report, Storage(location, options))
    except BaseException as error:
        if not may_be_caught(error):
            raise
        cdc_error = as_cdc_error(error, {"table": f"{state.database}.{state.table}", "location": location})
        report.error, report.transient = cdc_error.document(), isinstance(cdc_error, Transient)
    return report


def _first_key_column(state: TableState) -> str | None:
    key = TableSchema.from_document(state.schema).key_columns if state.schema is not None else ()
    return key[0].name if key else None


def _maintain(target: DeltaLocation, report: TableMaintenance, maintenance: Maintenance, first: str | None) -> None:
    """Put small files together and remove files of older versions."""
    gone, written = compact(target, maintenance.target_file_bytes, first)
    report.compacted += gone
    report.written += written
    target.newest_version()
    table = target.table
    with target.writing():
        old = table.vacuum(maintenance.keep_hours, dry_run=True, enforce_retention_duration=False)
        if old:
            removed = table.vacuum(maintenance.keep_hours, dry_run=False, enforce_retention_duration=False)
            report.vacuumed += len(removed)


def _write_checkpoint(target: DeltaLocation, report: TableMaintenance, storage: Storage) -> None:
    """Write a checkpoint where the log has grown since the last one: readers need not read each commit then."""
    last = storage.read_unfinished("_delta_log/_last_checkpoint") or {"version": -1}
    report.version = target.version
    if (target.version or 0) - int(last["version"]) >= _CHECKPOINT_AFTER:
        with target.writing():
            target.table.create_checkpoint()
        report.checkpoint = True
