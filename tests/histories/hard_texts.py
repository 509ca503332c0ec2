# SPDX-License-Identifier: Apache-2.0
"""Texts that servers make numbers of, and what real ones made of them: tests/unit/core/values/data."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

from tests.histories.kinds import Kind
from tests.histories.source import RefusedError

_FILE = Path(__file__).parents[1] / "unit" / "core" / "values" / "data" / "measured_conversions.jsonl"
_VERSIONS = {"mysql": (0, 1), "mariadb": (2, 3)}  # which of the four servers
_MEASURED = {
    line["to"]: line["stored"]
    for line in map(json.loads, _FILE.read_text("utf-8").splitlines())
    if line["from"] == "varchar(100)"
}
NUMBERS = (
    *(Kind(name) for name in ("int", "tinyint", "bigint", "double")),
    Kind("tinyint", unsigned=True),
    Kind("decimal", 10, 2),
)
HARD = tuple(text for text in _MEASURED["decimal(10,2)"] if len(text) < 12 and text.isprintable())


def number(text: str, kind: Kind, server: str) -> Any:
    """Return the number that a server without strict mode made of a text; refuses what was not measured."""
    printed = _MEASURED[kind.sql().lower()].get(text)
    if printed is None:
        raise RefusedError(f"nobody measured {text!r}")
    values = {printed} if isinstance(printed, str) else {printed[version] for version in _VERSIONS[server]}
    if len(values) > 1:
        raise RefusedError("versions of the server differ")
    (value,) = values
    return (
        kind.stored(Decimal(value)) if kind.name == "decimal" else float(value) if kind.name == "double" else int(value)
    )
