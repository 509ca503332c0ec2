# SPDX-License-Identifier: Apache-2.0
"""Leave columns out of a target."""

from __future__ import annotations

from airflow_provider_cdc.core.shapes.columns import SourceColumns, TargetColumn


def exclude(stated: str | list[str], columns: list[TargetColumn], source: SourceColumns) -> list[TargetColumn]:
    """Return the columns without those that have, or had, a name that a pattern matches.

    A column that gets another name stays out: what it holds is the same.
    """
    patterns = [stated] if isinstance(stated, str) else stated
    gone = {column.id for pattern in patterns for column in source.matching(pattern)}
    keys = [column.name for column in source.schema.key_columns if column.id in gone]
    if keys:
        raise source.rule_error(
            "shape.key",
            f"columns.exclude leaves out {', '.join(keys)} of the key, which tells the rows apart",
            "take it out of `exclude`; `mask: hash` hides the values of a key",
        )
    if len(gone) == len(source.schema.columns):
        raise source.rule_error(
            "shape.no_columns",
            "columns.exclude leaves out every column of the table",
            "leave the table out instead: tables.exclude",
        )
    return [column for column in columns if column.id not in gone]
