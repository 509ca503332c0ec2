# SPDX-License-Identifier: Apache-2.0
"""Find the row groups of each table, in this batch and in earlier ones."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_provider_cdc.core.model.clock_position import latest_unordered, reaches
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline
from spark_jobs.driver.batch_history import History
from spark_jobs.lake.manifest import Manifest, RowGroup
from spark_jobs.tasks.table_task import Span


class TableGroups:
    """Find what batches hold of tables.

    :param now: the tables as they are known with the batch's schema changes.
    :param by_name: what the batch holds, by table.
    :param history: the earlier batches.
    :param lower_case: as of :func:`groups_by_name`.
    """

    def __init__(
        self, now: Timeline, by_name: dict[TableName, list[RowGroup]], history: History, *, lower_case: bool = False
    ) -> None:
        self._now, self.by_name, self._history, self._lower_case = now, by_name, history, lower_case
        self._earlier_groups: dict[int, dict[TableName, list[RowGroup]]] = {}  # by batch

    def spans(self, timeline: TableTimeline) -> list[Span]:
        """Return what this batch holds of a table."""
        return self.inside(timeline, self.by_name)

    def spans_of(self, timeline: TableTimeline, seqs: Iterable[int]) -> list[Span]:
        """Return what earlier batches hold of a table."""
        return [span for seq in seqs for span in self.inside(timeline, self.of_batch(seq))]

    def earlier_groups(self, name: TableName, position: str) -> list[RowGroup]:
        """Return what earlier batches hold of a name from a position on."""
        earlier = []
        for seq in self._history.since(position):
            groups = self.of_batch(seq).get(name, [])
            earlier += [group for group in groups if group.max_position >= position]
        return earlier

    def clears(self, timeline: TableTimeline, since: str, spans: list[Span]) -> list[str]:
        """Return where rows of the log say TRUNCATE, at the earliest at a position."""
        earlier = self.spans_of(timeline, self._history.since(since))
        return [
            position
            for span in [*earlier, *spans]
            for group in span.groups
            for position in group.clears
            if position >= max(span.start, since) and (span.end is None or position < span.end)
            if position not in timeline.denied
        ]

    def of_batch(self, seq: int) -> dict[TableName, list[RowGroup]]:
        """Return what an earlier batch holds, by table."""
        if seq not in self._earlier_groups:
            self._earlier_groups[seq] = groups_by_name(self._history.manifest(seq), lower_case=self._lower_case)
        return self._earlier_groups[seq]

    def inside(self, timeline: TableTimeline, by_name: dict[TableName, list[RowGroup]]) -> list[Span]:
        """Return what row groups, by table, hold of a table: from where it took a name to where it lost it."""
        spans = []
        for name in dict.fromkeys(name for _, name in timeline.names if name is not None):
            groups = by_name.get(name)
            if not groups:
                continue
            starts = self._now.spans(name)
            ends = [*(start for start, _ in starts[1:]), None]
            owned = [(start, end, owner) for (start, owner), end in zip(starts, ends, strict=True) if owner is not None]
            for start, end, owner in owned:
                if owner != timeline.table_id:
                    continue
                ends_at = self._last_copy(end)
                inside = [g for g in groups if reaches(g.max_position, start) and _begins(g.min_position, ends_at)]
                others = [
                    (a, b)
                    for a, b, _ in owned
                    if a != start and _ends(self._last_copy(b), start) and _begins(a, ends_at)
                ]
                if inside:
                    spans.append(Span(inside, start, end, others))
        return spans

    def _last_copy(self, position: str | None) -> str | None:
        """Return the last position that a statement has on any partition: up to there rows may be older."""
        return None if position is None else max([position, *self._now.copies.get(position, ())])


def groups_by_name(manifest: Manifest, *, lower_case: bool = False) -> dict[TableName, list[RowGroup]]:
    """Return a batch's groups by table.

    :param lower_case: whether the server has tables by names in lower case; a TRUNCATE comes with the name as typed
        (recorded: Debezium 3.5 on MySQL 8.0).
    """
    result: dict[TableName, list[RowGroup]] = {}
    for group in manifest.groups:
        if group.database:  # errors stand under no table
            if lower_case:
                group = replace(group, database=group.database.lower(), table=group.table.lower())
            result.setdefault(TableName(group.database, group.table), []).append(group)
    return result


def spans_since(position: str, spans: list[Span]) -> list[Span]:
    """Return what spans hold from a position on."""
    result = []
    for span in spans:
        groups = [group for group in span.groups if group.max_position >= position]
        if groups and (span.end is None or span.end > position):
            result.append(replace(span, groups=groups, start=max(span.start, position)))
    return result


def each_once(spans: list[Span]) -> list[Span]:
    """Return spans without the groups that an earlier one has: a batch that replays rows names groups of others."""
    seen: set[tuple[str, int, int, str, str | None]] = set()
    result = []
    for span in spans:
        named = {(*group.origin, span.start, span.end): group for group in span.groups}
        groups = [group for name, group in named.items() if name not in seen]
        seen |= named.keys()
        if groups:
            result.append(replace(span, groups=groups))
    return result


def _begins(start: str, end: str | None) -> bool:
    """Return whether what starts at a position may have changes before an end, as far as the clock can order them."""
    return end is None or start < latest_unordered(end)


def _ends(end: str | None, start: str) -> bool:
    """Return whether what ends at a position may have changes after a start, as far as the clock can order them."""
    return end is None or latest_unordered(end) > start
