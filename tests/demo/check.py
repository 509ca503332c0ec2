# SPDX-License-Identifier: Apache-2.0
"""Compare tables that a sink of the Spark side opens with the database's own content at a moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.demo.check import Verdict
from airflow_provider_cdc.demo.check import compare as compare_rows
from spark_jobs.sinks.contract import Sink, Stored
from spark_jobs.sinks.delta.sink import open_sink
from tests.locations import table_place


def compare(
    root: Path,
    truth: Path,
    states: Iterable[TableState],
    sink: Sink[Stored] | None = None,
    path: Callable[[str, str], str] = table_place,
) -> Verdict:
    """Compare the lake with the database's own content.

    :param root: of the lake.
    :param truth: a ``source_at`` file.
    :param sink: opens the tables, None for Delta's.
    :param path: returns where the table of a database and name lies below the root.
    :param states: tables as the ledger knows them; one the database does not have must be marked dropped.
    """

    def rows_of(database: str, table: str) -> pa.Table | None:
        stored = (sink or open_sink({})).open(located(str(root), path(database, table)))
        return stored.rows() if stored.exists else None

    return compare_rows(rows_of, truth, states)
