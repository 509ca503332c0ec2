# SPDX-License-Identifier: Apache-2.0
"""Add columns that say something of the change that made a row."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import pyarrow as pa

from airflow_provider_cdc.core.config.column_rules import METADATA
from airflow_provider_cdc.core.shapes.columns import OWN_IDS, SOURCE_TIME, RowInputs, SourceColumns, TargetColumn

_TYPES = {"source_time": SOURCE_TIME, "batch": pa.int64()}
IDS = {name: OWN_IDS - number for number, name in enumerate(METADATA)}


def metadata(stated: Mapping[str, str], columns: list[TargetColumn], source: SourceColumns) -> list[TargetColumn]:
    """Return the columns with those of the change behind them."""
    if not source.schema.key:
        raise source.rule_error(
            "shape.key",
            "columns.metadata needs a key: of equal rows without one nothing shows which change made which",
            "leave `metadata` out for this table",
        )
    return [
        *columns,
        *(
            TargetColumn(
                IDS[what], name, _TYPES.get(what, pa.string()), mark=f"metadata {what}", make=partial(_values, what)
            )
            for what, name in stated.items()
        ),
    ]


def _values(what: str, rows: RowInputs) -> pa.Array:
    values = rows.of_change(what)
    return values.cast(_TYPES.get(what, pa.string()))
