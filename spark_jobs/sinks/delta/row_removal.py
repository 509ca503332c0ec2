# SPDX-License-Identifier: Apache-2.0
"""Remove rows of a table without key, file by file: only files that hold such rows are written again."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
from deltalake.transaction import RemoveAction

from airflow_provider_cdc.core.apply.row_sets import having_keys, matched, matched_by_value
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.arrays import BoolArray
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.data_files import DataFiles
from spark_jobs.sinks.delta.stored_files import (
    Guard,
    LiveFiles,
    OpenedFile,
    StoredFile,
    all_files,
    chosen_rows,
    files_with,
    opened,
    read_columns,
    whole_rows,
)

_COMPARED_FIRST = 4  # columns by which files are chosen, before whole rows are read
_NO_FORMS = ValueForms({})


class RowRemoval:
    """Writes what the removal of rows leaves of the files that hold them.

    :param live: the table's files.
    :param files: takes the rows; None writes nothing and only says which files would be touched.
    :param reading: turns what goes wrong while a file is read into errors that name the table.
    """

    def __init__(self, live: LiveFiles, storage: Storage, files: DataFiles | None, reading: Guard) -> None:
        self._live, self._storage, self._files, self._reading = live, storage, files, reading

    def remove(self, rows: pa.Table, forms: ValueForms) -> tuple[list[RemoveAction], pa.Table]:
        """Let one stored row go for each of these rows; return the touched files' removal, and rows without an equal.

        :param rows: columns as the table has them.
        :param forms: columns whose values have several forms: a row that is equal in all but these is taken where no
            row is equal.
        """
        if not rows.num_rows:
            return [], rows
        left: BoolArray = np.ones(rows.num_rows, dtype=bool)
        touched: dict[str, tuple[StoredFile, BoolArray]] = {}
        for each in (_NO_FORMS, forms) if forms else (_NO_FORMS,):
            few = rows.select(each.without(rows)[:_COMPARED_FIRST])
            for file in self._files_with(few, left):
                indexes = np.sort(file.keys[left[file.keys]])
                if not len(indexes):
                    continue
                before = touched.get(file.path)
                with self._reading(), opened(self._storage, file) as stored:
                    remains, is_matched = self._matched(
                        stored, rows.take(pa.array(indexes)), each, None if before is None else before[1]
                    )
                    if not is_matched.any():
                        continue
                    if not forms:
                        self._keep(stored, remains, rows.schema)
                left[indexes[is_matched]] = False
                touched[file.path] = file, remains
        for file, remains in touched.values() if forms else ():
            with self._reading(), opened(self._storage, file) as stored:
                self._keep(stored, remains, rows.schema)
        return [file.removal() for file, _ in touched.values()], rows.filter(pa.array(left))

    def _files_with(self, few: pa.Table, left: BoolArray) -> list[StoredFile]:
        """Return the files that may hold the rows that are left, by their first columns."""
        if not left.any():
            return []
        if few.num_columns:
            return files_with(self._live, few)
        return [replace(file, keys=np.arange(len(left))) for file in all_files(self._live, None)]

    def _keep(self, stored: OpenedFile, remains: BoolArray, schema: pa.Schema) -> None:
        """Write the rows of a file that remain."""
        if self._files is not None:
            for piece in chosen_rows(stored, remains, schema):
                self._files.add(piece)
            self._files.end_file()

    def _matched(
        self, stored: OpenedFile, rows: pa.Table, forms: ValueForms, there: BoolArray | None
    ) -> tuple[BoolArray, BoolArray]:
        """Return which rows of a file remain, and which of the rows to remove have an equal in it.

        :param there: rows of the file that remained before, None for all.
        """
        is_matched: BoolArray = np.zeros(rows.num_rows, dtype=bool)
        remains = stored.live.copy() if there is None else there.copy()
        first = rows.select(forms.without(rows)[:_COMPARED_FIRST])
        if first.num_columns and not having_keys(read_columns(stored, first.schema), first, first.column_names).any():
            return remains, is_matched
        match = partial(matched_by_value, forms=forms) if forms else matched
        start = 0
        for piece in whole_rows(stored, rows.schema):
            open_rows = np.flatnonzero(~is_matched)
            here = start + np.flatnonzero(remains[start : start + piece.num_rows])
            some = piece if len(here) == piece.num_rows else piece.take(pa.array(here - start))
            goes, taken = match(some, rows.take(pa.array(open_rows)))
            is_matched[open_rows[taken]] = True
            remains[here[goes]] = False
            start += piece.num_rows
        return remains, is_matched
