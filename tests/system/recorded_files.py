# SPDX-License-Identifier: Apache-2.0
"""The shop's recorded log in files, and a pipeline that reads them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.file_log.appending import append, line_of
from airflow_provider_cdc.core.file_log.line_kinds import FileRecord
from airflow_provider_cdc.core.file_log.names import folder_of, path_of
from tests.airflow.shop import DATA, PHASES
from tests.services.capture import Record, read
from tests.system.site import Site


class FilesSite(Site):
    """A pipeline over files in its own folder."""

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def document(self) -> dict[str, Any]:
        """Return the pipeline as plain data."""
        document = super().document()
        source = {key: value for key, value in document["source"].items() if key != "connection"}
        document["source"] = {"type": "files", "folder": str(self.log), **source}
        return document

    def feed(self, phase: int) -> int:
        """Add the records of a phase, those of odd ones to the files that are there; return how many."""
        records = [(r.topic, r.partition, _of(r)) for r in records_of(phase)]
        if phase % 2 == 0:
            return append(self.log, records)
        for topic, partition, record in records:
            folder = self.log / folder_of(topic, partition)
            folder.mkdir(parents=True, exist_ok=True)
            files = sorted(folder.iterdir()) or [self.log / path_of(topic, partition, 0, ".jsonl")]
            with files[-1].open("ab") as file:
                file.write(line_of(topic, partition, record))
        return len(records)

    def feed_values(self, phase: int) -> int:
        """Write the values of a phase alone, as a sink does that leaves out records without a value."""
        parts: dict[tuple[str, int], list[Record]] = {}
        for record in records_of(phase):
            if record.value is not None:
                parts.setdefault((record.topic, record.partition), []).append(record)
        for (topic, partition), records in parts.items():
            path = self.log / path_of(topic, partition, records[0].offset, ".bin")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join((record.value or b"") + b"\n" for record in records))
        return sum(map(len, parts.values()))


@cache
def _all() -> list[Record]:
    return sorted(read(DATA), key=lambda record: (record.topic, record.partition, record.offset))


def records_of(phase: int) -> Iterator[Record]:
    """Yield the records of a phase, each partition's in offset order."""
    start, end = (PHASES[phase - 1]["end_offsets"] if phase else {}), PHASES[phase]["end_offsets"]
    for record in _all():
        low = start[record.topic][record.partition] if record.topic in start else 0
        if record.topic in end and low <= record.offset < end[record.topic][record.partition]:
            yield record


def _of(record: Record) -> FileRecord:
    return FileRecord(record.offset, record.timestamp, record.key, record.value, list(record.headers) or None)
