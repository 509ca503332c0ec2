# SPDX-License-Identifier: Apache-2.0
"""Compute the state of a table that its own commit carries: it describes the rows, whatever a ledger remembers."""

from __future__ import annotations

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.tasks.table_task import ApplyTask


def committed_state(task: ApplyTask, timeline: TableTimeline, seq: int, pending_seq: int | None) -> TableState:
    """Return a table's state once a batch is applied, without the version that the commit makes.

    :param seq: number of the batch.
    :param pending_seq: batch that left removals which found no row yet, None without any.
    """
    groups = [group for span in task.spans for group in span.groups]
    times = [group.max_source_time for group in groups if group.max_source_time is not None]
    ends = [min(group.max_position, span.end or group.max_position) for span in task.spans for group in span.groups]
    # the content is settled up to the newest schema change too, even where no row followed it
    settled = [timeline.versions[-1].position, *timeline.clears, *(position for position, _ in timeline.names)]
    reached = max([task.base.applied_position if task.base else "", *ends, *settled])
    before = task.base.source_time if task.base else None
    return TableState(
        task.table_id,
        task.database,
        task.table,
        task.location,
        applied_seq=seq,
        applied_position=reached,
        source_time=max([*times, *([before] if before is not None else [])], default=None),
        schema=timeline.schema.document(),
        pending_seq=pending_seq,
        timeline_mark=timeline.mark(reached),
        snapshot_position=task.snapshot_position,
        snapshot_sent=task.snapshot_sent,
        notes=timeline.notes,
        rebuilt_seq=task.rebuilt_seq,
        provided=task.provided,
        made_with=task.made_with,
        resolved_since=0 if task.base is None else task.base.applied_seq,
    )
