# SPDX-License-Identifier: Apache-2.0
"""Keys are divided into buckets the same way in every process, however they are read."""

from __future__ import annotations

from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.key_buckets import KeyBucket, bucket_numbers

_VALUES: list[tuple[list[Any], pa.DataType]] = [
    ([0, 1, -1, 2**62], pa.int64()),
    (["", "a", "ä", "a" * 300], pa.string()),
    ([b"", b"\x00", b"\x00\x00"], pa.binary()),
    ([Decimal("1.50"), Decimal("-0.01")], pa.decimal128(10, 2)),
    ([Decimal(10) ** 50], pa.decimal256(60)),
    ([date(2020, 1, 1)], pa.date32()),
    ([datetime(2020, 1, 1, 1, 2, 3, 4)], pa.timestamp("us")),
    ([time(1, 2, 3)], pa.time64("us")),
    ([0.0, -0.0, 1.5], pa.float32()),
    ([True, False], pa.bool_()),
]


@pytest.mark.parametrize(("values", "kind"), _VALUES, ids=[str(kind) for _, kind in _VALUES])
def test_a_key_has_one_bucket_whatever_is_read_with_it(values: list[Any], kind: pa.DataType) -> None:
    values = [*values, None]
    together = bucket_numbers(pa.table({"k": pa.array(values * 2, kind)}), 1000)
    pieces = pa.table({"k": pa.chunked_array([pa.array([value], kind) for value in values], kind)})
    assert together.tolist() == bucket_numbers(pieces, 1000).tolist() * 2
    assert bucket_numbers(pieces.slice(1), 1000).tolist() == together.tolist()[1 : len(values)]


def test_every_column_of_the_key_counts() -> None:
    keys = pa.table({"a": [1, 1, 2, 2], "b": ["x", "y", "x", "y"]})
    assert len(set(bucket_numbers(keys, 1_000_000).tolist())) == 4


@pytest.mark.parametrize("step", [1, 2, 10, 1024])
def test_buckets_of_numbers_in_sequence_are_alike_in_size(step: int) -> None:
    keys = pa.table({"id": np.arange(0, 40_000 * step, step)})
    sizes = [int(KeyBucket(number, 4).holds(keys).sum()) for number in range(4)]
    assert sum(sizes) == 40_000
    assert min(sizes) > 9_000


def test_no_keys_have_no_buckets() -> None:
    assert bucket_numbers(pa.table({"id": pa.chunked_array([], pa.int64())}), 3).tolist() == []
