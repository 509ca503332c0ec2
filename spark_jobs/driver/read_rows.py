# SPDX-License-Identifier: Apache-2.0
"""Decide by the rows that were read whether a table that took the name of another one is known."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.timeline.taken_name import TakenName
from airflow_provider_cdc.core.timeline.timeline import Block, TableTimeline, Timeline
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.table_groups import TableGroups
from spark_jobs.lake.manifest import RowGroup


class ReadRows:
    """State which rows all batches so far have read, as far as tables that took names depend on it.

    :param was: the tables as they were known before the batch.
    :param now: the same with the batch's schema changes.
    :param states: the states before the batch, by table id.
    :param groups: finds what batches hold of tables.
    """

    def __init__(
        self,
        was: Timeline,
        now: Timeline,
        states: Mapping[str, TableState],
        groups: TableGroups,
        history: History,
    ) -> None:
        self._was, self._now = was, now
        self._states, self._groups, self._history = states, groups, history

    def shows(self, timeline: TableTimeline) -> bool:
        """Return whether a table counts: a statement shows it, or rows of it were read."""
        return not timeline.supposed or timeline.table_id in self._states or bool(self._groups.spans(timeline))

    def concern(self, timeline: TableTimeline) -> bool:
        """Return whether the batch holds rows that say more of the names that a table took."""
        return any(self._holds(self._names(item), item.position) for item in timeline.taken)

    def blocks(self, timeline: TableTimeline, *, is_ok: bool) -> list[Block]:
        """Return a block for each name that a table took from one with rows, while no row of its own was read.

        :param is_ok: whether the table was well before the batch.
        """
        was = self._was.tables.get(timeline.table_id)
        settled = was.taken if was is not None and is_ok else ()
        return [
            Block(item.position, item.reason)
            for item in timeline.taken
            if (item not in settled or self._holds(self._names(item), item.position))
            and not self._were_read(timeline, item)
            and self._was_filled(item)
        ]

    def with_blocks(self, timeline: TableTimeline, state: TableState | None) -> TableTimeline:
        """Return a timeline with these blocks.

        :param state: of the table before the batch.
        """
        blocks = self.blocks(timeline, is_ok=state is not None and state.state == TableStatus.OK)
        return replace(timeline, blocked=[*timeline.blocked, *blocks]) if blocks else timeline

    def _names(self, item: TakenName) -> set[TableName]:
        displaced = self._now.tables.get(item.displaced or "")
        return {*item.former, *(name for _, name in (displaced.names if displaced else ()) if name is not None)}

    def _holds(self, names: Collection[TableName], before: str) -> bool:
        """Return whether the batch holds rows of names from before a position."""
        return any(_from_before(self._groups.by_name.get(name, ()), before) for name in names)

    def _were_read(self, timeline: TableTimeline, item: TakenName) -> bool:
        """Return whether rows came under a name that a table had before: then rows of that name are captured."""
        state, was = self._states.get(timeline.table_id), self._was.tables.get(timeline.table_id)
        is_new = was is not None and item not in was.taken  # else what the table holds may be from after it
        if is_new and state is not None and state.source_time is not None:
            return True
        if self._holds(item.former, item.position):
            return True
        return any(_from_before(self._groups.earlier_groups(name, ""), item.position) for name in item.former)

    def _was_filled(self, item: TakenName) -> bool:
        """Return whether the table that had the name has had rows since it was emptied last."""
        table = self._now.tables.get(item.displaced or "")
        if table is None or table.from_rows or table.blocked or self._was_unknown(table, item.position):
            return True
        spans = self._groups.spans(table)
        emptied = [*table.clears, *self._groups.clears(table, "", spans)]
        cleared = max((position for position in emptied if position < item.position), default="")
        state = self._states.get(table.table_id)
        if state is not None and state.source_time is not None and not cleared:
            return True
        every = [*spans, *self._groups.spans_of(table, self._history.earlier)]
        return any(
            self._has_row(group, max(span.start, f"{cleared}~" if cleared else ""), item.position)
            for span in every
            for group in span.groups
        )

    def _was_unknown(self, table: TableTimeline, position: str) -> bool:
        """Return whether a table had taken a name without rows of its own before a position."""
        earlier = [item for item in table.taken if item.position < position]
        return any(not self._were_read(table, item) and self._was_filled(item) for item in earlier)

    def _has_row(self, group: RowGroup, start: str, end: str) -> bool:
        """Return whether a group has a row from a position on and before another; a group may span several tables."""
        if any(start <= position < end for position in (group.min_position, group.max_position)):
            return True
        if group.max_position < start or group.min_position >= end:
            return False
        positions = self._history.rows([group], ["position"]).column("position").to_pylist()
        return any(start <= position < end for position in positions)


def _from_before(groups: Collection[RowGroup], position: str) -> bool:
    return any(group.rows and group.min_position < position for group in groups)
