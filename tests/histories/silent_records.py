# SPDX-License-Identifier: Apache-2.0
"""Single records for scripted histories: those that follow a recorded one, and those of other tools than Debezium."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from tests.cross_format import events as neutral
from tests.histories.records import Record
from tests.histories.tools import PREFIX, TOOLS, Style

_BEGIN = 1_767_600_000_000  # of the source's log, milliseconds since 1970


def following(
    record: Record, op: str, after: dict[str, Any] | None, pos: int, before: dict[str, Any] | None = None
) -> Record:
    """Return the change of the row that a record of Debezium has, at a later place of its file.

    :param before: members of the row before that differ from those which the record has.
    """
    value = json.loads(record.value or b"")
    envelope = value.get("payload", value)
    row_before = {**(envelope["after"] or {}), **(before or {})}
    row_after = None if after is None else {**row_before, **after}
    source = {**envelope["source"], "pos": pos, "snapshot": None, "row": 0}
    envelope.update(before=None if op == "c" else row_before, after=row_after, op=op, source=source)
    return replace(record, value=json.dumps(value).encode())


def written(name: str, *parts: neutral.Row | neutral.Ddl, first: int = 1) -> list[Record]:
    """Return what the tool of a format sends, one transaction for each.

    :param first: number of the first.
    """
    writer = TOOLS[name].writer(Style(partitions=1))
    records = []
    for number, what in enumerate(parts, first):
        millis = _BEGIN + 1000 * number
        event = neutral.Event(number, 1, 100 * number, millis, millis + 300, number, what)
        records += [
            Record(f"{PREFIX}.{one.topic}", one.partition, event.sent_ms, one.key, one.value, one.headers)
            for one in writer.write(event, 1)
        ]
    return records


_SCHEMA = TableSchema((Column(1, "id", ColumnType("int"), nullable=False), Column(2, "v", ColumnType("int"))), (1,))


def changed(op: str, number: int, table: str = "t") -> neutral.Row:
    """Return a change of the row of a number: an update multiplies its value by ten."""
    old, new = {"id": number, "v": number}, {"id": number, "v": 10 * number}
    before, after = {"insert": (None, old), "update": (old, new), "delete": (old, None)}[op]
    return neutral.Row(op, "shop", table, _SCHEMA, before, after)


def said(text: str, table: str = "t", *, gone: bool = False, kind: str | None = None) -> neutral.Ddl:
    """Return a statement.

    :param gone: whether the table is gone then.
    :param kind: what the tool calls it, where that is not its first word.
    """
    return neutral.Ddl(text, "shop", table, None if gone else _SCHEMA, kind)


def made(table: str) -> neutral.Ddl:
    """Return the CREATE TABLE of a table with two whole numbers."""
    return said(f"CREATE TABLE {table} (id INT NOT NULL PRIMARY KEY, v INT)", table)


def settings_of(name: str) -> dict[str, Any]:
    """Return a format and its options, as a script takes them."""
    return {"format": name, "schema_topic": None, "options": dict(TOOLS[name].options)}
