# SPDX-License-Identifier: Apache-2.0
"""Write several numbers as one text, each padded with zeros, so that texts compare like the numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import IntArray


def padded_texts(prefix: str, columns: Sequence[tuple[Any, int]]) -> pa.Array:
    """Return the texts ``<prefix>.<number>.<number>...``, null where one of the numbers is.

    :param prefix: what all texts begin with, ASCII.
    :param columns: the numbers and how many digits they have at least.
    """
    numbers = [(_array(values), digits) for values, digits in columns]
    valid = _valid([array for array, _ in numbers])
    plain = [(_plain(array, valid), digits) for array, digits in numbers]
    if all(_fits(values, digits) for values, digits in plain):
        return _texts_of(prefix, plain, valid)
    parts: list[Any] = [pa.scalar(prefix)]
    for array, digits in numbers:
        distinct = array.dictionary_encode()  # they repeat; padding is the costly part
        parts.append(pc.utf8_lpad(distinct.dictionary.cast(pa.string()), digits, "0").take(distinct.indices))
    return pc.binary_join_element_wise(*parts, ".", null_handling="emit_null")


def _array(values: Any) -> pa.Array:
    return values if isinstance(values, pa.Array) else pa.array(values, pa.int64())


def _valid(arrays: Sequence[pa.Array]) -> Any:
    """Return at which places no number is missing, None where none is missing at all."""
    missing = [array for array in arrays if array.null_count]
    if not missing:
        return None
    return np.logical_and.reduce([array.is_valid().to_numpy(zero_copy_only=False) for array in missing])


def _plain(array: pa.Array, valid: Any) -> IntArray:
    """Return the numbers of the places that have all."""
    numbers: IntArray = (array.fill_null(0) if array.null_count else array).to_numpy()
    return numbers if valid is None else numbers[valid]


def _fits(values: IntArray, digits: int) -> bool:
    return not len(values) or (int(values.min()) >= 0 and int(values.max()) < 10**digits)


def _texts_of(prefix: str, numbers: Sequence[tuple[IntArray, int]], valid: Any) -> pa.Array:
    """Write numbers that fit digit by digit: all texts are equally long."""
    count, width = len(numbers[0][0]), len(prefix) + sum(1 + digits for _, digits in numbers)
    texts: Any = np.full((width, count), ord("0"), np.uint8)
    texts[: len(prefix)] = np.frombuffer(prefix.encode(), np.uint8)[:, None]
    end = len(prefix)
    for values, digits in numbers:
        texts[end] = ord(".")
        end += 1 + digits
        _write(values.astype(np.uint64), texts[:end])
    data = pa.py_buffer(np.ascontiguousarray(texts.T))
    if valid is None:
        ends: Any = np.arange(count + 1, dtype=np.int32)
        return pa.StringArray.from_buffers(count, pa.py_buffer(ends * np.int32(width)), data)
    ends = np.append(0, np.cumsum(valid)).astype(np.int32)
    there = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.StringArray.from_buffers(len(valid), pa.py_buffer(ends * np.int32(width)), data, there)


def _write(left: Any, texts: Any) -> None:
    """Add the digits of numbers to the last rows of texts of zeros."""
    highest = int(left.max(initial=0))
    row = len(texts)
    while highest:
        if left.dtype == np.uint64 and highest < 2**32:
            left = left.astype(np.uint32)  # dividing these is far cheaper
        row -= 1
        more = left // 10
        texts[row] += (left - more * 10).astype(np.uint8)
        left, highest = more, highest // 10
