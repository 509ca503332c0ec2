# SPDX-License-Identifier: Apache-2.0
"""Change tables and timelines for tests of resolving, without any wire form."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import MergePlan
from airflow_provider_cdc.core.apply.repeated_rows import SENT_COLUMNS, with_sending
from airflow_provider_cdc.core.apply.resolve import RESOLVE_COLUMNS
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline

NAME = TableName("shop", "t")


def timeline_of(*statements: str) -> TableTimeline:
    """Return the timeline of ``shop.t``; the first statement stands before all, later ones at 100, 200, ..."""
    changes = [SchemaChange(f"{n * 100:08d}" if n else "", n, NAME.database, text) for n, text in enumerate(statements)]
    result = build_timeline(changes)
    owner = result.owner(NAME, "~")
    assert owner is not None
    return result.tables[owner]


def change(
    position: int, op: str, before: Any = None, after: Any = None, *, partition: int = 0, columns: str | None = None
) -> dict[str, Any]:
    """Return one row change; its offset is its position."""
    return {
        "topic": "rows",
        "partition": partition,
        "offset": position,
        "index": 0,
        "op": op,
        "position": f"{position:08d}.{0:010d}",
        "before": None if before is None else json.dumps(before),
        "after": None if after is None else json.dumps(after),
        "columns": columns,
    }


def table_of(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Return changes as resolving takes them."""
    schema = pa.schema([CHANGE_SCHEMA.field(name) for name in RESOLVE_COLUMNS])
    plain = pa.schema([pa.field(f.name, pa.string() if pa.types.is_dictionary(f.type) else f.type) for f in schema])
    return pa.Table.from_pylist(list(rows), plain).cast(schema)


def clock_table_of(rows: Iterable[dict[str, Any]]) -> pa.Table:
    """Return changes of a format ordered by clock, none of which was sent again."""
    table = table_of(rows)
    for name in SENT_COLUMNS:
        field = CHANGE_SCHEMA.field(name)
        table = table.append_column(field, pa.nulls(table.num_rows, field.type))
    return with_sending(table)


def failures(plan: MergePlan) -> list[tuple[int, str, str]]:
    """Return (offset, column, reason) of the rows left out."""
    return [(failure.offset, failure.column, failure.reason) for failure in plan.failures]
