# SPDX-License-Identifier: Apache-2.0
"""Number the buckets that keys belong to, so that several tasks resolve the changes of one table."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import BoolArray, IntArray

_FACTOR = np.uint64(0x100000001B3)  # odd, so that no power of it loses bits


class KeyBucket(NamedTuple):
    """One of the buckets that the keys of a table are divided into.

    :param number: from 0.
    :param total: number of buckets.
    """

    number: int
    total: int

    def holds(self, keys: pa.Table) -> BoolArray:
        """Return which keys belong to the bucket."""
        mine: BoolArray = bucket_numbers(keys, self.total) == self.number
        return mine


def bucket_numbers(keys: pa.Table, count: int) -> IntArray:
    """Return the bucket of each key; equal keys have the same in every process.

    :param keys: the key's columns, typed under one schema version.
    :param count: number of buckets.
    """
    hashes = np.zeros(keys.num_rows, dtype=np.uint64)
    for column in keys.columns:
        chunks = [_hashes(chunk) for chunk in column.chunks]
        hashes = hashes * _FACTOR + (np.concatenate(chunks) if chunks else hashes)
    hashes = (hashes ^ (hashes >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)  # the low bits of text hashes are few
    numbers: IntArray = ((hashes >> np.uint64(32)) % np.uint64(count)).astype(np.int64)
    return numbers


def _hashes(values: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a polynomial of the bytes of each value's text, modulo 2^64; of NULL 0."""
    if pa.types.is_floating(values.type):
        values = values.cast(pa.float64()).view(pa.int64())  # equal are floats of the same bits
    if not pa.types.is_binary(values.type):
        values = values.cast(pa.string())
    values = pc.fill_null(values.cast(pa.large_binary()), b"")
    _, offsets, data = values.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    lengths = np.diff(bounds)
    if not len(values) or data is None:
        return np.zeros(len(values), dtype=np.uint64)
    text = np.frombuffer(data, dtype=np.uint8)[bounds[0] : bounds[-1]].astype(np.uint64) + np.uint64(1)
    powers = np.cumprod(np.full(max(1, int(lengths.max(initial=0))), _FACTOR))
    within = np.arange(len(text)) - np.repeat(bounds[:-1] - bounds[0], lengths)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(text * powers[within])])
    hashes: np.ndarray[tuple[int], np.dtype[np.uint64]] = sums[bounds[1:] - bounds[0]] - sums[bounds[:-1] - bounds[0]]
    return hashes
