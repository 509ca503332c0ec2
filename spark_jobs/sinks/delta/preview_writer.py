# SPDX-License-Identifier: Apache-2.0
"""The writer of a preview: it types all rows, counts the files that a commit would touch, and commits nothing."""

from __future__ import annotations

from bisect import bisect_left
from typing import Any

import pyarrow as pa

from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.table import DeltaLocation


class PreviewWriter:
    """Say what a commit would touch.

    :ivar files: files that the commit would write again.
    :ivar file_bytes: their size.
    """

    def __init__(self) -> None:
        self.files = self.file_bytes = 0

    def commit(self, target: DeltaLocation, action: Action) -> int | None:
        """Type the rows of an action and count the files; return the version that the table has."""
        rows = pa.concat_tables([action.rows.schema.empty_table(), *action.pieces()])
        if target.exists and action.verb in ("merge", "overwrite"):
            files = pa.table(target.table.get_add_actions(flatten=True))
            touched = [True] * files.num_rows
            if action.verb == "merge":
                parts = [table.select(action.key[:1]) for table in (rows, action.deletes) if table is not None]
                touched = _holding(files, pa.concat_tables(parts))
            sizes = [
                size for size, is_touched in zip(files["size_bytes"].to_pylist(), touched, strict=True) if is_touched
            ]
            self.files, self.file_bytes = len(sizes), sum(sizes)
        return target.version


def _holding(files: pa.Table, keys: pa.Table) -> list[bool]:
    """Return which files may hold one of the keys, by the least and the largest value of the key's first column."""
    (name,) = keys.column_names
    if f"min.{name}" not in files.column_names:
        return [True] * files.num_rows
    values = sorted(value for value in keys.column(name).to_pylist() if value is not None)
    lows, highs = (files.column(f"{end}.{name}").to_pylist() for end in ("min", "max"))
    return [_holds(values, low, high) for low, high in zip(lows, highs, strict=True)]


def _holds(values: list[Any], low: Any, high: Any) -> bool:
    """Return whether one of some sorted values is between two; it may be where these are not known."""
    try:
        index = bisect_left(values, low)
        return index < len(values) and bool(values[index] <= high)
    except TypeError:
        return True
