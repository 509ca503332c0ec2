# SPDX-License-Identifier: Apache-2.0
"""Recognise that the source's log began again: after a failover or RESET MASTER later changes have lower positions.

The stretches of a batch are compared with the marks of the batches before (:class:`_Known`). The columns of a stretch
that may hold another log are compared, too, and only one that still may is read record by record (:func:`new_begins`).
The first record of that log is the **begin** of the next generation in its partition.

A record that is sent again has been read before: neither its GTID nor its source time is newer than what its partition
has shown. A record with a lower position than its partition has shown, and with a GTID number or a source time that was
never seen, is of another log. This holds for replicas that commit out of order (a partition keeps the order of the
log), for several servers in one log, and for partitions that are read to different offsets. Across partitions, a GTID
stands files before a lower number of its stream only in another log.

Once a log is known to have ended, less is needed to tell its records apart from those of the next: a partition may be
read less far than others, or have been silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from airflow_provider_cdc.core.model.gtid import parse_gtid
from airflow_provider_cdc.core.model.position import generation_of, in_generation, is_before_log
from airflow_provider_cdc.core.model.position_columns import are_before_log
from spark_jobs.driver.generations import (
    Generations,
    Marks,
    Shown,
    by_generation,
    far_below,
    highest_of_each,
    newest_of,
)
from spark_jobs.lake.begins import Begin
from spark_jobs.lake.manifest import LandReport, RowGroup
from spark_jobs.lake.row_groups import SharedRowGroups, read_groups
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stretches import RECORD_COLUMNS, Stretch, record_documents

_ANY = "~"  # above every position
_RECORDS = pa.schema([CHANGE_SCHEMA.field(name) for name in RECORD_COLUMNS])
_AT_ONCE = 10_000  # records as objects


def new_begins(landed: LandReport, generations: Generations, storage: Storage) -> list[Begin]:
    """Return the first record of each partition that is of a later generation than the partition is in.

    A generation one above the newest is a new log. A partition that goes on to a third log shows that in turn, once the
    second is part of ``generations``.

    :param landed: positions have the generations that are part of ``generations``.
    :param generations: after the batches before, with those of the batch's first records that were found so far.
    """
    shown = by_generation(landed)
    records = _Records([landed], storage)
    begins: dict[str, Begin] = {}
    for known, stretch in _with_candidates(landed, storage, list(_doubtful(shown, generations))):
        if stretch.partition_key in begins:
            continue  # all that its partition has from there on is of another log
        below = known.below(stretch)
        first = known.first_of(
            record
            for record in records.between(stretch.partition_key, stretch.start, stretch.end, stretch.low, below)
            if generation_of(record["position"]) == generation_of(stretch.high) and record["position"] < below
        )
        if first is not None:
            begins[stretch.partition_key] = _begin(stretch.partition_key, *first, known, generations, shown)
    for begin in _statements_of_snapshots(landed, generations, list(begins.values())):
        if begin.partition_key not in begins or begin.offset < begins[begin.partition_key].offset:
            begins[begin.partition_key] = begin
    return [begins[partition_key] for partition_key in sorted(begins)]


def shows_another_log(record: dict[str, Any], number: int, generations: Generations) -> bool:
    """Return whether a repaired record, said to be of a generation, shows that another log had begun before it.

    Of a generation before the newest it shows none that is not known.

    :param generations: with all that was read so far.
    """
    if number < generations.newest:
        return False
    mark = generations.all[number].marks.of(f"{record['topic']}/{record['partition']}")
    known = replace(_known_of(number, {}, generations), position=mark.position, time=mark.time, highest=mark.gtids)
    return known.first_of([{**record, "position": in_generation(record["position"], number)}]) is not None


def next_log_behind(
    repaired: LandReport, since: Sequence[LandReport], before: Generations, storage: Storage
) -> dict[str, Any] | None:
    """Return a record of another log that counts as one of the log that repaired records are of.

    Nobody had read the repaired ones when it was read: they may have been the only ones that stand above it.

    :param since: the batches from the first that read one of them on.
    :param before: after the batches before those.
    """
    records = _Records([repaired, *since], storage)
    for number, shown in by_generation(repaired).items():
        marks = before.all[number].marks if number < len(before.all) else Marks()
        read = [stretch for one in since for stretch in by_generation(one).get(number, Shown()).stretches]
        for partition_key in sorted({stretch.partition_key for stretch in [*read, *shown.stretches]}):
            mark = marks.of(partition_key)
            own = [stretch for stretch in shown.stretches if stretch.partition_key == partition_key]
            others = [stretch for stretch in shown.stretches if stretch.partition_key != partition_key]
            ends = [(far_below(one.high), max(one.time, marks.newest or 0)) for one in others if one.time is not None]
            known = _Known(mark.position, mark.time, mark.gtids, marks.gtids, {}, "", None, ends)
            behind = [stretch for stretch in read if stretch.partition_key == partition_key]
            doubtful, known, start = _doubtful_behind(own, behind, known)
            if not doubtful:
                continue
            low, below = min(one.low for _, one in doubtful), max(reached.below(one) for reached, one in doubtful)
            first = known.first_of(
                record
                for start, end in _windows([*own, *behind], start)
                for record in records.between(partition_key, start, end, low, below)
                if generation_of(record["position"]) == number
            )
            if first is not None:
                return first[0]
    return None


def _doubtful_behind(
    repaired: Sequence[Stretch], read: Sequence[Stretch], known: _Known
) -> tuple[list[tuple[_Known, Stretch]], _Known, int]:
    """Return the stretches of a partition that have to be looked at with the repaired ones, with what is known then.

    :returns: they, what is known before the offset from which on records are to be compared, and that offset.
    """
    first = min((stretch.start for stretch in repaired), default=0)
    rest = list(repaired)
    for stretch in read:
        if stretch.end < first:
            known = known.with_stretch(stretch)
        else:
            rest.append(stretch)
    doubtful: list[tuple[_Known, Stretch]] = []
    reached = known
    # a stretch with repaired records in its middle comes behind them
    for stretch in sorted(rest, key=lambda stretch: stretch.end):
        if reached.may_show(stretch):
            doubtful.append((reached, stretch))
        reached = reached.with_stretch(stretch)
    return doubtful, known, min(stretch.start for stretch in rest)


def _doubtful(shown: Mapping[int, Shown], generations: Generations) -> Iterator[tuple[_Known, Stretch]]:
    """Return the stretches that have to be looked at record by record, with what was known before each."""
    for number in range(len(generations.all)):
        base = _known_of(number, shown, generations)
        marks = generations.all[number].marks
        partitions: dict[str, list[Stretch]] = {}
        for stretch in shown.get(number, Shown()).stretches:
            if generations.current(stretch.partition_key) == number:
                partitions.setdefault(stretch.partition_key, []).append(stretch)
        for partition_key, stretches in sorted(partitions.items()):
            mark = marks.of(partition_key)
            known = replace(base, position=mark.position, time=mark.time, highest=mark.gtids)
            for stretch in sorted(stretches, key=lambda stretch: stretch.start):
                if known.may_show(stretch):
                    yield known, stretch
                known = known.with_stretch(stretch)


def _known_of(number: int, shown: Mapping[int, Shown], generations: Generations) -> _Known:
    """Return what is known of a generation without what one partition shows."""
    marks, batch = generations.all[number].marks, shown.get(number, Shown())
    after = marks.after(batch)
    landed = [(one.high, one.time) for one in batch.stretches if one.time is not None]
    if after.description is not None:
        landed.append(after.description)
    return _Known(
        position="",
        time=None,
        highest={},
        gtids=marks.gtids,
        first={stream: (number_seen, far_below(at)) for stream, (number_seen, at) in after.first_gtids.items()},
        far=far_below(marks.timed),
        newest=marks.newest,
        landed=[(far, time) for high, time in landed if (far := far_below(high))],
        next=[begin for one in generations.all[number + 1 :] for begin in one.begins.values()],
    )


def _begin(
    partition_key: str,
    record: dict[str, Any],
    highest: str,
    reached: _Known,
    generations: Generations,
    shown: Mapping[int, Shown],
) -> Begin:
    """Return the begin of the generation that a record is of, which is not of the one that its partition is in.

    :param highest: highest position that the record is below of.
    :param reached: what was known before the record's stretch.
    """
    position, time = record["position"], record["source_time"]
    number = _generation_of_other(record, generations, shown)
    others = [begin.before for begin in reached.next if begin.generation == number]
    if reached.position and position < reached.position:
        known, before = reached.position, reached.time
    else:
        # what earlier batches and other partitions of this one show of the log before
        ended = [newest for far, newest in reached.landed if position < far and _is_newer(time, newest)]
        known, before = highest, newest_of([reached.newest, reached.time, *ended, *others])
    if before is None:
        before = newest_of(others)
    return Begin(
        partition_key,
        number,
        record["offset"],
        in_generation(position, number),
        known,
        time,
        before,
        record["transaction_id"],
    )


def _generation_of_other(record: dict[str, Any], generations: Generations, shown: Mapping[int, Shown]) -> int:
    """Return the first later generation that a record may be of; one above the newest if it fits none."""
    time = record["source_time"]
    for number in range(generation_of(record["position"]) + 1, len(generations.all)):
        later = generations.all[number + 1].since if number < generations.newest else None
        ended_before = later is not None and time is not None and time > later
        inside = {**record, "position": in_generation(record["position"], number)}
        if not ended_before and not _known_of(number, shown, generations).is_other(inside):
            return number
    return len(generations.all)


def _statements_of_snapshots(landed: LandReport, generations: Generations, new: Sequence[Begin]) -> Iterator[Begin]:
    """Return the first statement of each partition that is of a snapshot whose rows are of a later generation.

    A snapshot's statements show nothing themselves: one that only recovers structures describes an older position, too.
    """
    begins = sorted([*generations.begins(), *new], key=lambda begin: begin.generation, reverse=True)
    for statement in landed.statements:
        position, time = statement["position"], statement["source_time"]
        if statement["op"] != "snapshot" or position is None:
            continue
        begin = next((begin for begin in begins if begin.follows(position, time)), None)
        partition_key = f"{statement['topic']}/{statement['partition']}"
        if begin is not None and generations.begins_behind(partition_key, begin.generation, statement["offset"]):
            position = in_generation(position, begin.generation)
            yield begin._replace(partition_key=partition_key, offset=statement["offset"], position=position, time=time)


@dataclass(slots=True)
class _Known:
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

    def with_stretch(self, stretch: Stretch) -> _Known:
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
        landed = (far for far, time in self.landed if _is_newer(stretch.time, time))
        return max(self.position, self.far, stretch.high if stretch.falls else "", *far, *landed)

    def may_show(self, stretch: Stretch) -> bool:
        """Return whether a stretch may hold records of another log."""
        if any(self._is_before_first(stream, number, stretch.low) for stream, (number, _) in stretch.gtids.items()):
            return True
        if self._is_of_next(stretch.low, stretch.time, _numbers(stretch)) or self._is_far(stretch.low, stretch.time):
            return True
        if not (stretch.falls or stretch.low < self.position or stretch.low < self.far):
            return False
        newer = _is_newer(stretch.time, self.time) or _is_newer(stretch.time, self.newest)
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
        if position < self.far and _is_newer(time, self.newest):
            return True
        return any(position < far and _is_newer(time, other) for far, other in self.landed)

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
            if low < far and _is_newer(newest, time)  # a look at these alone excludes nearly all
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
                (at < reached and (unseen or _is_newer(record_time, time)))
                or self.is_other(record)
                or self._is_of_next(at, record_time, {} if gtid is None else {gtid.stream: gtid.number})
            ):
                fars = [far for far, time in self.landed if _is_newer(record_time, time)]
                return record, max([reached, self.far, *(far for _, far in self.first.values()), *fars])
            position, time = max(position, at), newest_of([time, record_time])
            if gtid is not None:
                gtids[gtid.stream] = max(gtid.number, gtids.get(gtid.stream, 0))
                highest[gtid.stream] = max(at, highest.get(gtid.stream, ""))
        return None


def _with_candidates(
    landed: LandReport, storage: Storage, doubtful: list[tuple[_Known, Stretch]]
) -> list[tuple[_Known, Stretch]]:
    """Return the stretches that may hold a record of another log, by a look at the columns of all their records.

    Lowest position and newest time of a stretch are of different records: where a batch is of many files of the log,
    nearly all its stretches are in doubt, and records as objects would be far larger than its rows.
    """
    candidates = {number for number, (known, stretch) in enumerate(doubtful) if known.next or stretch.falls}
    by_partition: dict[str, list[int]] = {}
    looked_at = [(number, stretch) for number, (_, stretch) in enumerate(doubtful) if number not in candidates]
    for number, stretch in looked_at:
        by_partition.setdefault(stretch.partition_key, []).append(number)
    if looked_at:
        low, high = min(stretch.low for _, stretch in looked_at), max(stretch.high for _, stretch in looked_at)
        for records in _columns_between(landed, storage, low, high):
            for partition_key, mine in _each_partition(records):
                for number in by_partition.get(partition_key, ()):
                    known, stretch = doubtful[number]
                    if number not in candidates and known.may_have_other(_inside(mine, stretch)):
                        candidates.add(number)
    return [doubtful[number] for number in sorted(candidates)]


def _columns_between(landed: LandReport, storage: Storage, low: str, high: str) -> Iterator[pa.Table]:
    """Yield :data:`RECORD_COLUMNS` of a batch, a row group at a time, those without records in a span left out.

    :param low: lowest position of the span, ``high`` the highest.
    """
    streamed = [record for record in landed.statements if record["op"] != "snapshot"]
    if streamed:
        yield pa.Table.from_pylist(streamed, _RECORDS)
    for _, groups in groupby(landed.groups, key=lambda group: (group.file, group.row_group)):
        there = [one for one in groups if one.database and one.min_position <= high and one.max_position >= low]
        if there:
            yield read_groups(storage, there, RECORD_COLUMNS).cast(_RECORDS)


def _each_partition(records: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    """Yield the records of each partition."""
    keys = records.group_by(["topic", "partition"], use_threads=False).aggregate([]).to_pylist()
    for key in keys:
        mine = records
        if len(keys) > 1:
            mine = records.filter((pc.field("topic") == key["topic"]) & (pc.field("partition") == key["partition"]))
        yield f"{key['topic']}/{key['partition']}", mine


def _without_loads(records: pa.Table) -> pa.Table:
    """Leave out the rows of a snapshot that stand before the log, whenever they are sent."""
    if not is_before_log(pc.min(records.column("position")).as_py() or ""):
        return records
    before_log = are_before_log(records.column("position"))
    snapshot = pc.equal(records.column("op").cast(pa.string()), "snapshot")
    return records.filter(pc.invert(pc.fill_null(pc.and_(snapshot, before_log), False)))


def _inside(records: pa.Table, stretch: Stretch) -> pa.Table:
    """Return the records of a stretch's partition that lie in it."""
    return records.filter((pc.field("offset") >= stretch.start) & (pc.field("offset") <= stretch.end))


class _Records:
    """Read landed records in offset order, some at a time: as objects they are far larger than their rows.

    :param reports: what was landed.
    """

    def __init__(self, reports: Sequence[LandReport], storage: Storage) -> None:
        self._reports = reports
        self._storage = storage
        # rows of a file -> partition -> its first and last offset: nothing is read twice that has none of a partition
        self._spans: dict[tuple[str, int, int], dict[str, tuple[int, int]]] = {}
        self._latest = SharedRowGroups()  # stretches that follow each other lie in the same row groups

    def between(self, partition_key: str, start: int, end: int, low: str, below: str) -> Iterator[dict[str, Any]]:
        """Yield the records of a partition.

        :param start: first offset, ``end`` the last.
        :param low: row groups whose positions are all lower are left out.
        :param below: records with a higher position are left out.
        """
        topic, _, partition = partition_key.rpartition("/")
        mine = (pc.field("topic") == topic) & (pc.field("partition") == int(partition))
        mine &= (pc.field("offset") >= start) & (pc.field("offset") <= end) & (pc.field("position") <= below)
        groups = self._groups(partition_key, start, end, low, below)
        tables = [table for one in chain([self._statements], groups) if (table := one.filter(mine)).num_rows]
        if tables:
            records = pa.concat_tables(tables).sort_by([("offset", "ascending"), ("index", "ascending")])
            for batch in records.to_batches(max_chunksize=_AT_ONCE):
                yield from record_documents(pa.Table.from_batches([batch]))

    @cached_property
    def _statements(self) -> pa.Table:
        statements = [one for report in self._reports for one in report.statements if one["op"] != "snapshot"]
        return pa.Table.from_pylist(statements, _RECORDS)

    def _groups(self, partition_key: str, start: int, end: int, low: str, below: str) -> Iterator[pa.Table]:
        for group in (group for report in self._reports for group in report.groups):
            if not group.database or group.min_position > below or group.max_position < low:
                continue
            spans = self._spans.get(group.origin)
            first, last = (start, end) if spans is None else spans.get(partition_key, (end + 1, end + 1))
            if first <= end and last >= start:
                yield self._rows(group)

    def _rows(self, group: RowGroup) -> pa.Table:
        rows = self._latest.rows(group.origin)
        if rows is None:
            rows = read_groups(self._storage, [group], RECORD_COLUMNS).cast(_RECORDS)
            self._latest.add(group.origin, rows)
            self._spans.setdefault(group.origin, _offsets(rows))
        return rows


def _offsets(records: pa.Table) -> dict[str, tuple[int, int]]:
    """Return the first and the last offset of each partition."""
    grouped = records.group_by(["topic", "partition"], use_threads=False)
    spans = grouped.aggregate([("offset", "min"), ("offset", "max")]).to_pylist()
    return {f"{one['topic']}/{one['partition']}": (one["offset_min"], one["offset_max"]) for one in spans}


def _windows(stretches: Iterable[Stretch], start: int) -> list[tuple[int, int]]:
    """Return the offsets from which to which stretches reach, those that overlap as one.

    :param start: first offset that is asked for.
    """
    windows: list[tuple[int, int]] = []
    for stretch in sorted(stretches, key=lambda stretch: stretch.start):
        first, last = max(stretch.start, start), stretch.end
        if windows and first <= windows[-1][1]:
            windows[-1] = windows[-1][0], max(windows[-1][1], last)
        elif first <= last:
            windows.append((first, last))
    return windows


def _numbers(stretch: Stretch) -> dict[str, int]:
    return {stream: number for stream, (number, _) in stretch.gtids.items()}


def _is_newer(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one > other
