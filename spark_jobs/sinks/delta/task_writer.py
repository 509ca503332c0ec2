# SPDX-License-Identifier: Apache-2.0
"""The task writer: Delta tables by path through delta-rs, inside the task that resolved them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from deltalake.transaction import RemoveAction

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.arrays import IntArray
from spark_jobs.sinks.commits import ADDED_BYTES, Choice
from spark_jobs.sinks.contract import Action, WrittenRows
from spark_jobs.sinks.delta import by_delta_rs
from spark_jobs.sinks.delta.data_files import DataFiles
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.table_commits import TableCommits


class TaskWriter:
    """Commit in this process, with files that are written a piece at a time.

    Tables with features of Delta that ask for more than files are written by delta-rs.

    :param on_read: whether a merge deletes rows by their positions.
    """

    choice: Choice | None = None

    def __init__(self, *, on_read: bool = False) -> None:
        self._on_read = on_read

    def commit(self, target: DeltaLocation, action: Action) -> int | None:
        """Carry out one action in one commit; return the version it made."""
        before = -1 if target.version is None else target.version
        if not target.exists or target.takes_files:
            _write_files(target, action, on_read=self._on_read)
            version = before + 1  # one that meets another fails
        else:
            _write_by_delta_rs(target, action)
            # nothing replaced by nothing makes no commit
            version = before + 1 if len(action.rows) else min(before + 1, target.newest_version())
            if version > before:
                action.commit.facts[ADDED_BYTES] = target.at_version(version).added_bytes()
        TableCommits(target).write_due_checkpoint(version)
        return version

    def may_need_spark(self, target: DeltaLocation) -> bool:
        """Return that each merge is this writer's."""
        return False

    def takes_parts(self, target: DeltaLocation, columns: TargetSchema) -> bool:
        """Return whether the files of several tasks can be added."""
        return not target.exists or target.takes_files

    def row_files(self, target: DeltaLocation, columns: TargetSchema) -> TableFiles | None:
        """Return what writes into the table's folder, None where delta-rs has to write."""
        return TableFiles(target, columns.columns, columns.order) if self.takes_parts(target, columns) else None

    def evolves(self, target: DeltaLocation, old: TargetSchema, new: TargetSchema, *, merges: bool) -> bool:
        """Return whether there are only further columns, and a commit can have both: files are read by name."""
        return new.extends(old) and target.takes_files

    def subtracts(self, target: DeltaLocation) -> bool:
        """Return whether the table's files can be exchanged one by one."""
        return target.takes_files


class TableFiles:
    """Files in a table's folder, which no reader sees before a commit names them.

    :param order: columns in whose order rows are written.
    """

    def __init__(self, target: DeltaLocation, schema: pa.Schema, order: Sequence[str] = ()) -> None:
        self._target, self._files = target, target.new_files(schema, order=order)

    def add(self, rows: pa.Table) -> None:
        """Take rows; the files are as large as those of one task."""
        with self._target.writing():
            self._files.add(rows)

    def written(self) -> WrittenRows:
        """Write what is left; return the files."""
        with self._target.writing():
            return WrittenRows(added=self._files.close())

    def discard(self) -> None:
        """Remove the files."""
        self._files.discard()


def _write_files(target: DeltaLocation, action: Action, *, on_read: bool) -> None:
    files = target.new_files(action.rows.schema, order=action.order)
    deleted: dict[str, IntArray] = {}
    try:
        removed = _write_rows(target, action, files, deleted if on_read else None)
        with target.writing():
            added = files.close()
    except BaseException:
        files.discard()
        raise
    # from here on the files stay: a commit that seems to fail may have gone through
    added = [*(file for part in action.parts for file in part.added), *added]
    mode = {"create": "error", "overwrite": "overwrite"}.get(action.verb, "append")
    action.commit.facts.setdefault(ADDED_BYTES, sum(file.size for file in added))
    commits = TableCommits(target, action.columns)
    commits.commit_files(_numbered(files.schema), added, removed, mode, action.commit, deleted)


def _write_rows(
    target: DeltaLocation, action: Action, files: DataFiles, deleted: dict[str, IntArray] | None
) -> list[RemoveAction]:
    """Write an action's rows, and for a merge what stays of the files that it touches; return those files' removal.

    :param deleted: takes the positions of deleted rows of files that stay; None where such files are written again.
    """
    removed: list[RemoveAction] = []
    if action.verb == "subtract":
        assert action.deletes is not None
        removed, unmatched = target.removal(files).remove(action.deletes, action.forms)
        action.unmatched(unmatched)
    if action.verb != "merge":
        for piece in action.pieces():
            with target.writing():
                files.add(piece)
        return removed
    assert action.deletes is not None
    deletes = action.deletes.select(action.key)
    merge = target.merge_into(files, action.met, on_read=deleted is not None)
    if action.later is None and not action.parts:
        action.typed(action.rows.num_rows)
        removed = merge.put(action.rows, deletes)
    else:
        removed = merge.without(_written_keys(target, action, files, deletes))
    if action.met is not None:
        action.met.demand_agreement()
    if deleted is not None:
        deleted |= merge.deleted
    return removed


def _written_keys(target: DeltaLocation, action: Action, files: DataFiles, deletes: pa.Table) -> pa.Table:
    """Write an action's rows a piece at a time; return all keys of the merge."""
    keys = [deletes, *(target.columns_of(file, deletes.schema) for part in action.parts for file in part.added)]
    for piece in action.pieces():
        with target.writing():
            files.add(piece)
        keys.append(piece.select(action.key))
    return pa.concat_tables(keys)


def _write_by_delta_rs(target: DeltaLocation, action: Action) -> None:
    rows = pa.concat_tables([action.rows.schema.empty_table(), *action.pieces()])
    match action.verb:
        case "merge":
            assert action.deletes is not None
            by_delta_rs.merge(target, rows, action.deletes, action.key, action.commit)
        case "overwrite":
            by_delta_rs.write(
                target, pa.Table.from_arrays(rows.columns, schema=_numbered(rows.schema)), "overwrite", action.commit
            )
        case _:
            by_delta_rs.write(target, rows, "append" if action.verb == "append" else "error", action.commit)


def _numbered(schema: pa.Schema) -> pa.Schema:
    """Add each column's ordinal as its metadata: delta-rs takes a schema in another order for the one it has."""
    return pa.schema([field.with_metadata({"cdc.place": str(ordinal)}) for ordinal, field in enumerate(schema, 1)])
