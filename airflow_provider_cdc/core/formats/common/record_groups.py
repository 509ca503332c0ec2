# SPDX-License-Identifier: Apache-2.0
"""Track groups of records that only make sense together: whole, torn or repeated, and where a log may be cut.

Rules of slices and running numbers: docs/wire/tencent-dts.md 4, 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from airflow_provider_cdc.core.formats.contract import Grouped, Records, SliceInfo


@dataclass(slots=True)
class SliceGroup:
    """A group, or the part of it that was received.

    :param records: numbers of its records, in order.
    :param following: index that its next record must have.
    :param state: ``early`` where its beginning is older than anything known of its sender.
    :param replaced_by: the record that began another group before this one was whole.
    """

    records: list[int]
    total: int
    following: int
    state: Literal["whole", "torn", "early"]
    replaced_by: int | None = None


class Arrival(NamedTuple):
    """Result of adding a record.

    :param repeated: it came before; it belongs to no group.
    :param missing: how many of its sender's records before it never came.
    :param ended: groups that are complete or given up with it.
    """

    repeated: bool
    missing: int
    ended: Sequence[SliceGroup]


class SliceGroups:
    """Track the groups of one partition, record by record.

    :param heard: the senders known before, with the last running number of each.
    """

    def __init__(self, heard: Mapping[str, int | None]) -> None:
        self.heard = dict(heard)
        self._open: dict[str, SliceGroup] = {}

    @property
    def open(self) -> bool:
        """Return whether a group has begun and not ended."""
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

    def add(self, record: int, part: SliceInfo) -> Arrival:
        """Take the next record of the partition.

        :param record: its number, for :attr:`Group.records`.
        """
        sender, _, slice_index, total = part
        known = sender in self.heard
        repeated, missing = hear(self.heard, part)
        if repeated:
            return Arrival(True, 0, ())
        group = self._open.pop(sender, None)
        if total == 1 and group is None:
            return Arrival(False, missing, (SliceGroup([record], 1, 1, "whole"),))
        ended: list[SliceGroup] = []
        if group is not None and (slice_index == 0 or total != group.total or slice_index < group.following):
            group.replaced_by = record
            ended.append(_given_up(group))
            group = None
        if group is None:
            headless: Literal["torn", "early"] = "torn" if known else "early"
            group = SliceGroup([record], total, slice_index + 1, headless if slice_index else "whole")
        else:
            if slice_index > group.following:
                _given_up(group)
            group.records.append(record)
            group.following = slice_index + 1
        if group.following == total:
            ended.append(group)
        else:
            self._open[sender] = group
        return Arrival(False, missing, ended)

    def rest(self) -> list[SliceGroup]:
        """Give up the groups that are open."""
        return [_given_up(group) for group in self._open.values()]


def _given_up(group: SliceGroup) -> SliceGroup:
    if group.state == "whole":
        group.state = "torn"
    return group


def hear(heard: dict[str, int | None], part: SliceInfo) -> tuple[bool, int]:
    """Note a record's running number; return whether it came before and how many are missing before it.

    A number that is not above the last one is a repeat, but 1 is a sequence that begins again.
    """
    number, last = part.number, heard.get(part.sender)
    if number is None or last is None or number == 1:
        heard[part.sender] = last if number is None else number
        return False, 0
    if number <= last:
        return True, 0
    heard[part.sender] = number
    return False, number - last - 1


def last_cut(parts: Sequence[SliceInfo | None], *, from_start: bool) -> int | None:
    """Return how many of these records stand before the last boundary that cuts no group, None if there is none.

    :param parts: consecutive records of a partition.
    :param from_start: whether the boundary before the first record cuts no group.
    """
    groups = SliceGroups({})
    cut = 0 if from_start else None
    for record, part in enumerate(parts):
        if part is not None:
            if part.slice_index and not from_start and part.sender not in groups.heard:
                cut = None  # its group was open all along
            groups.add(record, part)
        if not groups.open:
            cut = record + 1
    return cut


def unbroken_stretches(records: Iterable[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return stated records in stretches of a partition without gaps: numbers run on in no other.

    :param records: as ``Decision.repaired`` has them.
    """
    parts: list[list[Mapping[str, Any]]] = []
    before: tuple[str, int, int] | None = None
    for record in sorted(records, key=lambda record: (record["topic"], record["partition"], record["offset"])):
        name = (record["topic"], record["partition"], record["offset"])
        if before is None or name != (*before[:2], before[2] + 1):
            parts.append([])
        parts[-1].append(record)
        before = name
    return parts


def whole_groups(
    source: Iterable[Records], fmt: Grouped, starts: Mapping[tuple[str, int], int] | None = None
) -> Iterator[Records]:
    """Yield the records in stretches that cut no group; only a source's end may.

    :param source: stretches of one or more partitions, each partition's in offset order.
    :param starts: by partition the offset of the first record wanted; those before it only show how far senders were.
    """
    partitions: dict[tuple[str, int], _Partition] = {}
    for records in source:
        here = (records.topic, records.partition)
        if here not in partitions:
            partitions[here] = _Partition(fmt, (starts or {}).get(here, 0))
        yield from partitions[here].take(records)
    for partition in partitions.values():
        yield from partition.rest()


class _Partition:
    """Hold back records of one partition until their group is whole."""

    def __init__(self, fmt: Grouped, start: int) -> None:
        self._fmt, self._start = fmt, start
        self._heard: dict[str, int | None] = {}  # before the first record held back
        self._groups = SliceGroups({})
        self._held: Records | None = None
        self._parts: list[SliceInfo | None] = []  # of the records held back

    def take(self, records: Records) -> Iterator[Records]:
        """Yield what is whole with these records."""
        headers = records.headers or [None] * len(records)
        parts = [self._fmt.part_of(*record) for record in zip(records.values, headers, strict=True)]
        early = sum(offset < self._start for offset in records.offsets)
        if early:
            self._hear(parts[:early])
            self._groups = SliceGroups(self._heard)
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

    def _hear(self, parts: Iterable[SliceInfo | None]) -> None:
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
