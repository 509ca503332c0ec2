# SPDX-License-Identifier: Apache-2.0
"""Compare the columns of two schema documents of one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_cdc.core.printable import printable

Schema = Mapping[str, Any]


def column_changes(before: Schema | None, after: Schema | None) -> list[dict[str, str]]:
    """Return what differs, in the order of the newer columns; those that were dropped come last.

    Columns are the same if they have the same id, which a rename keeps. Labels of ENUM and SET are only counted, and
    defaults are left out: both are values.

    :return: ``change`` (``added``, ``dropped``, ``renamed``, ``changed``, ``key``), ``column``, ``before``, ``after``.
    """
    old, new = _columns(before), _columns(after)
    changes = []
    for column_id, (name, kind) in new.items():
        if column_id not in old:
            changes.append(_change("added", name, "", kind))
            continue
        old_name, old_kind = old[column_id]
        if old_name != name:
            changes.append(_change("renamed", name, old_name, name))
        if old_kind != kind:
            changes.append(_change("changed", name, old_kind, kind))
    changes += [_change("dropped", name, kind, "") for column_id, (name, kind) in old.items() if column_id not in new]
    if before is not None and after is not None and list(before["key"]) != list(after["key"]):
        changes.append(_change("key", "", _key(before), _key(after)))
    return changes


def _change(change: str, column: str, before: str, after: str) -> dict[str, str]:
    return {"change": change, "column": printable(column), "before": printable(before), "after": printable(after)}


def _columns(document: Schema | None) -> dict[int, tuple[str, str]]:
    """Return name and type of each column, by id."""
    return {item["id"]: (item["name"], _type(item)) for item in ((document or {}).get("columns") or ())}


def _key(document: Schema) -> str:
    names = {item["id"]: item["name"] for item in document["columns"]}
    return ", ".join(names.get(column_id, "?") for column_id in document["key"])


def _type(column: Mapping[str, Any]) -> str:
    kind = column["type"]
    text = str(kind["name"])
    if kind["labels"]:
        text += f"({len(kind['labels'])} labels)"
    elif kind["length"] is not None:
        text += f"({kind['length']}" + (f",{kind['scale']}" if kind["scale"] is not None else "") + ")"
    text += " unsigned" if kind["unsigned"] else ""
    return text if column["nullable"] else f"{text} not null"
