# SPDX-License-Identifier: Apache-2.0
"""Say which columns a table gets by the rules of its pipeline, and how the rows lie that it has so far."""

from __future__ import annotations

from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.model.laid_columns import LaidColumns
from airflow_provider_cdc.core.shapes.shape import Shape
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions

SALT = "salt"


def shape_of(job: JobDocument, timeline: TableTimeline, secrets: dict[str, dict[str, str]]) -> Shape:
    """Return the columns that a table gets."""
    salt = secrets.get("mask", {}).get(SALT, "")
    rule = job.tables.rule(timeline.last_name)
    return Shape.of(rule.columns, rule.filter, timeline, salt.encode())


def demand_fit(job: JobDocument, timeline: TableTimeline) -> None:
    """Look whether the rules of a table fit its columns.

    :raises DataError: they do not.
    """
    policy = job.tables.policy(timeline.last_name, job.policy)
    shape, types = shape_of(job, timeline, {}), TypeOptions.of(policy)
    shape.columns(timeline.schema, types)
    shape.bound_condition(timeline.schema, types)


def laid_of(state: TableState | None) -> LaidColumns:
    """Return how the rows lie that a table has so far."""
    return LaidColumns.from_document(None if state is None else state.laid)
