# SPDX-License-Identifier: Apache-2.0
"""The batches of a pipeline as the lake knows them: which offsets each number stands for, and who works on it.

The lake is the truth (docs/design/lake-layout.md). A ledger that is lost, new or restored from a backup does not know
all batches of the lake. Work goes on only after the ledger has taken them over, so a number never stands for two
ranges.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import BusyError, CdcError, SinkError
from spark_jobs.lake.folded_batches import FoldedBatches, folded_through, read_folded
from spark_jobs.lake.layout import batch_document, batch_name, log_folder
from spark_jobs.lake.manifest import Manifest
from spark_jobs.lake.storage import Storage
from spark_jobs.lake.stored_result import StoredResult

ALIVE_SECONDS = 5.0
"""A driver shows this often that it works on its batch."""


@dataclass(frozen=True, slots=True)
class LakeBatch:
    """One batch number of the lake.

    :param claim: range and ledger that the number stands for; None where an earlier release wrote it.
    :param landed: whether its changes are in the change log.
    :param result: None while the batch is unfinished.
    :param folded: all batches up to it, where they are one document.
    """

    seq: int
    claim: dict[str, Any] | None
    landed: bool
    result: StoredResult | None
    folded: FoldedBatches | None = None

    def is_of(self, job: JobDocument) -> bool:
        """Return whether the number stands for the offsets of a job."""
        return self.seq == job.seq and (self.claim is None or self.claim["read"] == read_range(job))

    def document(self) -> dict[str, Any]:
        """Return plain JSON data."""
        if self.folded is not None:
            return self.folded.lake_batch()
        return {"seq": self.seq, "claim": self.claim, "result": None if self.result is None else self.result.document()}


def read_range(job: JobDocument) -> dict[str, list[int]]:
    """Return the offsets that a job reads, ``topic/partition`` -> [start, end), where there is something to read."""
    ranges: dict[str, list[int]] = {}
    for chunk in job.chunks:
        start, end = ranges.get(f"{chunk.topic}/{chunk.partition}", (chunk.start, chunk.end))
        ranges[f"{chunk.topic}/{chunk.partition}"] = [min(start, chunk.start), max(end, chunk.end)]
    return dict(sorted(ranges.items()))


class BatchLog:
    """The batches of one pipeline in the lake."""

    def __init__(self, storage: Storage, pipeline: str) -> None:
        self._storage, self._pipeline = storage, pipeline

    def unknown_to(self, job: JobDocument) -> list[LakeBatch]:
        """Return the batches that the ledger must take over before the job may run, ascending; none in normal work.

        Lists only numbers behind the newest batch that the ledger knows: a ledger learns of batches in order.

        :raises SinkError: ``lake.unknown_batch``, the lake does not say which offsets a finished batch holds.
        """
        newest = job.earlier[-1] if job.earlier else 0
        names = self._storage.folders(log_folder(self._pipeline), after=batch_name(newest) if newest else "")
        through = folded_through(self._storage, self._pipeline)
        batches = [self._batch(int(name)) for name in names if name.isdecimal() and int(name) > through]
        if through > newest:
            folded = read_folded(self._storage, self._pipeline, through)
            batches = [LakeBatch(through, folded.claim, True, folded.result, folded), *batches]
        elif all(_is_known(batch, job) for batch in batches):
            return []
        finished = [batch for batch in batches if batch.result is not None]
        for batch in finished:
            if batch.claim is None:
                raise SinkError(
                    "lake.unknown_batch",
                    f"the lake holds batch {batch.seq}, which the ledger does not know, and not which offsets it read",
                    where={"root": job.lake_root, "pipeline": job.pipeline, "seq": batch.seq},
                    hint="use the ledger that this lake was written with, or begin in an empty sink.root",
                )
        open_batches = [batch for batch in batches if batch.result is None and not _is_known(batch, job)]
        return [
            *finished,
            *open_batches[-1:],
        ]  # batches end in order: an unfinished one before a later one was abandoned

    def claim(self, job: JobDocument) -> None:
        """Take the job's number for its offsets; the same job may claim again.

        :raises BusyError: ``lake.busy``, another ledger claimed the number and its driver is at work;
            ``lake.other_range``, another ledger claimed it for other offsets at this moment.
        """
        name, mine = self._name(job.seq, "claim"), _claim(job)
        if self._storage.create_json(name, mine):
            return
        there = self._storage.read_unfinished(name)
        if there is None:
            self._storage.write_json(name, mine)
        elif there["read"] != mine["read"]:
            raise BusyError(
                "lake.other_range",
                f"another ledger began batch {job.seq} of this lake with other offsets",
                where={"root": job.lake_root, "pipeline": job.pipeline, "ledger": there["ledger"]},
                hint="run again; give all hosts of a pipeline one ledger (PostgreSQL)",
            )
        elif there["ledger"] != job.ledger:
            self._refuse_while_alive(job, there)
            self._storage.write_json(name, mine)

    @contextmanager
    def alive(self, job: JobDocument) -> Iterator[None]:
        """Show other ledgers, for the length of a block, that this driver works on the batch."""
        ended = threading.Event()

        def beat() -> None:
            count = 0
            while not ended.wait(ALIVE_SECONDS):
                count += 1
                try:
                    self._storage.write_json(
                        self._name(job.seq, "alive"), {"host": socket.gethostname(), "count": count}
                    )
                except CdcError:
                    continue  # the batch itself meets the same store and says so

        thread = threading.Thread(target=beat, name="alive", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def result(self, job: JobDocument) -> StoredResult | None:
        """Return the batch's result, None where the batch has not ended."""
        document = self._document(job, "result")
        return None if document is None else StoredResult.from_document(document)

    def manifest(self, job: JobDocument) -> Manifest | None:
        """Return what the batch landed, None where landing has not ended."""
        document = self._document(job, "manifest")
        return None if document is None else Manifest.from_document(document)

    def write_manifest(self, job: JobDocument, manifest: Manifest) -> Manifest:
        """Make landed changes visible; return what counts, which is another attempt's manifest if that came first."""
        return Manifest.from_document(self._write(job, "manifest", manifest.document()))

    def replace_manifest(self, job: JobDocument, manifest: Manifest) -> None:
        """Let what was landed count with other positions; each attempt at the batch finds the same ones."""
        self._storage.write_json(self._name(job.seq, "manifest"), self._of_job(job, manifest.document()))

    def approval(self, job: JobDocument, generation: int) -> dict[str, Any] | None:
        """Return what an operator approved of a generation that begins in the batch, None without."""
        return self._document(job, f"generation-{generation}")

    def approve(self, job: JobDocument, generation: int, approved: dict[str, Any]) -> None:
        """Record that a generation may begin in the batch."""
        name = self._name(job.seq, f"generation-{generation}")
        self._storage.write_json(name, {**approved, "read": read_range(job)})

    def write_result(self, job: JobDocument, result: StoredResult) -> StoredResult:
        """Record how the batch ended; return what counts, which is another attempt's result if that came first."""
        return StoredResult.from_document(self._write(job, "result", result.document()))

    def _document(self, job: JobDocument, kind: str) -> dict[str, Any] | None:
        """Return a document of the batch; one that a crash cut off or that holds other offsets is none."""
        content = self._storage.read_unfinished(self._name(job.seq, kind))
        if content is None or content.get("read", read_range(job)) != read_range(job):
            return None
        return dict(content)

    def _write(self, job: JobDocument, kind: str, document: dict[str, Any]) -> dict[str, Any]:
        document = self._of_job(job, document)
        name = self._name(job.seq, kind)
        if self._storage.create_json(name, document):
            return document
        there = self._document(job, kind)
        if there is None:
            self._storage.write_json(name, document)
        return document if there is None else there

    @staticmethod
    def _of_job(job: JobDocument, document: dict[str, Any]) -> dict[str, Any]:
        return {**document, "ledger": job.ledger, "lake": _lake(job), "read": read_range(job)}

    def _refuse_while_alive(self, job: JobDocument, claim: dict[str, Any]) -> None:
        """Wait long enough to see whether another ledger's driver works; clocks of hosts are not compared."""
        before = self._storage.read_unfinished(self._name(job.seq, "alive"))
        time.sleep(2.5 * ALIVE_SECONDS)
        after = self._storage.read_unfinished(self._name(job.seq, "alive"))
        if after != before:
            raise BusyError(
                "lake.busy",
                f"another ledger works on batch {job.seq} of this lake",
                where={"root": job.lake_root, "pipeline": job.pipeline, "ledger": claim["ledger"], **(after or {})},
                hint="let one ledger serve all hosts (PostgreSQL), or run again when the other host is done",
            )

    def _batch(self, seq: int) -> LakeBatch:
        claim, manifest, result = (
            self._storage.read_unfinished(self._name(seq, kind)) for kind in ("claim", "manifest", "result")
        )
        return LakeBatch(
            seq, claim, manifest is not None, None if result is None else StoredResult.from_document(result)
        )

    def _name(self, seq: int, kind: str) -> str:
        return batch_document(self._pipeline, seq, kind)


def _lake(job: JobDocument) -> dict[str, Any] | None:
    return None if job.lake is None else job.lake.document()


def _claim(job: JobDocument) -> dict[str, Any]:
    return {
        "seq": job.seq,
        "ledger": job.ledger,
        "lake": _lake(job),
        "start": job.start,
        "end": job.end,
        "topics": job.topics,
        "until": job.until,
        "cut_at": job.cut_at,
        "planned_at": job.created_at,
        "read": read_range(job),
    }


def _is_known(batch: LakeBatch, job: JobDocument) -> bool:
    """Return whether the ledger that planned the job knows a batch, or need not know it."""
    if batch.is_of(job):
        return True
    if batch.result is not None:
        return False
    # the ledger abandoned it when Kafka lost its records; what was landed before that is not lost and has to be applied
    abandoned = batch.claim is None or (batch.seq < job.seq and batch.claim["ledger"] == job.ledger)
    return abandoned and not batch.landed
