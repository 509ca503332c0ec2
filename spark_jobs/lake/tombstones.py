# SPDX-License-Identifier: Apache-2.0
"""Recognise records without a value whose delete is not before them: compaction took it, and maybe changes, away.

A tool writes such a record, a tombstone, right behind each delete, with its key. In a compacted topic only the newest
record of a key is left, and in the end the tombstone alone says that the row is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.contract import Records

Partition = tuple[str, int]
_REMEMBERED = 16  # records from one piece of a partition to the next
_WHY = (
    "a record without a value whose delete is not before it: the topic is compacted (cleanup.policy), so changes are "
    "missing in it"
)


class Tombstones:
    """Follow the records of partitions, each partition's in offset order.

    :param may_delete: says of a record's value whether it is a row's delete, or too damaged to say.
    :param last: ``topic/partition`` -> offset of the last record that earlier batches read, and the marks of the keys
        of deletes among the last ones.
    :param first_here: partitions whose first records in the batch are read here; what is before others is not known.
    :param alone_at_start: whether nothing stands before the first records.
    """

    def __init__(
        self,
        may_delete: Callable[[bytes], bool],
        last: Mapping[str, list[Any]],
        first_here: Collection[Partition] = (),
        *,
        alone_at_start: bool = False,
    ) -> None:
        self._may_delete, self._known, self._first_here = may_delete, last, first_here
        self._alone_at_start = alone_at_start
        self.last: dict[str, list[Any]] = {}

    def errors_in(self, parts: Iterable[Records]) -> Iterator[pa.RecordBatch]:
        """Yield ``error`` changes for the tombstones that stand alone."""
        for records in parts:
            if len(records) and (errors := self._errors_in(records)) is not None:
                yield errors

    def _errors_in(self, records: Records) -> pa.RecordBatch | None:
        alone = self._alone(records) if None in records.values else []
        partition = f"{records.topic}/{records.partition}"
        self.last[partition] = [records.offsets[-1], self._deleted(records)]
        if not alone:
            return None
        out = ChangeBuilder(records, [])
        for index in alone:
            out.error(index, "record.tombstone_alone", _WHY)
        return out.batch()

    def _alone(self, records: Records) -> list[int]:
        alone = []
        for index in _without_value(records.values):
            key = records.keys[index]
            if key is not None:
                follows = self._follows_delete(records, index)
                before = self._before(records) if follows is None else None
                if follows is False or (before is not None and _digest(key) not in before):
                    alone.append(index)
        return alone

    def _follows_delete(self, records: Records, index: int) -> bool | None:
        """Return whether the nearest record before one with its key may be its delete, None where these have none.

        Mostly it is the one right before. Where somebody put partitions together, others stand between them.
        """
        key = records.keys[index]
        for earlier in range(index - 1, -1, -1):
            value = records.values[earlier]
            if records.keys[earlier] == key and value is not None:
                return self._may_delete(value)
        return None

    def _before(self, records: Records) -> Collection[str] | None:
        """Return the marks of deletes before some records, None where it is not known what is before them."""
        partition = f"{records.topic}/{records.partition}"
        if partition in self.last:
            return list(self.last[partition][1])
        if self._alone_at_start:
            return []
        if (records.topic, records.partition) in self._first_here:
            if partition in self._known:
                return list(self._known[partition][1])
            return [] if records.offsets[0] == 0 else None
        return None

    def _deleted(self, records: Records) -> list[str]:
        """Return the marks of the keys of deletes among the last records."""
        last = zip(records.keys[-_REMEMBERED:], records.values[-_REMEMBERED:], strict=True)
        return [_digest(key) for key, value in last if key and value and self._may_delete(value)]


def _without_value(values: Sequence[bytes | None]) -> Iterator[int]:
    """Yield the indexes of the records without a value; most have one, and are not looked at in Python."""
    index = -1
    for _ in range(values.count(None)):
        index = values.index(None, index + 1)
        yield index


def _digest(key: bytes) -> str:
    return hashlib.blake2b(key, digest_size=8).hexdigest()
