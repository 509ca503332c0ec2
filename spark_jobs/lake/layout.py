# SPDX-License-Identifier: Apache-2.0
"""Lay out a pipeline's own folder in the lake, ``_cdc/<pipeline>``; names are relative to the sink's root."""

from __future__ import annotations

FOLDED = 0
"""Number in the change log of all batches that are folded into one."""


def log_folder(pipeline: str, seq: int | None = None) -> str:
    """Return the folder of one batch in the change log, or of all batches.

    :param seq: number of the batch, None for all.
    """
    folder = f"_cdc/{pipeline}/log"
    return folder if seq is None else f"{folder}/{batch_name(seq)}"


def batch_name(seq: int) -> str:
    """Return the name of a batch's folder: names sort as numbers do."""
    return f"{seq:08d}"


def batch_document(pipeline: str, seq: int, kind: str) -> str:
    """Return the file of a batch: ``claim``, ``alive``, ``manifest``, ``failed``, ``result``, ``generation-<number>``.

    Of the folded batches it is ``folded`` or ``folded-<number>``.
    """
    return f"{log_folder(pipeline, seq)}/{kind}.json"


def lake_file(pipeline: str) -> str:
    """Return the file that says which lake this is."""
    return f"_cdc/{pipeline}/lake.json"


def staged_folder(pipeline: str, seq: int, table_id: str) -> str:
    """Return the folder of what tasks leave for the tasks that follow, or for the Spark writer, of one table."""
    return f"{staged_root(pipeline, seq)}/{table_id}"


def staged_root(pipeline: str, seq: int) -> str:
    """Return the folder of what tasks of a batch leave for others, of all tables."""
    return f"{log_folder(pipeline, seq)}/staged"


def pending_deletes_file(pipeline: str, table_id: str, seq: int) -> str:
    """Return the file of the pending deletes that a batch left."""
    return f"{pending_deletes_folder(pipeline)}/{table_id}/{seq:08d}.parquet"


def pending_deletes_folder(pipeline: str) -> str:
    """Return the folder of the pending deletes of all tables; each has a folder in it."""
    return f"_cdc/{pipeline}/debts"


def begun_file(pipeline: str, table_id: str) -> str:
    """Return the file that names the location where the pipeline began to create a table."""
    return f"_cdc/{pipeline}/begun/{table_id}.json"


def provided_folder(pipeline: str, table_id: str) -> str:
    """Return the folder of the copies of files that operators provided for a table."""
    return f"_cdc/{pipeline}/provided/{table_id}"


def batch_of(file: str) -> int:
    """Return the number of the batch that a file of the change log is of."""
    return int(file.rsplit("/", 2)[-2])


def expired_file(pipeline: str, seq: int) -> str:
    """Return the file that says that the rows of a batch were removed, or are being removed."""
    return batch_document(pipeline, seq, "expired")


def folded_rows_file(pipeline: str) -> str:
    """Return the file that the rows of folded batches would be in: there is none."""
    return f"{log_folder(pipeline, FOLDED)}/removed.parquet"


def jobs_folder(pipeline: str) -> str:
    """Return the folder of the job documents."""
    return f"_cdc/{pipeline}/jobs"
