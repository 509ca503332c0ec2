# SPDX-License-Identifier: Apache-2.0
"""The task writer: it writes files, says which rows of others are gone, and makes one commit of it."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pyarrow as pa
from pyiceberg.table.snapshots import Operation

from airflow_provider_cdc.core.apply.row_sets import having_keys, matched, matched_by_value
from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.contract import Action, WrittenRows
from spark_jobs.sinks.iceberg.batch_commit import Stage
from spark_jobs.sinks.iceberg.catalogs import reaching
from spark_jobs.sinks.iceberg.columns import widens
from spark_jobs.sinks.iceberg.committing import TableCommit, conflict
from spark_jobs.sinks.iceberg.live_files import LiveFile, only_path
from spark_jobs.sinks.iceberg.new_files import NewFiles, write_deletes
from spark_jobs.sinks.iceberg.snapshots import FileChange
from spark_jobs.sinks.iceberg.table import IcebergTable

Writes = Literal["merge-on-read", "copy-on-write"]

_REWRITTEN = 0.3  # share of a file's rows that are gone, above which the file is written again
_OWN_BYTES = 1 << 20  # in the store: smaller files of neighbouring keys are written as one
_COMPARED_FIRST = 4  # columns by which files are chosen, before whole rows are read
_NO_FORMS = ValueForms({})
_OPERATIONS = {"create": Operation.APPEND, "append": Operation.APPEND}


class TaskWriter:
    """Commit in this process, or leave it to the driver.

    :param writes: whether rows that go are deleted by their positions, or their files written again.
    :param stage: takes what the driver is to commit, None where it is committed here.
    """

    def __init__(self, writes: Writes, stage: Stage | None = None) -> None:
        self._writes, self._stage = writes, stage
        self.choice: Choice | None = None

    def commit(self, target: IcebergTable, action: Action) -> int | None:
        """Carry out one action in one commit; return the version it made, None where the driver is to make it."""
        self.choice = Choice("task", f"Iceberg tables are written by tasks ({self._writes})")
        action.commit.facts["writer"] = self.choice.document()
        if action.verb == "create" and target.exists:
            raise conflict(target)
        target.demand_ours(action.commit)
        if self._stage is not None and not target.exists:  # one request for several tables makes none
            TableCommit(target, action.columns, action.commit).make_empty()
            target = target.newest()
        commit = TableCommit(target, action.columns, action.commit)
        change = FileChange()
        files = NewFiles(commit.io, commit.folder, commit.fields)
        try:
            RowChange(target, action, commit, files, change, self._writes).write()
            with reaching(target.where):
                change.added += files.close()
        except BaseException:
            files.discard()
            raise
        # from here on the files stay: a commit that seems to fail may have gone through
        operation = _OPERATIONS.get(action.verb, Operation.OVERWRITE)
        if self._stage is None:
            return commit.make(change, operation)
        self._stage.put(commit.prepare(change, operation))
        return None

    def may_need_spark(self, target: IcebergTable) -> bool:
        """Return that each merge is this writer's."""
        return False

    def takes_parts(self, target: IcebergTable, columns: TargetSchema) -> bool:
        """Return that files of any number of tasks can be added."""
        return True

    def row_files(self, target: IcebergTable, columns: TargetSchema) -> TableFiles:
        """Return what writes into the table's folder."""
        return TableFiles(target, columns)

    def evolves(self, target: IcebergTable, old: TargetSchema, new: TargetSchema, *, merges: bool) -> bool:
        """Return whether stored values can be read as those of the new columns, by ids of fields."""
        if not target.exists:
            return False
        before = old.types()
        return all(own not in before or widens(before[own], kind) for own, kind in new.types().items())

    def subtracts(self, target: IcebergTable) -> bool:
        """Return that rows are removed where they are."""
        return True


class TableFiles:
    """Files in a table's folder, which no reader sees before a commit names them."""

    def __init__(self, target: IcebergTable, columns: TargetSchema) -> None:
        self._target, commit = target, TableCommit(target, columns, None)
        self._files = NewFiles(commit.io, commit.folder, commit.fields)

    def add(self, rows: pa.Table) -> None:
        """Take rows."""
        with reaching(self._target.where):
            self._files.add(rows)

    def written(self) -> WrittenRows:
        """Write what is left; return the files."""
        with reaching(self._target.where):
            return WrittenRows(added=self._files.close())

    def discard(self) -> None:
        """Remove the files."""
        self._files.discard()


class RowChange:
    """Writes the rows of one action, and finds the stored rows that go.

    :param files: takes rows.
    :param change: takes the files that go, and deletes.
    """

    def __init__(
        self,
        target: IcebergTable,
        action: Action,
        commit: TableCommit,
        files: NewFiles,
        change: FileChange,
        writes: Writes,
    ) -> None:
        self._target, self._action, self._commit = target, action, commit
        self._files, self._change, self._writes = files, change, writes

    def write(self) -> None:
        """Write rows and deletes."""
        action, change = self._action, self._change
        change.added += [file for part in action.parts for file in part.added]
        if action.verb == "subtract":
            self._subtract()
        if action.verb != "merge":
            for piece in action.pieces():
                self._add(piece)
        else:
            self._merge()
        if action.verb == "overwrite":
            change.remove(*self._target.live.every_file())

    def _add(self, rows: pa.Table) -> None:
        with reaching(self._target.where):
            self._files.add(rows)

    def _merge(self) -> None:
        """Put rows in by key: stored rows of the keys go."""
        action, key = self._action, list(self._action.key)
        assert action.deletes is not None
        keys = [action.deletes.select(key)]
        for piece in action.pieces():
            keys.append(piece.select(key))
            # by a key in order files have narrow ranges
            self._add(piece.sort_by(key[0]) if action.later is None else piece)
        of_key = self._commit.fields.select(key)
        keys += [self._target.columns_of(LiveFile(file), of_key) for file in self._change.added]
        every = pa.concat_tables(keys)
        for file in self._files_with(every):
            stored = self._target.columns_of(file, of_key)
            self._let_go(file, having_keys(stored, every.take(pa.array(file.keys)), key), stored)
        if action.met is not None:
            action.met.demand_agreement()

    def _files_with(self, rows: pa.Table) -> list[LiveFile]:
        """Return the files that may hold equal values of some columns, which had other names in the stored version."""
        fields = self._commit.fields.select(rows.column_names)
        names = [self._target.fields.name_of(field) for field in fields.fields]
        both = [(new, old) for new, old in zip(rows.column_names, names, strict=True) if old is not None]
        stored = rows.select([new for new, _ in both]).rename_columns([old for _, old in both])
        return self._target.files_with(stored)

    def _let_go(self, file: LiveFile, gone: BoolArray, of_keys: pa.Table | None = None) -> None:
        """Let rows of a file go.

        :param gone: of each of its rows, those included that were deleted before, whether it goes.
        :param of_keys: columns of the key of its rows, in a merge.
        """
        before = np.zeros(len(gone), dtype=bool)
        before[self._target.deleted_in(file)] = True
        if not (gone & ~before).any():
            return
        met, leaves = None if of_keys is None else self._action.met, gone & ~before
        gone = gone | before
        own = [deletes for deletes in file.deletes if only_path(deletes) == file.path]
        self._change.remove(*own)
        if self._writes == "merge-on-read" and gone.mean() <= _REWRITTEN:
            with reaching(self._target.where):
                self._change.deletes.append(
                    write_deletes(self._commit.io, self._commit.folder, file.path, np.flatnonzero(gone))
                )
            if met is not None and of_keys is not None:
                whole = self._target.columns_of(file, self._commit.fields) if met.whole else of_keys
                met.meet(whole.filter(pa.array(leaves)))
            return
        self._change.remove(file.file)
        own, start = file.file.file_size_in_bytes >= _OWN_BYTES, 0
        if own:
            self._files.end_file(small=True)
        for piece in self._target.read(file, self._commit.fields, whole=True):
            stays = ~gone[start : start + piece.num_rows]
            if met is not None:
                met.meet(piece.filter(pa.array(leaves[start : start + piece.num_rows])))
            start += piece.num_rows
            if stays.any():
                self._add(piece.filter(pa.array(stays)))
        self._files.end_file(small=own)

    def _subtract(self) -> None:
        """Let one stored row go for each row to remove; hand back those that have no equal."""
        action = self._action
        assert action.deletes is not None
        rows, forms = action.deletes, action.forms
        left: BoolArray = np.ones(rows.num_rows, dtype=bool)
        touched: dict[str, tuple[LiveFile, BoolArray]] = {}
        for each in (_NO_FORMS, forms) if forms else (_NO_FORMS,):
            few = rows.select(each.without(rows)[:_COMPARED_FIRST])
            for file in self._candidates(few, left):
                indexes = np.sort(file.keys[left[file.keys]]) if file.keys is not None else np.flatnonzero(left)
                if len(indexes):
                    self._match(file, rows, indexes, each, left, touched)
        for file, gone in touched.values():
            self._let_go(file, gone)
        action.unmatched(rows.filter(pa.array(left)))

    def _candidates(self, few: pa.Table, left: BoolArray) -> list[LiveFile]:
        if not left.any():
            return []
        return self._files_with(few) if few.num_columns else self._target.files()

    def _match(
        self,
        file: LiveFile,
        rows: pa.Table,
        indexes: IntArray,
        forms: ValueForms,
        left: BoolArray,
        touched: dict[str, tuple[LiveFile, BoolArray]],
    ) -> None:
        """Find the rows of a file that equal some of the rows to remove.

        :param indexes: of those rows.
        :param left: of all rows to remove, whether they have no equal so far.
        :param touched: takes of each file which of its rows go.
        """
        content = self._target.columns_of(file, self._commit.fields)
        gone = touched[file.path][1] if file.path in touched else np.zeros(content.num_rows, dtype=bool)
        there = ~gone
        there[self._target.deleted_in(file)] = False
        here = np.flatnonzero(there)
        some = rows.take(pa.array(indexes))
        stored = content.take(pa.array(here))
        goes, taken = matched_by_value(stored, some, forms) if forms else matched(stored, some)
        if taken.any():
            gone[here[goes]] = True
            left[indexes[taken]] = False
            touched[file.path] = file, gone
