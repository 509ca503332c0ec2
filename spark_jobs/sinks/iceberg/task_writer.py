# SPDX-License-Identifier: Apache-2.0
"""The task writer: it writes files, says which rows of others are gone, and makes one commit of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from pyiceberg.table.snapshots import Operation

from airflow_provider_cdc.core.apply.row_sets import matched, matched_by_value
from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from spark_jobs.sinks.commits import ADDED_BYTES, Choice
from spark_jobs.sinks.contract import Action, WrittenRows
from spark_jobs.sinks.iceberg.batch_commit import Stage
from spark_jobs.sinks.iceberg.catalogs import reaching
from spark_jobs.sinks.iceberg.columns import widens
from spark_jobs.sinks.iceberg.committing import TableCommit, conflict
from spark_jobs.sinks.iceberg.live_files import LiveFile
from spark_jobs.sinks.iceberg.new_files import NewFiles, PartitionedFiles
from spark_jobs.sinks.iceberg.row_removal import RowRemoval, Writes
from spark_jobs.sinks.iceberg.shared_merge import MergeStage
from spark_jobs.sinks.iceberg.snapshots import FileChange
from spark_jobs.sinks.iceberg.table import IcebergTable

_COMPARED_FIRST = 4  # columns by which files are chosen, before whole rows are read
_NO_FORMS = ValueForms({})
_OPERATIONS = {"create": Operation.APPEND, "append": Operation.APPEND}


class TaskWriter:
    """Commit in this process, or leave it to the driver.

    :param writes: whether rows that go are deleted by their positions, or their files written again.
    :param stage: takes what the driver is to commit, None where it is committed here.
    :param shared: takes merges that are too large for this process, None where none is.
    """

    def __init__(self, writes: Writes, stage: Stage | None = None, shared: MergeStage | None = None) -> None:
        self._writes, self._stage, self._shared = writes, stage, shared
        self.choice: Choice | None = None

    def commit(self, target: IcebergTable, action: Action) -> int | None:
        """Carry out one action in one commit; return the version it made, None where the driver is to make it."""
        if action.verb == "create" and target.exists:
            raise conflict(target)
        target.demand_ours(action.commit)
        if self._stage is not None and not target.exists:  # one request for several tables makes none
            TableCommit(target, action.columns, action.commit).make_empty()
            target = target.newest()
        commit = TableCommit(target, action.columns, action.commit)
        change = FileChange()
        files = commit.new_files()
        try:
            rows = RowChange(target, action, commit, files, change, self._writes)
            keys = rows.write()
            touched = [] if keys is None else rows.files_with(keys)
            self.choice = self._choice_of(target, None if keys is None else touched)
            shared = self._shared if self.choice.writer == "spark" else None
            if shared is None and keys is not None:
                rows.let_keys_go(touched, keys)
                if action.met is not None:
                    action.met.demand_agreement()
            with reaching(target.where):
                change.added += files.close()
        except BaseException:
            files.discard()
            raise
        action.commit.facts["writer"] = self.choice.document()
        if shared is not None and keys is not None:
            shared.put(target, action, commit, change.added, keys)
            return None
        added = (*change.added, *change.deletes)
        action.commit.facts.setdefault(ADDED_BYTES, sum(file.file_size_in_bytes for file in added))
        # from here on the files stay: a commit that seems to fail may have gone through
        operation = _OPERATIONS.get(action.verb, Operation.OVERWRITE)
        if self._stage is None:
            return commit.make(change, operation)
        self._stage.put(commit.prepare(change, operation))
        return None

    def _choice_of(self, target: IcebergTable, touched: Sequence[LiveFile] | None) -> Choice:
        """Return who carries out a commit.

        :param touched: files that a merge reads, None for other commits.
        """
        if self._shared is None:
            return Choice("task", f"Iceberg tables are written by tasks ({self._writes})")
        return self._shared.choose(target, touched)

    def may_need_spark(self, target: IcebergTable) -> bool:
        """Return that no merge needs a session."""
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
        before, sources = old.types(), target.partition_sources()
        if not sources <= set(new.ids):  # the files of such a partition cannot stay
            return False
        return all(own not in before or widens(before[own], kind) for own, kind in new.types().items())

    def subtracts(self, target: IcebergTable) -> bool:
        """Return that rows are removed where they are."""
        return True


class TableFiles:
    """Files in a table's folder, which no reader sees before a commit names them."""

    def __init__(self, target: IcebergTable, columns: TargetSchema) -> None:
        self._target, commit = target, TableCommit(target, columns, None)
        self._files = commit.new_files()

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


class RowChange(RowRemoval):
    """Writes the rows of one action, and finds the stored rows that go."""

    def __init__(
        self,
        target: IcebergTable,
        action: Action,
        commit: TableCommit,
        files: NewFiles | PartitionedFiles,
        change: FileChange,
        writes: Writes,
    ) -> None:
        super().__init__(target, commit, files, change, writes, action.met)
        self._action = action

    def write(self) -> pa.Table | None:
        """Write rows, and deletes; of a merge return the keys of the stored rows that go."""
        action, change = self._action, self._change
        change.added += [file for part in action.parts for file in part.added]
        if action.verb == "merge":
            return self._written_keys()
        if action.verb == "subtract":
            self._subtract()
        for piece in action.pieces():
            self.add(piece)
        if action.verb == "overwrite":
            change.remove(*self._target.live.every_file())
        return None

    def _written_keys(self) -> pa.Table:
        """Write the rows of a merge; return their keys, and those to remove."""
        action, key = self._action, list(self._action.key)
        assert action.deletes is not None
        keys = [action.deletes.select(key)]
        for piece in action.pieces():
            keys.append(piece.select(key))
            # by a key in order files have narrow ranges
            self.add(piece.sort_by(key[0]) if action.later is None else piece)
        of_key = self._commit.fields.select(key)
        keys += [self._target.columns_of(LiveFile(file), of_key) for file in self._change.added]
        return pa.concat_tables(keys)

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
            self.let_go(file, gone)
        action.unmatched(rows.filter(pa.array(left)))

    def _candidates(self, few: pa.Table, left: BoolArray) -> list[LiveFile]:
        if not left.any():
            return []
        return self.files_with(few) if few.num_columns else self._target.files()

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
