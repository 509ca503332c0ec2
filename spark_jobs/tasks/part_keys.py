# SPDX-License-Identifier: Apache-2.0
"""Find the newest change of each key of a table that is split: parts write key events, buckets find the newest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.key_buckets import (
    key_columns,
    key_events,
    keys_of,
    net_events,
    newest_by_clock,
    newest_events,
)
from airflow_provider_cdc.core.apply.merge_plan import RowFailure
from airflow_provider_cdc.core.apply.record_keys import contradicted_within, firsts_unlike_stored, is_unproven
from airflow_provider_cdc.core.apply.resolve import ordered, typer_of
from airflow_provider_cdc.core.apply.row_sets import group_numbers, having_keys
from airflow_provider_cdc.core.apply.source_order import source_order
from airflow_provider_cdc.core.apply.stored_rows import Stored
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.model.status import ApplyStatus
from spark_jobs.lake.staged_batches import one_batch, read_batch, write_batches
from spark_jobs.tasks.reporting import reported
from spark_jobs.tasks.table_changes import columns_of
from spark_jobs.tasks.table_parts import Secrets, SplitTable, as_table, by_number
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask, PartResult, TablePart


def write_events(job: JobDocument, part: TablePart, secrets: Secrets) -> ApplyReport:
    """Write the keys that a part's changes acquire and release; an error is reported, not raised."""
    return reported(_PartKeys(job, part.task, secrets), lambda table: table.write_events(part))


def find_newest(job: JobDocument, task: ApplyTask, secrets: Secrets, bucket: int, events: Sequence[str]) -> ApplyReport:
    """Find the newest change of each key of a bucket; an error is reported, not raised.

    :param task: of the whole table, without spans.
    :param events: files of the parts.
    """
    return reported(_PartKeys(job, task, secrets), lambda table: table.find_newest(bucket, events))


def settle(
    job: JobDocument, task: ApplyTask, secrets: Secrets, parts: Sequence[TablePart], doubtful: Sequence[str]
) -> ApplyReport:
    """Find the newest change of the keys in doubt of some buckets; an error is reported, not raised.

    :param task: of the whole table, without spans.
    :param doubtful: files of the buckets.
    """
    return reported(_PartKeys(job, task, secrets), lambda table: table.settle(parts, doubtful))


class _PartKeys(SplitTable):
    """One table's keys on their way through a part or a bucket."""

    def write_events(self, part: TablePart) -> ApplyReport:
        """Write the part's key events by bucket."""
        target = self._target.open()
        if isinstance(target, ApplyReport):
            return target
        if not self._writer.takes_parts(target, self._columns):
            return ApplyReport(self.task.table_id, ApplyStatus.WHOLE)
        if target.exists and not self._schema.key and not self._writer.subtracts(target):
            return ApplyReport(self.task.table_id, ApplyStatus.WHOLE)
        counts, lossy, failures = Counter[str](), Counter[str](), list[RowFailure]()
        events, buckets, start = list[pa.Table](), list[IntArray](), 0
        is_fresh = any(span.groups for span in self.task.spans)  # else earlier batches counted them
        for rows in self._changes.pieces(self._read):
            changes = ordered(rows)
            counts.update(changes.counts() if is_fresh else {})
            keyed = key_events(
                changes,
                self._timeline,
                self._format,
                self._types,
                cleared=part.cleared,
                count=part.buckets,
                snapshot_position=self.task.snapshot_position,
                shape=self._shape.rules,
            )
            numbers = pa.array(keyed.events.column("row").to_numpy() + start)
            events.append(keyed.events.set_column(keyed.events.num_columns - 1, "row", numbers))
            buckets.append(keyed.buckets)
            failures += keyed.typer.failures if is_fresh else ()
            if failures and not self.key:  # of rows without key only a look at all shows which are copies
                return ApplyReport(self.task.table_id, ApplyStatus.WHOLE)
            lossy.update(keyed.typer.lossy if is_fresh else {})
            start += rows.num_rows
            self._demand_fit(failures)
        result = PartResult(changes=dict(counts))
        if events:
            batches = by_number(pa.concat_tables(events), np.concatenate(buckets), part.buckets)
            result.events = write_batches(self._storage, self.staged, "events", batches)
        return self.done(result, failures, lossy)

    def find_newest(self, bucket: int, events: Sequence[str]) -> ApplyReport:
        """Write the numbers of the rows that are the newest of the bucket's keys, and the keys whose row is gone."""
        batches = [read_batch(self._storage, name, bucket) for name in events]
        every = pa.Table.from_batches(batches[:0], batches[0].schema)
        every = pa.concat_tables([every, *map(as_table, batches)]).unify_dictionaries()
        if self.key and is_unproven(self._timeline, self._format) and self._contradicted(every):
            return ApplyReport(self.task.table_id, ApplyStatus.WHOLE)
        doubtful, cancelled = np.zeros(0, np.int64), 0
        if self.key:
            newest, doubtful = newest_events(every, self._format)
        else:
            newest, cancelled = net_events(every, self._format)
        fills = every.column("fills").to_numpy(zero_copy_only=False)[newest]
        part_of = np.repeat(np.arange(len(batches)), [batch.num_rows for batch in batches])

        def write(kind: str, some: IntArray, *columns: str) -> str:
            rows = every.select(["row", *columns]).take(pa.array(some))
            return self._write_by_part(kind, rows, part_of[some], len(events))

        result = PartResult(newest=write("newest", newest[fills]), cancelled=cancelled)
        if not self.key:
            result.released = write("released", newest[~fills])
            return self.done(result)
        if len(doubtful):
            result.doubtful = write("doubtful", doubtful, *key_columns(every))
            result.doubtful_rows = len(doubtful)
        return self._without_row(result, keys_of(every.take(pa.array(newest[~fills])), self.key))

    def settle(self, parts: Sequence[TablePart], doubtful: Sequence[str]) -> ApplyReport:
        """Write the same as :meth:`find_newest` of keys whose end only the images of all their changes show."""
        every = [
            pa.concat_tables([as_table(read_batch(self._storage, name, part.number)) for name in doubtful])
            for part in parts
        ]
        rows, origins = list[pa.Table](), list[pa.Table]()
        for part, mine in zip(parts, every, strict=True):
            numbers = np.unique(mine.column("row").to_numpy())
            for some, picked in _PartKeys(self.job, part.task, self._secrets).picked(numbers, self._read):
                rows.append(some)
                origins.append(pa.table({"part": np.full(len(picked), part.number), "row": picked}))
        typer = typer_of(
            ordered(pa.concat_tables(rows).unify_dictionaries()),
            self._timeline,
            self._format,
            self._types,
            self._shape.rules,
        )
        base = self.task.base
        schema = TableSchema.from_document(base.schema) if base and base.schema else None
        stored = Stored(self._base.rows if schema else None, schema, self._shape.mapper(), self._timeline.versions)
        before = partial(stored.before, (), None, len(self._timeline.versions) - 1)
        newest, gone = newest_by_clock(typer, keys_of(pa.concat_tables(every), self.key), before)
        origin = pa.concat_tables(origins).take(pa.array(typer.changes.as_read(newest)))
        part_of = origin.column("part").to_numpy()
        name = self._write_by_part("newest", origin.select(["row"]), part_of, len(parts))
        return self._without_row(PartResult(newest=name), gone)

    @property
    def _read(self) -> list[str]:
        """The columns of the change log that keys and their order are made of."""
        return list(dict.fromkeys([*columns_of(self._format), *self._shape.rules.of_change]))

    def _write_by_part(self, kind: str, rows: pa.Table, part_of: IntArray, count: int) -> str:
        return write_batches(self._storage, self.staged, kind, by_number(rows, part_of, count))

    def _without_row(self, result: PartResult, gone: pa.Table) -> ApplyReport:
        """Return a report with the keys whose row is gone."""
        result.removed = write_batches(self._storage, self.staged, "removed", [one_batch(gone)])
        return self.done(result, deletes=gone.num_rows)

    def _contradicted(self, events: pa.Table) -> bool:
        """Return whether keys may be other than the table's: a look at all rows decides."""
        events = events.take(pa.array(source_order(events, "fills")))
        keys, fills = keys_of(events, self.key), events.column("fills").to_numpy()
        groups = group_numbers(keys.columns)
        if len(contradicted_within(groups, fills, events)[0]):
            return True
        base = self.task.base
        if base is None or base.version is None:
            return False
        begun = self._timeline.versions[0].position
        first = firsts_unlike_stored(groups, fills, events, base.applied_position, begun)
        if not len(first):
            return False
        keys = keys.take(pa.array(first))
        stored = self._base.rows(keys).select(keys.column_names)
        return bool(having_keys(stored, keys, keys.column_names).any())
