# SPDX-License-Identifier: Apache-2.0
"""Let rows of stored files go: their positions are deleted, or the files written again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.row_sets import having_keys
from airflow_provider_cdc.core.arrays import BoolArray
from spark_jobs.sinks.contract import RowsMet
from spark_jobs.sinks.iceberg.catalogs import reaching
from spark_jobs.sinks.iceberg.committing import TableCommit
from spark_jobs.sinks.iceberg.live_files import LiveFile, only_path
from spark_jobs.sinks.iceberg.new_files import NewFiles, PartitionedFiles, write_deletes
from spark_jobs.sinks.iceberg.snapshots import FileChange
from spark_jobs.sinks.iceberg.table import IcebergTable

Writes = Literal["merge-on-read", "copy-on-write"]

_REWRITTEN = 0.3  # share of a file's rows that are gone, above which the file is written again
_OWN_BYTES = 1 << 20  # in the store: smaller files of neighbouring keys are written as one


class RowRemoval:
    """Lets rows of stored files go.

    :param files: takes rows.
    :param change: takes the files that go, and deletes.
    :param met: takes the rows of keys that go.
    """

    def __init__(
        self,
        target: IcebergTable,
        commit: TableCommit,
        files: NewFiles | PartitionedFiles,
        change: FileChange,
        writes: Writes,
        met: RowsMet | None = None,
    ) -> None:
        self._target, self._commit, self._files = target, commit, files
        self._change, self._writes, self._met = change, writes, met

    def add(self, rows: pa.Table) -> None:
        """Write rows."""
        with reaching(self._target.where):
            self._files.add(rows)

    def files_with(self, rows: pa.Table, among: Sequence[LiveFile] | None = None) -> list[LiveFile]:
        """Return the files that may hold equal values of some columns, which had other names in the stored version.

        :param among: None for all files.
        """
        fields = self._commit.fields.select(rows.column_names)
        names = [self._target.fields.name_of(field) for field in fields.fields]
        both = [(new, old) for new, old in zip(rows.column_names, names, strict=True) if old is not None]
        stored = rows.select([new for new, _ in both]).rename_columns([old for _, old in both])
        return self._target.files_with(stored, among)

    def let_keys_go(self, files: Sequence[LiveFile], keys: pa.Table) -> None:
        """Let the rows of some keys go.

        :param files: with the indices of the keys that each may hold.
        """
        of_key = self._commit.fields.select(keys.column_names)
        for file in files:
            stored = self._target.columns_of(file, of_key)
            self.let_go(file, having_keys(stored, keys.take(pa.array(file.keys)), keys.column_names), stored)

    def let_go(self, file: LiveFile, gone: BoolArray, of_keys: pa.Table | None = None) -> None:
        """Let rows of a file go.

        :param gone: of each of its rows, those included that were deleted before, whether it goes.
        :param of_keys: columns of the key of its rows, in a merge.
        """
        before = np.zeros(len(gone), dtype=bool)
        before[self._target.deleted_in(file)] = True
        if not (gone & ~before).any():
            return
        met, leaves = None if of_keys is None else self._met, gone & ~before
        gone = gone | before
        own = [deletes for deletes in file.deletes if only_path(deletes) == file.path]
        self._change.remove(*own)
        if self._writes == "merge-on-read" and gone.mean() <= _REWRITTEN:
            with reaching(self._target.where):
                self._change.deletes.append(
                    write_deletes(self._commit.io, self._commit.folder, file.file, np.flatnonzero(gone))
                )
            if met is not None and of_keys is not None:
                whole = self._target.columns_of(file, self._commit.fields) if met.whole else of_keys
                met.meet(whole.filter(pa.array(leaves)))
            return
        self._change.remove(file.file)
        own_file, start = file.file.file_size_in_bytes >= _OWN_BYTES, 0
        if own_file:
            self._files.end_file(small=True)
        for piece in self._target.read(file, self._commit.fields, whole=True):
            stays = ~gone[start : start + piece.num_rows]
            if met is not None:
                met.meet(piece.filter(pa.array(leaves[start : start + piece.num_rows])))
            start += piece.num_rows
            if stays.any():
                self.add(piece.filter(pa.array(stays)))
        self._files.end_file(small=own_file)
