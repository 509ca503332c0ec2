# SPDX-License-Identifier: Apache-2.0
"""Find whose a record is that has a name and no position: a name may mean several tables in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, Timeline
from spark_jobs.lake.manifest import Unreadable

_ORDER_BITS = 40  # of ``SchemaChange.order`` below the batch
_NEVER = 1 << 62  # a batch behind all others
_NEWEST = "~"  # behind every position


class _Holding(NamedTuple):
    """A table has a name from one position to another; ``known`` and ``lost`` are the batches that read why."""

    table_id: str | None
    start: str
    end: str
    known: int
    lost: int


class RecordOwners:
    """Finds the tables that undecodable records may be of.

    A batch holds each statement that precedes its rows (docs/design/architecture.md, plan). So a record is of the table
    that had the name by then, and not of one whose statement came in a later batch.
    """

    def __init__(self, now: Timeline, changes: Iterable[SchemaChange]) -> None:
        self._now = now
        self._read_in: dict[str, int] = {}  # first batch that has a statement of a position
        for change in changes:
            seq = change.order >> _ORDER_BITS
            self._read_in[change.position] = min(seq, self._read_in.get(change.position, seq))

    def of(self, name: TableName, item: Unreadable) -> set[str]:
        """Return the ids of the tables that a record with a name may be of; empty where no table ever had it."""
        holdings = list(self._holdings(name))
        then = {h.table_id for h in holdings if h.known <= item.seq <= h.lost and _may_be_in(item, h)} - {None}
        if not then:  # the statement that makes the table comes late
            later = (h.table_id for h in holdings if h.table_id and (h.known > item.seq or _is_behind(item, h)))
            then = {next(later, None)} - {None}
        return {table_id for table_id in then if table_id is not None}

    def single(self, names: Iterable[TableName]) -> set[str]:
        """Return the id of the one table that had all of some names; empty where several tables had them."""
        owners = {table_id for name in names for _, table_id in self._now.spans(name) if table_id is not None}
        return owners if len(owners) == 1 else set()

    def _holdings(self, name: TableName) -> Iterator[_Holding]:
        spans = self._now.spans(name)
        known = list[int]()
        for start, _ in spans:
            # what only rows show has no batch of its own: it is not known before what precedes it
            known.append(self._read_in.get(start, 0) or max(known, default=0))
        starts = [*(start for start, _ in spans), _NEWEST]
        known.append(_NEVER)
        for number, (start, table_id) in enumerate(spans):
            yield _Holding(table_id, start, starts[number + 1], known[number], known[number + 1])


def _may_be_in(item: Unreadable, holding: _Holding) -> bool:
    """Return whether a record may stand where a table had its name."""
    if not item.between:
        return True
    after, before = item.between
    return holding.start < before and holding.end > after


def _is_behind(item: Unreadable, holding: _Holding) -> bool:
    return bool(item.between) and holding.start >= item.between[1]
