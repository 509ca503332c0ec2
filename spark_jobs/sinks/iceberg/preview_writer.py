# SPDX-License-Identifier: Apache-2.0
"""The writer of a preview: it types all rows, counts the files that a commit would touch, and commits nothing."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_cdc.core.apply.row_sets import having_keys
from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.iceberg.committing import fields_after
from spark_jobs.sinks.iceberg.live_files import LiveFile
from spark_jobs.sinks.iceberg.partitions import spec_after
from spark_jobs.sinks.iceberg.row_removal import Writes
from spark_jobs.sinks.iceberg.table import IcebergTable
from spark_jobs.sinks.iceberg.task_writer import TaskWriter


class PreviewWriter(TaskWriter):
    """Say what a commit would touch.

    :ivar files: files of which rows would go.
    :ivar file_bytes: their size.
    """

    def __init__(self, writes: Writes) -> None:
        super().__init__(writes)
        self.files = self.file_bytes = 0

    def takes_parts(self, target: IcebergTable, columns: TargetSchema) -> bool:
        """Return that a preview looks at each table in one task."""
        return False

    def commit(self, target: IcebergTable, action: Action) -> int | None:
        """Type the rows of an action and count the files; return the version that the table has."""
        self.choice = Choice("task", "Iceberg tables are written by tasks")
        if action.columns is not None:
            metadata = target.table.metadata if target.exists else None
            spec_after(fields_after(target, action.columns), action.columns.layout, metadata, target.where)
        keys = [piece.select(action.key) for piece in action.pieces()]
        touched: list[LiveFile] = []
        if action.verb == "subtract":
            assert action.deletes is not None
            touched = target.files_with(action.deletes.select(action.deletes.column_names[:1]))
            action.unmatched(action.deletes.slice(0, 0))
        elif target.exists and action.verb == "overwrite":
            touched = target.files()
        elif target.exists and action.verb == "merge":
            assert action.deletes is not None
            touched = _holding(target, pa.concat_tables([action.deletes.select(action.key), *keys]))
        self.files = len(touched)
        self.file_bytes = sum(file.file.file_size_in_bytes for file in touched)
        return target.version


def _holding(target: IcebergTable, keys: pa.Table) -> list[LiveFile]:
    """Return the files that have rows of some keys."""
    if not set(keys.column_names) <= set(target.schema.names):  # renamed in this batch
        return target.files()
    of_key = target.fields.select(keys.column_names)
    return [
        file
        for file in target.files_with(keys.cast(of_key.columns))
        if having_keys(target.columns_of(file, of_key), keys, keys.column_names).any()
    ]
