# SPDX-License-Identifier: Apache-2.0
"""Recognise that the source's log began again: after a failover or RESET MASTER later changes have lower positions.

Landing summarises the records of each partition as **stretches** (:class:`Stretches`). The highest of what they show is
kept as the **marks** of a **generation** (:class:`Generation`: one continuous log), and the next batch's stretches are
compared with it (:class:`_Known`). Only a stretch that may hold another log is read record by record
(:func:`new_begins`). The first record of that log is the **begin** of the next generation in its partition.

A record that is sent again has been read before: neither its GTID nor its source time is newer than what its partition
has shown. A record with a lower position than its partition has shown, and with a GTID number or a source time that was
never seen, is of another log. This holds for replicas that commit out of order (a partition keeps the order of the
log), for several servers in one log, and for partitions that are read to different offsets. Across partitions, a GTID
stands files before a lower number of its stream only in another log.

What each log shows is kept apart: after a reset GTIDs and positions begin again. Once a log is known to have ended,
less is needed to tell its records apart from those of the next: a partition may be read less far than others, or have
been silent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.gtid import parse_gtid
from airflow_provider_cdc.core.model.position import FILE_DIGITS, GENERATION_DIGITS, generation_of, in_generation
from airflow_provider_cdc.core.model.position_columns import generation_text_of
from spark_jobs.driver.generations import Begin
from spark_jobs.lake.change_log import LandReport, read_groups
from spark_jobs.lake.storage import Storage

_STRETCHES = 200  # of one partition that a task reports; all further records are reported as one
_COLUMNS = ("topic", "partition", "offset", "index", "op", "position", "source_time", "transaction_id")
_ANY = "~"  # above every position
_Value = TypeVar("_Value", int, str)
_FAR = 2  # files; what replicas commit out of order is nearer
_SEPARATOR = {"mysql": ":", "mariadb": "-"}


@dataclass(slots=True)
class Stretch:
    """Placed records of one partition that follow each other.

    :param start: offset of the first, ``end`` of the last.
    :param low: lowest position, ``high`` the highest.
    :param time: newest source time, microseconds since the epoch; None if a record has none.
    :param gtids: stream of GTIDs -> greatest number, and highest position.
    :param first_gtid: stream and number of the first GTID, with its position.
    :param falls: positions fall somewhere inside.
    """

    topic: str
    partition: int
    start: int
    end: int
    low: str
    high: str
    time: int | None = None
    gtids: dict[str, tuple[int, str]] = field(default_factory=dict)
    first_gtid: tuple[str, int, str] | None = None
    falls: bool = False

    @property
    def partition_key(self) -> str:
        """The partition as a key of documents."""
        return f"{self.topic}/{self.partition}"


class Stretches:
    """Collect what the records of one land task show of the source's log."""

    def __init__(self) -> None:
        self._by_partition: dict[tuple[str, int], list[Stretch]] = {}
        self.statements: list[dict[str, Any]] = []

    def add(self, batch: pa.RecordBatch) -> None:
        """Take the changes of some records of one partition, in offset order."""
        batch = batch.select(["kind", *_COLUMNS])  # the filters below would copy the images
        if "schema" in batch.column("kind").dictionary.to_pylist():
            is_ddl = pc.equal(batch.column("kind").cast(pa.string()), "schema")
            self.statements += _plain(pa.Table.from_batches([batch.filter(is_ddl)]).select(_COLUMNS))
            # a statement that a snapshot writes may stand at the position of an old offset (recovery)
            described = pc.and_(is_ddl, pc.equal(batch.column("op").cast(pa.string()), "snapshot").fill_null(False))
            batch = batch.filter(pc.invert(described))
        positions = batch.column("position")
        if positions.null_count:
            batch = batch.filter(pc.is_valid(positions))
            positions = batch.column("position")
        if not len(batch):
            return
        falls: Any = np.flatnonzero(pc.less(positions[1:], positions[:-1]).to_numpy(zero_copy_only=False)) + 1
        if len(falls) or generation_of(positions[0].as_py()) != generation_of(positions[-1].as_py()):
            generations = generation_text_of(positions)
            changed = pc.not_equal(generations[1:], generations[:-1]).to_numpy(zero_copy_only=False)
            falls = np.union1d(falls, np.flatnonzero(changed) + 1)
        stretches = self._by_partition.setdefault(
            (batch.column("topic")[0].as_py(), batch.column("partition")[0].as_py()), []
        )
        if len(stretches) + len(falls) > _STRETCHES:
            self._append(stretches, _stretch(batch, falls=bool(len(falls))))
            return
        for start, end in zip([0, *falls], [*falls, len(batch)], strict=True):
            self._append(stretches, _stretch(batch.slice(start, end - start)))

    def _append(self, stretches: list[Stretch], new: Stretch) -> None:
        last = stretches[-1] if stretches else None
        follows = last is not None and new.low >= last.high and generation_of(new.low) == generation_of(last.high)
        if last is None or (not follows and len(stretches) < _STRETCHES):
            stretches.append(new)
            return
        last.falls = last.falls or new.falls or new.low < last.high
        last.start, last.end = min(last.start, new.start), max(last.end, new.end)
        last.low, last.high = min(last.low, new.low), max(last.high, new.high)
        last.time = None if last.time is None or new.time is None else max(last.time, new.time)
        _raise_to(last.gtids, new.gtids)

    def documents(self) -> list[dict[str, Any]]:
        """Return the stretches as plain JSON data."""
        return [asdict(stretch) for stretches in self._by_partition.values() for stretch in stretches]


class Description(NamedTuple):
    """The statements that a snapshot writes at one position: the log had reached it then.

    :param time: source time of the first, microseconds since the epoch.
    """

    position: str
    time: int


@dataclass(frozen=True, slots=True)
class Shown:
    """Stretches and snapshot statements of one batch in one generation.

    :param description: the snapshot's statements at the highest position.
    """

    stretches: list[Stretch] = field(default_factory=list)
    description: Description | None = None


class Mark(NamedTuple):
    """Highest position, time and GTIDs that one partition has shown.

    :param position: highest position; ``time`` newest source time.
    :param gtids: stream of GTIDs -> highest position.
    """

    position: str = ""
    time: int | None = None
    gtids: Mapping[str, str] = {}


@dataclass(slots=True)
class Marks:
    """Highest positions, times and GTIDs that the batches so far show of one generation.

    :param partitions: ``topic/partition`` -> what it has shown.
    :param timed: highest position of stretches that have source times.
    :param gtids: stream of GTIDs -> greatest number.
    :param first_gtids: stream of GTIDs -> a low number, with the position it was seen at.
    :param description: a snapshot's statements at the highest position.
    """

    partitions: dict[str, Mark] = field(default_factory=dict)
    gtids: dict[str, int] = field(default_factory=dict)
    first_gtids: dict[str, tuple[int, str]] = field(default_factory=dict)
    timed: str = ""
    description: Description | None = None

    @staticmethod
    def from_document(data: Mapping[str, Any] | None) -> Marks:
        """Rebuild from :meth:`document`; nothing is known without one."""
        if data is None:
            return Marks()
        return Marks(
            {partition_key: Mark(*mark) for partition_key, mark in data["partitions"].items()},
            dict(data["gtids"]),
            {stream: (first[0], first[1]) for stream, first in data["first_gtids"].items()},
            data["timed"],
            None if data["description"] is None else Description(*data["description"]),
        )

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        return asdict(self)

    def of(self, partition_key: str) -> Mark:
        """Return what a partition has shown."""
        return self.partitions.get(partition_key, Mark())

    @property
    def newest(self) -> int | None:
        """The newest source time."""
        return max((mark.time for mark in self.partitions.values() if mark.time is not None), default=None)

    def after(self, shown: Shown) -> Marks:
        """Return the marks after a batch."""
        description = _highest_description([self.description, shown.description])
        result = Marks(dict(self.partitions), dict(self.gtids), dict(self.first_gtids), self.timed, description)
        for stretch in shown.stretches:
            mark = result.of(stretch.partition_key)
            gtids = _highest(mark.gtids, {stream: high for stream, (_, high) in stretch.gtids.items()})
            highest, newest = max(mark.position, stretch.high), _newest(mark.time, stretch.time)
            result.partitions[stretch.partition_key] = Mark(highest, newest, gtids)
            if stretch.time is not None:
                result.timed = max(result.timed, stretch.high)
            result.gtids = _highest(result.gtids, {stream: number for stream, (number, _) in stretch.gtids.items()})
            if stretch.first_gtid is not None:
                stream, number, position = stretch.first_gtid
                result.first_gtids[stream] = min((number, position), result.first_gtids.get(stream, (number, position)))
        return result


@dataclass(slots=True)
class Generation:
    """One continuous log of the source.

    :param begins: ``topic/partition`` -> its first record there; empty for the log that the pipeline began with.
    """

    begins: dict[str, Begin] = field(default_factory=dict)
    marks: Marks = field(default_factory=Marks)

    @property
    def since(self) -> int | None:
        """The source time of its oldest first record."""
        return min((begin.time for begin in self.begins.values() if begin.time is not None), default=None)


class SourceLog:
    """The generations of the source's log, as far as they were read.

    :param generations: ascending; at least one.
    """

    def __init__(self, generations: Sequence[Generation] = ()) -> None:
        self.generations = list(generations) or [Generation()]

    @staticmethod
    def from_document(data: Sequence[Mapping[str, Any]]) -> SourceLog:
        """Rebuild from :meth:`document`: what comes later is behind the begins, also where a topic was made again."""
        return SourceLog(
            [
                Generation(
                    {
                        begin.partition_key: begin._replace(offset=0)
                        for begin in (Begin(*item) for item in one["begins"])
                    },
                    Marks.from_document(one["marks"]),
                )
                for one in data
            ]
        )

    def document(self) -> list[dict[str, Any]]:
        """Return plain JSON data."""
        return [
            {"begins": [list(begin) for begin in one.begins.values()], "marks": one.marks.document()}
            for one in self.generations
        ]

    def begins(self) -> list[Begin]:
        """Return where all generations begin."""
        return [begin for one in self.generations for begin in one.begins.values()]

    def with_begins(self, begins: Iterable[Begin]) -> SourceLog:
        """Return the log with the first records that a batch holds."""
        result = SourceLog([Generation(dict(one.begins), one.marks) for one in self.generations])
        for begin in sorted(begins, key=lambda begin: begin.generation):
            if begin.generation == len(result.generations):
                result.generations.append(Generation())
            result.generations[begin.generation].begins[begin.partition_key] = begin
        return result

    def after(self, landed: LandReport) -> SourceLog:
        """Return the log after a batch."""
        shown = _by_generation(landed)
        generations = enumerate(self.generations)
        return SourceLog([Generation(one.begins, one.marks.after(shown.get(n, Shown()))) for n, one in generations])

    def read_early(self, begins: Iterable[Begin]) -> list[str]:
        """Return the partitions of which earlier batches hold records of a log that shows only now that it has begun.

        :param begins: what this batch shows.
        """
        early = set()
        for begin in begins:
            for partition_key, mark in self.generations[begin.generation - 1].marks.partitions.items():
                at_once = mark.time is not None and mark.time == begin.time
                if at_once or begin.precedes(mark.position, mark.time):
                    early.add(partition_key)
        return sorted(early)

    def read_late(self, landed: LandReport) -> tuple[str, list[str]] | None:
        """Return a record of a log before the one that earlier batches have read, and the partitions that they read.

        Only in a log before a GTID stands files behind a greater number of its stream.

        :param landed: positions have the generations that are part of this log.
        """
        for number, shown in sorted(_by_generation(landed).items()):
            marks = self.generations[number].marks
            for stretch in shown.stretches:
                if stretch.first_gtid is None:
                    continue
                stream, greatest, position = stretch.first_gtid
                far = _far_below(position)
                first = marks.first_gtids.get(stream)
                if first is not None and greatest < first[0] and first[1] < far:
                    below = [name for name, mark in marks.partitions.items() if mark.gtids.get(stream, far) < far]
                    return f"{stretch.partition_key}:{stretch.start}", sorted(below)
        return None

    def begins_behind(self, partition_key: str, generation: int, offset: int) -> bool:
        """Return whether a partition begins a generation behind an offset, or has not begun it or a later one."""
        begin = self.generations[generation].begins.get(partition_key) if generation < len(self.generations) else None
        return self.current(partition_key) < generation if begin is None else offset < begin.offset

    def current(self, partition_key: str) -> int:
        """Return the generation that a partition is in."""
        return max((number for number, one in enumerate(self.generations) if partition_key in one.begins), default=0)


def new_begins(landed: LandReport, log: SourceLog, storage: Storage) -> list[Begin]:
    """Return the first record of each partition that is of a later generation than the partition is in.

    A generation one above the newest is a new log. A partition that goes on to a third log shows that in turn, once the
    second is part of ``log``.

    :param landed: positions have the generations that are part of ``log``.
    :param log: after the batches before, with those of the batch's first records that were found so far.
    """
    shown = _by_generation(landed)
    doubtful = list(_doubtful(shown, log))
    begins: dict[str, Begin] = {}
    if doubtful:
        records = _records(landed, storage, doubtful)
        for known, stretch in doubtful:
            if stretch.partition_key not in begins:
                inside = [
                    record
                    for record in records.get(stretch.partition_key, ())
                    if stretch.start <= record["offset"] <= stretch.end
                    and generation_of(record["position"]) == generation_of(stretch.high)
                    and record["position"] < known.below(stretch)
                ]
                first = known.first_of(inside)
                if first is not None:
                    begins[stretch.partition_key] = _begin(stretch.partition_key, *first, known, log, shown)
    for begin in _statements_of_snapshots(landed, log, list(begins.values())):
        if begin.partition_key not in begins or begin.offset < begins[begin.partition_key].offset:
            begins[begin.partition_key] = begin
    return [begins[partition_key] for partition_key in sorted(begins)]


def _doubtful(shown: Mapping[int, Shown], log: SourceLog) -> Iterator[tuple[_Known, Stretch]]:
    """Return the stretches that have to be looked at record by record, with what was known before each."""
    for number in range(len(log.generations)):
        base = _known_of(number, shown, log)
        marks = log.generations[number].marks
        partitions: dict[str, list[Stretch]] = {}
        for stretch in shown.get(number, Shown()).stretches:
            if log.current(stretch.partition_key) == number:
                partitions.setdefault(stretch.partition_key, []).append(stretch)
        for partition_key, stretches in sorted(partitions.items()):
            mark = marks.of(partition_key)
            known = replace(base, position=mark.position, time=mark.time, highest=mark.gtids)
            for stretch in sorted(stretches, key=lambda stretch: stretch.start):
                if known.may_show(stretch):
                    yield known, stretch
                known = known.with_stretch(stretch)


def _known_of(number: int, shown: Mapping[int, Shown], log: SourceLog) -> _Known:
    """Return what is known of a generation without what one partition shows."""
    marks, batch = log.generations[number].marks, shown.get(number, Shown())
    after = marks.after(batch)
    landed = [(one.high, one.time) for one in batch.stretches if one.time is not None]
    if after.description is not None:
        landed.append(after.description)
    return _Known(
        "", None, {}, marks.gtids,
        {stream: (n, _far_below(at)) for stream, (n, at) in after.first_gtids.items()},
        _far_below(marks.timed), marks.newest,
        [(far, time) for high, time in landed if (far := _far_below(high))],
        [begin for one in log.generations[number + 1 :] for begin in one.begins.values()],
    )  # fmt: skip


def _begin(
    partition_key: str, record: dict[str, Any], known: str, reached: _Known, log: SourceLog,
    shown: Mapping[int, Shown],
) -> Begin:  # fmt: skip
    """Return the begin of the generation that a record is of, which is not of the one that its partition is in."""
    position, time = record["position"], record["source_time"]
    for number in range(generation_of(position) + 1, len(log.generations) + 1):
        if number == len(log.generations):
            break
        later = log.generations[number + 1].since if number + 1 < len(log.generations) else None
        inside = {**record, "position": in_generation(position, number)}
        if (later is None or time is None or time <= later) and not _known_of(number, shown, log).is_other(inside):
            break
    others = [begin.before for begin in reached.next if begin.generation == number]
    if reached.position and position < reached.position:
        known, before = reached.position, reached.time
    else:  # what earlier batches and other partitions of this one show of the log before
        ended = [newest for far, newest in reached.landed if position < far and _is_newer(time, newest)]
        before = _newest_of([reached.newest, reached.time, *ended, *others])
    if before is None:
        before = _newest_of(others)
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


def _statements_of_snapshots(landed: LandReport, log: SourceLog, new: Sequence[Begin]) -> Iterator[Begin]:
    """Return the first statement of each partition that is of a snapshot whose rows are of a later generation.

    A snapshot's statements show nothing themselves: one that only recovers structures describes an older position, too.
    """
    begins = sorted([*log.begins(), *new], key=lambda begin: begin.generation, reverse=True)
    for statement in landed.statements:
        position, time = statement["position"], statement["source_time"]
        if statement["op"] != "snapshot" or position is None:
            continue
        begin = next((begin for begin in begins if begin.follows(position, time)), None)
        partition_key = f"{statement['topic']}/{statement['partition']}"
        if begin is not None and log.begins_behind(partition_key, begin.generation, statement["offset"]):
            position = in_generation(position, begin.generation)
            yield begin._replace(partition_key=partition_key, offset=statement["offset"], position=position, time=time)


def has_times(landed: LandReport) -> bool:
    """Return whether all records with positions in the source's log have source times; a full load stands before it."""
    return all(stretch.time is not None or _file(stretch.high) == 0 for stretch in _stretches(landed))


def _by_generation(landed: LandReport) -> dict[int, Shown]:
    stretches: dict[int, list[Stretch]] = {}
    for stretch in _stretches(landed):
        stretches.setdefault(generation_of(stretch.high), []).append(stretch)
    descriptions: dict[int, Description] = {}
    for one in landed.statements:
        # old connectors write 0 for the time of a snapshot
        if one["op"] == "snapshot" and one["position"] is not None and one["source_time"]:
            number, here = generation_of(one["position"]), Description(one["position"], one["source_time"])
            descriptions[number] = _highest_description([here, descriptions.get(number)]) or here
    numbers = stretches.keys() | descriptions.keys()
    return {number: Shown(stretches.get(number, []), descriptions.get(number)) for number in numbers}


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
            time=_newest(self.time, stretch.time),
            highest=_highest(self.highest, {stream: high for stream, (_, high) in stretch.gtids.items()}),
            gtids=_highest(self.gtids, {stream: number for stream, (number, _) in stretch.gtids.items()}),
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

    def first_of(self, records: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], str] | None:
        """Return the first of a stretch's records, in offset order, that is of another log, and the position known."""
        position, time, highest, gtids = self.position, self.time, dict(self.highest), dict(self.gtids)
        for record in records:
            at, record_time = record["position"], record["source_time"]
            gtid = parse_gtid(record["transaction_id"])
            unseen = gtid is not None and gtid.number > gtids.get(gtid.stream, -1)
            # records of several servers that one tool reads, as shards are, may overtake each other
            reached = position if gtid is None else highest.get(gtid.stream, position)
            is_load = record["op"] == "snapshot" and _file(at) == 0  # before the log, whenever it is sent
            if not is_load and (
                (at < reached and (unseen or _is_newer(record_time, time)))
                or self.is_other(record)
                or self._is_of_next(at, record_time, {} if gtid is None else {gtid.stream: gtid.number})
            ):
                fars = [far for far, time in self.landed if _is_newer(record_time, time)]
                return record, max([reached, self.far, *(far for _, far in self.first.values()), *fars])
            position, time = max(position, at), _newest(time, record_time)
            if gtid is not None:
                gtids[gtid.stream] = max(gtid.number, gtids.get(gtid.stream, 0))
                highest[gtid.stream] = max(at, highest.get(gtid.stream, ""))
        return None


def _records(
    landed: LandReport, storage: Storage, doubtful: list[tuple[_Known, Stretch]]
) -> dict[str, list[dict[str, Any]]]:
    """Return the records, by partition and in offset order, that stand as low as those in doubt."""
    below = max(known.below(stretch) for known, stretch in doubtful)
    low = min(stretch.low for _, stretch in doubtful)
    partition_keys = {stretch.partition_key for _, stretch in doubtful}
    partitions = pa.array(sorted({stretch.partition for _, stretch in doubtful}), pa.int32())
    candidates = [record for record in landed.statements if record["op"] != "snapshot"]
    for group in landed.groups:
        if group.database and group.min_position < below and group.max_position >= low:
            rows = read_groups(storage, [group], _COLUMNS)
            mine = pc.is_in(rows.column("partition"), partitions)
            candidates += _plain(rows.filter(pc.and_(mine, pc.less(rows.column("position"), below))))
    by_partition: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(candidates, key=lambda record: (record["offset"], record["index"])):
        partition_key = f"{record['topic']}/{record['partition']}"
        if partition_key in partition_keys and record["position"] is not None:
            by_partition.setdefault(partition_key, []).append(record)
    return by_partition


def _stretches(landed: LandReport) -> Iterator[Stretch]:
    return (Stretch(**stretch) for stretch in landed.stretches)


def _stretch(batch: pa.RecordBatch, *, falls: bool = False) -> Stretch:
    offsets, positions, times = (batch.column(name) for name in ("offset", "position", "source_time"))
    span = pc.min_max(positions).as_py() if falls else {"min": positions[0].as_py(), "max": positions[-1].as_py()}
    return Stretch(
        batch.column("topic")[0].as_py(),
        batch.column("partition")[0].as_py(),
        offsets[0].as_py(),
        offsets[-1].as_py(),
        span["min"],
        span["max"],
        None if times.null_count else pc.max(times.cast(pa.int64())).as_py(),
        greatest_gtids(batch.column("transaction_id"), positions, span["max"]),
        _first_gtid(batch),
        falls,
    )


def _numbers(stretch: Stretch) -> dict[str, int]:
    return {stream: number for stream, (number, _) in stretch.gtids.items()}


def _first_gtid(batch: pa.RecordBatch) -> tuple[str, int, str] | None:
    transactions = batch.column("transaction_id")
    if transactions.null_count == len(transactions):
        return None
    index = pc.index(pc.is_valid(transactions), True).as_py()
    gtid = parse_gtid(transactions[index].as_py())
    return None if gtid is None else (gtid.stream, gtid.number, batch.column("position")[index].as_py())


def greatest_gtids(transactions: pa.StringArray, positions: pa.StringArray, highest: str) -> dict[str, tuple[int, str]]:
    """Return the greatest number of each stream of GTIDs with its highest position; other texts do not count.

    :param highest: the highest position of all.
    """
    texts = transactions.drop_null()
    first = parse_gtid(texts[0].as_py()) if len(texts) else None
    if first is None:
        return {}
    prefix = texts[0].as_py().removesuffix(texts[0].as_py().rpartition(_SEPARATOR[first.flavour])[2])
    if pc.all(pc.starts_with(texts, prefix)).as_py():  # one server: a few passes over the column
        try:
            numbers = pc.utf8_slice_codeunits(texts, len(prefix)).cast(pa.int64())
            return {first.stream: (max(0, pc.max(numbers).as_py()), highest)}
        except pa.ArrowInvalid:
            pass
    newest = pa.table({"text": transactions, "position": positions}).group_by("text").aggregate([("position", "max")])
    result: dict[str, tuple[int, str]] = {}
    for text, position in zip(*(newest.column(name).to_pylist() for name in ("text", "position_max")), strict=True):
        if (gtid := parse_gtid(text)) is not None:
            _raise_to(result, {gtid.stream: (gtid.number, position)})
    return result


def _plain(rows: pa.Table) -> list[dict[str, Any]]:
    column = rows.schema.get_field_index("source_time")
    rows = rows.set_column(column, "source_time", _micros(rows))
    return rows.to_pylist()  # type: ignore[no-any-return]


def _micros(rows: pa.Table) -> pa.ChunkedArray:
    return rows.column("source_time").cast(pa.int64())


def _far_below(position: str) -> str:
    """Return the position below which all are at least two files below a position; empty where none is."""
    if not position or _file(position) < _FAR:
        return ""
    return f"{position[:GENERATION_DIGITS]}.{_file(position) - _FAR + 1:0{FILE_DIGITS}d}"


def _file(position: str) -> int:
    return int(position[GENERATION_DIGITS + 1 :][:FILE_DIGITS] or 0)


def _newest(one: int | None, other: int | None) -> int | None:
    return other if one is None else one if other is None else max(one, other)


def _newest_of(times: Iterable[int | None]) -> int | None:
    return max((time for time in times if time is not None), default=None)


def _is_newer(one: int | None, other: int | None) -> bool:
    return one is not None and other is not None and one > other


def _highest_description(descriptions: Iterable[Description | None]) -> Description | None:
    """Return the description at the highest position, the oldest there."""
    known = [one for one in descriptions if one is not None]
    highest = max((one.position for one in known), default="")
    return min((one for one in known if one.position == highest), default=None)


def _raise_to(gtids: dict[str, tuple[int, str]], others: Mapping[str, tuple[int, str]]) -> None:
    for stream, (number, position) in others.items():
        known = gtids.get(stream, (number, position))
        gtids[stream] = max(number, known[0]), max(position, known[1])


def _highest(one: Mapping[str, _Value], other: Mapping[str, _Value]) -> dict[str, _Value]:
    return {**one, **{name: max(value, one.get(name, value)) for name, value in other.items()}}
