# SPDX-License-Identifier: Apache-2.0
"""Give columns of a target other names than the source's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from airflow_provider_cdc.core.shapes.columns import SourceColumns, TargetColumn


def rename(stated: Mapping[str, str], columns: list[TargetColumn], source: SourceColumns) -> list[TargetColumn]:
    """Return the columns under their names in the target; a name stays where the source renames its column."""
    names = {column.id: to for name, to in stated.items() if (column := source.named(name)) is not None}
    return [replace(column, name=names.get(column.id, column.name)) for column in columns]
