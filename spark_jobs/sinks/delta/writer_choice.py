# SPDX-License-Identifier: Apache-2.0
"""Choose the writer of a commit by the bytes that a merge touches: known from the table's log, no file is opened."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_cdc.core.sizes import files_text, size_text
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.contract import Action, WriterRule
from spark_jobs.sinks.delta.stored_files import files_with
from spark_jobs.sinks.delta.table import DeltaLocation

_HELD = 4  # times of what delta-rs' merge reads: 3.4 GB for a table of 1.1 GB (design/performance)


class WriterChoice:
    """Choose the writer of each commit of one table."""

    def __init__(self, rule: WriterRule) -> None:
        self._rule = rule

    def may_choose_spark(self, target: DeltaLocation) -> bool:
        """Return whether a merge into the table may touch more than the limit."""
        return self._rule.settled is None and target.exists and target.file_bytes > self._limit(target)

    def choose(self, target: DeltaLocation, action: Action) -> Choice | None:
        """Return the choice for an action, None where it depends on the keys."""
        if self._rule.settled is not None:
            return self._rule.settled
        if action.verb != "merge":
            return Choice("task", "only a merge can be Spark's")
        has, known = f"the table has {files_text(target.actions.num_rows, target.file_bytes)}", self._said(target)
        if not self.may_choose_spark(target):
            return Choice("task", f"{has}; {known}")
        if self._rule.obstacle:
            return Choice("task", f"{has}; {known}, but {self._rule.obstacle}")
        if target.lacks_columns(action.rows.schema):
            return Choice("task", "a merge that adds columns is the task's")
        if not target.takes_files:
            return Choice("spark", f"{has}; {known}")
        return None

    def choose_by_keys(self, target: DeltaLocation, keys: pa.Table) -> Choice:
        """Return the choice for a merge of rows and deletes with these keys."""
        touched = files_with(target.live, keys)
        size = sum(file.size for file in touched)
        what = f"the merge touches {len(touched)} of {files_text(target.actions.num_rows, size)}; {self._said(target)}"
        return Choice("spark" if size > self._rule.limit else "task", what)

    def _limit(self, target: DeltaLocation) -> int:
        """Return the bytes that the task writer merges: all that delta-rs reads, it holds."""
        return self._rule.limit if target.takes_files else min(self._rule.limit, self._rule.memory // _HELD)

    def _said(self, target: DeltaLocation) -> str:
        if self._limit(target) < self._rule.limit:
            return f"delta-rs has to merge all of it, and a task has {size_text(self._rule.memory)} of memory"
        return f"policy.spark_writer_bytes is {size_text(self._rule.limit)}"
