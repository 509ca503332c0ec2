# SPDX-License-Identifier: Apache-2.0
"""Records through ``airflow-cdc decode`` and ``airflow-cdc detect``, in process, and the values of what is decoded."""

from __future__ import annotations

import base64
import contextlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.cli import main
from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.fields import Field
from airflow_provider_cdc.core.values.images import type_images
from airflow_provider_cdc.core.values.types import arrow_type


@dataclass(frozen=True)
class Record:
    """Hold what a file of records says of one; all of a test are in partition 0 of one topic."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = field(default=())


def decoded(
    records: Sequence[Record], name: str, folder: Path, options: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Return the changes that the verb ``decode`` prints.

    :param name: of the format.
    :param folder: where to put the file.
    """
    stated = [part for option in (options or {}).items() for part in ("--option", "=".join(option))]
    code, printed = _run(["decode", "--format", name, *stated, _file(records, folder)])
    assert code == 0
    return [json.loads(line) for line in printed.splitlines()]


def detected(records: Sequence[Record], folder: Path) -> str | None:
    """Return the format that the verb ``detect`` names, None where it is undecided."""
    _, printed = _run(["detect", "--json", _file(records, folder)])
    result: str | None = json.loads(printed)["format"]
    return result


def typed(change: Mapping[str, Any], column: str, kind: str, name: str) -> Any:
    """Return the value that a table gets for a column of a decoded row.

    :param kind: the column's type as SQL spells it.
    :param name: of the format.
    """
    wire, of_source = open_format(name), parse_type(kind)
    encoded = wire.encoding_of(column, of_source, wire.describe(change["columns"]))
    image = change["after"] or change["before"]
    result = type_images(pa.array([image]), [Field(encoded, of_source, arrow_type(of_source))])
    assert result.failures == []
    return result.columns[0][0].as_py()


def _run(arguments: list[str]) -> tuple[int, str]:
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = main(arguments)
    return code, printed.getvalue()


def _file(records: Sequence[Record], folder: Path) -> str:
    """Write records as the verbs read them: one JSON object a line, bytes in base64."""
    lines = []
    for offset, record in enumerate(records):
        entry = {"topic": "t", "partition": 0, "offset": offset, "timestamp": 1_700_000_000_000}
        headers = [[name, _text(value)] for name, value in record.headers]
        lines.append(
            json.dumps({**entry, "key": _text(record.key), "value": _text(record.value), "headers": headers or None})
        )
    file = folder / "records.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    return str(file)


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode("ascii")
