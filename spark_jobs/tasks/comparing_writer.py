# SPDX-License-Identifier: Apache-2.0
"""The writer of ``verify``: it compares the rows that an action would write with those that are there."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.contradictions import ROW_DIFFERS, ROW_MISSING, Findings
from airflow_provider_cdc.core.apply.modes import mode_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers, numbers_in_groups
from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.documents import Difference, JobDocument, Rebuild
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.contract import Action, PreviewWriter, Stored

ROW_UNEXPECTED = "row_unexpected"  # the table has it, and the log does not
COLUMNS_DIFFER = "columns_differ"  # the table has other columns than the log says
_NAMED = 1_000  # rows


class ComparingWriter:
    """Compare, and commit nothing.

    :param preview: answers what a commit could do.
    :param key: names of the key's columns, none for whole rows.
    :param expired: is true of rows that may have been removed because of their age, None for no row.
    :ivar findings: differing rows by kind, and how many are equal.
    :ivar differences: the first of them.
    """

    def __init__(self, preview: PreviewWriter[Stored], key: list[str], expired: pc.Expression | None = None) -> None:
        self._preview, self._key, self._expired = preview, key, expired
        self.choice: Choice | None = None
        self.findings = Findings()
        self.differences: list[Difference] = []

    @staticmethod
    def of(job: JobDocument, table: str, preview: PreviewWriter[Stored], key: list[str]) -> ComparingWriter | None:
        """Return the writer of one table, None where the job is not to compare tables."""
        if not isinstance(job.order, Rebuild) or not job.order.compared:
            return None
        return ComparingWriter(preview, key, mode_of(job.tables, table).expired(datetime.fromisoformat(job.created_at)))

    def commit(self, target: Stored, action: Action) -> int | None:
        """Compare the rows of an action that makes the whole table; return the version that the table has."""
        assert action.verb in ("create", "overwrite"), "all rows are resolved"
        said = pa.concat_tables([action.rows.schema.empty_table(), *action.pieces()])
        stored = target.rows() if target.exists else said.schema.empty_table()
        names = said.column_names
        if sorted(stored.column_names) != sorted(names):
            self.findings.counts = {COLUMNS_DIFFER: 1}
            self.differences = [Difference(COLUMNS_DIFFER, sorted(set(names) ^ set(stored.column_names)))]
            return target.version
        stored = stored.select(names).cast(said.schema)
        if self._expired is not None:
            said, stored = said.filter(~self._expired), stored.filter(~self._expired)
        self._compare(said, stored)
        return target.version

    def may_need_spark(self, target: Stored) -> bool:
        """Return that nothing is left to Spark."""
        return False

    def takes_parts(self, target: Stored, columns: TargetSchema) -> bool:
        """Return that a table is compared in one task."""
        return False

    def row_files(self, target: Stored, columns: TargetSchema) -> None:
        """Return None: a table is compared in one task."""

    def evolves(self, target: Stored, old: TargetSchema, new: TargetSchema, *, merges: bool) -> bool:
        """Return what a preview says."""
        return self._preview.evolves(target, old, new, merges=merges)

    def subtracts(self, target: Stored) -> bool:
        """Return what a preview says."""
        return self._preview.subtracts(target)

    def _compare(self, said: pa.Table, stored: pa.Table) -> None:
        equal_said, equal_stored = _equal(pa.concat_tables([said, stored]).columns, said.num_rows)
        self.findings.agreed = int(equal_said.sum())
        missing, unexpected = said.filter(pa.array(~equal_said)), stored.filter(pa.array(~equal_stored))
        if self._key:
            both = pa.concat_tables([missing.select(self._key), unexpected.select(self._key)])
            of_missing, of_unexpected = _equal(both.columns, missing.num_rows)
            self._note(ROW_DIFFERS, missing.filter(pa.array(of_missing)))
            missing = missing.filter(pa.array(~of_missing))
            unexpected = unexpected.filter(pa.array(~of_unexpected))
        self._note(ROW_MISSING, missing)
        self._note(ROW_UNEXPECTED, unexpected)

    def _note(self, kind: str, rows: pa.Table) -> None:
        if not rows.num_rows:
            return
        self.findings.counts[kind] = rows.num_rows
        named = rows.select(self._key or rows.column_names).slice(0, max(0, _NAMED - len(self.differences)))
        self.differences += [Difference(kind, [str(value) for value in row.values()]) for row in named.to_pylist()]


def _equal(columns: list[pa.ChunkedArray], count: int) -> tuple[BoolArray, BoolArray]:
    """Return which of the first rows and of the others have an equal one on the other side, one for one.

    :param count: of the first rows.
    """
    first, second = np.split(group_numbers(columns), [count])
    most = int(max(first.max(initial=-1), second.max(initial=-1))) + 1

    def has_equal(mine: IntArray, others: IntArray) -> BoolArray:
        flags: BoolArray = numbers_in_groups(mine) < np.bincount(others, minlength=most)[mine]
        return flags

    return has_equal(first, second), has_equal(second, first)
