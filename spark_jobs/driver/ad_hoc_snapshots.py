# SPDX-License-Identifier: Apache-2.0
"""Find the position from which an ad hoc snapshot in the log, and the changes around it, state all rows of a table.

An ad hoc snapshot, incremental or blocking, writes rows while changes are streamed and removes none. After one of the
whole table that was asked for at a position, keys without any record from there on are gone at the source (recorded:
Debezium 3.5). The position is in no record: it is before the snapshot's first row, because a chunk leaves out keys that
changed while it was read.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import DataError, SinkError
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.table_groups import TableGroups
from spark_jobs.tasks.table_task import Span

_COLUMNS = ("op", "position", "source_time")
_SCHEMA = pa.schema([("position", pa.string()), ("source_time", pa.timestamp("us", "UTC")), ("ad_hoc", pa.bool_())])


def demand_ad_hoc_snapshots(job: JobDocument) -> None:
    """Refuse a format that has no ad hoc snapshots.

    :raises DataError: ``rebuild.no_snapshot``.
    """
    if "ad_hoc_snapshots" not in open_format(job.format, job.format_options).carries:
        raise DataError(
            "rebuild.no_snapshot",
            f"the format {job.format} has no ad hoc snapshots",
            where={"pipeline": job.pipeline},
            hint="TRUNCATE the table and load it again, or take a full snapshot",
        )


def first_row(
    timeline: TableTimeline, state: TableState | None, groups: TableGroups, history: History, since: int | None
) -> str:
    """Return the position of the first row that came after an ad hoc snapshot was asked for, or shortly before that.

    :param since: source time in microseconds since the epoch, shortly before the snapshot was asked for. Without it the
        snapshot was asked for after the table's rows became unknown.
    :raises DataError: ``rebuild.no_key``; ``rebuild.no_snapshot``; ``rebuild.snapshot_unclear``, a snapshot was running
        when the rows became unknown.
    """
    where = {"table": str(timeline.last_name)}
    bound = _unknown_since(timeline, state)
    rows = _rows(timeline, groups, history, bound if since is None else None, since)
    if since is None:
        later = pc.greater(rows.column("position"), bound)
    else:
        later = pc.greater_equal(rows.column("source_time").cast(pa.int64()), since)
    ad_hoc = rows.column("ad_hoc")
    if not pc.any(pc.and_(ad_hoc, later), min_count=0).as_py():
        raise DataError(
            "rebuild.no_snapshot",
            "the change log has no rows of an ad hoc snapshot of the table that came "
            + ("after its rows became unknown" if since is None else "at that time or later"),
            where=where,
            hint="let the connector take one of the whole table, run sync until its rows are read, then run this again",
        )
    if since is None and pc.any(pc.and_(ad_hoc, pc.invert(later)), min_count=0).as_py():
        raise DataError(
            "rebuild.snapshot_unclear",
            "rows of an ad hoc snapshot came before the table's rows became unknown, and others after that",
            where=where,
            hint="state with --since a time shortly before the snapshot was asked for",
        )
    first: str = pc.min(rows.filter(later).column("position")).as_py()
    if any(not version.schema.key for version in timeline.versions[timeline.version_at(first) :]):
        raise DataError(
            "rebuild.no_key",
            "a table that has or had no key since an ad hoc snapshot cannot be rebuilt from it: its rows look like "
            "those that are already there",
            where=where,
            hint="TRUNCATE the table and load it again, or take a full snapshot",
        )
    return first


def _unknown_since(timeline: TableTimeline, state: TableState | None) -> str:
    """Return the newest position at which the rows may have become unknown, as far as that is known."""
    applied = "" if state is None else state.applied_position
    return max([applied, timeline.versions[0].position, *(block.position for block in timeline.blocked)])


def _rows(
    timeline: TableTimeline, groups: TableGroups, history: History, bound: str | None, since: int | None
) -> pa.Table:
    """Return a table's rows in the change log, as far back as it reaches, and which are of ad hoc snapshots.

    :param bound: position from which on batches are needed; ``since`` a source time. One of them is None.
    """
    full = {timeline.versions[0].position, *(position for position, _ in timeline.snapshots)}
    needed = set(history.since(bound) if bound is not None else history.since_source_time(since or 0))
    tables = []
    for seq in reversed(history.earlier):
        try:
            tables += [_of_span(span, history, full) for span in groups.spans_of(timeline, [seq])]
        except SinkError as error:
            if error.code != "retention.log_expired" or seq in needed:
                raise
            break
    return pa.concat_tables([_SCHEMA.empty_table(), *tables])


def _of_span(span: Span, history: History, full: set[str]) -> pa.Table:
    rows = history.rows(span.groups, _COLUMNS)
    ops, positions = rows.column("op").cast(pa.string()), rows.column("position").cast(pa.string())
    announced = pc.is_in(positions, pa.array(sorted(full), pa.string()))
    ad_hoc = pc.or_(pc.equal(ops, "incremental"), pc.and_(pc.equal(ops, "snapshot"), pc.invert(announced)))
    inside = pc.greater_equal(positions, span.start)
    if span.end is not None:
        inside = pc.and_(inside, pc.less(positions, span.end))
    return pa.table([positions, rows.column("source_time"), ad_hoc], names=_SCHEMA.names).cast(_SCHEMA).filter(inside)
