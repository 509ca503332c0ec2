# SPDX-License-Identifier: Apache-2.0
"""Find tables whose rows a clock places for certain before or behind each statement that means their table."""

from __future__ import annotations

from airflow_provider_cdc.core.model.clock_position import earliest_unordered, latest_unordered
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.tasks.table_task import ApplyTask


def is_apart_from_boundaries(task: ApplyTask, timeline: TableTimeline) -> bool:
    """Return whether positions by clock place all rows behind or all before each statement that means their table.

    Else rows behind a statement are compared with those before it, which may have been sent again. Rows of each key
    are compared with each other: a table without key has to be looked at whole.
    """
    if len(task.spans) != 1 or not all(version.schema.key for version in timeline.versions):
        return False
    (span,) = task.spans
    if span.end is not None or span.others or span.late or any(group.clears for group in span.groups):
        return False
    if span.older and task.base is None:  # what is resolved from nothing repeats no rows
        return False
    groups = [*span.groups, *span.older]
    first, last = min(group.min_position for group in groups), max(group.max_position for group in groups)
    cleared = [*timeline.clears, *(copy for copies in timeline.copies.values() for copy in copies), *timeline.copies]
    changed = {version.position for version in timeline.versions} - {span.start}
    return (
        first >= span.start
        and all(first >= latest_unordered(position) for position in cleared)
        and all(first >= latest_unordered(one) or last < earliest_unordered(one) for one in changed)
    )
