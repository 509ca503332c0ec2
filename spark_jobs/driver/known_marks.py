# SPDX-License-Identifier: Apache-2.0
"""Compare records with what their partition and the others have shown: which ones are of another log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.gtid import parse_gtid
from airflow_provider_cdc.core.model.position import is_before_log
from airflow_provider_cdc.core.model.position_columns import are_before_log
from spark_jobs.driver.generations import highest_of_each, newest_of
from spark_jobs.lake.begins import Begin
from spark_jobs.lake.stretches import Stretch

_ANY = "~"  # above every position


@dataclass(slots=True)
class KnownMarks:
    """Marks that records of one partition are compared with, and where other generations begin.

    :param position: highest position of the partition; ``time`` its newest source time.
    :param highest: stream of GTIDs -> highest position in the partition.
    :param gtids: stream of GTIDs -> greatest number of earlier batches and of this partition.
    :param first: stream of GTIDs -> a number below which no later one stands, and the position files before that.
    :param far: positions below are files below the highest position that earlier batches have a source time of.
    :param newest: newest source time of earlier batches.
    :param landed: of the batch's stretches the position files before their end, and their newest source time; and of
        the highest description.
    :param next: where later logs begin.
    """

    position: str
    time: int | None
    highest: Mapping[str, str]
    gtids: Mapping[str, int]
    first: dict[str, tuple[int, str]]
    far: str
    newest: int | None
    landed: Sequence[tuple[str, int]] = ()
    next: Sequence[Begin] = ()

    def with_stretch(self, stretch: Stretch) -> KnownMarks:
        """Return what is known after a stretch."""
        return replace(
            self,
            position=max(self.position, stretch.high),
            time=newest_of([self.time, stretch.time]),
            highest=highest_of_each(self.highest, {stream: high for stream, (_, high) in stretch.gtids.items()}),
            gtids=highest_of_each(self.gtids, {stream: number for stream, (number, _) in stretch.gtids.items()}),
        )

    def below(self, stretch: Stretch) -> str:
        """Return the position below which records of a stretch are to be looked at one by one."""
        if self._is_of_next(stretch.low, stretch.time, _numbers(stretch)):
            return _ANY
        far = (self.first[stream][1] for stream in stretch.gtids if stream in self.first)
        landed = (far for far, time in self.landed if is_newer(stretch.time, time))
        return max(self.position, self.far, stretch.high if stretch.falls else "", *far, *landed)

    def may_show(self, stretch: Stretch) -> bool:
        """Return whether a stretch may hold records of another log."""
        if any(self._is_before_first(stream, number, stretch.low) for stream, (number, _) in stretch.gtids.items()):
            return True
        if self._is_of_next(stretch.low, stretch.time, _numbers(stretch)) or self._is_far(stretch.low, stretch.time):
            return True
        if not (stretch.falls or stretch.low < self.position or stretch.low < self.far):
            return False
        newer = is_newer(stretch.time, self.time) or is_newer(stretch.time, self.newest)
        return newer or stretch.falls or any(n > self.gtids.get(stream, -1) for stream, (n, _) in stretch.gtids.items())

    def _is_before_first(self, stream: str, number: int, position: str) -> bool:
        """Return whether a GTID stands files before a lower number of its stream."""
        first, far = self.first.get(stream, (number, ""))
        return number > first and position < far

    def _is_of_next(self, position: str, time: int | None, gtids: Mapping[str, int]) -> bool:
        """Return whether a record is of a later log, which is known to have begun."""
        return any(begin.precedes(position, time, gtids) for begin in self.next)

    def is_other(self, record: dict[str, Any]) -> bool:
        """Return whether a record is of another log than the records of all partitions."""
        position, time, gtid = record["position"], record["source_time"], parse_gtid(record["transaction_id"])
        return self._is_far(position, time) or (
            gtid is not None and self._is_before_first(gtid.stream, gtid.number, position)
        )

    def _is_far(self, position: str, time: int | None) -> bool:
        """Return whether a record stands files below others that are older."""
        if position < self.far and is_newer(time, self.newest):
            return True
        return any(position < far and is_newer(time, other) for far, other in self.landed)

    def may_have_other(self, records: pa.Table) -> bool:
        """Return whether :meth:`first_of` may find one among some records of a stretch whose positions never fall.

        It never misses one; the order of the records does not matter.

        :param records: :data:`RECORD_COLUMNS`.
        """
        records = _without_loads(records)
        positions, times = records.column("position"), records.column("source_time").cast(pa.int64())
        low, newest = pc.min(positions).as_py(), pc.max(times).as_py()
        if low is None:
            return False
        has_gtids = records.column("transaction_id").null_count < records.num_rows
        if low < max([self.position, *self.highest.values()]):
            return True
        if has_gtids and any(low < far for _, far in self.first.values()):
            return True
        return any(
            pc.any(pc.and_(pc.less(positions, far), pc.greater(times, time))).as_py()
            for far, time in ((self.far, self.newest), *self.landed)
            if low < far and is_newer(newest, time)  # a look at these alone excludes nearly all
        )

    def first_of(self, records: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], str] | None:
        """Return the first of a stretch's records, in offset order, that is of another log, and the position known."""
        position, time, highest, gtids = self.position, self.time, dict(self.highest), dict(self.gtids)
        for record in records:
            at, record_time = record["position"], record["source_time"]
            gtid = parse_gtid(record["transaction_id"])
            unseen = gtid is not None and gtid.number > gtids.get(gtid.stream, -1)
            # records of several servers that one tool reads, as shards are, may overtake each other
            reached = position if gtid is None else highest.get(gtid.stream, position)
            is_load = record["op"] == "snapshot" and is_before_log(at)  # before the log, whenever it is sent
            if not is_load and (
                (_is_below(record, reached) and (unseen or is_newer(record_time, time)))
                or self.is_other(record)
                or self._is_of_next(at, record_time, {} if gtid is None else {gtid.stream: gtid.number})
            ):
                fars = [far for far, time in self.landed if is_newer(record_time, time)]
                return record, max([reached, self.far, *(far for _, far in self.first.values()), *fars])
            position, time = max(position, at), newest_of([time, record_time])
            if gtid is not None:
                gtids[gtid.stream] = max(gtid.number, gtids.get(gtid.stream, 0))
                highest[gtid.stream] = max(at, highest.get(gtid.stream, ""))
        return None


def _is_below(record: Mapping[str, Any], reached: str) -> bool:
    """Return whether a record stands below a position; a snapshot that is taken again numbers its rows again."""
    parts = 1 if record["op"] == "snapshot" else 0
    at: str = record["position"]
    return at.rsplit(".", parts)[0] < reached.rsplit(".", parts)[0]


def _without_loads(records: pa.Table) -> pa.Table:
    """Leave out the rows of a snapshot that stand before the log, whenever they are sent."""
    if not is_before_log(pc.min(records.column("position")).as_py() or ""):
        return records
    before_log = are_before_log(records.column("position"))
    snapshot = pc.equal(records.column("op").cast(pa.string()), "snapshot")
    return records.filter(pc.invert(pc.fill_null(pc.and_(snapshot, before_log), False)))


def _numbers(stretch: Stretch) -> dict[str, int]:
    return {stream: number for stream, (number, _) in stretch.gtids.items()}


def is_newer(one: int | None, other: int | None) -> bool:
    """Return whether a source time is after another one, as far as both are known."""
    return one is not None and other is not None and one > other
