# SPDX-License-Identifier: Apache-2.0
"""Keep the generations of the source's log, and what the batches so far show of each.

A **generation** is one continuous log of the source: after a failover or RESET MASTER a new one begins, and later
changes have lower positions. The highest position, time and GTID that each partition has shown are the **marks** of a
generation. What each log shows is kept apart: after a reset GTIDs and positions begin again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, TypeVar

from airflow_provider_cdc.core.model.position import (
    FILE_DIGITS,
    GENERATION_DIGITS,
    file_of,
    generation_of,
    is_before_log,
)
from spark_jobs.lake.begins import Begin
from spark_jobs.lake.manifest import LandReport
from spark_jobs.lake.stretches import Stretch

_Value = TypeVar("_Value", int, str)
_FAR = 2  # files; what replicas commit out of order is nearer


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
            gtids = highest_of_each(mark.gtids, {stream: high for stream, (_, high) in stretch.gtids.items()})
            highest, newest = max(mark.position, stretch.high), newest_of([mark.time, stretch.time])
            result.partitions[stretch.partition_key] = Mark(highest, newest, gtids)
            if stretch.time is not None:
                result.timed = max(result.timed, stretch.high)
            result.gtids = highest_of_each(
                result.gtids, {stream: number for stream, (number, _) in stretch.gtids.items()}
            )
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


class Generations:
    """The generations of the source's log, as far as they were read.

    :param generations: ascending; at least one.
    """

    def __init__(self, generations: Sequence[Generation] = ()) -> None:
        self.all = list(generations) or [Generation()]

    @staticmethod
    def from_document(data: Sequence[Mapping[str, Any]]) -> Generations:
        """Rebuild from :meth:`document`: what comes later is behind the begins, also where a topic was made again."""
        return Generations(
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
            for one in self.all
        ]

    @property
    def newest(self) -> int:
        """The number of the newest generation."""
        return len(self.all) - 1

    def positions(self) -> dict[str, str]:
        """Return the highest position that each partition has shown, by ``topic/partition``."""
        return {name: mark.position for one in self.all for name, mark in one.marks.partitions.items()}

    def begins(self) -> list[Begin]:
        """Return where all generations begin."""
        return [begin for one in self.all for begin in one.begins.values()]

    def with_begins(self, begins: Iterable[Begin]) -> Generations:
        """Return the generations with the first records that a batch holds."""
        result = Generations([Generation(dict(one.begins), one.marks) for one in self.all])
        for begin in sorted(begins, key=lambda begin: begin.generation):
            if begin.generation == len(result.all):
                result.all.append(Generation())
            result.all[begin.generation].begins[begin.partition_key] = begin
        return result

    def after(self, landed: LandReport) -> Generations:
        """Return the generations after a batch."""
        shown = by_generation(landed)
        generations = enumerate(self.all)
        return Generations([Generation(one.begins, one.marks.after(shown.get(n, Shown()))) for n, one in generations])

    def read_early(self, begins: Iterable[Begin]) -> list[str]:
        """Return the partitions of which earlier batches hold records of a log that shows only now that it has begun.

        :param begins: what this batch shows.
        """
        early = set()
        for begin in begins:
            for partition_key, mark in self.all[begin.generation - 1].marks.partitions.items():
                at_once = mark.time is not None and mark.time == begin.time
                if at_once or begin.precedes(mark.position, mark.time):
                    early.add(partition_key)
        return sorted(early)

    def read_late(self, landed: LandReport) -> tuple[str, list[str]] | None:
        """Return a record of a log before the one that earlier batches have read, and the partitions that they read.

        Only in a log before a GTID stands files behind a greater number of its stream.

        :param landed: positions have the generations that are part of this log.
        """
        for number, shown in sorted(by_generation(landed).items()):
            marks = self.all[number].marks
            for stretch in shown.stretches:
                if stretch.first_gtid is None:
                    continue
                stream, greatest, position = stretch.first_gtid
                far = far_below(position)
                first = marks.first_gtids.get(stream)
                if first is not None and greatest < first[0] and first[1] < far:
                    reached = {n: mark.gtids[stream] for n, mark in marks.partitions.items() if stream in mark.gtids}
                    below = [name for name, highest in reached.items() if highest < far]
                    # of one that has gone on to the place of the old record, only the lowest position would show it
                    return f"{stretch.partition_key}:{stretch.start}", sorted(below or reached)
        return None

    def begins_behind(self, partition_key: str, generation: int, offset: int) -> bool:
        """Return whether a partition begins a generation behind an offset, or has not begun it or a later one."""
        begin = self.all[generation].begins.get(partition_key) if generation < len(self.all) else None
        return self.current(partition_key) < generation if begin is None else offset < begin.offset

    def current(self, partition_key: str) -> int:
        """Return the generation that a partition is in."""
        return max((number for number, one in enumerate(self.all) if partition_key in one.begins), default=0)


def has_times(landed: LandReport) -> bool:
    """Return whether all records with positions in the source's log have source times; a full load stands before it."""
    return all(stretch.time is not None or is_before_log(stretch.high) for stretch in _stretches(landed))


def by_generation(landed: LandReport) -> dict[int, Shown]:
    """Return what a batch shows of each generation."""
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


def far_below(position: str) -> str:
    """Return the position below which all are at least two files below a position; empty where none is."""
    if not position or file_of(position) < _FAR:
        return ""
    return f"{position[:GENERATION_DIGITS]}.{file_of(position) - _FAR + 1:0{FILE_DIGITS}d}"


def newest_of(times: Iterable[int | None]) -> int | None:
    """Return the newest of the source times that are known."""
    return max((time for time in times if time is not None), default=None)


def _highest_description(descriptions: Iterable[Description | None]) -> Description | None:
    """Return the description at the highest position, the oldest there."""
    known = [one for one in descriptions if one is not None]
    highest = max((one.position for one in known), default="")
    return min((one for one in known if one.position == highest), default=None)


def highest_of_each(one: Mapping[str, _Value], other: Mapping[str, _Value]) -> dict[str, _Value]:
    """Return for each name the higher of two values."""
    return {**one, **{name: max(value, one.get(name, value)) for name, value in other.items()}}


def _stretches(landed: LandReport) -> Iterator[Stretch]:
    return (Stretch(**stretch) for stretch in landed.stretches)
