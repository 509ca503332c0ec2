# SPDX-License-Identifier: Apache-2.0
"""Read the lines of a file as numbered records: lines that state a whole record, and lines that are only its value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol

from airflow_provider_cdc.core.errors import SourceError
from airflow_provider_cdc.core.file_log.names import LogFile
from airflow_provider_cdc.core.file_log.record_lines import record_of


class FileRecord(NamedTuple):
    """One record of a file.

    ``timestamp`` is in milliseconds since 1970; a line may lack it, the key and headers.
    """

    offset: int
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]] | None


class LineKind(Protocol):
    """Define what a line of a file holds.

    :ivar suffixes: of files with such lines.
    :ivar has_times: whether records have times.
    """

    suffixes: frozenset[str]
    has_times: bool

    def records(
        self, lines: Iterable[bytes], file: LogFile, topic: str, partition: int, first: int, *, gaps: bool
    ) -> Iterator[FileRecord]:
        """Yield the records of whole lines.

        :param first: offset of the first line.
        :param gaps: whether offsets may be missing between records.
        :raises SourceError: ``files.malformed``, ``files.offsets`` or ``files.gap``.
        """
        ...


class RecordLines:
    """Each line is a JSON object with topic, partition, offset, timestamp, and key, value and headers in base64."""

    suffixes = frozenset({".jsonl"})
    has_times = True

    def records(
        self, lines: Iterable[bytes], file: LogFile, topic: str, partition: int, first: int, *, gaps: bool
    ) -> Iterator[FileRecord]:
        """Yield what the lines state, each behind the one before it."""
        expected = first
        for number, line in enumerate(lines):
            entry = record_of(line)
            if isinstance(entry, str):
                raise _malformed(file, first, number, entry)
            offset = entry["offset"]
            if (entry["topic"], entry["partition"]) != (topic, partition):
                raise _malformed(file, first, number, "the line is a record of another topic or partition")
            if offset < expected:
                raise offsets_error(file, offset, expected, "offsets come again or fall")
            if offset > expected and not (gaps and (number or first != file.start)):
                raise gap_error(file, expected, offset)
            expected = offset + 1
            yield FileRecord(offset, entry.get("timestamp"), entry["key"], entry["value"], entry["headers"] or None)


class ValueLines:
    """Each line is the value of a record, and nothing else is known of it; offsets are counted from the file's name."""

    suffixes = frozenset({".bin", ".json"})
    has_times = False

    def records(
        self, lines: Iterable[bytes], file: LogFile, topic: str, partition: int, first: int, *, gaps: bool
    ) -> Iterator[FileRecord]:
        """Yield the lines as values."""
        for offset, line in enumerate(lines, first):
            yield FileRecord(offset, None, None, line[:-1], None)


LINES: dict[str, LineKind] = {"records": RecordLines(), "values": ValueLines()}
"""Kinds of lines by ``source.lines``."""


def _malformed(file: LogFile, first: int, number: int, text: str) -> SourceError:
    where: dict[str, Any] = {"path": file.path, "line": number + 1}
    if first != file.start:
        where = {"path": file.path, "line_behind_offset": first, "lines_behind": number + 1}
    hint = "write the line again as `airflow-cdc quarantine export` writes records, or correct source.lines"
    return SourceError("files.malformed", text, where=where, hint=hint)


def offsets_error(file: LogFile, offset: int, expected: int, text: str) -> SourceError:
    """Return the error of records that are there twice."""
    where = {"path": file.path, "offset": offset, "expected": expected}
    hint = "each offset of a partition stands in one line of one file, in rising order: remove what is doubled"
    return SourceError("files.offsets", text, where=where, hint=hint)


def gap_error(file: LogFile, expected: int, offset: int) -> SourceError:
    """Return the error of records that are missing."""
    return SourceError(
        "files.gap",
        f"offsets {expected} to {offset - 1} are missing",
        where={"path": file.path, "offset": offset, "expected": expected},
        hint="bring the file back that has them; if the topic itself lacks them (marks of transactions, records "
        "without a value that a sink left out), state source.gaps: accept",
    )
