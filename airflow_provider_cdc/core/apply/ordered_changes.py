# SPDX-License-Identifier: Apache-2.0
"""Hold the changes of one table in source order; their large images stay in the pieces that they were read in."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.source_order import source_order
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.values.image_structs import texts_of, with_members

_IMAGES = ["before", "after"]
STORED_ROW = "stored_row"  # of a change whose images are stored elsewhere: the number of its row there
KEY, RESTORED = "key", "restored"  # see Changes.image
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
    """Hold changes by row index: 0 is the oldest.

    :ivar rows: all but the images, sorted.
    :ivar images: ``before`` and ``after``.
    :ivar distinct: whether each row is known to have a position of its own.
    """

    def __init__(self, table: pa.Table, stored: Mapping[str, StoredPieces] | None = None) -> None:
        """Put row changes (:data:`RESOLVE_COLUMNS`) into source order.

        :param stored: the images, if the table has the columns :data:`STORED_ROW` and :func:`has` instead of them.
        """
        names = _IMAGES if stored is None else [STORED_ROW, *map(has, _IMAGES)]
        rest = table.drop_columns(names)
        self.distinct = ascending(table.column("position"))
        order = None if self.distinct else source_order(rest)
        self._order = order
        self.rows = rest if order is None else rest.take(pa.array(order))
        if stored is None:
            self.images = {name: Images.of(table.column(name), order) for name in _IMAGES}
        else:
            self.images = {name: Images.of_stored(stored[name], table, name, order) for name in _IMAGES}
        self._derived: dict[str, AnyImages] = {}
        self._ops, self._op_names = op_numbers(self.rows.column("op"))

    def are(self, *ops: str, rows: IntArray | None = None) -> BoolArray:
        """Return which rows are of some operations.

        :param rows: row indexes; None for all rows.
        """
        among = np.array([name in ops for name in (*self._op_names, None)])
        flags: BoolArray = among[self._ops if rows is None else self._ops[rows]]
        return flags

    def image(self, name: str) -> AnyImages:
        """Return an image of all rows.

        :param name: ``before``, ``after``, or ``key``: the one that states the key which a change leaves behind or
            takes away, before of a delete and after of any other; or ``restored``: before, with the columns that an
            update does not name there as they are in its image after.
        """
        if name in self.images:
            return self.images[name]
        if name not in self._derived:
            before, after = self.images["before"], self.images["after"]
            self._derived[name] = (
                KeyImages(before, after, self.are("delete"))
                if name == KEY
                else RestoredImages(before, after, self.are("update"))
            )
        return self._derived[name]

    def as_read(self, row_indexes: IntArray) -> IntArray:
        """Return the numbers that some rows had as they were read."""
        return row_indexes if self._order is None else self._order[row_indexes]

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each operation."""
        counted = np.bincount(self._ops, minlength=len(self._op_names)).tolist()
        return {name: count for name, count in zip(self._op_names, counted, strict=True) if count}

    def to_compare(self, row_indexes: IntArray) -> pa.Table:
        """Return some changes with their images, or with digests of images that are stored."""
        compared = self.rows.take(pa.array(row_indexes))
        for name, images in self.images.items():
            compared = compared.append_column(
                name, images.digests(row_indexes) if images.stored else images.at(row_indexes)
            )
        return compared


@dataclass(slots=True)
class Images:
    """Hold one image of all rows.

    :param starts: number of rows before each piece.
    :param order: per row index the number of the row as it was read, None where both are the same.
    :param there: per row index whether the row has the image.
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

    def portions(self, row_indexes: IntArray) -> Iterator[IntArray]:
        """Split row indexes into portions to read and type one after the other; each portion is ascending.

        Stored images are split as they are stored, so that each piece is read about once in whatever order rows are.
        """
        if not self.stored or self.order is None:
            yield row_indexes
            return
        by_row = row_indexes[np.argsort(self.order[row_indexes], kind="stable")]
        count = max(1, int(PORTION_BYTES / max(1.0, self.row_bytes)))
        for start in range(0, len(by_row), count):
            yield np.sort(by_row[start : start + count])

    def digests(self, row_indexes: IntArray) -> pa.Array:
        """Return digests of the images of some rows, in their order."""
        digest_of: dict[int, bytes] = {}
        for portion in self.portions(row_indexes[self.there[row_indexes]]):
            for row_index, image in zip(portion.tolist(), self.at(portion), strict=True):
                digest_of[row_index] = hashlib.blake2b(image.as_buffer(), digest_size=16).digest()
        return pa.array(map(digest_of.get, row_indexes.tolist()), pa.binary())

    def at(self, row_indexes: IntArray) -> pa.Array:
        """Return the images of some rows, in their order."""
        rows = row_indexes if self.order is None else self.order[row_indexes]
        if len(self.starts) == 1:
            return _images_of(self.pieces[0], rows)
        piece_of = np.searchsorted(self.starts, rows, "right") - 1
        parts, gathered = [], []
        for piece in np.flatnonzero(np.bincount(piece_of)).tolist():  # np.unique hashes each row: far slower
            mine = np.flatnonzero(piece_of == piece)
            parts.append(_images_of(self.pieces[piece], rows[mine] - self.starts[piece]))
            gathered.append(mine)
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return pa.array([], pa.string())
        return pa.concat_arrays(parts).take(pa.array(np.argsort(np.concatenate(gathered))))


def _images_of(images: pa.Array, numbers: IntArray) -> pa.Array:
    """Return images by number, without a copy where they stand next to each other, as rows of a snapshot do."""
    if len(numbers) and (np.diff(numbers) == 1).all():
        return images.slice(numbers[0], len(numbers))
    return images.take(pa.array(numbers))


@dataclass(slots=True)
class _BothImages:
    """Hold both images of all rows."""

    before: Images
    after: Images

    def portions(self, row_indexes: IntArray) -> Iterator[IntArray]:
        """Split row indexes as the larger of both images is: where most rows are deletes, few have one after."""
        return max(self.before, self.after, key=lambda images: images.row_bytes).portions(row_indexes)


@dataclass(slots=True)
class KeyImages(_BothImages):
    """Choose one of two images of all rows.

    :param deleting: per row index whether it is a delete.
    """

    deleting: BoolArray

    @property
    def there(self) -> BoolArray:
        """Per row index whether the row has the image."""
        return np.where(self.deleting, self.before.there, self.after.there)

    @property
    def row_bytes(self) -> float:
        """Mean bytes of a row's image."""
        return max(self.before.row_bytes, self.after.row_bytes)

    def at(self, row_indexes: IntArray) -> pa.Array:
        """Return the images of some rows, in their order."""
        deleting = self.deleting[row_indexes]
        if not deleting.any():
            return self.after.at(row_indexes)
        if not self.before.stored:  # most rows stand next to each other, and neither image is copied before this
            return pc.if_else(pa.array(deleting), self.before.at(row_indexes), self.after.at(row_indexes))
        parts = [self.before.at(row_indexes[deleting]), self.after.at(row_indexes[~deleting])]
        gathered = np.concatenate([np.flatnonzero(deleting), np.flatnonzero(~deleting)])
        return pa.concat_arrays(parts).take(pa.array(np.argsort(gathered)))


@dataclass(slots=True)
class RestoredImages(_BothImages):
    """Restore the images before of updates that name only the columns that they changed.

    :param updates: per row index whether it is an update.
    """

    updates: BoolArray

    @property
    def there(self) -> BoolArray:
        """Per row index whether the row has the image."""
        return self.before.there

    @property
    def row_bytes(self) -> float:
        """Mean bytes of a row's image, at most."""
        return self.before.row_bytes + self.after.row_bytes

    def at(self, row_indexes: IntArray) -> pa.Array:
        """Return the images of some rows that have one, in their order."""
        before, updating = self.before.at(row_indexes), np.flatnonzero(self.updates[row_indexes])
        if not len(updating):
            return before
        changed, after = before.take(pa.array(updating)), self.after.at(row_indexes[updating])
        texts = texts_of(before)
        for row, image, changes in zip(updating.tolist(), texts_of(after), texts_of(changed), strict=True):
            texts[row] = with_members(image, changes)
        return pa.array(texts, pa.binary()).cast(before.type)


AnyImages = Images | KeyImages | RestoredImages


@dataclass(slots=True)
class Picked:
    """The images of some rows, gathered a stretch at a time."""

    images: AnyImages
    row_indexes: IntArray

    def __len__(self) -> int:
        return len(self.row_indexes)

    @property
    def nbytes(self) -> int:
        """Bytes of all of them, as if all rows' images were equally long."""
        return int(self.images.row_bytes * len(self.row_indexes))

    def slice(self, start: int, length: int) -> pa.Array:
        """Return a stretch of them."""
        return self.images.at(self.row_indexes[start : start + length])


def op_numbers(ops: pa.ChunkedArray) -> tuple[np.ndarray[tuple[int], np.dtype[np.int8]], list[str]]:
    """Return the number of each row's operation, and the operations by number."""
    if not pa.types.is_dictionary(ops.type):
        ops = ops.dictionary_encode()
    chunks = ops.unify_dictionaries().chunks
    numbers = [chunk.indices.to_numpy().astype(np.int8) for chunk in chunks]
    return np.concatenate([np.zeros(0, np.int8), *numbers]), chunks[0].dictionary.to_pylist() if chunks else []


def ascending(position: pa.ChunkedArray) -> bool:
    """Return whether positions rise strictly, as the rows of one partition do."""
    if position.null_count:
        return False
    count = len(position)
    return count < 2 or bool(pc.all(pc.less(position.slice(0, count - 1), position.slice(1))).as_py())
