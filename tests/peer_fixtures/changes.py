# SPDX-License-Identifier: Apache-2.0
"""Write what the product decodes as the lines of the files' expectations, and compare two lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

Line = dict[str, Any]


def lines_of(changes: Iterable[Mapping[str, Any]]) -> Iterator[Line]:
    """Yield one line for each row before or after a change and for each DDL."""
    for change in changes:
        where = {"db": change["database"], "table": change["table"]}
        before, after = (None if change[name] is None else parsed(change[name]) for name in ("before", "after"))
        match change["kind"], change["op"]:
            case "row", "insert" | "snapshot":
                yield {"op": "insert", **where, "row": after}
            case "row", "update":
                yield {"op": "update_before", **where, "row": before}
                yield {"op": "update_after", **where, "row": after}
            case "row", "delete":
                yield {"op": "delete", **where, "row": before}
            case "row", "truncate":
                yield {"op": "ddl", **where, "ddl_type": "TRUNCATE"}
            case "schema", _:
                yield {"op": "ddl", **where, "sql": change["statement"]}


def parsed(text: str) -> Any:
    """Read JSON without rounding a number."""
    return json.loads(text, parse_float=Decimal)


def differences(actual: list[Line], expected: list[Line]) -> list[str]:
    """Return in words how two streams of lines differ; what the expectation does not say may be anything."""
    problems = [f"{len(actual)} changes instead of {len(expected)}"] if len(actual) != len(expected) else []
    for number, (ours, theirs) in enumerate(zip(actual, expected, strict=False)):
        problems += [
            f"line {number}: {name} is {ours.get(name)!r} instead of {theirs[name]!r}"
            for name in ("op", "db", "table", "row", "sql")
            if theirs.get(name) not in (None, "") and not equal(ours.get(name), theirs[name])
        ]
    return problems


def equal(one: Any, other: Any) -> bool:
    """Compare numbers by value and all else as text; NULL is only NULL, and an absent column is not NULL."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if one is None or other is None or isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, str) and isinstance(other, str):
        return one == other
    try:
        return Decimal(one) == Decimal(other)
    except (InvalidOperation, TypeError, ValueError):
        return bool(one == other)


def replay(rows: dict[Any, Line], lines: Iterable[Line], key: list[str]) -> None:
    """Carry changes out on the rows of a table by key; without a key each row is its own."""
    for line in lines:
        if line["op"] == "ddl":
            continue
        row = line["row"]
        row_key = tuple(str(row.get(name)) for name in key) if key else len(rows)
        if line["op"] in ("delete", "update_before"):
            rows.pop(row_key, None)
        else:
            rows[row_key] = row
