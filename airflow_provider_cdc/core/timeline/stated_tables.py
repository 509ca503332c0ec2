# SPDX-License-Identifier: Apache-2.0
"""Leave the keys of tables out of a timeline where a pipeline wants a row for each change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import TableTimeline, Timeline


def without_keys(timeline: Timeline, has_key: Callable[[TableName], bool]) -> Timeline:
    """Return a timeline in which some tables have no key, so that each of their changes counts.

    :param has_key: says whether the key of a table counts.
    """
    without = {i: _without_key(table) for i, table in timeline.tables.items() if not has_key(table.last_name)}
    return replace(timeline, tables={**timeline.tables, **without}) if without else timeline


def _without_key(table: TableTimeline) -> TableTimeline:
    versions = [replace(version, schema=replace(version.schema, key=())) for version in table.versions]
    return replace(table, versions=versions)
