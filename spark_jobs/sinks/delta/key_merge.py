# SPDX-License-Identifier: Apache-2.0
"""Merge by key, file by file: only files with rows of the keys are written again, and each stays within its range."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from deltalake.transaction import RemoveAction

from airflow_provider_cdc.core.apply.row_sets import having_keys
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.contract import RowsMet
from spark_jobs.sinks.delta.data_files import DataFiles
from spark_jobs.sinks.delta.stored_files import (
    Guard,
    LiveFiles,
    OpenedFile,
    StoredFile,
    chosen_rows,
    files_with,
    opened,
    read_columns,
    rows_apart,
)

_OWN_BYTES = 1 << 20  # in the store: smaller files of neighbouring keys are written as one
_REWRITTEN = 0.3  # share of a file's rows that are gone, above which the file is written again


class KeyMerge:
    """Writes what a merge leaves of the files that it touches, or says which of their rows go.

    :param live: the table's files.
    :param files: takes the rows.
    :param on_read: whether rows are deleted by their positions, where that is not most of a file.
    :param met: takes the rows that go, None for nobody.
    :ivar deleted: positions of all deleted rows of the files that stay, by path.
    :param reading: turns what goes wrong while a file is read into errors that name the table.
    """

    def __init__(
        self,
        live: LiveFiles,
        storage: Storage,
        files: DataFiles,
        reading: Guard,
        met: RowsMet | None = None,
        *,
        on_read: bool = False,
    ) -> None:
        self._live, self._storage, self._files, self._reading = live, storage, files, reading
        self._met, self._on_read = met, on_read
        self.deleted: dict[str, IntArray] = {}

    def put(self, rows: pa.Table, deletes: pa.Table) -> list[RemoveAction]:
        """Write rows, each with the first touched file whose range of keys it is in; return the removal of such files.

        :param deletes: keys to remove, in the order of the key's columns.
        """
        keys = pa.concat_tables([rows.select(deletes.column_names), deletes])
        left: BoolArray = np.ones(rows.num_rows, dtype=bool)
        removed = []
        for file in files_with(self._live, keys):
            if not self._write_again(file, keys.take(pa.array(file.keys))):
                continue
            removed.append(file.removal())
            own = file.keys[file.keys < rows.num_rows]
            own = np.sort(own[left[own]])
            left[own] = False
            self._files.add(rows.take(pa.array(own)))
            self._end(file)
        self._files.add(rows.filter(pa.array(left)))
        return removed

    def without(self, keys: pa.Table) -> list[RemoveAction]:
        """Write the rows that share a file with rows of these keys; return the removal of such files."""
        removed = []
        for file in files_with(self._live, keys):
            if self._write_again(file, keys.take(pa.array(file.keys))):
                removed.append(file.removal())
                self._end(file)
        return removed

    def _end(self, file: StoredFile) -> None:
        """End the file that took the rows of another one: one that is not small keeps its range of keys to itself."""
        self._files.end_file(small=file.size >= _OWN_BYTES)

    def _write_again(self, file: StoredFile, keys: pa.Table) -> bool:
        """Write the rows of a file that have none of the keys; return whether the file goes for that."""
        with self._reading(), opened(self._storage, file) as stored:
            of_keys = read_columns(stored, keys.schema)
            gone = having_keys(of_keys, keys, keys.column_names) & stored.live
            if not gone.any():
                return False
            if self._on_read and (gone | ~stored.live).mean() <= _REWRITTEN:
                self.deleted[file.path] = np.flatnonzero(gone | ~stored.live)
                self._meet(stored, of_keys, gone)
                return False
            if file.size >= _OWN_BYTES:
                self._files.end_file(small=True)
            self._leave(stored, gone)
        return True

    def _meet(self, stored: OpenedFile, of_keys: pa.Table, gone: BoolArray) -> None:
        """Show the rows of a file that go, while the file stays."""
        if self._met is None:
            return
        if not self._met.whole:
            self._met.meet(of_keys.filter(pa.array(gone)))
            return
        for rows in chosen_rows(stored, gone, self._files.schema):
            self._met.meet(rows)

    def _leave(self, stored: OpenedFile, gone: BoolArray) -> None:
        """Write the rows of a file that stay, and show those that go."""
        if self._met is None:
            for rows in chosen_rows(stored, ~gone, self._files.schema):
                self._files.add(rows)
            return
        for stay, leave in rows_apart(stored, gone, self._files.schema):
            self._met.meet(leave)
            if stay.num_rows:
                self._files.add(stay)
