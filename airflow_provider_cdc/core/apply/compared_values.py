# SPDX-License-Identifier: Apache-2.0
"""Compare stored values with those that the log says, and name the columns in which they may differ."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from airflow_provider_cdc.core.apply.row_sets import group_numbers
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.arrays import BoolArray
from airflow_provider_cdc.core.model.schema import Column, Default
from airflow_provider_cdc.core.timeline.timeline import TableTimeline
from airflow_provider_cdc.core.values.types import GEOMETRIES


def unproven_columns(timeline: TableTimeline) -> set[int]:
    """Return the columns of which stored and logged values may differ while all is well."""
    columns = [column for version in timeline.versions for column in version.schema.columns]
    # the server computed them for the rows of the time before the column, and the log does not say what
    computed = {column.id for column in columns if column.id in timeline.fills and _is_computed(column)}
    defaults: dict[int, set[Default | None]] = {}
    for column in columns:
        if column.nullable:
            defaults.setdefault(column.id, set()).add(column.default)
    # Kafka Connect's converter writes NULL as the default that the column has then (docs/formats/debezium-json.md)
    return computed | {number for number, several in defaults.items() if len(several) > 1}


def _is_computed(column: Column) -> bool:
    by_server = column.default is not None and column.default.kind != "constant"
    return by_server or column.type.name in GEOMETRIES


def unlike_values(one: pa.ChunkedArray, other: pa.ChunkedArray, forms: ValueForms, name: str) -> BoolArray:
    """Return which values differ; those of a type with several forms by their form."""
    both = pa.table({name: pa.chunked_array([*one.cast(other.type).chunks, *other.chunks], other.type)})
    first, second = np.split(group_numbers(both.columns), [len(one)])
    unlike: BoolArray = first != second
    if unlike.any() and name in forms.columns:
        some = np.flatnonzero(unlike)
        first, second = np.split(
            group_numbers(forms.in_one_form(both.take(pa.array(np.r_[some, some + len(one)]))).columns), [len(some)]
        )
        unlike[some] = first != second
    return unlike
