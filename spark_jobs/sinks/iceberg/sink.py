# SPDX-License-Identifier: Apache-2.0
"""Iceberg tables of a catalog, written by tasks through pyiceberg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from airflow_provider_cdc.core.config.sinks.iceberg_options import PREFIX
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import Maintenance, TableMaintenance
from airflow_provider_cdc.core.errors import CdcError
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.contract import Runner, WriterRule, WrittenRows
from spark_jobs.sinks.iceberg.batch_commit import BatchCommit, Stage
from spark_jobs.sinks.iceberg.catalogs import NAMES, open_catalog, reaching
from spark_jobs.sinks.iceberg.maintenance import maintain
from spark_jobs.sinks.iceberg.preview_writer import PreviewWriter
from spark_jobs.sinks.iceberg.removal import remove
from spark_jobs.sinks.iceberg.row_removal import Writes
from spark_jobs.sinks.iceberg.shared_merge import MergeStage, SharedMerges, TaskSharing
from spark_jobs.sinks.iceberg.table import IcebergTable, open_table
from spark_jobs.sinks.iceberg.task_writer import TaskWriter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def open_sink(options: Mapping[str, str]) -> IcebergSink:
    """Return the sink (``contract.Sink``).

    :param options: ``iceberg.*``: properties of pyiceberg's catalog; ``namespace``: of all tables; ``writes``:
        ``merge-on-read`` or ``copy-on-write``; ``names``: ``exact`` or ``safe``; and options of the
        object store in delta-rs' names.
    """
    return IcebergSink(dict(options))


class IcebergSink:
    """Tables of one catalog."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options, self.spark = options, TaskSharing()
        self.names = NAMES[options.get(f"{PREFIX}type", "sql")].stated(options.get("names"))
        self._at_once = options.get("commit") == "batch"
        self._writes = cast(Writes, options.get("writes", "merge-on-read"))

    def open(self, location: str, version: int | None = None) -> IcebergTable:
        """Open the table of a location: ``<root>/<database>/<table>``."""
        return open_table(self._options, location, version)

    def writer(self, rule: WriterRule, storage: Storage, folder: str) -> TaskWriter:
        """Return the writer of a table."""
        stage = Stage(storage, folder) if self._at_once else None
        return TaskWriter(self._writes, stage, MergeStage(rule, storage, folder))

    def task_writer(self) -> TaskWriter:
        """Return the writer that commits in this process."""
        return TaskWriter(self._writes)

    def preview(self, rule: WriterRule) -> PreviewWriter:
        """Return the writer of a preview."""
        return PreviewWriter(self._writes)

    def committer(self, session: SparkSession | None, storage: Storage, run: Runner) -> SharedMerges:
        """Return what lets tasks share large merges, and commits all tables of a batch at once where that is asked."""
        at_once = BatchCommit(open_catalog(self._options), storage) if self._at_once else None
        return SharedMerges(self._options, self._writes, storage, run, at_once)

    def discard(self, location: str, rows: Sequence[WrittenRows]) -> None:
        """Remove files that no commit names; where the store fails they stay."""
        target = self.open(location)
        io = target.table.io if target.exists else open_catalog(self._options)._load_file_io()
        with suppress(CdcError), reaching(target.where):
            for file in (file for some in rows for file in some.added):
                io.delete(file.file_path)

    def remove(self, target: IcebergTable) -> None:
        """Remove the table of a probe from the catalog, and its files."""
        remove(target)

    def maintain(
        self,
        target: IcebergTable,
        report: TableMaintenance,
        maintenance: Maintenance,
        first: str | None,
        layout: TableLayout | None = None,
    ) -> None:
        """Do to a table what is due."""
        maintain(target, report, maintenance, first, layout)
