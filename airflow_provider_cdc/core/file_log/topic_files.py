# SPDX-License-Identifier: Apache-2.0
"""Read topics that lie in files as a log: partitions, ends, ranges of offsets, times.

Files may be added and the last one of a partition may grow; what was there stays as it is. So a range of offsets means
the same records for ever. A line counts once its line break is there.
"""

from __future__ import annotations

import gzip
import io
import lzma
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any

from airflow_provider_cdc.core.errors import SourceError, UnavailableError, first_line
from airflow_provider_cdc.core.file_log.line_kinds import LINES, FileRecord, gap_error, offsets_error
from airflow_provider_cdc.core.file_log.names import (
    TOPIC,
    LogFile,
    files_in,
    folder_of,
    partitions_in,
)
from airflow_provider_cdc.core.file_log.stores import FileStore

LINE_BYTES = 256 << 20
"""Longest line that is read: a record of Kafka has at most 2 GiB, but nobody writes such ones."""

_HEADER_BYTES = 10  # of gzip; xz has 12
_UNPACK: dict[str, Callable[[Any], Any]] = {".gz": lambda raw: gzip.GzipFile(fileobj=raw), ".xz": lzma.LZMAFile}


class TopicFiles:
    """The topics in the files below a folder.

    :param root: local path or ``s3://`` address.
    :param lines: what a line holds (``line_kinds.LINES``).
    :param gaps: whether offsets may be missing between records.
    :param options: storage options in delta-rs' names.
    :raises ConfigurationError: the folder is on another kind of store.
    """

    def __init__(
        self, root: str, lines: str = "records", *, gaps: bool = False, options: Mapping[str, str] | None = None
    ) -> None:
        self._store, self._kind, self._gaps = FileStore(root, options), LINES[lines], gaps
        # of the file that was counted last, by path: bytes of whole lines, and the offset behind them
        self._counted: dict[str, tuple[int, int]] = {}
        self._first_times: dict[str, int | None] = {}

    @property
    def root(self) -> str:
        """Return the folder, in its canonical spelling."""
        return self._store.root

    @property
    def has_times(self) -> bool:
        """Return whether records have times."""
        return self._kind.has_times

    # ---- what is there

    def topics(self) -> list[str]:
        """Return the names of the topics.

        :raises ConfigurationError: there is no such folder.
        :raises UnavailableError: ``files.unavailable``, the store failed.
        """
        with self._access(""):
            folders, _ = self._store.entries("")
        return [name for name in folders if not name.startswith(".") and TOPIC.fullmatch(name)]

    def partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic.

        :raises SourceError: ``files.layout``.
        """
        with self._access(topic):
            folders, files = self._store.entries(topic)
            return partitions_in(topic, folders, (name for name, _ in files))

    def ends(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition and the one behind the last.

        :raises SourceError: names or lines of files are not as they have to be.
        """
        files = self._files(topic, partition)
        return (files[0].start, self._end(files[-1], topic, partition)) if files else (0, 0)

    def first(self, topic: str, partition: int) -> int:
        """Return the first offset of a partition."""
        return next((file.start for file in self._files(topic, partition)), 0)

    def offset_at(self, topic: str, partition: int, timestamp_ms: int) -> int | None:
        """Return the first offset whose record was written at or after a time, None where no record says so.

        Files are taken to follow each other in time, as they do in offsets.

        :param timestamp_ms: milliseconds since 1970.
        """
        if not self.has_times:
            return None
        files = self._files(topic, partition)
        low, high = 0, len(files)
        while low < high:  # the first file that begins at the time or later
            middle = (low + high) // 2
            first = self._first_time(files[middle], topic, partition)
            if first is None or first < timestamp_ms:
                low = middle + 1
            else:
                high = middle
        for file in files[max(0, low - 1) :]:
            for record in self._records(file, topic, partition):
                if record.timestamp is not None and record.timestamp >= timestamp_ms:
                    return record.offset
        return None

    # ---- records

    def read(self, topic: str, partition: int, start: int, end: int) -> Iterator[FileRecord]:
        """Yield the records of a range of offsets.

        :raises SourceError: records of the range are gone, doubled, or not as they have to be.
        :raises UnavailableError: ``files.unavailable``, the store failed.
        """
        if start >= end:
            return
        files = self._files(topic, partition)
        first = bisect_right([file.start for file in files], start) - 1
        if first < 0:
            raise self._gone(topic, partition, start, files[0].start if files else None)
        reached = files[first].start
        for index, file in enumerate(files[first:], first):
            if index > first:
                self._demand_next(file, reached)
            if file.start >= end:
                return
            reached = file.start
            for record in self._records(file, topic, partition, is_last=index == len(files) - 1):
                if record.offset >= end:
                    return
                reached = record.offset + 1
                if record.offset >= start:
                    yield record
        if reached < end:
            raise self._short(topic, partition, reached, end)

    def _demand_next(self, file: LogFile, reached: int) -> None:
        """Demand that a file begins where the one before it ends."""
        with self._access(file.path):
            if file.start < reached:
                raise offsets_error(file, file.start, reached, "the file begins before the one before it ends")
            if file.start > reached and not self._gaps:
                raise gap_error(file, reached, file.start)

    def _files(self, topic: str, partition: int) -> list[LogFile]:
        home = folder_of(topic, partition)
        with self._access(home):
            folders, files = self._store.entries(home)
            return files_in(topic, partition, folders, files, self._kind.suffixes)

    def _first_time(self, file: LogFile, topic: str, partition: int) -> int | None:
        """Return the time of a file's first record."""
        if file.path not in self._first_times:
            record = next(self._records(file, topic, partition), None)
            if record is None:  # it may have one later
                return None
            self._first_times[file.path] = record.timestamp
        return self._first_times[file.path]

    def _end(self, file: LogFile, topic: str, partition: int) -> int:
        """Return the offset behind the last record of a file; of one that grew only what is new is read."""
        size, end = self._counted.get(file.path, (0, file.start))
        if file.packing or size > file.size:
            size, end = 0, file.start
        lines = _WholeLines(file)
        with self._opened(file) as stream:
            if size:
                stream.seek(size)
            for record in self._kind.records(lines.of(stream), file, topic, partition, end, gaps=self._gaps):
                end = record.offset + 1
        self._counted[file.path] = size + lines.size, end
        return end

    def _records(self, file: LogFile, topic: str, partition: int, *, is_last: bool = True) -> Iterator[FileRecord]:
        """Yield the records of a file.

        :param is_last: whether no file follows: then the last line may be half written.
        """
        lines = _WholeLines(file)
        with self._opened(file) as stream:
            yield from self._kind.records(lines.of(stream), file, topic, partition, file.start, gaps=self._gaps)
        if lines.is_cut and not is_last:
            where = {"path": file.path, "folder": self.root}
            text = "the file ends within a line, and another one follows it"
            raise SourceError("files.cut", text, where=where, hint="bring the whole file back")

    # ---- the store

    @contextmanager
    def _opened(self, file: LogFile) -> Iterator[IO[bytes]]:
        """Open a file, unpacked."""
        with self._access(file.path):
            # of an object without content no range can be asked for, and a packed file begins with a header
            if file.size < (_HEADER_BYTES if file.packing else 1):
                yield io.BytesIO()
                return
            with self._store.open(file.path) as raw:
                unpack = _UNPACK.get(file.packing)
                yield raw if unpack is None else unpack(raw)

    @contextmanager
    def _access(self, path: str) -> Iterator[None]:
        try:
            yield
        except SourceError as error:
            error.where["folder"] = self.root
            raise
        except (gzip.BadGzipFile, zlib.error, lzma.LZMAError):
            hint = "bring the file back as it was written, or correct its suffix"
            raise SourceError(
                "files.damaged",
                "the packed file cannot be unpacked",
                where={"path": path, "folder": self.root},
                hint=hint,
            ) from None
        except OSError as error:
            raise UnavailableError(
                "files.unavailable",
                f"the store of the files failed: {first_line(error)}",
                where={"path": f"{self.root}/{path}"},
                hint="check that the folder is mounted, its rights and the network, then run again",
            ) from error

    def _gone(self, topic: str, partition: int, start: int, first: int | None) -> SourceError:
        there = "there is no file" if first is None else f"the first file begins with offset {first}"
        return SourceError(
            "files.gone",
            f"records from offset {start} on are gone: {there}",
            where={"path": folder_of(topic, partition), "offset": start, "folder": self.root},
            hint="bring the files back, or run `airflow-cdc sync --accept-loss` once to go on with what is left",
        )

    def _short(self, topic: str, partition: int, reached: int, end: int) -> SourceError:
        return SourceError(
            "files.gone",
            f"the files end at offset {reached}, before the range, which ends at {end}",
            where={"path": folder_of(topic, partition), "offset": reached, "folder": self.root},
            hint="bring the files back, or run `airflow-cdc sync --accept-loss` once to go on with what is left",
        )


class _WholeLines:
    """The lines of a file that have their line break.

    :ivar size: bytes of those that were read.
    :ivar is_cut: whether something without a line break is behind them.
    """

    def __init__(self, file: LogFile) -> None:
        self._file = file
        self.size = 0
        self.is_cut = False

    def of(self, stream: IO[bytes]) -> Iterator[bytes]:
        """Yield the lines of a stream."""
        while line := self._next(stream):
            if not line.endswith(b"\n"):
                if len(line) > LINE_BYTES:
                    raise SourceError(
                        "files.malformed",
                        f"a line is longer than {LINE_BYTES >> 20} MiB",
                        where={"path": self._file.path},
                        hint="the file has no line breaks between its records: correct what writes it",
                    )
                self.is_cut = True
                return
            self.size += len(line)
            yield line

    def _next(self, stream: IO[bytes]) -> bytes:
        try:
            return stream.readline(LINE_BYTES + 1)
        except EOFError:  # a packed file that is not yet whole
            self.is_cut = True
            return b""
