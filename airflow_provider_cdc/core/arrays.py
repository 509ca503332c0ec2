# SPDX-License-Identifier: Apache-2.0
"""Type aliases of numpy arrays, by the type of their elements."""

from __future__ import annotations

from typing import Any

import numpy as np

IntArray = np.ndarray[Any, np.dtype[np.int64]]
Int32Array = np.ndarray[Any, np.dtype[np.int32]]
UInt64Array = np.ndarray[Any, np.dtype[np.uint64]]
ByteArray = np.ndarray[Any, np.dtype[np.uint8]]
BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


def indexes_by_mark(marks: IntArray) -> list[IntArray]:
    """Return for each mark the indexes that have it, ascending; there is at least one mark."""
    if (marks == marks[0]).all():  # most often, and without copies
        return [np.arange(len(marks))]
    order = np.argsort(marks, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(marks[order])) + 1)
