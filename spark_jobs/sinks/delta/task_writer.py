# SPDX-License-Identifier: Apache-2.0
"""The task writer: Delta tables by path through delta-rs, inside the task that resolved them."""

from __future__ import annotations

import pyarrow as pa
from deltalake.transaction import RemoveAction

from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.data_files import DataFiles
from spark_jobs.sinks.delta.table import WIDE_ROW, DeltaLocation


class TaskWriter:
    """Commit through delta-rs in this process; large rows are written to files a piece at a time."""

    def commit(self, target: DeltaLocation, action: Action) -> int | None:
        """Carry out one action in one commit; return the version it made."""
        before = -1 if target.version is None else target.version
        if _in_pieces(target, action):
            _write_pieces(target, action)
        else:
            _write_at_once(target, action)
        # our commit is the next version: one that meets another fails; nothing replaced by nothing makes no commit
        return min(before + 1, target.newest_version())


def _in_pieces(target: DeltaLocation, action: Action) -> bool:
    """Return whether an action is carried out with files that are written a piece at a time."""
    if not target.exists:
        return action.later is not None
    if not target.takes_files:
        return False
    match action.verb:
        case "create":
            return False  # delta-rs says what is wrong
        case "merge":
            return target.has_wide_rows or (action.later is not None and action.later.row_bytes > WIDE_ROW)
        case "overwrite":
            return action.later is not None and target.has_columns(_numbered(action.rows.schema))
        case _:
            return action.later is not None


def _write_pieces(target: DeltaLocation, action: Action) -> None:
    files = target.new_files(action.rows.schema)
    try:
        removed = _write_files(target, action, files)
        with target.writing():
            added = files.close()
    except BaseException:
        files.discard()
        raise
    # from here on the files stay: a commit that seems to fail may have gone through
    mode = "overwrite" if action.verb == "overwrite" else "append"
    target.commit_files(_numbered(files.schema), added, removed, mode, action.commit)


def _write_files(target: DeltaLocation, action: Action, files: DataFiles) -> list[RemoveAction]:
    """Write an action's rows, and for a merge what stays of the files that it touches; return those files' removal."""
    keys = [] if action.deletes is None else [action.deletes.select(action.key)]
    for piece in action.pieces():
        with target.writing():
            files.add(piece)
        if action.verb == "merge":
            keys.append(piece.select(action.key))
    return target.without_keys(pa.concat_tables(keys), files) if action.verb == "merge" else []


def _write_at_once(target: DeltaLocation, action: Action) -> None:
    rows = pa.concat_tables([action.rows.schema.empty_table(), *action.pieces()])
    match action.verb:
        case "create":
            target.write(_with_numbers(rows), "error", action.commit)
        case "append":
            target.write(rows, "append", action.commit)
        case "overwrite":
            target.write(_with_numbers(rows), "overwrite", action.commit, schema_mode="overwrite")
        case "merge":
            assert action.deletes is not None
            target.merge(rows, action.deletes, action.key, action.commit)


def _with_numbers(rows: pa.Table) -> pa.Table:
    return pa.Table.from_arrays(rows.columns, schema=_numbered(rows.schema))


def _numbered(schema: pa.Schema) -> pa.Schema:
    """Add each column's ordinal as its metadata: delta-rs takes a schema in another order for the one it has."""
    return pa.schema([field.with_metadata({"cdc.place": str(ordinal)}) for ordinal, field in enumerate(schema, 1)])
