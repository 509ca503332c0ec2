"""Canal's lists of columns to images and descriptions (specs/canal.md, 1.1, 4.3 and 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats import canal_columns
from airflow_provider_cdc.core.formats.canal_packets import Flags, Numbers
from airflow_provider_cdc.core.formats.json_texts import object_texts, text_offsets, with_escaped

_NULL = pa.array(["null"])
_KEY, _AS_BYTES = 1, 2  # what is told of a column beside name and type


@dataclass(slots=True)
class Rows:
    """What rows carry.

    :param before: the image, null where there is none; likewise ``after``.
    :param columns: number of the ``columns`` text.
    :param malformed: whether a column comes twice, or without a name.
    :param partial_json: whether a JSON column comes as a change to its former value.
    """

    before: pa.StringArray
    after: pa.StringArray
    columns: Numbers
    malformed: Flags
    partial_json: Flags


class _Column(NamedTuple):
    place: int
    name: str
    type: str
    flags: int


class _Layout(NamedTuple):
    """What all rows with the same columns share.

    :param before: names of the columns; likewise ``after``.
    :param columns: number of the ``columns`` text; None if malformed.
    """

    before: tuple[str, ...]
    after: tuple[str, ...]
    columns: int | None


class RowReader:
    """Reads rows; remembers the texts of all layouts seen."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._layouts: dict[Any, _Layout] = {}

    def read(self, rows: pa.StructArray) -> Rows:
        """Return what RowData messages carry."""
        before, after = _Side(rows.field("beforeColumns")), _Side(rows.field("afterColumns"))
        layouts, which = self._find(before, after)
        names = [name for layout in layouts for side in (layout.before, layout.after) for name in side]
        sizes = np.array([(len(layout.before), len(layout.after)) for layout in layouts], np.int64).reshape(-1, 2)
        starts = (np.cumsum(sizes) - sizes.ravel()).reshape(-1, 2)[which]
        return Rows(
            before.images(names, starts[:, 0]),
            after.images(names, starts[:, 1]),
            np.array([layout.columns or 0 for layout in layouts], np.int64)[which],
            np.array([layout.columns is None for layout in layouts], bool)[which],
            after.partial_json() & (before.sizes > 0),
        )

    def _find(self, before: _Side, after: _Side) -> tuple[list[_Layout], Numbers]:
        """Return the distinct layouts and which of them each row has."""
        parts = [*before.signature(), *after.signature()]
        codes: Numbers = np.zeros(len(before.sizes), np.int64)
        for part in parts:
            distinct = part.dictionary_encode()
            codes = codes * len(distinct.dictionary) + distinct.indices.to_numpy()
            # numbered anew each time, so that they stay small
            codes = pa.array(codes).dictionary_encode().indices.to_numpy().astype(np.int64)
        examples = np.unique(codes, return_index=True)[1]
        layouts = []
        for row in examples.tolist():
            mark = tuple(part[row].as_py() for part in parts)
            layout = self._layouts.get(mark)
            if layout is None:
                layout = self._layouts[mark] = self._layout(before.columns(row), after.columns(row))
            layouts.append(layout)
        return layouts, codes

    def _layout(self, before: list[_Column], after: list[_Column]) -> _Layout:
        old, new = tuple(column.name for column in before), tuple(column.name for column in after)
        columns = [*after, *(column for column in before if column.name not in new)]
        columns.sort(key=lambda column: column.place)
        if not columns or any(len(set(names) - {""}) != len(names) for names in (old, new)):
            return _Layout(old, new, None)
        key = [column.name for column in columns if column.flags & _KEY]
        complete = all(column.place == place for side in (before, after) for place, column in enumerate(side))
        if before and after:
            complete = complete and old == new
        elif before:
            complete = complete and len(key) < len(before)  # row image MINIMAL deletes by key alone (4.3)
        details = [canal_columns.ColumnDetail(c.name, c.type or None, bool(c.flags & _AS_BYTES)) for c in columns]
        # row images MINIMAL and NOBLOB leave columns of updates and deletes out; at the table's end no gap shows it
        open_end = complete and bool(before)
        text = canal_columns.columns_text(
            details, key if complete or key else None, complete=complete, open_end=open_end
        )
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return _Layout(old, new, number)


class _Side:
    """The images of all rows before, or those after."""

    def __init__(self, lists: pa.ListArray) -> None:
        offsets = lists.offsets.to_numpy()
        self._offsets = offsets - offsets[0]
        self._columns = lists.flatten()
        self._names = self._columns.field("name")
        self._types = self._columns.field("mysqlType")
        self.sizes = np.diff(self._offsets)
        self.values = self._columns.field("value")
        self._flags = self._columns.field("isKey").to_numpy(zero_copy_only=False) * _KEY
        sql_types = self._columns.field("sqlType").to_numpy()
        as_bytes = np.logical_or.reduce([sql_types == number for number in canal_columns.BYTES])
        self._flags[self._json(as_bytes)] |= _AS_BYTES

    def _json(self, chosen: Flags) -> Numbers:
        """Return the places of those of some columns that are JSON."""
        places = np.flatnonzero(chosen)
        if len(places):
            types = pc.utf8_lower(self._types.take(pa.array(places)))
            places = places[pc.equal(types, "json").to_numpy(zero_copy_only=False)]
        return places

    def signature(self) -> list[pa.BinaryArray]:
        """Return per row what tells its columns from others: bytes of their names, of their types, and all numbers."""
        lengths = [np.diff(text_offsets(texts)) for texts in (self._names, self._types)]
        numbers = np.stack([*lengths, self._columns.field("index").to_numpy(), self._flags], axis=1, dtype=np.int32)
        ends = [text_offsets(self._names)[self._offsets], text_offsets(self._types)[self._offsets]]
        data = [self._names.buffers()[2], self._types.buffers()[2], pa.py_buffer(numbers)]
        return list(map(_slices, [*ends, self._offsets * numbers.itemsize * numbers.shape[1]], data))

    def columns(self, row: int) -> list[_Column]:
        """Return the columns of one row."""
        start, size = int(self._offsets[row]), int(self.sizes[row])
        part = self._columns.slice(start, size)
        lists = [part.field(name).to_pylist() for name in ("index", "name", "mysqlType")]
        return list(map(_Column, *lists, self._flags[start : start + size].tolist()))

    def images(self, names: list[str], first: Numbers) -> pa.StringArray:
        """Return the images, null where there is none.

        :param first: per row the place of its first name in ``names``.
        """
        texts, places = with_escaped(self.values)
        nulls = pc.fill_null(self._columns.field("isNull"), False).to_numpy(zero_copy_only=False)
        name_places = np.arange(len(places)) + np.repeat(first - self._offsets[:-1], self.sizes)
        return object_texts(self.sizes, names, name_places, [_NULL, *texts], np.where(nulls, 0, places + 1), nulls)

    def partial_json(self) -> Flags:
        """Return which rows have a JSON column whose text is no JSON but an expression (4.4, gotcha 9)."""
        found: Flags = np.zeros(len(self.sizes), bool)
        starting = pc.starts_with(self.values, "JSON_")
        if pc.any(starting).as_py():
            places = self._json(starting.to_numpy(zero_copy_only=False))
            found[np.searchsorted(self._offsets, places, "right") - 1] = True
        return found


def _slices(ends: Numbers, data: pa.Buffer | None) -> pa.BinaryArray:
    """Return stretches of bytes, without a copy."""
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), data or pa.py_buffer(b"")]
    return pa.BinaryArray.from_buffers(pa.binary(), len(ends) - 1, buffers)
