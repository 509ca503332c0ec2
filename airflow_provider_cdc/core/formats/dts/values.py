# SPDX-License-Identifier: Apache-2.0
"""Read values of Tencent DTS in columns: messages ``Data`` of many rows, one behind the other.

Values: docs/wire/tencent-dts.md 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.formats.generated.dts_pb2 import DataType

UNKNOWN = max(DataType.values()) + 1  # stands for every DataType that is not known


class Values:
    """Messages ``Data`` of many rows.

    :param parts: arrays of them, put one behind the other.
    """

    def __init__(self, parts: list[pa.StructArray]) -> None:
        names = [field.name for field in parts[0].type]
        joined = {name: pa.concat_arrays([part.field(name) for part in parts]) for name in names}
        kinds = joined["dataType"].to_numpy()
        self.kinds: Any = np.where((kinds >= 0) & (kinds < UNKNOWN), kinds, UNKNOWN)
        self.charsets = _distinct(joined["charset"])
        self.numerals = joined["sv"].view(pa.binary())
        self.contents = joined["bv"]

    def __len__(self) -> int:
        return len(self.kinds)


def offsets_of(array: pa.Array) -> Any:
    """Return where the values of a text or binary array begin and end."""
    return np.frombuffer(array.buffers()[1], np.int32, len(array) + 1, array.offset * 4)


def _distinct(texts: pa.Array) -> pa.DictionaryArray:
    """Return texts by number; most often they are one text or empty."""
    sizes = np.diff(offsets_of(texts))
    not_empty = np.flatnonzero(sizes)
    data = data_of(texts)[offsets_of(texts)[0] :].tobytes()
    one = data[: sizes[not_empty[0]]] if len(not_empty) else b""
    if len(data) != len(one) * len(not_empty) or data != one * len(not_empty) or (sizes[not_empty] != len(one)).any():
        return texts.dictionary_encode()
    return pa.DictionaryArray.from_arrays(
        pa.array((sizes > 0).view(np.int8)), pa.array(["", one.decode()], pa.string())
    )


def data_of(array: pa.Array) -> Any:
    """Return the bytes that the offsets of :func:`offsets_of` refer to."""
    buffer = array.buffers()[2]
    return np.frombuffer(b"" if buffer is None else buffer, np.uint8)[: offsets_of(array)[-1]]


def holders_of(offsets: Any, byte_offsets: Any) -> Any:
    """Return which values hold the bytes at some offsets."""
    marked: Any = np.zeros(len(offsets) - 1, bool)
    marked[np.searchsorted(offsets, byte_offsets, "right") - 1] = True
    return marked
