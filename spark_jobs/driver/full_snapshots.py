# SPDX-License-Identifier: Apache-2.0
"""Recognise the full snapshots among a table's changes: each states all rows of the table again.

A mirror's content begins with the newest one. Other modes keep what it lacks, each in its way, so there it is one of
the changes; but where the rows of before are unknown, the content begins with it, too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.source_order import of_snapshots
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from spark_jobs.driver.batch_history import History
from spark_jobs.tasks.table_task import Span

# position, and Kafka's time in milliseconds of the first statement where rows of attempts have to be told apart, else 0
Snapshot = tuple[str, int]
NONE: Snapshot = ("", 0)


@dataclass(frozen=True, slots=True)
class FullSnapshots:
    """Finds the full snapshots that rows are of.

    :param announced: whether a topic carries DDL, with that of snapshots.
    :param full: whether rows of snapshots are of snapshots of whole tables, whatever announces them.
    :param keeps: returns whether a table keeps what a later full snapshot lacks.
    """

    announced: bool
    full: bool
    keeps: Callable[[TableName], bool]

    def among(self, timeline: TableTimeline, spans: Sequence[Span]) -> list[Snapshot]:
        """Return the snapshots that have rows among changes, those of the one that the table begins with as none."""
        return [
            self._of(timeline, position, newest)
            for span in spans
            for position, newest in (item for group in span.groups for item in group.snapshots)
            if span.start <= position and (span.end is None or position < span.end)
        ]

    def _of(self, timeline: TableTimeline, position: str, newest: int) -> Snapshot:
        """Return the snapshot that rows at a position belong to.

        :param newest: Kafka's time of the newest of the rows.
        """
        begun = position == timeline.versions[0].position
        if self.full:
            return NONE if begun else (position, 0)
        begins = later_snapshots(timeline)
        sent = max((sent for begin, sent in begins if begin == position and sent <= newest), default=None)
        if timeline.versions[timeline.version_at(position)].schema.key:
            # rows of a snapshot that began again at its position replace equal ones
            return NONE if begun or sent is None else (position, 0)
        if sent is not None:
            return position, sent
        # where DDL comes, rows of a snapshot that no DDL announces are of one that was asked for while changes streamed
        unknown = begun or (self.announced and timeline.versions[0].position)
        return NONE if unknown else (position, 0)

    def begin(
        self,
        timeline: TableTimeline,
        spans: Sequence[Span],
        since: Snapshot,
        clears: Callable[[str], Sequence[str]],
        *,
        known: bool = True,
    ) -> Snapshot:
        """Return the newest snapshot that the content begins with.

        :param since: the one that it begins with so far.
        :param clears: returns where TRUNCATEs stand from a position on.
        :param known: whether nothing but the table's own changes may have left its rows unknown.
        """
        first, keeps = timeline.versions[0].position, known and self.keeps(timeline.last_name)
        begins = (
            one
            for one in self.among(timeline, spans)
            if not keeps or one[0] == first or _is_unknown(timeline, since[0], one[0], clears)
        )
        return max([since, *begins])

    def demand_none_across(
        self, timeline: TableTimeline, spans: Sequence[Span], every: Sequence[Span], position: str, history: History
    ) -> None:
        """Refuse changes that came behind the rows of a full snapshot and have places below it.

        A transaction that was open when the snapshot began made them: its rows lack them, and they would not count. The
        tool sends them last: what was streamed before the snapshot has an older time in Kafka.

        :param spans: what may have such changes; ``every`` what there is from the snapshot on.
        :param position: of the snapshot that the content begins with.
        :raises DataError: ``apply.order_unknown``.
        """
        groups = [group for span in spans for group in span.groups if group.changes_from is not None]
        below = [group for group in groups if (group.changes_from or group.min_position) < position]
        read = [item for span in every for group in span.groups for item in group.snapshots]
        sent = max((newest for begin, newest in read if begin == position), default=0)
        if not self.full or not below or not sent:
            return
        rows = history.rows(below, ["topic", "partition", "offset", "op", "position", "kafka_time"])
        behind = pc.greater(rows.column("kafka_time").cast(pa.int64()), sent)
        streamed = pc.and_(pc.less(rows.column("position"), position), pc.invert(pa.array(of_snapshots(rows))))
        across = rows.filter(pc.fill_null(pc.and_(behind, streamed), False))
        if across.num_rows:
            first = across.slice(0, 1).select(["topic", "partition", "offset", "position"]).to_pylist()[0]
            raise DataError(
                "apply.order_unknown",
                "a transaction that was open when a full snapshot began changed a row: its rows lack the change, and "
                "the change has a place before them",
                where={"table": str(timeline.last_name), **first},
                hint="let the connector take another full snapshot, or rebuild the table from an incremental one",
            )

    def later(self, timeline: TableTimeline, spans: Sequence[Span], since: Snapshot) -> list[Snapshot]:
        """Return the snapshots among changes at which a table keeps its rows, none of a mirror.

        :param since: the one that the content begins with.
        """
        if not self.keeps(timeline.last_name):
            return []
        newest = dict(sorted(one for one in self.among(timeline, spans) if one > since))
        newest.pop(timeline.versions[0].position, None)
        return sorted(newest.items())


def _is_unknown(timeline: TableTimeline, since: str, until: str, clears: Callable[[str], Sequence[str]]) -> bool:
    """Return whether a change behind one position leaves the rows unknown that a table has at another one."""
    blocks = [block for block in timeline.blocked if since < block.position <= until]
    if not blocks:
        return False
    emptied = [*timeline.clears, *clears(blocks[0].position)]
    cleared = max((position for position in emptied if position <= until), default="")
    return any(block.columns or block.position >= cleared for block in blocks)


def later_snapshots(timeline: TableTimeline) -> list[Snapshot]:
    """Return (position, Kafka's time) of the snapshots but for the one that made the table known, and its copies."""
    first = timeline.versions[0].position, timeline.described_at
    return [begin for begin in timeline.snapshots if begin != first]


def began_again(timeline: TableTimeline, spans: Sequence[Span]) -> str:
    """Return whether a snapshot of a table without key began several times at the position of some rows.

    As ``Start.again`` says it.
    """
    result = ""
    for position in {position for span in spans for group in span.groups for position, _ in group.snapshots}:
        first = [timeline.described_at] if timeline.versions[0].position == position else []
        begins = [
            *(sent for sent in first if sent is not None),
            *(sent for begin, sent in timeline.snapshots if begin == position),
        ]
        if len(begins) < 2 or timeline.versions[timeline.version_at(position)].schema.key:
            continue
        if any(later <= earlier for earlier, later in pairwise(begins)):
            return "unclear"
        result = "timed"
    return result
