# SPDX-License-Identifier: Apache-2.0
"""Map stored rows to altered schemas, for tests of resolving and of DDL."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from airflow_provider_cdc.core.apply.schema_mapping import Mapper
from airflow_provider_cdc.core.apply.target_schema import target_schema
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import timeline_of

Row = dict[str, Any]


def altered(columns: str, *alters: str) -> TableTimeline:
    """Return a table that was created with some columns and altered since; each ALTER begins a schema version."""
    return timeline_of(
        f"CREATE TABLE t (id INT PRIMARY KEY, {columns})", *(f"ALTER TABLE t {alter}" for alter in alters)
    )


def mapper(timeline: TableTimeline, lossy: Counter[str] | None = None) -> Mapper:
    return Mapper(timeline.versions, timeline.fills, TypeOptions(), lossy)


def stored(timeline: TableTimeline, version: int, rows: list[Row]) -> pa.Table:
    """Return rows as they are stored under one schema version."""
    return pa.Table.from_pylist(rows, target_schema(timeline.versions[version].schema, TypeOptions()).columns)


def carried(timeline: TableTimeline, *rows: Row, version: int = 0) -> list[Row]:
    """Return stored rows of one schema version as they are under the newest one."""
    old = timeline.versions[version].schema
    content = stored(timeline, version, list(rows))
    return mapper(timeline).content(content, old, len(timeline.versions) - 1, version).to_pylist()
