# SPDX-License-Identifier: Apache-2.0
"""Golden records: what a record decodes to, stated by hand or by docs/wire, never by our output."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.formats.contract import Records

FOLDER = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Golden:
    """One record and the changes it gives; only the columns that are stated count."""

    why: str
    options: tuple[tuple[str, str], ...]
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    changes: tuple[dict[str, Any], ...]
    group: str | None


@cache
def load(name: str) -> list[list[Golden]]:
    """Return a format's golden records: those that share a group together, the others alone."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    items = [_golden(line) for line in lines if line.strip()]
    numbered = [(item.group or f"#{number}", item) for number, item in enumerate(items)]
    return [[item for _, item in same] for _, same in groupby(numbered, key=lambda pair: pair[0])]


@cache
def schemas(name: str) -> dict[int, dict[str, Any]]:
    """Return the schemas of a registry that a format's golden records name, by id; empty where there are none."""
    file = FOLDER / f"{name}.schemas.json"
    entries = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    return {entry.pop("id"): entry for entry in entries}


def _golden(line: str) -> Golden:
    data = json.loads(line)
    # images with their numbers as they are spelled
    for change, spelled in zip(data["changes"], _tokens(line)["changes"], strict=True):
        change.update({name: spelled[name] for name in ("before", "after") if name in spelled})
    known = {"why", "options", "key", "key_text", "value", "value_text", "headers", "changes", "group"}
    assert set(data) <= known, f"unknown members {set(data) - known}"
    return Golden(
        data["why"],
        tuple(sorted((data.get("options") or {}).items())),
        _bytes(data, "key"),
        _bytes(data, "value"),
        tuple((name, None if text is None else base64.b64decode(text)) for name, text in data.get("headers") or ()),
        tuple(data["changes"]),
        data.get("group"),
    )


def _bytes(data: dict[str, Any], name: str) -> bytes | None:
    if f"{name}_text" in data:
        text = data[f"{name}_text"]
        return None if text is None else str(text).encode()
    return None if data.get(name) is None else base64.b64decode(data[name], validate=True)


def records_of(group: list[Golden]) -> Records:
    """Return records as one partition holds them."""
    count = len(group)
    return Records(
        "golden",
        0,
        list(range(count)),
        [1_700_000_000_000] * count,
        [item.key for item in group],
        [item.value for item in group],
        [item.headers for item in group],
    )


def differing(change: dict[str, Any], stated: dict[str, Any]) -> list[str]:
    """Return what of a decoded change is not as stated."""
    return [
        f"{name}: {change[name]!r} instead of {expected!r}"
        for name, expected in stated.items()
        if not _same(name, change[name], expected)
    ]


def _same(name: str, got: Any, expected: Any) -> bool:
    if name in ("before", "after"):
        if got is None or expected is None:
            return got is None and expected is None
        return _tokens(got) == (_tokens(expected) if isinstance(expected, str) else expected)
    if name == "source_time" and isinstance(expected, int) and got is not None:  # microseconds
        return int(got.timestamp() * 1_000_000 + 0.5) == expected
    if name == "raw" and isinstance(expected, str):
        return bool(got == base64.b64decode(expected))
    return bool(got == expected)


def _tokens(text: str) -> Any:
    # numbers by their text: 1.10 is not 1.1
    return json.loads(text, parse_float=lambda number: ("number", number), parse_int=lambda number: ("number", number))
