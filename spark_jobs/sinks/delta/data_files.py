# SPDX-License-Identifier: Apache-2.0
"""Data files of a Delta table, written a piece at a time.

delta-rs gathers 8 192 rows before it writes any and holds them up to four times, however large they are: 960 MB in rows
of 8 MB took 3.8 GB (deltalake 1.6.6), from a stream of batches too.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake.transaction import AddAction

from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.file_statistics import FileStatistics

PIECE_BYTES = 32 << 20  # of rows in memory: a row group
_FILE_BYTES = 256 << 20  # of rows in memory: a file
_FULL_BYTES = 64 << 20  # of rows in memory: smaller files of neighbouring keys are written as one
_DICTIONARY_ROWS = 1_000  # of fewer rows a file without dictionaries is smaller, and takes a quarter less to write


class DataFiles:
    """Writes rows into new files of a table; no reader sees them before a commit names them.

    :param storage: folder of the table.
    :param bounded: names of the columns of which readers may expect bounds.
    :param file_bytes: size of a file in the store that ends it, None where it is measured by its rows in memory.
    :ivar schema: of the rows.
    """

    def __init__(
        self, storage: Storage, schema: pa.Schema, bounded: Sequence[str], file_bytes: int | None = None
    ) -> None:
        self._storage, self.schema, self._bounded, self._file_bytes = storage, schema, bounded, file_bytes
        self._names: list[str] = []
        self._file: pq.ParquetWriter | None = None
        self._stream: pa.NativeFile | None = None
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._added: list[AddAction] = []
        self._begin()

    def _begin(self) -> None:
        self._size = 0
        self._statistics = FileStatistics(self._bounded)

    def add(self, rows: pa.Table) -> None:
        """Take rows; pieces that are too small for a row group wait for others."""
        self._held.append(rows)
        self._held_bytes += rows.nbytes
        if self._held_bytes >= PIECE_BYTES:
            self._write()
        if self._is_full():
            self._end_file()

    def _is_full(self) -> bool:
        if self._file_bytes is None or self._stream is None:
            return self._size >= _FILE_BYTES
        return bool(self._stream.tell() >= self._file_bytes)

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
                write_page_checksum=True,
            )
        self._file.write_table(rows, row_group_size=rows.num_rows)
        self._size += size
        self._statistics.note(rows)

    def _end_file(self) -> None:
        if self._file is None or self._stream is None:
            return
        self._file.close()
        size = self._stream.tell()
        self._stream.close()
        self._file = self._stream = None
        now = int(time.time() * 1000)
        self._added.append(AddAction(self._names[-1], size, {}, now, True, self._statistics.document()))
        self._begin()
