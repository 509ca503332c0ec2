# SPDX-License-Identifier: Apache-2.0
"""Keep removals of a keyless table that found no row yet: their rows are on another partition and arrive later."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_cdc.core.documents import TableState
from spark_jobs.lake.layout import pending_deletes_file
from spark_jobs.lake.row_groups import readable
from spark_jobs.lake.storage import Storage


def read(storage: Storage, pipeline: str, base: TableState | None) -> pa.Table:
    """Return the pending deletes after the base's newest commit; without columns if there are none."""
    if base is None or base.debts_seq is None:
        return pa.table({})
    name = pending_deletes_file(pipeline, base.table_id, base.debts_seq)
    with storage.open_file(name) as file, readable(storage, name):
        return pq.read_table(file)


def write(storage: Storage, pipeline: str, table_id: str, seq: int, deletes: pa.Table) -> None:
    """Write the pending deletes of a commit before the commit: the batch's result names them only afterwards."""
    if deletes.num_rows:
        name = pending_deletes_file(pipeline, table_id, seq)
        storage.make_folder(name.rsplit("/", 1)[0])
        with storage.access(name) as path:
            pq.write_table(deletes, path, filesystem=storage.filesystem)
