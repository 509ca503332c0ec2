# SPDX-License-Identifier: Apache-2.0
"""Recognise records without a value whose delete is not before them: compaction took it, and maybe changes, away.

A tool writes such a record, a tombstone, right behind each delete, with its key. In a compacted topic only the newest
record of a key is left, and in the end the tombstone alone says that the row is gone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.contract import Records

Partition = tuple[str, int]
_WHY = (
    "a record without a value whose delete is not before it: the topic is compacted (cleanup.policy), so changes are "
    "missing in it"
)


class Tombstones:
    """Follow the records of partitions, each partition's in offset order.

    :param is_delete: says of a record's value whether it is a row's delete.
    :param last: ``topic/partition`` -> offset of the last record that earlier batches read, and the mark of its key
        where it was a delete, else empty.
    :param first_here: partitions whose first records in the batch are read here; what is before others is not known.
    :param alone_at_start: whether nothing stands before the first records.
    """

    def __init__(
        self,
        is_delete: Callable[[bytes], bool],
        last: Mapping[str, list[Any]],
        first_here: Collection[Partition] = (),
        *,
        alone_at_start: bool = False,
    ) -> None:
        self._is_delete, self._known, self._first_here = is_delete, last, first_here
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
        self.last[partition] = [records.offsets[-1], self._mark(records, len(records) - 1)]
        if not alone:
            return None
        out = ChangeBuilder(records, [])
        for index in alone:
            out.error(index, "record.tombstone_alone", _WHY)
        return out.batch()

    def _alone(self, records: Records) -> list[int]:
        alone = []
        for index, (key, value) in enumerate(zip(records.keys, records.values, strict=True)):
            if value is None and key is not None:
                before = self._mark(records, index - 1) if index else self._before(records)
                if before is not None and before != _digest(key):
                    alone.append(index)
        return alone

    def _before(self, records: Records) -> str | None:
        """Return the mark of the record before some, None where it is not known."""
        partition = f"{records.topic}/{records.partition}"
        if partition in self.last:
            return str(self.last[partition][1])
        if self._alone_at_start:
            return ""
        if (records.topic, records.partition) in self._first_here:
            if partition in self._known:
                return str(self._known[partition][1])
            return "" if records.offsets[0] == 0 else None
        return None

    def _mark(self, records: Records, index: int) -> str:
        key, value = records.keys[index], records.values[index]
        return _digest(key) if key is not None and value is not None and self._is_delete(value) else ""


def _digest(key: bytes) -> str:
    return hashlib.blake2b(key, digest_size=8).hexdigest()
