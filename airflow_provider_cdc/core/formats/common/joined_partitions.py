# SPDX-License-Identifier: Apache-2.0
"""Decode the records of several partitions together: each batch of changes costs something, however few it has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.formats.contract import Records

BATCH_BYTES, BATCH_RECORDS = 8 << 20, 20_000  # decoded at once: much more leaves the processor's cache


def joined_partitions(source: Iterable[Records]) -> Iterator[list[Records]]:
    """Yield all records of a source, those of several partitions together as long as they are few."""
    parts: list[Records] = []
    size = count = 0
    for records in source:
        parts.append(records)
        size += sum(map(len, filter(None, records.values)))
        count += len(records)
        if size >= BATCH_BYTES or count >= BATCH_RECORDS:
            yield parts
            parts, size, count = [], 0, 0
    if parts:
        yield parts


def as_one(parts: Sequence[Records]) -> Records:
    """Return several stretches of records as one, in which offsets are numbers from 0.

    :param parts: of a format whose records can be understood alone.
    """
    # a format copies the offset of a record: here it is the record's number, which says its place
    joined = Records("", 0, [], [], [], [])
    joined.timestamps, joined.keys, joined.values, joined.headers = (
        list(chain.from_iterable(getattr(part, name) for part in parts))
        for name in ("timestamps", "keys", "values", "headers")
    )
    joined.offsets = range(len(joined.values))
    return joined


def decode_joined(decode: Callable[[Records], pa.RecordBatch], parts: Sequence[Records]) -> pa.RecordBatch:
    """Return the changes of several stretches of records, one behind the other.

    :param decode: as that of a format whose records can be understood alone.
    :param parts: of any partitions; of one partition in offset order.
    """
    if len(parts) == 1:
        return decode(parts[0])
    changes = decode(as_one(parts))
    numbers = changes.column("offset").to_numpy()
    offsets = np.concatenate([np.asarray(part.offsets, np.int64) for part in parts])
    part_of = np.repeat(np.arange(len(parts)), list(map(len, parts)))[numbers]
    columns = {
        "topic": pa.array([part.topic for part in parts], pa.string()).take(pa.array(part_of)),
        "partition": pa.array([part.partition for part in parts], pa.int32()).take(pa.array(part_of)),
        "offset": pa.array(offsets[numbers]),
    }
    for name, column in columns.items():
        changes = changes.set_column(changes.schema.get_field_index(name), changes.schema.field(name), column)
    return changes


def partition_runs(changes: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield the stretches of changes of one partition, in the batch's order."""
    if not len(changes):
        return
    topics, partitions = changes.column("topic").dictionary_encode().indices, changes.column("partition")
    marks = np.stack([topics.to_numpy(), partitions.to_numpy()])
    starts = np.flatnonzero((marks[:, 1:] != marks[:, :-1]).any(axis=0)) + 1
    for start, end in zip([0, *starts], [*starts, len(changes)], strict=True):
        yield changes.slice(start, end - start)
