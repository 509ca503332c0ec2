# SPDX-License-Identifier: Apache-2.0
"""Data files of a Delta table, written a piece at a time.

delta-rs gathers 8 192 rows before it writes any and holds them up to four times, however large they are: 960 MB in rows
of 8 MB took 3.8 GB (deltalake 1.6.6), from a stream of batches too.
"""

from __future__ import annotations

import time
import uuid
from datetime import date, datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from spark_jobs.lake.storage import Storage

PIECE_BYTES = 32 << 20  # of rows in memory: a row group
_FILE_BYTES = 256 << 20  # of rows in memory: a file
_FULL_BYTES = 64 << 20  # of rows in memory: smaller files of neighbouring keys are written as one
_DICTIONARY_ROWS = 1_000  # of fewer rows a file without dictionaries is smaller, and takes a quarter less to write
_STATISTICS_COLUMNS = 32  # Delta's default
_STATISTICS_LENGTH = 32  # characters: readers expect longer texts to be cut, with care for the greatest
_STATISTICS = msgspec.json.Encoder(decimal_format="number")  # delta-rs itself states decimals of 2^63 and more as less


class DataFiles:
    """Writes rows into new files of a table; no reader sees them before a commit names them.

    :param storage: folder of the table.
    :ivar schema: of the rows.
    """

    def __init__(self, storage: Storage, schema: pa.Schema) -> None:
        self._storage, self.schema = storage, schema
        self._names: list[str] = []
        self._file: pq.ParquetWriter | None = None
        self._stream: pa.NativeFile | None = None
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._added: list[AddAction] = []
        self._begin()

    def _begin(self) -> None:
        self._size, self._rows = 0, 0
        self._nulls: dict[str, int] = {}
        self._bounds: dict[str, list[tuple[Any, Any] | None]] = {}

    def add(self, rows: pa.Table) -> None:
        """Take rows; pieces that are too small for a row group wait for others."""
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= PIECE_BYTES:
            self._write()
        if self._size >= _FILE_BYTES:
            self._end_file()

    def end_full_file(self) -> None:
        """End the file if it is large already: what follows lies elsewhere by its key."""
        self._write()
        if self._size >= _FULL_BYTES:
            self._end_file()

    def close(self) -> list[AddAction]:
        """Write what is left; return what a commit has to say of the files."""
        self._write(last=True)
        self._end_file()
        return self._added

    def discard(self) -> None:
        """Remove the files: nothing was committed."""
        if self._file is not None and self._stream is not None:
            self._file.close()
            self._stream.close()
        for name in self._names:
            self._storage.filesystem.delete_file(self._storage.path(name))

    def _write(self, *, last: bool = False) -> None:
        """Write what is held as a row group; it is the file's last one, or more may follow."""
        held, size, self._held, self._held_bytes = self._held, self._held_bytes, [], 0
        if not any(piece.num_rows for piece in held):
            return
        rows = held[0] if len(held) == 1 else pa.concat_tables(held)
        if self._file is None:
            self._storage.make_folder("")
            self._names.append(f"part-{len(self._names):05d}-{uuid.uuid4()}-c000.snappy.parquet")
            self._stream = self._storage.open_new(self._names[-1])
            self._file = pq.ParquetWriter(
                self._stream,
                self.schema,
                compression="snappy",
                use_dictionary=not last or rows.num_rows >= _DICTIONARY_ROWS,
                store_schema=False,
            )
        self._file.write_table(rows, row_group_size=rows.num_rows)
        self._size += size
        self._rows += rows.num_rows
        for name in rows.column_names[:_STATISTICS_COLUMNS]:
            self._note(name, rows.column(name))

    def _note(self, name: str, values: pa.ChunkedArray) -> None:
        """Add a column's values to the file's statistics."""
        self._nulls[name] = self._nulls.get(name, 0) + values.null_count
        if values.null_count < len(values):
            self._bounds.setdefault(name, []).append(_bounds(values))

    def _statistics(self) -> str:
        """Return what Delta keeps of the file; columns that have values without bounds have none."""
        known = {
            name: [b for b in bounds if b is not None] for name, bounds in self._bounds.items() if None not in bounds
        }
        return _STATISTICS.encode(
            {
                "numRecords": self._rows,
                "minValues": {name: _stated(min(low for low, _ in bounds)) for name, bounds in known.items()},
                "maxValues": {name: _stated(max(high for _, high in bounds)) for name, bounds in known.items()},
                "nullCount": self._nulls,
            }
        ).decode()

    def _end_file(self) -> None:
        if self._file is None or self._stream is None:
            return
        self._file.close()
        size = self._stream.tell()
        self._stream.close()
        self._file = self._stream = None
        now = int(time.time() * 1000)
        self._added.append(AddAction(self._names[-1], size, {}, now, True, self._statistics()))
        self._begin()


def _bounds(values: pa.ChunkedArray) -> tuple[Any, Any] | None:
    """Return bounds as statistics may state them, None for types and values that have none here."""
    kind, types = values.type, pa.types
    if types.is_string(kind):
        extremes = pc.min_max(values).as_py()
        low, high = extremes["min"][:_STATISTICS_LENGTH], _cut_above(extremes["max"])
        return None if high is None else (low, high)
    if types.is_floating(kind):
        return _bounds_of_floats(values)
    if not (types.is_integer(kind) or types.is_date32(kind) or types.is_decimal(kind) or types.is_timestamp(kind)):
        return None
    extremes = pc.min_max(values).as_py()
    low, high = extremes["min"], extremes["max"]
    return _in_milliseconds(low, high) if types.is_timestamp(kind) else (low, high)


def _bounds_of_floats(values: pa.ChunkedArray) -> tuple[float, float] | None:
    """Return bounds where each value has an order; both zeros are within, whichever is there."""
    if not pc.all(pc.is_finite(values)).as_py():
        return None
    extremes = pc.min_max(values).as_py()
    low, high = float(extremes["min"]), float(extremes["max"])
    return (-0.0 if low == 0 else low), (0.0 if high == 0 else high)


def _cut_above(text: str) -> str | None:
    """Return a text of bounded length that is not below another, None without one."""
    if len(text) <= _STATISTICS_LENGTH:
        return text
    text = text[:_STATISTICS_LENGTH]
    while text:
        following = ord(text[-1]) + 1
        if following == 0xD800:  # the halves of surrogate pairs are no characters
            following = 0xE000
        if following <= 0x10FFFF:
            return text[:-1] + chr(following)
        text = text[:-1]
    return None


def _in_milliseconds(low: datetime, high: datetime) -> tuple[datetime, datetime] | None:
    """Return bounds in whole milliseconds, as all writers of the format state them."""
    low = low.replace(microsecond=low.microsecond // 1000 * 1000)
    try:
        return low, high + timedelta(microseconds=-high.microsecond % 1000)
    except OverflowError:
        return None


def _stated(bound: Any) -> Any:
    """Return a bound as JSON has it."""
    if isinstance(bound, datetime):
        text = bound.replace(tzinfo=None).isoformat(timespec="milliseconds")
        return text + "Z" if bound.tzinfo is not None else text
    return bound.isoformat() if isinstance(bound, date) else bound
