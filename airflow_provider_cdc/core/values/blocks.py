# SPDX-License-Identifier: Apache-2.0
"""Convert row images in blocks: vectorized first, then value by value for what the vectorized path rejects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from msgspec import UNSET

from airflow_provider_cdc.core.values.columnar.convert import convert_column
from airflow_provider_cdc.core.values.fields import ConversionError, Field, Reason
from airflow_provider_cdc.core.values.image_structs import RAW, BadImage, gathered, read, structable, token_type
from airflow_provider_cdc.core.values.scalar.convert import convert_value

_SLICE = 256  # rows; a value that the vectorized path rejects sends its whole slice to the scalar path
_REJECTED = (ConversionError, pa.ArrowException, TypeError, ValueError, OverflowError, AttributeError)


class Block:
    """Convert consecutive images to typed columns.

    :param texts: the images.
    :param fields: the columns to read.
    :param start: index of the first image in the batch.
    """

    def __init__(self, texts: list[bytes], fields: Sequence[Field], start: int) -> None:
        self.texts = texts
        self.length = len(texts)
        self.fields = fields
        self.start = start
        self.columns: list[pa.Array] = []
        self.absent: list[pa.Array | None] = []
        self.failures: list[tuple[int, str, Reason]] = []
        self.lossy: Counter[str] = Counter()
        self._raw: dict[int, dict[str, msgspec.Raw] | None] = {}

    def run(self) -> Block:
        """Convert every field, then release the images."""
        fast = _struct_fields(self.fields)
        rows, bad = read(self.texts, tuple((self.fields[i].encoded.name, token_type(self.fields[i])) for i in fast))
        values = dict(zip(fast, gathered(rows, len(fast)), strict=True))
        self.failures = [(self.start + row, "", Reason.IMAGE) for row in bad if self._members(row) is None]
        for i, field in enumerate(self.fields):
            column = _Column(field, self.length)
            if i in values:
                self._convert_vectorized(column, values[i], bad)
            else:
                self._convert_rows(column, range(self.length))
            self.columns.append(column.array())
            self.absent.append(column.mask())
        self.failures.sort(key=lambda failure: failure[0])
        self.texts, self._raw = [], {}
        return self

    def _convert_vectorized(self, column: _Column, values: Sequence[Any], bad: list[int]) -> None:
        try:
            column.parts.append(self._convert(values, column.field))
        except _REJECTED:
            absent = np.fromiter((value is UNSET for value in values), bool, len(values))
            if absent.any():
                absent[bad] = False
                column.add_absent(absent)
                values = [None if value is UNSET else value for value in values]
            self._convert_slices(column, values)
        self._convert_rows(column, bad)

    def _convert(self, values: Sequence[Any], field: Field) -> pa.Array:
        lost: Counter[str] = Counter()
        array = convert_column(values, field, lost)
        if lost:
            self.lossy.update(lost)
        return array

    def _convert_slices(self, column: _Column, values: Sequence[Any]) -> None:
        """Convert again without the absent members, then in slices, then value by value."""
        try:
            column.parts.append(self._convert(values, column.field))
            return
        except _REJECTED:
            pass
        for begin in range(0, len(values), _SLICE):
            part = values[begin : begin + _SLICE]
            try:
                column.parts.append(self._convert(part, column.field))
            except _REJECTED:
                column.parts.append(pa.nulls(len(part), column.field.target))
                self._convert_rows(column, [begin + i for i, value in enumerate(part) if value is not None])

    def _convert_rows(self, column: _Column, rows: Sequence[int]) -> None:
        for row in rows:
            members = self._members(row)
            if members is None:
                continue
            token = members.get(column.field.encoded.name)
            if token is None:
                column.add_absent(row)
                continue
            try:
                column.patches[row] = convert_value(bytes(token), column.field, self.lossy)
            except ConversionError as error:
                self.failures.append((self.start + row, column.field.encoded.name, error.reason))

    def _members(self, row: int) -> dict[str, msgspec.Raw] | None:
        if row not in self._raw:
            try:
                self._raw[row] = RAW.decode(self.texts[row])
            except BadImage:
                self._raw[row] = None
        return self._raw[row]


class _Column:
    """Collect the parts of one column.

    :ivar parts: arrays in row order.
    :ivar patches: row index -> value converted by the scalar path.
    """

    def __init__(self, field: Field, length: int) -> None:
        self.field = field
        self.length = length
        self.parts: list[pa.Array] = []
        self.patches: dict[int, Any] = {}
        self._absent: Any = None  # for each row whether its image lacks the member; None if none does

    def add_absent(self, rows: Any) -> None:
        """Note rows whose images lack the member.

        :param rows: index of a row, or for each row whether it is one.
        """
        if self._absent is None:
            self._absent = np.zeros(self.length, bool)
        self._absent[rows] = True

    def array(self) -> pa.Array:
        if not self.parts:
            self.parts.append(pa.nulls(self.length, self.field.target))
        array = self.parts[0] if len(self.parts) == 1 else pa.concat_arrays(self.parts)
        if not self.patches:
            return array
        patches = {row: value for row, value in self.patches.items() if value is not None}
        if not patches:
            return array
        indices = np.arange(self.length)
        indices[list(patches)] = np.arange(self.length, self.length + len(patches))
        return pa.concat_arrays([array, pa.array(list(patches.values()), self.field.target)]).take(pa.array(indices))

    def mask(self) -> pa.Array | None:
        return None if self._absent is None or not self._absent.any() else pa.array(self._absent)


def _struct_fields(fields: Sequence[Field]) -> list[int]:
    """Return the indexes of fields that a struct can read: their names are valid members and occur once."""
    seen: set[str] = set()
    indexes = []
    for i, field in enumerate(fields):
        name = field.encoded.name
        if name not in seen and structable(name):
            seen.add(name)
            indexes.append(i)
    return indexes
