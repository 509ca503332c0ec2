# SPDX-License-Identifier: Apache-2.0
"""Generations of the source's log: where each begins in a partition, and positions that lead with its number.

Formats number positions as the source does, so that each log begins at the same positions. Landing puts the generation
in front: what a new log holds comes after all that the logs before held.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.gtid import parse_gtid
from airflow_provider_cdc.core.model.position import GENERATION_DIGITS, in_generation
from airflow_provider_cdc.core.model.position_columns import without_generation


class Begin(NamedTuple):
    """The first record of a generation in one partition.

    :param partition_key: ``topic/partition``.
    :param position: position of the record, with the generation.
    :param known: highest position that the partition showed before, or the pipeline where that is what the record is
        below of; with its own generation, empty where nothing was read.
    :param time: source time of the record, microseconds since the epoch.
    :param before: newest source time up to ``known``.
    :param transaction_id: of the record.
    """

    partition_key: str
    generation: int
    offset: int
    position: str
    known: str
    time: int | None
    before: int | None
    transaction_id: str | None

    @property
    def name(self) -> str:
        """The record as operators name it: ``topic/partition:offset``."""
        return f"{self.partition_key}:{self.offset}"

    @property
    def falls(self) -> bool:
        """Return whether the generation begins below what the earlier logs reached."""
        return self.position[GENERATION_DIGITS:] < self.known[GENERATION_DIGITS:]

    def follows(self, position: str, time: int | None) -> bool:
        """Return whether a snapshot's statement, at a position of an older generation, is of this one.

        Statements come before rows, and on another topic; a snapshot of a log that ended stands at its positions.
        """
        if position >= self.position or position[GENERATION_DIGITS:] > self.position[GENERATION_DIGITS:]:
            return False
        if time is None or self.before is None:
            return position[GENERATION_DIGITS:] == self.position[GENERATION_DIGITS:]
        return time > self.before

    def precedes(self, position: str, time: int | None, gtids: Mapping[str, int] = MappingProxyType({})) -> bool:
        """Return whether a record can only be of this generation or a later one, by its position, time and GTID.

        :param gtids: stream -> number of its GTID.
        """
        if time is None:
            return False
        first = parse_gtid(self.transaction_id)
        if first is not None and time == self.time and gtids.get(first.stream, -1) >= first.number:
            return True  # in the second in which it begins, only the number says more
        lower = position[GENERATION_DIGITS:] < self.known[GENERATION_DIGITS:]
        return (self.time is not None and time > self.time) or (
            lower and self.before is not None and time > self.before
        )

    def is_older(self, time: int | None, position: str) -> bool:
        """Return whether a record that came later was sent again, from a log before.

        Times of one log run back where it has transactions by the time they began. So the record has to be older than
        the first of the generation, and of a time or position that the logs before had.
        """
        if time is None or self.time is None or time >= self.time:
            return False
        higher = self.falls and position[GENERATION_DIGITS:] > self.known[GENERATION_DIGITS:]
        return higher or (self.before is not None and time <= self.before)


class Begins:
    """Begins of the generations in each partition.

    :param begins: in any order.
    """

    def __init__(self, begins: Iterable[Begin] = ()) -> None:
        self._of: dict[str, list[Begin]] = {}
        for begin in sorted(begins, key=lambda begin: (begin.partition_key, begin.generation)):
            self._of.setdefault(begin.partition_key, []).append(begin)

    def generation(self, partition_key: str, offset: int, time: int | None, position: str) -> int:
        """Return the generation of one record."""
        newest = 0
        for begin in self._of.get(partition_key, ()):
            if offset >= begin.offset and not begin.is_older(time, position):
                newest = begin.generation
        return newest

    def fill(self, changes: pa.RecordBatch) -> pa.RecordBatch:
        """Put the generation in front of the positions of changes, of any partitions."""
        if not self._of:
            return changes
        numbers: Any = np.zeros(len(changes), np.int64)
        for partition_key, begins in self._of.items():
            topic, _, partition = partition_key.rpartition("/")
            here = pc.equal(changes.column("partition"), int(partition))
            here = pc.and_(here, pc.equal(changes.column("topic"), topic))
            if pc.any(here).as_py():
                for begin in begins:
                    numbers[_true(pc.and_(here, _is_of(changes, begin)))] = begin.generation
        if not numbers.any():
            return changes
        heads = pa.array([f"{number:0{GENERATION_DIGITS}d}" for number in range(numbers.max() + 1)])
        rest = without_generation(changes.column("position"))
        filled = pc.binary_join_element_wise(heads.take(pa.array(numbers)), rest, "")  # null where there is none
        return changes.set_column(changes.schema.get_field_index("position"), "position", filled)

    def position_of(self, record: Mapping[str, Any]) -> str | None:
        """Return the position of a record given as a document, with its generation."""
        position, time = record["position"], record["source_time"]
        if position is None:
            return None
        generation = self.generation(f"{record['topic']}/{record['partition']}", record["offset"], time, position)
        return in_generation(position, generation)


def _is_of(changes: pa.RecordBatch, begin: Begin) -> pa.BooleanArray:
    """Return which changes of a partition are of a generation, or of a later one."""
    behind = pc.greater_equal(changes.column("offset"), begin.offset)
    older = None if begin.time is None else _older_by_time(changes, begin, begin.time)
    return behind if older is None else pc.and_(behind, pc.invert(pc.fill_null(older, False)))


def _older_by_time(changes: pa.RecordBatch, begin: Begin, begun: int) -> pa.BooleanArray | None:
    """Return what :meth:`Begin.is_older` says of changes, None where none are."""
    times = changes.column("source_time").cast(pa.int64())
    older = pc.less(times, begun)
    if not pc.any(older).as_py():
        return None
    known = [pc.less_equal(times, begin.before)] if begin.before is not None else []
    if begin.falls:
        rest = without_generation(changes.column("position"))
        known.append(pc.greater(rest, begin.known[GENERATION_DIGITS:]))
    return pc.and_(older, reduce(pc.or_, known)) if known else None


def _true(mask: pa.BooleanArray) -> Any:
    return mask.to_numpy(zero_copy_only=False)
