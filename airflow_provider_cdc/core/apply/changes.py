"""The changes of one table in source order; their images, which are large, stay in the pieces they were read in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.rows import Places

_IMAGES = ["before", "after"]


class Changes:
    """Changes by place: 0 is the oldest.

    :ivar rows: all but the images, sorted.
    :ivar images: ``before`` and ``after``.
    """

    def __init__(self, table: pa.Table) -> None:
        """Put row changes (:data:`RESOLVE_COLUMNS`) into source order."""
        rest = table.drop_columns(_IMAGES)
        order = None if ascending(table.column("position")) else _order(rest)
        self.rows = rest if order is None else rest.take(pa.array(order))
        self.images = {name: Images.of(table.column(name), order) for name in _IMAGES}

    def whole(self, places: Places) -> pa.Table:
        """Return some changes with their images."""
        found = self.rows.take(pa.array(places))
        for name, images in self.images.items():
            found = found.append_column(name, images.at(places))
        return found


@dataclass(slots=True)
class Images:
    """One image of all rows.

    :param starts: number of rows before each piece.
    :param order: per place the number of the row as it was read, None where that is the same.
    :param there: per place whether the row has the image.
    """

    pieces: list[pa.Array]
    starts: Places
    order: Places | None
    there: np.ndarray[tuple[int], np.dtype[np.bool_]]

    @staticmethod
    def of(column: pa.ChunkedArray, order: Places | None) -> Images:
        """Take a column as it was read."""
        starts = np.cumsum([0, *map(len, column.chunks)], dtype=np.int64)[:-1]
        there = column.is_valid().to_numpy()
        return Images(column.chunks, starts, order, there if order is None else there[order])

    def at(self, places: Places) -> pa.Array:
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
    places: Places

    def __len__(self) -> int:
        return len(self.places)

    @property
    def nbytes(self) -> int:
        """Bytes of all of them, as if all rows' images were equally long."""
        every: int = sum(piece.nbytes for piece in self.images.pieces)
        return every * len(self.places) // max(1, len(self.images.there))

    def slice(self, start: int, length: int) -> pa.Array:
        """Return a stretch of them."""
        return self.images.at(self.places[start : start + length])


def ascending(position: pa.ChunkedArray) -> bool:
    """Return whether positions rise strictly, as the rows of one partition do."""
    if position.null_count:
        return False
    count = len(position)
    return count < 2 or bool(pc.all(pc.less(position.slice(0, count - 1), position.slice(1))).as_py())


def _order(rows: pa.Table) -> Places:
    # where one position both vacates and fills a key (a moved key), filling wins
    fills = pc.not_equal(rows.column("op").cast(pa.string()), "delete").cast(pa.int8())
    keys = pa.table(
        {
            "position": rows.column("position"),
            "fills": fills,
            **{name: rows.column(name) for name in ("partition", "offset", "index")},
        }
    )
    order: Places = pc.sort_indices(keys, sort_keys=[(name, "ascending") for name in keys.column_names]).to_numpy()
    return order.astype(np.int64)
