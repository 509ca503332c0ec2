# SPDX-License-Identifier: Apache-2.0
"""Write rows into new parquet files, a row group at a time, however they come."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from typing import Generic, Protocol, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_cdc.core.errors import CdcError

PIECE_BYTES = 32 << 20  # of rows in memory: a row group
_FILE_BYTES = 256 << 20  # of rows in memory: a file
_FULL_BYTES = 64 << 20  # of rows in memory: smaller files of neighbouring keys are written as one
_DICTIONARY_ROWS = 1_000  # of fewer rows a file without dictionaries is smaller, and takes a quarter less to write

Added = TypeVar("Added")


class Statistics(Protocol):
    """Gathers what a table states of a file."""

    def note(self, rows: pa.Table) -> None:
        """Add rows of the file."""
        ...


Noted = TypeVar("Noted", bound=Statistics)


class RowGroupFiles(ABC, Generic[Added, Noted]):
    """Writes rows into new files of a table; no reader sees them before a commit names them.

    :param stored: columns as the files have them.
    :param compression: codec of parquet.
    :param file_bytes: size of a file in the store that ends it, None where it is measured by its rows in memory.
    :param order: columns in whose order the rows of a row group are, none for that in which they come.
    """

    def __init__(
        self, stored: pa.Schema, compression: str, file_bytes: int | None = None, order: Sequence[str] = ()
    ) -> None:
        self._stored, self._compression, self._file_bytes = stored, compression, file_bytes
        self._order = [(name, "ascending") for name in order]
        self._names: list[str] = []
        self._file: pq.ParquetWriter | None = None
        self._stream: pa.NativeFile | None = None
        self._held: list[pa.Table] = []
        self._held_bytes = 0
        self._added: list[Added] = []
        self._begin()

    @abstractmethod
    def _open(self, number: int) -> tuple[str, pa.NativeFile]:
        """Open a new file; return its name."""

    @abstractmethod
    def _remove(self, name: str) -> None:
        """Remove a file."""

    @abstractmethod
    def _statistics_of_file(self) -> Noted:
        """Return what gathers the statistics of one file."""

    @abstractmethod
    def _describe(self, name: str, size: int, statistics: Noted) -> Added:
        """Return what a commit has to say of a file."""

    def _begin(self) -> None:
        self._size = 0
        self._statistics = self._statistics_of_file()

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

    @property
    def waiting_bytes(self) -> int:
        """Return the bytes of rows that wait in memory for a row group."""
        return self._held_bytes

    @property
    def is_open(self) -> bool:
        """Return whether a file is open."""
        return self._file is not None

    def write_waiting(self) -> None:
        """Write the rows that wait, as a small row group."""
        self._write()

    def end_file(self, *, small: bool = False) -> None:
        """End the file if it is large already: what follows lies elsewhere by its key.

        :param small: whether to end a small one, too.
        """
        self._write()
        if small or self._size >= _FULL_BYTES:
            self._end_file()

    def close(self) -> list[Added]:
        """Write what is left; return what a commit has to say of the files."""
        self._write(last=True)
        self._end_file()
        return self._added

    def discard(self) -> None:
        """Remove the files: nothing was committed.

        Where the store fails they stay: the error that led here counts, as that an upload was refused.
        """
        if self._file is not None and self._stream is not None:
            with suppress(OSError):
                self._file.close()
            with suppress(OSError):
                self._stream.close()
        for name in self._names:
            with suppress(OSError, CdcError):
                self._remove(name)

    def _write(self, *, last: bool = False) -> None:
        """Write what is held as a row group; it is the file's last one, or more may follow."""
        held, size, self._held, self._held_bytes = self._held, self._held_bytes, [], 0
        if not any(piece.num_rows for piece in held):
            return
        rows = held[0] if len(held) == 1 else pa.concat_tables(held)
        if self._order:
            rows = rows.sort_by(self._order)
        if self._file is None:
            name, self._stream = self._open(len(self._names))
            self._names.append(name)
            self._file = pq.ParquetWriter(
                self._stream,
                self._stored,
                compression=self._compression,
                use_dictionary=not last or rows.num_rows >= _DICTIONARY_ROWS,
                store_schema=False,
                write_page_checksum=True,
            )
        self._file.write_table(self._as_stored(rows), row_group_size=rows.num_rows)
        self._size += size
        self._statistics.note(rows)

    def _as_stored(self, rows: pa.Table) -> pa.Table:
        """Return rows as the files have them."""
        return rows

    def _end_file(self) -> None:
        if self._file is None or self._stream is None:
            return
        self._file.close()
        size = self._stream.tell()
        self._stream.close()
        self._file = self._stream = None
        self._added.append(self._describe(self._names[-1], size, self._statistics))
        self._begin()


def text_above(text: str, length: int) -> str | None:
    """Return a text of bounded length that is not below another, None where there is none."""
    if len(text) <= length:
        return text
    text = text[:length]
    while text:
        following = ord(text[-1]) + 1
        if following == 0xD800:  # the halves of surrogate pairs are no characters
            following = 0xE000
        if following <= 0x10FFFF:
            return text[:-1] + chr(following)
        text = text[:-1]
    return None
