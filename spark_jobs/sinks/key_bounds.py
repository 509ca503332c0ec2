# SPDX-License-Identifier: Apache-2.0
"""Compare keys with the bounds that a table's log states of each file, so that only files that may hold them are read.

Bounds are taken as wider than they are stated: writers cut texts, cut times to milliseconds and round decimals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.arrays import IntArray

_MILLISECOND = 1_000  # microseconds
_ROUNDING = 1e-12  # of a decimal that went through a double, and of a comparison as doubles, relative; generous
_LARGEST = 9.2e18  # delta-rs states larger decimals as the largest 64 bit integer


class KeyBounds:
    """The keys of a batch, ordered so that those within some bounds are quickly known.

    :param keys: columns of the key; types without usable bounds, and columns with NULL, do not narrow anything.
    """

    def __init__(self, keys: pa.Table) -> None:
        columns = {name: keys.column(name) for name in keys.column_names}
        self._columns = {name: _Column(values) for name, values in columns.items() if _is_bounded(values)}
        self._order: IntArray = np.arange(keys.num_rows)
        self._first = next(iter(self._columns), None)
        if self._first is not None:
            self._order = np.argsort(self._columns[self._first].values, kind="stable")
            self._columns = {name: column.taken(self._order) for name, column in self._columns.items()}

    @property
    def names(self) -> list[str]:
        """Return the columns whose bounds narrow the keys."""
        return list(self._columns)

    def within(self, bounds: Mapping[str, tuple[Any, Any]]) -> IntArray:
        """Return the indices of the keys that may be in a file.

        :param bounds: least and greatest value of columns, either None where it is not known.
        """
        start, end = 0, len(self._order)
        if self._first is not None and self._first in bounds:
            start, end = self._columns[self._first].between(*bounds[self._first])
            if start == end:  # as for most of thousands of files
                return self._order[:0]
        selected: IntArray = np.arange(start, end)
        for name, column in self._columns.items():
            if name != self._first and name in bounds and len(selected):
                selected = selected[column.inside(selected, *bounds[name])]
        indices: IntArray = self._order[selected]
        return indices


class _Column:
    """Values of one key column in a form that compares as its bounds do."""

    def __init__(self, values: pa.ChunkedArray) -> None:
        self._type: pa.DataType = values.type
        self._is_integer = pa.types.is_integer(values.type)
        self.values: np.ndarray[Any, Any] = _comparable(values)

    def taken(self, order: IntArray) -> _Column:
        """Return the column in another order."""
        other = object.__new__(_Column)
        other._type, other._is_integer, other.values = self._type, self._is_integer, self.values[order]
        return other

    def between(self, low: Any, high: Any) -> tuple[int, int]:
        """Return where values within bounds begin and end, of a column in ascending order."""
        if not self._is_integer:  # those are stated as they are
            low, high = _lower(low, self._type), _upper(high, self._type)
        start = 0 if low is None else int(self.values.searchsorted(low, "left"))
        end = len(self.values)
        if high is not None:
            end = int(self.values.searchsorted(high, "left" if pa.types.is_string(self._type) else "right"))
        return start, max(start, end)

    def inside(self, selected: IntArray, low: Any, high: Any) -> np.ndarray[Any, Any]:
        """Return of each selected value whether it is within bounds."""
        values = self.values[selected]
        low, high = _lower(low, self._type), _upper(high, self._type)
        mask: np.ndarray[Any, Any] = np.ones(len(values), dtype=bool)
        if low is not None:
            mask &= values >= low
        if high is not None:
            mask &= (values < high) if pa.types.is_string(self._type) else (values <= high)
        return mask


def _is_bounded(values: pa.ChunkedArray) -> bool:
    """Return whether bounds narrow a column: doubles have NaN and two zeros, and of bytes no bounds are stated."""
    kind = values.type
    types = pa.types
    bounded = types.is_integer(kind) or types.is_date32(kind) or types.is_string(kind)
    bounded = bounded or types.is_decimal128(kind) or (types.is_timestamp(kind) and kind.unit == "us")
    return bounded and not values.null_count


def _comparable(values: pa.ChunkedArray) -> np.ndarray[Any, Any]:
    kind = values.type
    if pa.types.is_string(kind):
        texts: np.ndarray[Any, Any] = np.empty(len(values), dtype=object)
        texts[:] = values.to_pylist()
        return texts
    if pa.types.is_decimal128(kind):
        numbers: np.ndarray[Any, Any] = values.cast(pa.float64()).to_numpy()
        return numbers
    if pa.types.is_date32(kind):
        values = values.cast(pa.int32())
    numbers = values.cast(pa.int64()).to_numpy()
    return numbers


def _lower(bound: Any, kind: pa.DataType) -> Any:
    """Return a value that is not above any value of a file, None where nothing is known."""
    if bound is None:
        return None
    if pa.types.is_decimal128(kind):
        return None if bound <= -_LARGEST else float(bound) - _slack(bound, kind)
    if pa.types.is_timestamp(kind):
        return _number(bound, kind) - _MILLISECOND
    return _object(bound) if pa.types.is_string(kind) else _number(bound, kind)


def _upper(bound: Any, kind: pa.DataType) -> Any:
    """Return a value that is not below any value of a file; of texts one that is above each of them."""
    if bound is None:
        return None
    if pa.types.is_string(kind):
        following = _after_all_with(bound)
        return None if following is None else _object(following)
    if pa.types.is_decimal128(kind):
        return None if bound >= _LARGEST else float(bound) + _slack(bound, kind)
    return _number(bound, kind) + (_MILLISECOND if pa.types.is_timestamp(kind) else 0)


def _object(text: str) -> Any:
    """Return a text that numpy compares as it is: its own texts end before their last NULs."""
    array = np.empty((), dtype=object)
    array[()] = text
    return array


def _slack(bound: Any, kind: pa.DataType) -> float:
    return float(abs(float(bound)) * _ROUNDING + 10.0**-kind.scale)


def _number(bound: Any, kind: pa.DataType) -> int:
    if isinstance(bound, int):  # Arrow's scalars are slow, and a table may have thousands of files
        return bound
    scalar = pa.scalar(bound, kind)
    number: int = (scalar.cast(pa.int32()) if pa.types.is_date32(kind) else scalar.cast(pa.int64())).as_py()
    return number


def _after_all_with(text: str) -> str | None:
    """Return the text after all that begin with this one: a bound may be the beginning of a longer value."""
    while text:
        last = ord(text[-1])
        if last < 0x10FFFF:
            return text[:-1] + chr(last + 1)
        text = text[:-1]
    return None
