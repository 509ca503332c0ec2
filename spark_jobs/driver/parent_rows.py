# SPDX-License-Identifier: Apache-2.0
"""Find the deletes and updates of tables that foreign keys refer to, which a table has to be compared with."""

from __future__ import annotations

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.driver.base_states import Start
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.parent_tables import parents, removing
from spark_jobs.driver.table_groups import TableGroups, spans_since
from spark_jobs.tasks.table_task import ParentTable, Span


class ParentRows:
    """Find what batches hold of the tables above a table.

    :param now: the tables as they are known with the batch's schema changes.
    :param groups: finds what batches hold of tables.
    """

    def __init__(self, now: Timeline, groups: TableGroups, history: History) -> None:
        self._now, self._groups, self._history = now, groups, history

    def compared(self, timeline: TableTimeline, start: Start) -> list[ParentTable]:
        """Return the tables that foreign keys refer to, with the deletes and updates to compare this one with."""
        result = []
        base, (begin, _) = start.base, start.snapshot
        oldest = min((group.min_position for span in start.spans for group in span.groups), default=None)
        again = [seq for seq in self._history.since(oldest) if base and seq <= base.applied_seq] if oldest else []
        for reference in timeline.references:
            for parent in parents(self._now, reference):
                unseen = [*self._unseen(timeline, parent, base), *self._groups.spans(parent)]
                fresh = removing(spans_since(begin, unseen), reference)
                earlier = removing(spans_since(begin, self._groups.spans_of(parent, again)), reference)
                if fresh or earlier:
                    result.append(ParentTable(reference.document(), parent.document(), fresh, earlier))
        return result

    def removes(self, timeline: TableTimeline) -> bool:
        """Return whether this batch may have taken away what a table refers to."""
        return any(
            removing(self._groups.spans(parent), reference)
            for reference in timeline.references
            for parent in parents(self._now, reference)
        )

    def _unseen(self, timeline: TableTimeline, parent: TableTimeline, base: TableState | None) -> list[Span]:
        """Return what batches that a table's state does not hold have of its parent."""
        if base is not None:
            return self._groups.spans_of(parent, (seq for seq in self._history.earlier if seq > base.applied_seq))
        return self._groups.spans_of(parent, self._history.since(timeline.versions[0].position))
