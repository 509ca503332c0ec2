# SPDX-License-Identifier: Apache-2.0
"""Convert Canal's lists of columns to images and descriptions (docs/wire/canal.md 1.1, 4.3, 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.canal import columns as canal_columns
from airflow_provider_cdc.core.formats.canal.column_lists import AS_BYTES, KEY, ColumnInfo, ListReader, Lists
from airflow_provider_cdc.core.formats.common.interning import Interner
from airflow_provider_cdc.core.formats.common.json_writer import object_texts


@dataclass(slots=True)
class Rows:
    """Images and descriptions of rows.

    :param before: the image, null where there is none; ``after`` is the image after the change.
    :param columns: number of the ``columns`` text.
    :param malformed: whether a column comes twice, or without a name.
    :param partial_json: whether a JSON column comes as a change to its former value.
    :param unreadable: whether a column message cannot be read.
    """

    before: pa.StringArray
    after: pa.StringArray
    columns: IntArray
    malformed: BoolArray
    partial_json: BoolArray
    unreadable: BoolArray


class _Layout(NamedTuple):
    """Description that all rows with the same columns share.

    :param before: columns of the image before; ``after`` of the image after.
    :param columns: number of the ``columns`` text; None if malformed.
    """

    before: tuple[ColumnInfo, ...]
    after: tuple[ColumnInfo, ...]
    columns: int | None


class RowReader:
    """Read rows and remember the layouts of all rows seen."""

    def __init__(self) -> None:
        self._texts = Interner[str]()
        self.texts = self._texts.values
        self._lists = ListReader()
        self._layouts: dict[tuple[int, int], _Layout] = {}

    def read(self, rows: pa.StructArray, tables: IntArray) -> Rows:
        """Return images and descriptions of RowData messages.

        :param tables: per row a number of its table.
        """
        # the images before, and behind them those after
        sides = [rows.field("beforeColumns"), rows.field("afterColumns")]
        with self._lists.room() as room:
            try:
                return self._rows(len(rows), self._lists.read(sides, np.concatenate([tables, tables]), room))
            except pa.ArrowInvalid:
                room.used = 0
                return self._rows(len(rows), self._lists.read(sides, None, room))

    def _rows(self, count: int, lists: Lists) -> Rows:
        layouts, which = self._find(lists.infos[:count], lists.infos[count:])
        infos = [column for layout in layouts for side in (layout.before, layout.after) for column in side]
        sizes = np.array([(len(layout.before), len(layout.after)) for layout in layouts], np.int64).reshape(-1, 2)
        starts = (np.cumsum(sizes) - sizes.ravel()).reshape(-1, 2)[which]
        members = np.arange(len(lists.nulls)) + np.repeat(starts.T.ravel() - lists.offsets[:-1], lists.sizes)
        names = [column.name for column in infos]
        images = object_texts(lists.sizes, names, members, lists.room, lists.bounds, lists.nulls)
        there, partial = lists.sizes > 0, _partial_json(lists, infos, members)
        return Rows(
            images[:count],
            images[count:],
            np.array([layout.columns or 0 for layout in layouts], np.int64)[which],
            np.array([layout.columns is None for layout in layouts], bool)[which],
            partial[count:] & there[:count],
            lists.unreadable[:count] | lists.unreadable[count:],
        )

    def _find(self, before: IntArray, after: IntArray) -> tuple[list[_Layout], IntArray]:
        """Return the distinct layouts and which of them each row has.

        :param before: numbers of the descriptions of the columns; ``after`` of the images after.
        """
        known = self._lists.infos
        distinct = pa.array(before * len(known) + after).dictionary_encode()
        layouts = []
        for number in distinct.dictionary.to_pylist():
            mark = divmod(number, len(known))
            layout = self._layouts.get(mark)
            if layout is None:
                layout = self._layouts[mark] = self._layout(known[mark[0]], known[mark[1]])
            layouts.append(layout)
        return layouts, distinct.indices.to_numpy()

    def _layout(self, before: tuple[ColumnInfo, ...], after: tuple[ColumnInfo, ...]) -> _Layout:
        old, new = tuple(column.name for column in before), tuple(column.name for column in after)
        columns = [*after, *(column for column in before if column.name not in new)]
        columns.sort(key=lambda column: column.ordinal)
        if not columns or any(len(set(names) - {""}) != len(names) for names in (old, new)):
            return _Layout(before, after, None)
        key = [column.name for column in columns if column.flags & KEY]
        complete = all(column.ordinal == ordinal for side in (before, after) for ordinal, column in enumerate(side))
        if before and after:
            complete = complete and old == new
        elif before:
            complete = complete and len(key) < len(before)  # MINIMAL deletes by key alone (docs/wire/canal.md 4.3)
        details = [canal_columns.ColumnDetail(c.name, c.type or None, bool(c.flags & AS_BYTES)) for c in columns]
        # row images MINIMAL and NOBLOB leave columns out; at the table's end no gap shows it
        text = canal_columns.columns_text(
            details, key if complete or key else None, complete=complete, open_end=complete
        )
        return _Layout(before, after, self._texts.id_of(text))


def _partial_json(lists: Lists, infos: list[ColumnInfo], members: IntArray) -> BoolArray:
    """Return which images have an expression in place of JSON (docs/wire/canal.md 4.4, 6.9)."""
    has_expression: BoolArray = np.zeros(len(lists.infos), bool)
    is_json: BoolArray = np.array([canal_columns.is_json(column.type) for column in infos], bool)
    if is_json.any():
        members_of_json: IntArray = np.flatnonzero(is_json[members])
        expressions: IntArray = members_of_json[lists.beginning(b"JSON_", members_of_json)]
        has_expression[np.searchsorted(lists.offsets, expressions, "right") - 1] = True
    return has_expression
