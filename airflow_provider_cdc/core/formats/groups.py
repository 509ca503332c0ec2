"""Groups of records that only make sense together: which are whole, torn or repeated, and where a log may be cut.

Rules of slices and running numbers: docs/wire/tencent-dts.md 4, 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from airflow_provider_cdc.core.formats.contract import Grouped, Part, Records


@dataclass(slots=True)
class Group:
    """A group, or what is there of it.

    :param records: numbers of its records, in order.
    :param following: place that its next record must have.
    :param state: ``early`` where its beginning is older than anything known of its sender.
    :param replaced_by: the record that began another group before this one was whole.
    """

    records: list[int]
    total: int
    following: int
    state: Literal["whole", "torn", "early"]
    replaced_by: int | None = None


class Arrival(NamedTuple):
    """What a record did.

    :param repeated: it came before; it belongs to no group.
    :param missing: how many of its sender's records before it never came.
    :param ended: groups that are complete or given up with it.
    """

    repeated: bool
    missing: int
    ended: Sequence[Group]


class Groups:
    """Follows the groups of one partition, record by record.

    :param heard: the senders known before, with the last running number of each.
    """

    def __init__(self, heard: Mapping[str, int | None]) -> None:
        self.heard = dict(heard)
        self._open: dict[str, Group] = {}

    @property
    def open(self) -> bool:
        """Whether a group has begun and not ended."""
        return bool(self._open)

    def follows(self, sender: str, number: int | None) -> bool:
        """Take the next record of the partition, a group by itself, if it follows the last one of its sender.

        That is all that :meth:`add` would find of such a record; where it is not so, nothing was done.
        """
        if number is None or not self.awaits(sender, number):
            return False
        self.heard[sender] = number
        return True

    def awaits(self, sender: str, number: int) -> bool:
        """Return whether a sender is between two groups and has this number to give next."""
        last = self.heard.get(sender)
        return last is not None and number == last + 1 and sender not in self._open

    def add(self, record: int, part: Part) -> Arrival:
        """Take the next record of the partition.

        :param record: its number, for :attr:`Group.records`.
        """
        sender, _, place, total = part
        known = sender in self.heard
        repeated, missing = hear(self.heard, part)
        if repeated:
            return Arrival(True, 0, ())
        group = self._open.pop(sender, None)
        if total == 1 and group is None:
            return Arrival(False, missing, (Group([record], 1, 1, "whole"),))
        ended: list[Group] = []
        if group is not None and (place == 0 or total != group.total or place < group.following):
            group.replaced_by = record
            ended.append(_given_up(group))
            group = None
        if group is None:
            headless: Literal["torn", "early"] = "torn" if known else "early"
            group = Group([record], total, place + 1, headless if place else "whole")
        else:
            if place > group.following:
                _given_up(group)
            group.records.append(record)
            group.following = place + 1
        if group.following == total:
            ended.append(group)
        else:
            self._open[sender] = group
        return Arrival(False, missing, ended)

    def rest(self) -> list[Group]:
        """Give up the groups that are open."""
        return [_given_up(group) for group in self._open.values()]


def _given_up(group: Group) -> Group:
    if group.state == "whole":
        group.state = "torn"
    return group


def hear(heard: dict[str, int | None], part: Part) -> tuple[bool, int]:
    """Note a record's running number; return whether it came before and how many are missing before it.

    A number that is not above the last one is a repeat, but 1 is a sequence that begins anew.
    """
    number, last = part.number, heard.get(part.sender)
    if number is None or last is None or number == 1:
        heard[part.sender] = last if number is None else number
        return False, 0
    if number <= last:
        return True, 0
    heard[part.sender] = number
    return False, number - last - 1


def last_cut(parts: Sequence[Part | None], *, from_start: bool) -> int | None:
    """Return how many of these records stand before the last place that cuts no group, None if there is no such place.

    :param parts: consecutive records of a partition.
    :param from_start: whether the place before the first record cuts no group.
    """
    groups = Groups({})
    cut = 0 if from_start else None
    for record, part in enumerate(parts):
        if part is not None:
            if part.place and not from_start and part.sender not in groups.heard:
                cut = None  # its group was open all along
            groups.add(record, part)
        if not groups.open:
            cut = record + 1
    return cut


def whole_groups(
    source: Iterable[Records], wire: Grouped, starts: Mapping[tuple[str, int], int] | None = None
) -> Iterator[Records]:
    """Yield the records in stretches that cut no group; only a source's end may.

    :param source: stretches of one or more partitions, each partition's in offset order.
    :param starts: by partition the offset of the first record wanted; those before it only tell how far senders were.
    """
    partitions: dict[tuple[str, int], _Partition] = {}
    for records in source:
        here = (records.topic, records.partition)
        if here not in partitions:
            partitions[here] = _Partition(wire, (starts or {}).get(here, 0))
        yield from partitions[here].take(records)
    for partition in partitions.values():
        yield from partition.rest()


class _Partition:
    """What was held back of one partition."""

    def __init__(self, wire: Grouped, start: int) -> None:
        self._wire, self._start = wire, start
        self._heard: dict[str, int | None] = {}  # before the first record held back
        self._groups = Groups({})
        self._held: Records | None = None
        self._parts: list[Part | None] = []  # of the records held back

    def take(self, records: Records) -> Iterator[Records]:
        """Yield what is whole with these records."""
        headers = records.headers or [None] * len(records)
        parts = [self._wire.part_of(*record) for record in zip(records.values, headers, strict=True)]
        early = sum(offset < self._start for offset in records.offsets)
        if early:
            self._hear(parts[:early])
            self._groups = Groups(self._heard)
            records, parts = piece(records, early, len(records)), parts[early:]
        cut, before = 0, len(self._parts)
        for record, part in enumerate(parts, 1):
            if part is not None and not (part.total == 1 and self._groups.follows(part.sender, part.number)):
                self._groups.add(record, part)
            if not self._groups.open:
                cut = before + record
        self._parts += parts
        records = records if self._held is None else _joined(self._held, records)
        self._held = piece(records, cut, len(records))
        if cut:
            yield replace(piece(records, 0, cut), heard=dict(self._heard))
            self._hear(self._parts[:cut])
            del self._parts[:cut]

    def rest(self) -> Iterator[Records]:
        """Yield what was held back to the end."""
        if self._held is not None and len(self._held):
            yield replace(self._held, heard=dict(self._heard))

    def _hear(self, parts: Iterable[Part | None]) -> None:
        for part in parts:
            if part is not None:
                hear(self._heard, part)


def piece(records: Records, start: int, end: int) -> Records:
    """Return some consecutive records."""
    if start == 0 and end == len(records):
        return records
    return replace(
        records,
        offsets=records.offsets[start:end],
        timestamps=records.timestamps[start:end],
        keys=records.keys[start:end],
        values=records.values[start:end],
        headers=records.headers[start:end],
    )


def _joined(first: Records, second: Records) -> Records:
    return replace(
        first,
        offsets=[*first.offsets, *second.offsets],
        timestamps=[*first.timestamps, *second.timestamps],
        keys=[*first.keys, *second.keys],
        values=[*first.values, *second.values],
        headers=[*first.headers, *second.headers],
    )
