# SPDX-License-Identifier: Apache-2.0
"""Merge by key, file by file: only files with rows of the keys are written again, and each stays within its range."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from deltalake.transaction import RemoveAction

from airflow_provider_cdc.core.arrays import BoolArray
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.data_files import DataFiles
from spark_jobs.sinks.delta.stored_files import Guard, StoredFile, chosen_rows, files_with, holding, opened


class KeyMerge:
    """Writes what a merge leaves of the files that it touches.

    :param actions: the table's files, ``get_add_actions`` of delta-rs.
    :param files: takes the rows.
    :param reading: turns what goes wrong while a file is read into errors that name the table.
    """

    def __init__(self, actions: pa.Table, storage: Storage, files: DataFiles, reading: Guard) -> None:
        self._actions, self._storage, self._files, self._reading = actions, storage, files, reading

    def put(self, rows: pa.Table, deletes: pa.Table) -> list[RemoveAction]:
        """Write rows, each with the first touched file whose range of keys it is in; return the removal of such files.

        :param deletes: keys to remove, in the order of the key's columns.
        """
        keys = pa.concat_tables([rows.select(deletes.column_names), deletes])
        left: BoolArray = np.ones(rows.num_rows, dtype=bool)
        removed = []
        for file in files_with(self._actions, keys):
            if not self._write_again(file, keys.take(pa.array(file.keys))):
                continue
            removed.append(file.removal())
            own = file.keys[file.keys < rows.num_rows]
            own = np.sort(own[left[own]])
            left[own] = False
            self._files.add(rows.take(pa.array(own)))
            self._files.end_full_file()
        self._files.add(rows.filter(pa.array(left)))
        return removed

    def without(self, keys: pa.Table) -> list[RemoveAction]:
        """Write the rows that share a file with rows of these keys; return the removal of such files."""
        touched = (file for file in files_with(self._actions, keys))
        return [file.removal() for file in touched if self._write_again(file, keys.take(pa.array(file.keys)))]

    def _write_again(self, file: StoredFile, keys: pa.Table) -> bool:
        """Write the rows of a file that have none of the keys; return whether others have one, else nothing is done."""
        with self._reading(), opened(self._storage, file) as stored:
            gone = holding(stored, keys)
            if not gone.any():
                return False
            for rows in chosen_rows(stored, ~gone, self._files.schema):
                self._files.add(rows)
        return True
