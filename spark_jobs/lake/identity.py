# SPDX-License-Identifier: Apache-2.0
"""Know a pipeline's lake again: a lake that was copied or moved is refused before anything is written.

The lake gets an id with its first batch, once, and says at which root that was. The ledger remembers both.
"""

from __future__ import annotations

import uuid

from airflow_provider_cdc.core.documents import JobDocument, Result
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.lake.own_lake import LakeIdentity, demand_same_lake, is_at, other_lake
from airflow_provider_cdc.core.lake.roots import physical_root
from airflow_provider_cdc.core.model.status import ResultStatus
from spark_jobs.lake.folded_batches import folded_through
from spark_jobs.lake.layout import batch_name, lake_file, log_folder
from spark_jobs.lake.scratch import lake_of
from spark_jobs.lake.storage import Storage


def demand_own_lake(job: JobDocument, storage: Storage) -> LakeIdentity | None:
    """Return the identity of the lake at a job's root, which it gets if it has none yet.

    None where the ledger remembers batches of a lake and there is none at the root: the change log says so.

    :raises SinkError: ``lake.moved``, the lake was made at another root; ``lake.other``, the ledger remembers another.
    """
    there = _read(job, storage)
    if there is None:
        if job.earlier and not _holds(job, storage, job.earlier[-1]):
            return None
        if job.lake is not None:
            raise other_lake(job.lake_root, job.pipeline)
        mine = _new(job)
        if storage.create_json(lake_file(job.pipeline), mine.document()):
            return mine
        there = _read(job, storage)
        assert there is not None, "another driver made it"
    demand_same_lake(there, job.lake, job.lake_root, job.sink_root, job.pipeline)
    return there


def adopt(job: JobDocument, secrets: dict[str, dict[str, str]]) -> Result:
    """Let the lake at a job's root be the pipeline's from now on; doing it again changes nothing.

    It gets an id of its own, so what it was copied from and the ledger of that are never taken for it.

    :raises SinkError: ``lake.missing``, there is no lake of the pipeline.
    """
    storage = lake_of(job, secrets)
    there = _read(job, storage)
    if there is None and not _has_batches(job, storage):
        raise SinkError(
            "lake.missing",
            "there is no lake of this pipeline at the root",
            where={"root": job.lake_root, "pipeline": job.pipeline},
            hint="correct lake.root or sink.root; a new lake needs no adoption",
        )
    result = Result(job.pipeline, job.seq, ResultStatus.DONE)
    known = there is not None and job.lake is not None and there.id == job.lake.id
    if there is None or not known or not is_at(there, job.lake_root, job.sink_root):
        there = _new(job)
        storage.write_json(lake_file(job.pipeline), there.document())
    result.lake = there
    return result


def _read(job: JobDocument, storage: Storage) -> LakeIdentity | None:
    document = storage.read_json(lake_file(job.pipeline))
    return None if document is None else LakeIdentity.from_document(document)


def _new(job: JobDocument) -> LakeIdentity:
    return LakeIdentity(
        uuid.uuid4().hex,
        job.pipeline,
        job.lake_root,
        physical_root(job.lake_root),
        job.sink_root,
        physical_root(job.sink_root),
    )


def _has_batches(job: JobDocument, storage: Storage) -> bool:
    return bool(storage.folders(log_folder(job.pipeline)))


def _holds(job: JobDocument, storage: Storage, seq: int) -> bool:
    """Return whether the lake has anything of a batch."""
    return batch_name(seq) in storage.folders(log_folder(job.pipeline)) or folded_through(storage, job.pipeline) >= seq
