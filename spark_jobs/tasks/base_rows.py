# SPDX-License-Identifier: Apache-2.0
"""Read the stored rows that a table's result starts from."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa

from airflow_provider_cdc.core.apply.rewinding import RewindNeeded
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.lake.roots import located
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.contract import Sink, Stored
from spark_jobs.sinks.registry import open_own_tables
from spark_jobs.tasks.table_task import ApplyTask


class BaseRows:
    """The rows of the version that one task goes on from.

    :param app: application of the table's commits.
    :param lake: has the copy of files that an operator provided.
    """

    def __init__(self, job: JobDocument, task: ApplyTask, sink: Sink[Stored], app: str, lake: Storage) -> None:
        self._job, self._task, self._sink, self._app, self._lake = job, task, sink, app, lake

    def rows(self, keys: pa.Table | None = None) -> pa.Table:
        """Return the rows that the result starts from; with keys those that may have one of them."""
        with self._base() as stored:
            return stored.rows(keys)

    def pieces(self, first: str | None) -> Iterator[pa.Table]:
        """Yield the rows that the result starts from, some at a time.

        :param first: column in whose order the files are read.
        """
        with self._base() as stored:
            yield from stored.pieces(first)

    @contextmanager
    def _base(self) -> Iterator[Stored]:
        """Open the version that the result starts from, as maintenance left it: older files may be gone.

        :raises RewindNeeded: it is gone, the table starts from all that the change log has.
        """
        base = self._task.base
        assert base is not None and base.version is not None
        gone = RewindNeeded("apply.version_gone", "the version to go back to is gone")
        try:
            if self._task.begins_with_files:
                stored = open_own_tables(self._lake.options).open(located(self._lake.root, base.location))
            else:
                stored = self._sink.open(self._job.at(base.location))
            if (version := stored.last_maintained(base.version)) != stored.version:
                stored = stored.at_version(version)
            done = stored.applied(self._app)
            if done is None or done > base.applied_seq:
                raise gone  # the location was made again since, for this table or another one
            yield stored
        except SinkError:
            if self._task.rewind_to is None:
                raise
            raise gone from None
