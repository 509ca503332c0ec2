# SPDX-License-Identifier: Apache-2.0
"""Delta tables by path: written by tasks through delta-rs, or by Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from airflow_provider_cdc.core.config.sinks.delta import store_options
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.documents import JobDocument, Maintenance, TableMaintenance
from airflow_provider_cdc.core.errors import CdcError
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.contract import Runner, WriterRule, WrittenRows
from spark_jobs.sinks.delta.chosen_writer import ChosenWriter
from spark_jobs.sinks.delta.maintenance import maintain
from spark_jobs.sinks.delta.preview_writer import PreviewWriter
from spark_jobs.sinks.delta.spark_libraries import demand_libraries, session_settings
from spark_jobs.sinks.delta.spark_writer import SparkWriter, StageWriter, can_name
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter
from spark_jobs.sinks.names import NameRule

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession


NAMES = NameRule("exact")
"""A path takes every name."""


def open_sink(options: Mapping[str, str]) -> DeltaSink:
    """Return the sink (``contract.Sink``).

    :param options: ``writes``: ``merge-on-read`` or ``copy-on-write``; ``names``: ``exact`` or ``safe``; and
        storage options in delta-rs' names, secrets included.
    """
    on_read = options.get("writes") == "merge-on-read"
    return DeltaSink(store_options(options), on_read=on_read, names=NAMES.stated(options.get("names")))


class DeltaSparkSide:
    """Prepare Spark for commits, and make them (``driver_side.SparkSide``).

    :param options: of the tables' store, secrets included; the lake's store takes the same.
    """

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def settings(self, job: JobDocument) -> dict[str, str]:
        """Return Spark's properties."""
        return session_settings(self._options, on_s3=job.on_s3)

    def demand_libraries(self, job: JobDocument, context: SparkContext) -> None:
        """Refuse a batch that Spark may have to write, if it lacks a library for that."""
        demand_libraries(job, context)

    def can_name(self, columns: Sequence[str]) -> bool:
        """Return whether Spark can write columns of these names."""
        return can_name(columns)

    def obstacle(self, job: JobDocument, *, asked: bool) -> str:
        """Return why Spark takes no merges of a batch: they take a session, which may not reach S3."""
        if not job.session:
            return "the batch has no Spark session"
        return "" if asked or job.spark_reaches_sink else "spark.conf names no hadoop-aws"


class DeltaSink:
    """Delta tables in one store."""

    def __init__(self, options: dict[str, str], *, on_read: bool = False, names: NameRule = NAMES) -> None:
        self._options, self._on_read, self.names = options, on_read, names
        self.spark = DeltaSparkSide(options)

    def open(self, location: str, version: int | None = None) -> DeltaLocation:
        """Open what lies at a location."""
        return DeltaLocation(location, self._options, version)

    def writer(self, rule: WriterRule, storage: Storage, folder: str) -> ChosenWriter:
        """Return the writer of a table."""
        return ChosenWriter(rule, StageWriter(storage, folder), TaskWriter(on_read=self._on_read))

    def task_writer(self) -> TaskWriter:
        """Return the writer that commits in this process."""
        return TaskWriter(on_read=self._on_read)

    def preview(self, rule: WriterRule) -> PreviewWriter:
        """Return the writer of a preview."""
        return PreviewWriter(rule)

    def committer(self, session: SparkSession | None, storage: Storage, run: Runner) -> SparkWriter | None:
        """Return what commits through Spark the actions that tasks staged."""
        return None if session is None else SparkWriter(session, storage)

    def discard(self, location: str, rows: Sequence[WrittenRows]) -> None:
        """Remove files that no commit names; where the store fails they stay."""
        folder = Storage(location, self._options)
        with suppress(CdcError):
            for file in (file for some in rows for file in some.added):
                folder.delete_file(file.path)

    def remove(self, target: DeltaLocation) -> None:
        """Remove the files of a probe's table: ``<root>/<folder of its own>/<table>``."""
        root, folder, name = target.location.rsplit("/", 2)
        Storage(root, self._options).delete_folder(f"{folder}/{name}", traces=True)

    def maintain(
        self,
        target: DeltaLocation,
        report: TableMaintenance,
        maintenance: Maintenance,
        first: str | None,
        layout: TableLayout | None = None,
    ) -> None:
        """Do to a table what is due."""
        maintain(target, Storage(target.location, self._options), report, maintenance, first, layout)
