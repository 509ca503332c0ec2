# SPDX-License-Identifier: Apache-2.0
"""Read the CREATE TABLE statements that a pipeline states itself as schema changes."""

from __future__ import annotations

from airflow_provider_cdc.core.config.stated_tables import dialect_of, stated_tables
from airflow_provider_cdc.core.config.tables import TableRules
from airflow_provider_cdc.core.timeline.timeline import SchemaChange


def stated_changes(rules: TableRules) -> list[SchemaChange]:
    """Return the CREATE TABLE statements that the pipeline states itself; they stand before everything else."""
    return [
        SchemaChange("", number, full.split(".", 1)[0], create, dialect=dialect_of(create))
        for number, (full, create) in enumerate(stated_tables(rules))
    ]
