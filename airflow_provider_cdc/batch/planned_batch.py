# SPDX-License-Identifier: Apache-2.0
"""Take one planned batch through its engine, and record its result."""

from __future__ import annotations

import errno
import getpass
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.batch.registration import register_tables
from airflow_provider_cdc.batch.result import BatchResult, published, schema_change_id, table_states
from airflow_provider_cdc.connections.lookup import sink_options
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import JobDocument, Progress, Result
from airflow_provider_cdc.core.errors import NEW_GENERATION, CdcError, DataError, SinkError, UnavailableError
from airflow_provider_cdc.core.lake.own_lake import LakeIdentity, demand_same_lake
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.engine.task import EngineTask
from airflow_provider_cdc.ledger import Batch, Lease, Ledger
from airflow_provider_cdc.reporting.reporter import Reporter
from airflow_provider_cdc.sinks.pipeline_tables import PipelineTables

_FIRST_RECORD, _RECORD_EACH = 10.0, 30.0  # seconds: for batches that last, the ledger gets a record


@contextmanager
def _writing(root: str) -> Iterator[None]:
    """Turn errors of writing a document to the lake into errors that say what to do.

    :raises SinkError: ``sink.not_writable``.
    :raises UnavailableError: ``log.unavailable``, its disk is full.
    """
    try:
        yield
    except OSError as error:
        text, where = f"the lake cannot be written: {error.strerror}", {"root": root}
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            hint = "free some space, then run again; nothing was read and nothing was committed"
            raise UnavailableError("log.unavailable", text, where=where, hint=hint) from None
        hint = "mount it or correct the root; nothing was read and nothing was committed"
        raise SinkError("sink.not_writable", text, where=where, hint=hint) from None


def this_process() -> str:
    """Return a name of this process, shown to others while the pipeline is leased."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"airflow-cdc of {user} on {socket.gethostname()}, process {os.getpid()}"


class PlannedBatch:
    """One planned batch on its way through an engine.

    :ivar documents: makes its job document.
    :ivar on_application: takes the id of its Spark application.
    """

    def __init__(
        self,
        pipeline: CdcPipeline,
        ledger: Ledger,
        lease: Lease,
        batch: Batch,
        kafka: dict[str, str],
        say: Reporter,
        stopper: Stopper,
    ) -> None:
        self._pipeline, self._ledger, self._lease, self._batch = pipeline, ledger, lease, batch
        self._say, self._stopper = say, stopper
        self._states = table_states(ledger, pipeline.name)
        self.on_application: Callable[[str], None] = lambda application_id: None
        self.documents = JobMaker(pipeline, ledger, batch, kafka, self._states)

    def announce(self) -> None:
        """Say that the batch begins, and which changes it can no longer read; the ledger has it from now on."""
        batch = self._batch
        self._say(f"batch {batch.seq} of {batch.pipeline}: up to {batch.records} records")
        for loss in batch.lost:
            end = "an unknown offset" if loss["end"] is None else loss["end"]
            self._say(f"lost: {loss['topic']}/{loss['partition']} from {loss['start']} up to {end}")
        self._ledger.started(self._lease, batch.seq, self.documents.engine)

    def carry_out(self) -> Result:
        """Run the batch's engine and return its result.

        :raises CdcError: the engine ended without a result.
        """
        self.announce()
        with self._folder() as folder, tempfile.TemporaryDirectory(prefix="airflow-cdc-") as scratch:
            job, secrets = self.documents.make()
            try:
                return self._engine(job, secrets, folder, Path(scratch))
            except UnavailableError as error:
                raise self._judged(error) from None

    def publish(self, result: Result, seconds: float) -> BatchResult:
        """Record the engine's result in the ledger and return the small one.

        :param seconds: duration of the whole request so far.
        """
        small = published(self._pipeline.name, result, self._states, round(seconds, 3), self._batch)
        if result.error is None:
            after = {**self._states, **{state.table_id: state for state in result.states}}
            small.warnings = register_tables(self._pipeline, self._lease, lambda: after, self._stopper.check) or None
            states = {state.table_id: state.document() for state in result.states}
            changes = [{**change, "id": schema_change_id(change)} for change in result.new_schema_changes]
            lake = (
                None if result.lake is None else PipelineTables(self._pipeline, sink_options).lake_document(result.lake)
            )
            document, fingerprint = small.document(), result.fingerprint
            self._ledger.commit(
                self._lease, self._batch.seq, document, states, changes, fingerprint=fingerprint, lake=lake
            )
        elif result.error.code == NEW_GENERATION:
            self._ledger.refused(self._lease, self._batch.seq, result.error.document())
        return small

    def _judged(self, error: UnavailableError) -> CdcError:
        """Return an engine's error, terminal if the last attempt crashed at the same location."""
        site = error.where.get("place")
        if error.code != "engine.crashed" or site is None:
            return error
        if not self._ledger.crashed(self._lease, self._batch.seq, site):
            return error
        return DataError(
            error.code,
            f"twice at the same location: {error.message}",
            where=error.where,
            hint="running it again does not help: the lines above say why; please report them",
        )

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """Return the folder of the documents: in the lake if that is a folder, so that they can be read later.

        A job that has records which an operator repaired has their values: those that stay out of the lake do so here.

        Each holder of a lease has its own: another ledger's host, or one that continued after a halt, may work on the
        same batch number.
        """
        root = self._pipeline.lake.root
        if not root.startswith("/") or self._pipeline.tables.keep_values_out:
            with tempfile.TemporaryDirectory(prefix="airflow-cdc-job-") as folder:
                yield Path(folder)
            return
        holder, folder_of_pipeline = f"{self._ledger.id}-{self._lease.token}", Path(root) / "_cdc" / self._pipeline.name
        with suppress(OSError):
            self.demand_same_lake((folder_of_pipeline / "lake.json").read_bytes())
        own = folder_of_pipeline / "jobs" / str(self._batch.seq) / holder
        with _writing(root):
            own.mkdir(parents=True, exist_ok=True)
            (own / "job.json").touch()
        yield own

    def demand_same_lake(self, document: bytes | None) -> None:
        """Refuse a copied or moved lake before a document is written to it; the engine looks again, and at all else.

        :param document: ``lake.json`` as it is there, None for none.
        """
        with suppress(ValueError, TypeError):
            there = LakeIdentity.from_document(json.loads(document or b""))
            known = self._ledger.lake(self._pipeline.name)
            mine = None if known is None else LakeIdentity.from_document(known)
            pipeline = self._pipeline
            demand_same_lake(there, mine, pipeline.lake.root, pipeline.sink.root, pipeline.name)

    # ---- engine

    def started_application(self, application_id: str) -> None:
        """Record and report the Spark application; the batch does not depend on it."""
        try:
            self._ledger.started_application(self._lease, self._batch.seq, application_id)
        except CdcError as error:
            self._say(f"the id of the Spark application is not in the ledger: {error.message}")
        self.on_application(application_id)

    def _engine(self, job: JobDocument, secrets: dict[str, dict[str, str]], folder: Path, scratch: Path) -> Result:
        paths = folder / "job.json", folder / "result.json"
        with _writing(self._pipeline.lake.root):
            paths[1].unlink(missing_ok=True)
            paths[0].write_text(json.dumps(job.document()), encoding="utf-8")
        name = f"{job.pipeline} {job.seq}"
        with self.followed() as on_progress:
            task = EngineTask(
                *paths,
                secrets,
                name,
                scratch,
                self._say,
                self._stopper,
                job.session,
                self.started_application,
                session_on_s3=job.session and job.on_s3,
                on_progress=on_progress,
            )
            if self.documents.engine == "inline":
                from airflow_provider_cdc.engine.inline import run_inline

                return run_inline(task)
            from airflow_provider_cdc.engine.spark import run_spark

            return run_spark(task, self._pipeline.spark)

    @contextmanager
    def followed(self) -> Iterator[Callable[[Progress], None]]:
        """Return what takes how far the engine is, shows it, and now and then records it in the ledger."""
        due = time.monotonic() + _FIRST_RECORD

        def take(progress: Progress) -> None:
            nonlocal due
            show(progress)
            if time.monotonic() >= due:
                due = time.monotonic() + _RECORD_EACH
                with suppress(CdcError):  # the batch does not depend on it
                    lease = self._lease
                    self._ledger.progressed(lease.pipeline, lease.token, self._batch.seq, progress.document())

        with self._say.engine() as show:
            yield take
