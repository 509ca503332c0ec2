# SPDX-License-Identifier: Apache-2.0
"""Actions on a table of two columns, for tests of sinks."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import LaterRows
from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action

APP = "cdc/tests/t1/0"


def commit(seq: int) -> Commit:
    return Commit(APP, seq, {"app": APP, "seq": seq})


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table(
        {"id": pa.array([p[0] for p in pairs], pa.int64()), "v": pa.array([p[1] for p in pairs], pa.string())}
    )


def columns_of(schema: pa.Schema, *key: str) -> TargetSchema:
    """Return columns whose ids are their ordinals.

    :param key: names of the key's columns.
    """
    ids = {name: number for number, name in enumerate(schema.names, 1)}
    return TargetSchema(tuple(ids.values()), schema, tuple(ids[name] for name in key))


def in_pieces(action: Action) -> Action:
    """Return the same action with rows that are typed one by one while they are written."""
    rows = action.rows
    later = LaterRows(rows.num_rows, lambda: (rows.slice(n, 1) for n in range(rows.num_rows)))
    return replace(action, rows=rows.schema.empty_table(), later=later)
