# SPDX-License-Identifier: Apache-2.0
"""Read recorded Kafka records from files: one JSON object a line, with base64 key, value and headers; also ``.xz``."""

from __future__ import annotations

import binascii
import json
import lzma
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_cdc.core.formats.contract import Records

_INT64 = 1 << 63


def opened(file: str) -> Any:
    """Open a file, packed or not; - is standard input."""
    if file == "-":
        return sys.stdin.buffer
    return lzma.open(file, "rb") if file.endswith(".xz") else open(file, "rb")


def lines(stream: Any) -> Iterator[bytes | None]:
    """Yield the lines that are not blank; None stands for a rest that cannot be read."""
    try:
        yield from (line for line in stream if line.strip())
    except (lzma.LZMAError, EOFError):
        yield None


def object_of(line: bytes | None) -> dict[str, Any] | str:
    """Return the JSON object of a line, or the problem with it."""
    if line is None:
        return "the compressed file ends early or is damaged"
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return "the line is not JSON"
    return entry if isinstance(entry, dict) else "the line is not a JSON object"


def record_of(line: bytes | None) -> dict[str, Any] | str:
    """Return the record of a line, or the problem with it."""
    entry = object_of(line)
    if isinstance(entry, str):
        return entry
    if not isinstance(entry.get("topic"), str):
        return "topic is missing or not text"
    for name, limit in (("partition", 1 << 31), ("offset", _INT64)):
        value = entry.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < limit:
            return f"{name} is missing or not a number"
    stamp = entry.get("timestamp")
    if stamp is not None and (not isinstance(stamp, int) or not -_INT64 <= stamp < _INT64):
        return "timestamp is not a number"
    try:
        entry["key"], entry["value"] = _bytes(entry.get("key")), _bytes(entry.get("value"))
        entry["headers"] = [(str(name), _bytes(value)) for name, value in entry.get("headers") or ()]
    except (binascii.Error, ValueError, TypeError):
        return "key, value or a header is not base64"
    return entry


def _bytes(text: Any) -> bytes | None:
    # base64.b64decode looks at each text with a regular expression first
    return None if text is None else binascii.a2b_base64(text, strict_mode=True)


def take(records: dict[tuple[str, int], Records], entry: dict[str, Any]) -> None:
    """Append a record to those of its partition."""
    from airflow_provider_cdc.core.formats.contract import Records

    topic_partition = (entry["topic"], entry["partition"])
    part = records.get(topic_partition)
    if part is None:
        part = records[topic_partition] = Records(*topic_partition, [], [], [], [], [])
    values: Sequence[tuple[Any, Any]] = (
        (part.offsets, entry["offset"]),
        (part.timestamps, entry.get("timestamp")),
        (part.keys, entry["key"]),
        (part.values, entry["value"]),
        (part.headers, entry["headers"] or None),
    )
    for column, value in values:
        column.append(value)
