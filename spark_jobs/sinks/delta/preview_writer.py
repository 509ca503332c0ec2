# SPDX-License-Identifier: Apache-2.0
"""The writer of a preview: it types all rows, counts the files that a commit would touch, and commits nothing."""

from __future__ import annotations

import pyarrow as pa

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.contract import Action, WriterRule
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter
from spark_jobs.sinks.delta.writer_choice import WriterChoice


class PreviewWriter(TaskWriter):
    """Say what a commit would touch.

    :ivar files: files that the commit would write again.
    :ivar file_bytes: their size.
    :ivar choice: the commit's writer.
    """

    def __init__(self, rule: WriterRule) -> None:
        super().__init__()
        self._choice = WriterChoice(rule)
        self.choice: Choice | None = None
        self.files = self.file_bytes = 0

    def may_need_spark(self, target: DeltaLocation) -> bool:
        """Return whether a merge into the table may be one for the Spark writer."""
        return self._choice.may_choose_spark(target)

    def takes_parts(self, target: DeltaLocation, columns: TargetSchema) -> bool:
        """Return that a preview looks at each table in one task."""
        return False

    def row_files(self, target: DeltaLocation, columns: TargetSchema) -> None:
        """Return None: a preview looks at each table in one task."""

    def commit(self, target: DeltaLocation, action: Action) -> int | None:
        """Type the rows of an action, count the files and choose; return the version that the table has."""
        self.choice = self._choice.choose(target, action)
        keys = [piece.select(action.key) for piece in action.pieces()]
        if action.verb == "subtract":
            assert action.deletes is not None
            removed, unmatched = target.removal().remove(action.deletes, action.forms)
            action.unmatched(unmatched)
            self.files, self.file_bytes = len(removed), sum(removal.size or 0 for removal in removed)
        elif target.exists and action.verb in ("merge", "overwrite"):
            sizes = target.actions.column("size_bytes").to_pylist()
            if action.verb == "merge":
                assert action.deletes is not None
                merged = pa.concat_tables([action.deletes.select(action.key), *keys])
                sizes = [file.size for file in target.files_holding(merged)]
                self.choice = self.choice or self._choice.choose_by_keys(target, merged)
            self.files, self.file_bytes = len(sizes), sum(sizes)
        return target.version
