# SPDX-License-Identifier: Apache-2.0
"""Actions on a table of two columns, for tests of sinks."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from airflow_provider_cdc.core.apply.merge_plan import LaterRows
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action

APP = "cdc/tests/t1/0"


def commit(seq: int) -> Commit:
    return Commit(APP, seq, {"app": APP, "seq": seq})


def rows(*pairs: tuple[int, str | None]) -> pa.Table:
    return pa.table(
        {"id": pa.array([p[0] for p in pairs], pa.int64()), "v": pa.array([p[1] for p in pairs], pa.string())}
    )


def in_pieces(action: Action) -> Action:
    """Return the same action with rows that are typed one by one while they are written."""
    rows = action.rows
    later = LaterRows(rows.num_rows, lambda: (rows.slice(n, 1) for n in range(rows.num_rows)))
    return replace(action, rows=rows.schema.empty_table(), later=later)
