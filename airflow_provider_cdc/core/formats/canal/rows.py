"""Canal's lists of columns to images and descriptions (docs/wire/canal.md 1.1, 4.3, 4.4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.formats.canal import columns as canal_columns
from airflow_provider_cdc.core.formats.canal.lists import AS_BYTES, KEY, ListReader, Lists, Told
from airflow_provider_cdc.core.formats.canal.packets import Flags, Numbers
from airflow_provider_cdc.core.formats.json_texts import object_texts


@dataclass(slots=True)
class Rows:
    """What rows carry.

    :param before: the image, null where there is none; likewise ``after``.
    :param columns: number of the ``columns`` text.
    :param malformed: whether a column comes twice, or without a name.
    :param partial_json: whether a JSON column comes as a change to its former value.
    :param unreadable: whether a column is no message.
    """

    before: pa.StringArray
    after: pa.StringArray
    columns: Numbers
    malformed: Flags
    partial_json: Flags
    unreadable: Flags


class _Layout(NamedTuple):
    """What all rows with the same columns share.

    :param before: what is told of the columns; likewise ``after``.
    :param columns: number of the ``columns`` text; None if malformed.
    """

    before: tuple[Told, ...]
    after: tuple[Told, ...]
    columns: int | None


class RowReader:
    """Reads rows; remembers the texts of all layouts seen."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[str, int] = {}
        self._lists = ListReader()
        self._layouts: dict[tuple[int, int], _Layout] = {}

    def read(self, rows: pa.StructArray, tables: Numbers) -> Rows:
        """Return what RowData messages carry.

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
        layouts, which = self._find(lists.told[:count], lists.told[count:])
        told = [column for layout in layouts for side in (layout.before, layout.after) for column in side]
        sizes = np.array([(len(layout.before), len(layout.after)) for layout in layouts], np.int64).reshape(-1, 2)
        starts = (np.cumsum(sizes) - sizes.ravel()).reshape(-1, 2)[which]
        members = np.arange(len(lists.nulls)) + np.repeat(starts.T.ravel() - lists.offsets[:-1], lists.sizes)
        names = [column.name for column in told]
        images = object_texts(lists.sizes, names, members, lists.room, lists.bounds, lists.nulls)
        there, partial = lists.sizes > 0, _partial_json(lists, told, members)
        return Rows(
            images[:count],
            images[count:],
            np.array([layout.columns or 0 for layout in layouts], np.int64)[which],
            np.array([layout.columns is None for layout in layouts], bool)[which],
            partial[count:] & there[:count],
            lists.unreadable[:count] | lists.unreadable[count:],
        )

    def _find(self, before: Numbers, after: Numbers) -> tuple[list[_Layout], Numbers]:
        """Return the distinct layouts and which of them each row has.

        :param before: numbers of what is told of the columns; likewise ``after``.
        """
        known = self._lists.told
        distinct = pa.array(before * len(known) + after).dictionary_encode()
        layouts = []
        for number in distinct.dictionary.to_pylist():
            mark = divmod(number, len(known))
            layout = self._layouts.get(mark)
            if layout is None:
                layout = self._layouts[mark] = self._layout(known[mark[0]], known[mark[1]])
            layouts.append(layout)
        return layouts, distinct.indices.to_numpy()

    def _layout(self, before: tuple[Told, ...], after: tuple[Told, ...]) -> _Layout:
        old, new = tuple(column.name for column in before), tuple(column.name for column in after)
        columns = [*after, *(column for column in before if column.name not in new)]
        columns.sort(key=lambda column: column.place)
        if not columns or any(len(set(names) - {""}) != len(names) for names in (old, new)):
            return _Layout(before, after, None)
        key = [column.name for column in columns if column.flags & KEY]
        complete = all(column.place == place for side in (before, after) for place, column in enumerate(side))
        if before and after:
            complete = complete and old == new
        elif before:
            complete = complete and len(key) < len(before)  # MINIMAL deletes by key alone (docs/wire/canal.md 4.3)
        details = [canal_columns.ColumnDetail(c.name, c.type or None, bool(c.flags & AS_BYTES)) for c in columns]
        # row images MINIMAL and NOBLOB leave columns out; at the table's end no gap shows it
        text = canal_columns.columns_text(
            details, key if complete or key else None, complete=complete, open_end=complete
        )
        number = self._numbers.setdefault(text, len(self.texts))
        if number == len(self.texts):
            self.texts.append(text)
        return _Layout(before, after, number)


def _partial_json(lists: Lists, told: list[Told], members: Numbers) -> Flags:
    """Return which images have an expression in place of JSON (docs/wire/canal.md 4.4, 6.9)."""
    found: Flags = np.zeros(len(lists.told), bool)
    is_json: Flags = np.array([canal_columns.is_json(column.type) for column in told], bool)
    if is_json.any():
        places: Numbers = np.flatnonzero(is_json[members])
        chosen: Numbers = places[lists.beginning(b"JSON_", places)]
        found[np.searchsorted(lists.offsets, chosen, "right") - 1] = True
    return found
