# SPDX-License-Identifier: Apache-2.0
"""Lay each table out at random: another order and other partitions with each change of its columns."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.target_schema import TargetSchema, target_schema
from airflow_provider_cdc.core.config.partition_rules import PartitionRule
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.model.schema import TableSchema
from airflow_provider_cdc.core.shapes.shape import Shape
from airflow_provider_cdc.core.values.types import TypeOptions

_PLAIN = ("identity", "bucket[3]")
_TIMES = ("year", "month", "day", "identity", "bucket[2]")


def lay_out_at_random(patch: pytest.MonkeyPatch, *, partitions: bool) -> None:
    """Let every table that is written have a layout that its columns decide.

    :param partitions: whether its sink partitions tables.
    """

    def laid_out(schema: TableSchema, options: TypeOptions, layout: TableLayout, shape: Shape) -> TargetSchema:
        columns = target_schema(schema, options, layout, shape).columns
        return target_schema(schema, options, _layout(columns, partitions=partitions), shape)

    patch.setattr("spark_jobs.tasks.table_shape.target_schema", laid_out)


def _layout(columns: pa.Schema, *, partitions: bool) -> TableLayout:
    rnd = random.Random(str(columns))
    fields = [field for field in columns if not pa.types.is_nested(field.type)]
    cluster = rnd.sample([field.name for field in fields], min(len(fields), rnd.choice((0, 1, 2))))
    ways = {field.name: transforms_of(field.type) for field in fields if transforms_of(field.type)}
    decimals = [name for name in ways if pa.types.is_decimal(columns.field(name).type)]
    ways |= dict.fromkeys(decimals[1:], ("bucket[2]",))
    names = rnd.sample(sorted(ways), min(len(ways), rnd.choice((0, 1, 1, 2)))) if partitions else []
    rules = tuple(PartitionRule(rnd.choice(ways[name]), name) for name in names)
    return TableLayout({}, tuple(cluster), rules)


def transforms_of(kind: pa.DataType) -> tuple[str, ...]:
    """Return transforms that take a type with all of its values."""
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        return ()
    if pa.types.is_timestamp(kind):
        return (*_TIMES, "hour")
    if pa.types.is_date32(kind):
        return _TIMES
    if pa.types.is_boolean(kind):
        return ("identity",)
    return _PLAIN if pa.types.is_decimal(kind) else (*_PLAIN, "truncate[2]")
