# SPDX-License-Identifier: Apache-2.0
"""The changes of one table in source order; their images, which are large, stay in the pieces they were read in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import IntArray

_IMAGES = ["before", "after"]
STORED_ROW = "stored_row"  # of a change whose images are stored elsewhere: the number of its row there
PORTION_BYTES = 32 << 20  # of stored images read and typed at a time


def has(image: str) -> str:
    """Return the name of the column that says whether a change with stored images has this one."""
    return f"has_{image}"


class StoredPieces(Protocol):
    """One image of many rows, stored in pieces that are read when they are wanted."""

    @property
    def lengths(self) -> IntArray:
        """Rows of each piece."""

    @property
    def nbytes(self) -> int:
        """Bytes of all images."""

    def __getitem__(self, piece: int, /) -> pa.Array:
        """Read a piece."""


class Changes:
    """Changes by place: 0 is the oldest.

    :ivar rows: all but the images, sorted.
    :ivar images: ``before`` and ``after``.
    """

    def __init__(self, table: pa.Table, stored: Mapping[str, StoredPieces] | None = None) -> None:
        """Put row changes (:data:`RESOLVE_COLUMNS`) into source order.

        :param stored: the images, if the table has :data:`STORED_ROW` and :func:`has` in their place.
        """
        names = _IMAGES if stored is None else [STORED_ROW, *map(has, _IMAGES)]
        rest = table.drop_columns(names)
        order = None if ascending(table.column("position")) else _order(rest)
        self.rows = rest if order is None else rest.take(pa.array(order))
        if stored is None:
            self.images = {name: Images.of(table.column(name), order) for name in _IMAGES}
        else:
            self.images = {name: Images.of_stored(stored[name], table, name, order) for name in _IMAGES}

    def to_compare(self, places: IntArray) -> pa.Table:
        """Return some changes with their images, or with digests of images that are stored."""
        found = self.rows.take(pa.array(places))
        for name, images in self.images.items():
            found = found.append_column(name, images.digests(places) if images.stored else images.at(places))
        return found


@dataclass(slots=True)
class Images:
    """One image of all rows.

    :param starts: number of rows before each piece.
    :param order: per place the number of the row as it was read, None where that is the same.
    :param there: per place whether the row has the image.
    :param row_bytes: mean bytes of a row's image.
    :param stored: whether the pieces are read again each time.
    """

    pieces: list[pa.Array] | StoredPieces
    starts: IntArray
    order: IntArray | None
    there: np.ndarray[tuple[int], np.dtype[np.bool_]]
    row_bytes: float
    stored: bool = False

    @staticmethod
    def of(column: pa.ChunkedArray, order: IntArray | None) -> Images:
        """Take a column as it was read."""
        starts = np.cumsum([0, *map(len, column.chunks)], dtype=np.int64)[:-1]
        there = column.is_valid().to_numpy()
        row_bytes = sum(piece.nbytes for piece in column.chunks) / max(1, len(column))
        return Images(column.chunks, starts, order, there if order is None else there[order], row_bytes)

    @staticmethod
    def of_stored(pieces: StoredPieces, table: pa.Table, name: str, order: IntArray | None) -> Images:
        """Take images that are stored, of the rows in a table."""
        starts = np.cumsum([0, *pieces.lengths], dtype=np.int64)[:-1]
        rows: IntArray = table.column(STORED_ROW).to_numpy()
        there = table.column(has(name)).to_numpy()
        row_bytes = pieces.nbytes / max(1, int(sum(pieces.lengths)))
        if order is not None:
            rows, there = rows[order], there[order]
        return Images(pieces, starts, rows, there, row_bytes, stored=True)

    def portions(self, places: IntArray) -> Iterator[IntArray]:
        """Split places into portions to read and type one after the other; each is ascending.

        Stored images are split as they are stored, so that each piece is read about once whatever the order of places.
        """
        if not self.stored or self.order is None:
            yield places
            return
        by_row = places[np.argsort(self.order[places], kind="stable")]
        count = max(1, int(PORTION_BYTES / max(1.0, self.row_bytes)))
        for start in range(0, len(by_row), count):
            yield np.sort(by_row[start : start + count])

    def digests(self, places: IntArray) -> pa.Array:
        """Return digests of the images of some rows, in their order."""
        digest_of: dict[int, bytes] = {}
        for portion in self.portions(places[self.there[places]]):
            for place, image in zip(portion.tolist(), self.at(portion), strict=True):
                digest_of[place] = hashlib.blake2b(image.as_buffer(), digest_size=16).digest()
        return pa.array(map(digest_of.get, places.tolist()), pa.binary())

    def at(self, places: IntArray) -> pa.Array:
        """Return the images of some rows, in their order."""
        rows = places if self.order is None else self.order[places]
        piece_of = np.searchsorted(self.starts, rows, "right") - 1
        parts, gathered = [], []
        for piece in np.unique(piece_of).tolist():
            mine = np.flatnonzero(piece_of == piece)
            parts.append(self.pieces[piece].take(pa.array(rows[mine] - self.starts[piece])))
            gathered.append(mine)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return pa.array([], pa.string())
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(gathered))))


@dataclass(slots=True)
class Picked:
    """The images of some rows, gathered a stretch at a time."""

    images: Images
    places: IntArray

    def __len__(self) -> int:
        return len(self.places)

    @property
    def nbytes(self) -> int:
        """Bytes of all of them, as if all rows' images were equally long."""
        return int(self.images.row_bytes * len(self.places))

    def slice(self, start: int, length: int) -> pa.Array:
        """Return a stretch of them."""
        return self.images.at(self.places[start : start + length])


def ascending(position: pa.ChunkedArray) -> bool:
    """Return whether positions rise strictly, as the rows of one partition do."""
    if position.null_count:
        return False
    count = len(position)
    return count < 2 or bool(pc.all(pc.less(position.slice(0, count - 1), position.slice(1))).as_py())


def _order(rows: pa.Table) -> IntArray:
    # where one position both vacates and fills a key (a moved key), filling wins
    fills = pc.not_equal(rows.column("op").cast(pa.string()), "delete").cast(pa.int8())
    keys = pa.table(
        {
            "position": rows.column("position"),
            "fills": fills,
            **{name: rows.column(name) for name in ("partition", "offset", "index")},
        }
    )
    order: IntArray = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names]).to_numpy()
    return order.astype(np.int64)
