# SPDX-License-Identifier: Apache-2.0
"""Hand record batches from task to task: Arrow IPC files, of which a reader takes single batches."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import pyarrow as pa

from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from spark_jobs.lake.storage import Storage


def write_batches(storage: Storage, folder: str, kind: str, batches: Sequence[pa.RecordBatch]) -> str:
    """Write batches of one schema; return the file's name, which no other attempt of the task uses.

    :param kind: begins the name.
    """
    name = f"{folder}/{kind}-{uuid.uuid4().hex}.arrow"
    options = pa.ipc.IpcWriteOptions(compression="lz4")
    with (
        storage.access(name),
        storage.open_new(name) as stream,
        pa.ipc.new_file(stream, batches[0].schema, options=options) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)
    return name


def read_batch(storage: Storage, name: str, number: int) -> pa.RecordBatch:
    """Read one batch of a file.

    :param number: from 0.
    :raises UnavailableError: the file is gone; nothing of a table is ever left out.
    """
    try:
        with storage.open_file(name) as file:
            return pa.ipc.open_file(file).get_batch(number)
    except SinkError as error:
        if error.code != "log.missing":
            raise
        raise UnavailableError(
            "apply.staged_missing",
            "what a task staged is gone",
            where={"path": f"{storage.root}/{name}"},
            hint="run again; nothing of the batch is in the table yet",
        ) from None


def one_batch(rows: pa.Table) -> pa.RecordBatch:
    """Return rows as one batch; the texts of a column are less than 2 GiB together."""
    batches = rows.unify_dictionaries().combine_chunks().to_batches()
    if not batches:
        return pa.RecordBatch.from_pylist([], rows.schema)
    (batch,) = batches
    return batch
