# SPDX-License-Identifier: Apache-2.0
"""Removals of a table without key that found no row yet: their rows stand on another partition and arrive later."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_cdc.core.documents import TableState
from spark_jobs.lake.change_log import readable
from spark_jobs.lake.layout import pending_deletes_file
from spark_jobs.lake.storage import Storage


def read(storage: Storage, pipeline: str, base: TableState | None) -> pa.Table:
    """Return what the table owed after the base's newest commit; without columns when nothing."""
    if base is None or base.debts_seq is None:
        return pa.table({})
    name = pending_deletes_file(pipeline, base.table_id, base.debts_seq)
    with storage.open_file(name) as file, readable(storage, name):
        return pq.read_table(file)


def write(storage: Storage, pipeline: str, table_id: str, seq: int, owed: pa.Table) -> None:
    """Keep what a commit leaves owed, before the commit: the batch's result names it only afterwards."""
    if owed.num_rows:
        name = pending_deletes_file(pipeline, table_id, seq)
        storage.make_folder(name.rsplit("/", 1)[0])
        with storage.access(name) as path:
            pq.write_table(owed, path, filesystem=storage.filesystem)
