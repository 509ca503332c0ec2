# SPDX-License-Identifier: Apache-2.0
"""Read row changes of Tencent DTS: the values of each image of each row.

Old and new values, and values that are not carried: docs/wire/tencent-dts.md 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.formats.dts.columns import ColumnTables
from airflow_provider_cdc.core.formats.dts.images import ImageWriter, Problem
from airflow_provider_cdc.core.formats.dts.values import Values
from airflow_provider_cdc.core.formats.generated.dts_pb2 import DataType, DMLType

_SHIFTED = Problem("record.columns_differ", "a row does not have a value for each column that its event names")
_PARTIAL = Problem(
    "record.partial_image", "a row lacks values that it needs: set binlog_row_image = FULL at the source"
)


class Rows:
    """Some rows of DML events.

    :param messages: ``RowChange`` of all rows.
    :param rows: the rows to take, one at least.
    :param ops: ``DMLType`` of each chosen row.
    :param lists: number of each chosen row's list of columns, in ``tables``.
    """

    def __init__(self, messages: pa.StructArray, rows: Any, ops: Any, lists: Any, tables: ColumnTables) -> None:
        self._ops, self._lists, self._tables = ops, lists, tables
        self.problems: dict[int, Problem] = {}  # by place in ``chosen``
        counts: list[Any] = []
        starts: list[Any] = []
        parts: list[pa.StructArray] = []
        for name, without in (("oldColumns", DMLType.INSERT), ("newColumns", DMLType.DELETE)):
            values = messages.field(name)
            offsets = values.offsets.to_numpy()
            begin, end = int(offsets[rows[0]]), int(offsets[rows[-1] + 1])
            starts.append(offsets[rows] + np.int32(sum(len(part) for part in parts) - begin))
            counts.append(offsets[rows + 1] - offsets[rows])
            parts.append(values.values.slice(begin, end - begin))
            self._refuse(np.flatnonzero(counts[-1] != np.where(ops == without, 0, tables.count[lists])), _SHIFTED)
        self._values = Values(parts)
        whole: Any = np.ones(len(rows), bool)
        whole[list(self.problems)] = False
        self._first_old = starts[0]
        # first all images before the rows' changes, then all after
        self._counts: Any = np.where(np.r_[whole, whole], np.concatenate(counts), 0)
        self._images: Any = np.repeat(np.arange(2 * len(rows), dtype=np.int32), self._counts)
        self._ordinals: Any = np.arange(len(self._images), dtype=np.int32)
        self._ordinals -= np.repeat(np.cumsum(self._counts, dtype=np.int32) - self._counts, self._counts)
        self._cells = np.repeat(np.concatenate(starts), self._counts) + self._ordinals
        self._columns = np.repeat(tables.first[np.r_[lists, lists]], self._counts) + self._ordinals

    def images(self, *, utc: bool) -> tuple[pa.Array, pa.Array]:
        """Return the images before and after; those of rows with a problem are not to be used.

        :param utc: whether TIMESTAMP texts are in UTC.
        """
        count = len(self._ops)
        if (self._values.kinds[self._cells] == DataType.NA).any():
            self._fill_up()
            self._leave_out()
        starts = np.r_[0, np.cumsum(self._counts)]
        writer = ImageWriter(self._values, self._cells, starts, self._columns, self._tables, utc=utc)
        images = writer.write()
        for image, problem in writer.problems.items():
            self.problems.setdefault(image % count, problem)
        return images[:count], images[count:]

    def _refuse(self, rows: Any, problem: Problem) -> None:
        for row in rows.tolist():
            self.problems.setdefault(row, problem)

    def _fill_up(self) -> None:
        """Take from the old values what an update's new ones do not carry: it did not change."""
        count = len(self._ops)
        absent = np.flatnonzero((self._values.kinds[self._cells] == DataType.NA) & (self._images >= count))
        rows = self._images[absent] - count
        of_update = self._ops[rows] == DMLType.UPDATE
        absent, rows = absent[of_update], rows[of_update]
        old = self._first_old[rows] + self._ordinals[absent]
        carried = self._values.kinds[old] != DataType.NA
        self._cells[absent[carried]] = old[carried]

    def _leave_out(self) -> None:
        """Leave out values that are not carried, and refuse rows that cannot do without."""
        count = len(self._ops)
        absent = self._values.kinds[self._cells] == DataType.NA
        lacking = np.bincount(self._images[absent], minlength=2 * count) > 0
        in_key = absent & self._tables.in_key[self._columns]
        needed = np.bincount(self._images[in_key], minlength=2 * count) > 0
        # what an insert lacks has its default; any other row is found by what its images have
        needed |= lacking & np.tile(~self._tables.keyed[self._lists] & (self._ops != DMLType.INSERT), 2)
        self._refuse(np.flatnonzero(needed) % count, _PARTIAL)
        self._counts -= np.bincount(self._images[absent], minlength=2 * count)
        self._cells, self._columns = self._cells[~absent], self._columns[~absent]
