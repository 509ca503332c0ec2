# SPDX-License-Identifier: Apache-2.0
"""Remove rows of a table without key, file by file: only files that hold such rows are written again."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import RemoveAction

from airflow_provider_cdc.core.apply.row_sets import having_keys, matched
from airflow_provider_cdc.core.arrays import BoolArray
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.data_files import DataFiles
from spark_jobs.sinks.delta.stored_files import Guard, chosen_rows, files_with, opened, read_columns

_COMPARED_FIRST = 4  # columns by which files are chosen, before whole rows are read


class RowRemoval:
    """Writes what the removal of rows leaves of the files that hold them.

    :param actions: the table's files, ``get_add_actions`` of delta-rs.
    :param files: takes the rows; None writes nothing and only says which files would be touched.
    :param reading: turns what goes wrong while a file is read into errors that name the table.
    """

    def __init__(self, actions: pa.Table, storage: Storage, files: DataFiles | None, reading: Guard) -> None:
        self._actions, self._storage, self._files, self._reading = actions, storage, files, reading

    def remove(self, rows: pa.Table) -> tuple[list[RemoveAction], pa.Table]:
        """Let one stored row go for each of these rows; return the touched files' removal, and rows without an equal.

        :param rows: columns as the table has them.
        """
        left: BoolArray = np.ones(rows.num_rows, dtype=bool)
        removed = []
        for file in files_with(self._actions, rows.select(rows.column_names[:_COMPARED_FIRST])):
            indexes = np.sort(file.keys[left[file.keys]])
            if not len(indexes):
                continue
            with self._reading(), opened(self._storage, file) as stored:
                remains, is_matched = self._matched(stored, rows.take(pa.array(indexes)))
                if not is_matched.any():
                    continue
                if self._files is not None:
                    for piece in chosen_rows(stored, remains, rows.schema):
                        self._files.add(piece)
                    self._files.end_full_file()
            left[indexes[is_matched]] = False
            removed.append(file.removal())
        return removed, rows.filter(pa.array(left))

    def _matched(self, stored: pq.ParquetFile, rows: pa.Table) -> tuple[BoolArray, BoolArray]:
        """Return which rows of a file remain, and which of the rows to remove have an equal in it."""
        is_matched: BoolArray = np.zeros(rows.num_rows, dtype=bool)
        first = rows.select(rows.column_names[:_COMPARED_FIRST])
        if not having_keys(read_columns(stored, first.schema), first, first.column_names).any():
            return np.ones(stored.metadata.num_rows, dtype=bool), is_matched
        parts = []
        for piece in chosen_rows(stored, None, rows.schema):
            open_rows = np.flatnonzero(~is_matched)
            goes, taken = matched(piece, rows.take(pa.array(open_rows)))
            is_matched[open_rows[taken]] = True
            parts.append(~goes)
        return np.concatenate(parts), is_matched
