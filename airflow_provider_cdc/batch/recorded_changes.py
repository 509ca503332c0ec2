# SPDX-License-Identifier: Apache-2.0
"""Decode recorded records into changes as plain JSON data."""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.file_log.record_lines import record_of, take

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_provider_cdc.core.formats.common.schema_supply import SchemaSupply
    from airflow_provider_cdc.core.formats.contract import Format, Records

_BUFFER = 5_000  # lines decoded at a time; the changes do not depend on it
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def changes(
    reopen: Callable[[], Format], recorded: Iterable[bytes | None], schemas: SchemaSupply
) -> Iterator[dict[str, Any]]:
    """Yield the changes of a file's records in the file's order.

    :param reopen: opens the format.
    :param recorded: the lines; None stands for a rest that cannot be read.
    :param schemas: teaches the format what its records name.
    """
    from airflow_provider_cdc.core.apply.row_before import row_before
    from airflow_provider_cdc.core.formats.common.record_faults import decode_all
    from airflow_provider_cdc.core.formats.contract import Grouped

    fmt = reopen()

    def decoded(part: Records) -> Iterator[dict[str, Any]]:
        (known,) = schemas.ahead_of([part], fmt)
        for change in _plain(decode_all(fmt, known, lambda: schemas.taught(reopen()))):
            change["before"] = row_before(fmt, change["op"], change["before"], change["after"])
            yield change

    buffer = sys.maxsize if isinstance(fmt, Grouped) else _BUFFER  # groups of records must not be cut
    numbered: list[tuple[int, dict[str, Any]]] = []
    records: dict[tuple[str, int], Records] = {}
    line_numbers: dict[tuple[str, int, int], int] = {}
    for number, line in enumerate(recorded):
        entry = record_of(line)
        if isinstance(entry, str):
            numbered.append((number, _broken(line, entry)))
        else:
            take(records, entry)
            line_numbers.setdefault((entry["topic"], entry["partition"], entry["offset"]), number)
        if (number + 1) % buffer == 0:
            yield from _flush(decoded, numbered, records, line_numbers)
    yield from _flush(decoded, numbered, records, line_numbers)


def _flush(
    decoded: Callable[[Records], Iterator[dict[str, Any]]],
    numbered: list[tuple[int, dict[str, Any]]],
    records: dict[tuple[str, int], Records],
    line_numbers: dict[tuple[str, int, int], int],
) -> Iterator[dict[str, Any]]:
    for (topic, partition), part in records.items():
        numbered += [(line_numbers[topic, partition, change["offset"]], change) for change in decoded(part)]
    numbered.sort(key=lambda item: item[0])  # stable: the changes of one record keep their order
    yield from (change for _, change in numbered)
    numbered.clear()
    records.clear()
    line_numbers.clear()


def _plain(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Yield changes as plain JSON data."""
    import pyarrow as pa

    columns = []
    for name in batch.schema.names:
        column = batch.column(name)
        if pa.types.is_timestamp(column.type):
            scale = 1_000 if column.type.unit == "ms" else 1
            columns.append([_iso(value, scale) for value in column.cast(pa.int64()).to_pylist()])
        elif pa.types.is_binary(column.type):
            columns.append([_text(value) for value in column.to_pylist()])
        else:
            columns.append(column.to_pylist())
    names = batch.schema.names
    return (dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True))


def _iso(value: int | None, micros: int) -> str | int | None:
    if value is None:
        return None
    try:
        return (_EPOCH + timedelta(microseconds=value * micros)).isoformat()
    except OverflowError:
        return value  # beyond the calendar: the number is better than nothing


def _text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode("ascii")


def _broken(line: bytes | None, why: str) -> dict[str, Any]:
    """Return the error change of a line that is not a record."""
    from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA

    change: dict[str, Any] = dict.fromkeys(CHANGE_SCHEMA.names)
    raw = None if line is None else _text(line.rstrip(b"\r\n"))
    return {**change, "index": 0, "kind": "error", "error_code": "file.line_broken", "error": why, "raw": raw}
