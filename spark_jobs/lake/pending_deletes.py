# SPDX-License-Identifier: Apache-2.0
"""Keep removals of a keyless table that found no row yet: their rows are on another partition and arrive later."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_provider_cdc.core.apply.merge_plan import OpenRemovals
from airflow_provider_cdc.core.documents import TableState
from spark_jobs.lake.layout import pending_deletes_file
from spark_jobs.lake.row_groups import readable
from spark_jobs.lake.storage import Storage

_POSITIONS = b"cdc.positions"


def read(storage: Storage, pipeline: str, base: TableState | None) -> OpenRemovals | None:
    """Return the pending deletes after the base's newest commit."""
    if base is None or base.pending_seq is None:
        return None
    name = pending_deletes_file(pipeline, base.table_id, base.pending_seq)
    with storage.open_file(name) as file, readable(storage, name):
        rows = pq.read_table(file)
        return OpenRemovals(rows.replace_schema_metadata(), pa.array(json.loads(rows.schema.metadata[_POSITIONS])))


def write(storage: Storage, pipeline: str, table_id: str, seq: int, deletes: OpenRemovals | None) -> None:
    """Write the pending deletes of a commit before the commit: the batch's result names them only afterwards."""
    if deletes is not None:
        name = pending_deletes_file(pipeline, table_id, seq)
        positions = {_POSITIONS: json.dumps(deletes.positions.to_pylist())}
        with storage.access(name), storage.open_new(name) as stream:
            pq.write_table(deletes.rows.replace_schema_metadata(positions), stream)
