# SPDX-License-Identifier: Apache-2.0
"""Append records to topics in a local folder, as lines that state whole records."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path

from airflow_provider_cdc.core.file_log.line_kinds import FileRecord
from airflow_provider_cdc.core.file_log.names import path_of

SUFFIX = ".jsonl"


def append(folder: Path, records: Iterable[tuple[str, int, FileRecord]]) -> int:
    """Append records to topics, those of each partition in a file of their own; return how many.

    Nothing is synced to the disk.

    :param records: topic, partition and record, those of each partition in offset order.
    """
    parts: dict[tuple[str, int], list[FileRecord]] = {}
    for topic, partition, record in records:
        parts.setdefault((topic, partition), []).append(record)
    for (topic, partition), some in parts.items():
        path = folder / path_of(topic, partition, some[0].offset, SUFFIX)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("xb") as file:
            file.writelines(line_of(topic, partition, record) for record in some)
    return sum(map(len, parts.values()))


def line_of(topic: str, partition: int, record: FileRecord) -> bytes:
    """Return a record as a line."""
    entry = {
        "topic": topic,
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [[name, _text(value)] for name, value in record.headers or ()],
    }
    return json.dumps(entry).encode() + b"\n"


def _text(content: bytes | None) -> str | None:
    return None if content is None else base64.b64encode(content).decode("ascii")
