# SPDX-License-Identifier: Apache-2.0
"""Remove the rows of old batches from the change log, never before every table has applied them.

The documents of the oldest batches without rows become one: a ledger is rebuilt from it. A table that needs removed
rows after all, for a late row or schema change, is refused by itself (``retention.log_expired``).
"""

from __future__ import annotations

from functools import partial
from itertools import takewhile

from airflow_provider_cdc.core.documents import ExpiredLog, JobDocument, Result
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from spark_jobs.driver.batch_history import demand_document
from spark_jobs.driver.quarantine_entries import read_entries
from spark_jobs.lake.folded_batches import (
    FoldedBatches,
    folded_through,
    no_batches,
    read_folded,
    remove_older_snapshots,
    write_folded,
)
from spark_jobs.lake.layout import (
    FOLDED,
    batch_document,
    batch_of,
    expired_file,
    jobs_folder,
    log_folder,
    pending_deletes_folder,
    staged_root,
)
from spark_jobs.lake.manifest import Manifest
from spark_jobs.lake.scratch import storage_options
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stored_result import StoredResult


def expire_log(job: JobDocument, through: int, secrets: dict[str, dict[str, str]]) -> Result:
    """Remove rows of the change log, and job documents; a crash in between is finished by the next call.

    The result's ``lake_batches`` are the folded batches, as one, if there are any.

    :param through: newest batch that is old enough.
    """
    storage = Storage(job.lake_root, storage_options(job, secrets))
    report = ExpiredLog(_needless_through(job, through, storage))
    pinned = _pinned(job, report.through, storage)
    folded_before = folded_through(storage, job.pipeline)
    for seq in job.earlier:
        if seq <= folded_before or seq > report.through or _is_empty(storage, job.pipeline, seq):
            continue
        storage.write_json(expired_file(job.pipeline, seq), {"all": False})  # readers that miss a file know why
        files = storage.files(log_folder(job.pipeline, seq), ".parquet")
        for name, size in files:
            if name not in pinned:
                storage.delete_file(name)
                report.files, report.file_bytes = report.files + 1, report.file_bytes + size
        storage.delete_folder(staged_root(job.pipeline, seq))
        if not any(name in pinned for name, _ in files):
            storage.write_json(expired_file(job.pipeline, seq), {"all": True})
    for folder in storage.folders(jobs_folder(job.pipeline)):
        if folder.isdecimal() and int(folder) <= through:
            storage.delete_folder(f"{jobs_folder(job.pipeline)}/{folder}")
            report.jobs += 1
    folded, report.folded = fold(job, storage)
    lake_batches = [] if folded is None else [folded.lake_batch()]
    return Result(job.pipeline, job.seq, ResultStatus.DONE, expired=report, lake_batches=lake_batches)


def fold(job: JobDocument, storage: Storage) -> tuple[FoldedBatches | None, int]:
    """Put the documents of the oldest batches without rows into one; return it, and how many batches are new in it.

    A reader finds all documents of a batch or the one document: that is whole before it counts, and the others are
    removed behind that. A crash in between is finished by the next call.
    """
    before = folded_through(storage, job.pipeline)
    folded = read_folded(storage, job.pipeline, before) if before else no_batches(job.pipeline)
    due = [*takewhile(partial(_is_empty, storage, job.pipeline), (seq for seq in job.earlier if seq > before))]
    for seq in due:
        claim = storage.read_json(batch_document(job.pipeline, seq, "claim"))  # earlier releases wrote none
        manifest = Manifest.from_document(demand_document(job, storage, seq, "manifest"))
        result = StoredResult.from_document(demand_document(job, storage, seq, "result"))
        folded = folded.with_next(seq, claim, manifest, result, job.pipeline)
    if due:
        write_folded(storage, job.pipeline, folded)
    if not folded.through:
        return None, 0
    for name in storage.folders(log_folder(job.pipeline)):
        if name.isdecimal() and FOLDED < int(name) <= folded.through:
            storage.delete_folder(f"{log_folder(job.pipeline)}/{name}")
    remove_older_snapshots(storage, job.pipeline, folded.through)
    _remove_pending_deletes(job, folded, storage)
    return folded, len(due)


def _remove_pending_deletes(job: JobDocument, folded: FoldedBatches, storage: Storage) -> None:
    """Remove the pending deletes that folded batches left, but those of states that a table may go on from."""
    states = [*job.states, *(state for _, state in folded.states)]
    needed = {(state.table_id, state.pending_seq) for state in states}
    for table_id in storage.folders(pending_deletes_folder(job.pipeline)):
        for name, _ in storage.files(f"{pending_deletes_folder(job.pipeline)}/{table_id}", ".parquet"):
            seq = int(name.rsplit("/", 1)[-1].removesuffix(".parquet"))
            if seq <= folded.through and (table_id, seq) not in needed:
                storage.delete_file(name)


def _is_empty(storage: Storage, pipeline: str, seq: int) -> bool:
    """Return whether all rows of a batch were removed."""
    return bool(storage.read_unfinished(expired_file(pipeline, seq)) == {"all": True})


def _needless_through(job: JobDocument, through: int, storage: Storage) -> int:
    """Return the newest batch whose rows every table has applied, and none of whose records wait in the quarantine."""
    behind = [s.applied_seq for s in job.states if s.state in (TableStatus.PARKED, TableStatus.WAITING)]
    waits = [entry.seq - 1 for entry in read_entries(job, storage) if entry.decision is None]
    newest = job.earlier[-1] - 1 if job.earlier else 0
    return max(0, min([through, newest, *behind, *waits]))


def _pinned(job: JobDocument, through: int, storage: Storage) -> set[str]:
    """Return files of old batches that later ones name: they replay rows."""
    pinned: set[str] = set()
    for seq in job.earlier if through else ():
        if seq > max(through, folded_through(storage, job.pipeline)):
            document = storage.read_json(batch_document(job.pipeline, seq, "manifest"))
            groups = Manifest.from_document(document).groups if document is not None else []
            pinned |= {group.file for group in groups if batch_of(group.file) <= through}
    return pinned
