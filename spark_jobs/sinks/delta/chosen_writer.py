# SPDX-License-Identifier: Apache-2.0
"""The writer of one table: it hands each commit to the task writer, or stages it for the Spark writer."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.contract import Action, RowFiles, Writer, WriterRule
from spark_jobs.sinks.delta.spark_writer import StageWriter
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TableFiles, TaskWriter
from spark_jobs.sinks.delta.writer_choice import WriterChoice


class ChosenWriter:
    """Choose the writer of a commit once its keys are known.

    Rows that were written to files before are not written again: the task writer adds the files, Spark reads them.

    :param stage: takes what is Spark's.
    :ivar choice: for the newest commit; the commit states it too.
    """

    def __init__(self, rule: WriterRule, stage: StageWriter, task: TaskWriter) -> None:
        self._choice, self._task, self._stage = WriterChoice(rule), task, stage
        self._before: Writer[DeltaLocation] = self._task  # until it is chosen
        if rule.settled is not None and rule.settled.writer == "spark":
            self._before = stage
        self.choice: Choice | None = None

    def commit(self, target: DeltaLocation, action: Action) -> int | None:
        """Choose the writer and carry out one action; return the version, None where Spark is to commit."""
        self.choice = self._choice.choose(target, action)
        if self.choice is None:
            action = _written(target, action)
            self.choice = self._choice.choose_by_keys(target, _keys(target, action))
        action.commit.facts["writer"] = self.choice.document()
        writer: Writer[DeltaLocation] = self._stage if self.choice.writer == "spark" else self._task
        return writer.commit(target, action)

    def may_need_spark(self, target: DeltaLocation) -> bool:
        """Return whether a merge into the table may be one for the Spark writer."""
        return self._choice.may_choose_spark(target)

    def takes_parts(self, target: DeltaLocation, columns: TargetSchema) -> bool:
        """Return whether several tasks can write an action's rows."""
        return self._before.takes_parts(target, columns)

    def row_files(self, target: DeltaLocation, columns: TargetSchema) -> RowFiles | None:
        """Return what writes a part of an action's rows, for either writer where none is chosen yet."""
        return self._before.row_files(target, columns)

    def evolves(self, target: DeltaLocation, old: TargetSchema, new: TargetSchema, *, merges: bool) -> bool:
        """Return whether a commit may have further columns."""
        return self._before.evolves(target, old, new, merges=merges)

    def subtracts(self, target: DeltaLocation) -> bool:
        """Return whether a commit may remove rows of a table without key where they are."""
        return self._before.subtracts(target)


def _written(target: DeltaLocation, action: Action) -> Action:
    """Write the rows of an action that are typed while they are written; return it with the files."""
    if action.later is None:
        return action
    files = TableFiles(target, action.rows.schema, action.order)
    try:
        for piece in action.pieces():
            files.add(piece)
        part = files.written()
    except BaseException:
        files.discard()
        raise
    return replace(action, later=None, parts=[*action.parts, part], typed=lambda rows: None)


def _keys(target: DeltaLocation, action: Action) -> pa.Table:
    """Return the keys of an action's rows and deletes."""
    rows = action.rows.select(action.key)
    written = [target.columns_of(file, rows.schema) for part in action.parts for file in part.added]
    deletes = [] if action.deletes is None else [action.deletes.select(action.key)]
    return pa.concat_tables([rows, *deletes, *written])
