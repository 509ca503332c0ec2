"""One batch from plan to publish: lease, range, engine, ledger."""

from __future__ import annotations

import getpass
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Chunk, JobDocument, TableState
from airflow_provider_cdc.core.errors import LOG_LOST, NEW_GENERATION, CdcError, DataError, SinkError, UnavailableError
from airflow_provider_cdc.core.ledger import Batch, Lease, Ledger
from airflow_provider_cdc.core.ledger.records import offsets_document
from airflow_provider_cdc.engine import EngineTask, Stopper
from airflow_provider_cdc.hooks.connections import ledger_url, spark_target, storage_options
from airflow_provider_cdc.outcome import from_ledger, loss_of, published, ran_engine, schema_change_id
from airflow_provider_cdc.recovery import take_over
from airflow_provider_cdc.unsettled import Unsettled

Say = Callable[[str], None]
_STORAGE_SECRETS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


def run_batch(
    pipeline: CdcPipeline,
    *,
    until: datetime | None = None,
    say: Say = print,
    kill: Stopper | None = None,
    owner: str | None = None,
    accept_loss: bool = False,
    new_generation: str = "",
) -> dict[str, Any]:
    """Plan a batch, carry it out and publish it; the same request again returns what came of it.

    :param until: the tables then hold everything the source committed before it; None means what is there now.
    :param say: takes one line of progress.
    :param kill: stops the batch from outside.
    :param owner: who asks, in words for whoever finds the pipeline taken.
    :param accept_loss: go on although Kafka deleted records that no batch has read.
    :param new_generation: ``topic/partition:offset`` of the record with which a new log of the source may begin, as
        ``source.new_generation`` names it.
    :raises BusyError: somebody else works on the pipeline; says who.
    :raises CdcError: with what to do; nothing was committed.
    """
    from airflow_provider_cdc.hooks.kafka_log import KafkaLog
    from airflow_provider_cdc.planner import made_again, plan_batch, plan_settling

    started = time.monotonic()
    stopper = kill or Stopper()
    ledger = Ledger(ledger_url(pipeline.ledger))
    log = KafkaLog(pipeline.source.connection)
    fingerprint, seconds = pipeline.fingerprint(), pipeline.policy.lease_seconds
    with ledger.lease(pipeline.name, owner or this_process(), seconds, fingerprint=fingerprint) as lease:
        while True:
            stopper.check()
            left_over = ledger.open(pipeline.name)
            batch = plan_batch(pipeline, ledger, lease, log, until, accept_loss=accept_loss)
            if batch.committed:
                if left_over is not None:  # nothing may be planned before the batch of another request is finished
                    return from_ledger(batch, ledger.tables(pipeline.name).values(), time.monotonic() - started)
                unsettled = Unsettled(pipeline, ledger, lease)
                unsettled.end_grace(say)
                if unsettled.waiting and ran_engine(batch):
                    batch = plan_batch(pipeline, ledger, lease, log, until, again=True)
                if not batch.committed:
                    say("a table waits for a schema change, and the log has more: going on with it")
                elif unsettled.may_go_on():
                    say("nothing new, but a parked table may go on: trying it again")
                    batch = plan_settling(ledger, lease, pipeline.name)
                else:
                    return from_ledger(batch, ledger.tables(pipeline.name).values(), time.monotonic() - started)
                until = None
            run = _Run(pipeline, ledger, lease, batch, log.client_config(), say, stopper, new_generation)
            if left_over is not None and batch.seq == left_over.seq:
                run.recreated = made_again(log, batch, pipeline.source.heartbeat_topic)
            result = run.result(started)
            if result["status"] == "behind":
                say(take_over(ledger, lease, result["lake_batches"]))
                continue
            if accept_loss and left_over is not None and _cannot_be_read(result):
                ledger.abandon(lease, batch.seq)
                say(f"batch {batch.seq} can no longer be read and is abandoned: {result['error']['message']}")
                continue
            # A batch left over from another request was finished first; ours comes next.
            if result["status"] == "failed" or until is None or batch.until == until:
                return result
            say(f"batch {batch.seq} was left over and is finished; going on with the one asked for")


def _cannot_be_read(result: dict[str, Any]) -> bool:
    """Tell whether Kafka no longer has the range of a batch of which nothing was landed: what was is not read again."""
    return result["status"] == "failed" and result["error"]["code"] in LOG_LOST


def this_process() -> str:
    """Return who runs this, for whoever finds the pipeline taken."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"airflow-cdc of {user} on {socket.gethostname()}, process {os.getpid()}"


class _Run:
    """One planned batch on its way through an engine."""

    def __init__(
        self,
        pipeline: CdcPipeline,
        ledger: Ledger,
        lease: Lease,
        batch: Batch,
        kafka: dict[str, str],
        say: Say,
        stopper: Stopper,
        new_generation: str = "",
    ) -> None:
        self._pipeline, self._ledger, self._lease, self._batch = pipeline, ledger, lease, batch
        self._kafka, self._say, self._stopper = kafka, say, stopper
        self._states = ledger.tables(pipeline.name)
        self._new_generation = new_generation
        self.recreated: list[str] = []

    def result(self, started: float) -> dict[str, Any]:
        """Carry the batch out and publish it.

        :param started: when the request came, on the monotonic clock.
        :return: the small result, or the engine's document with status ``behind``: nothing was done.
        """
        batch = self._batch
        self._say(f"batch {batch.seq} of {batch.pipeline}: up to {batch.records} records")
        for loss in batch.lost:
            end = "an unknown offset" if loss["end"] is None else loss["end"]
            self._say(f"lost: {loss['topic']}/{loss['partition']} from {loss['start']} up to {end}")
        with self._folder() as folder, tempfile.TemporaryDirectory(prefix="airflow-cdc-") as scratch:
            job, secrets = self._job()
            try:
                document = self._engine(job, secrets, folder, Path(scratch))
            except UnavailableError as error:
                raise self._judged(error) from None
        seconds = round(time.monotonic() - started, 3)
        if document["status"] == "behind":
            return document
        told = {**published(self._pipeline.name, document, self._states, seconds), **loss_of(batch)}
        if document["status"] != "failed":
            self._publish(document, told)
        elif document["error"]["code"] == NEW_GENERATION:
            self._ledger.refused(self._lease, batch.seq, document["error"])
        return told

    def _judged(self, error: UnavailableError) -> CdcError:
        """Return an engine's error, terminal where it crashed at the same place the time before."""
        place = error.where.get("place")
        if error.code != "engine.crashed" or place is None:
            return error
        if not self._ledger.crashed(self._lease, self._batch.seq, place):
            return error
        return DataError(
            error.code,
            f"twice at the same place: {error.message}",
            where=error.where,
            hint="running it again does not help: the lines above say why; please report them",
        )

    # ---- job

    def _job(self) -> tuple[JobDocument, dict[str, dict[str, str]]]:
        from airflow_provider_cdc.core.formats.registry import portable_options
        from airflow_provider_cdc.hooks.kafka_config import SECRETS

        pipeline, batch = self._pipeline, self._batch
        store = {**storage_options(pipeline.sink.storage_connection), **pipeline.sink.storage_options}
        secrets = {
            "kafka": {key: value for key, value in self._kafka.items() if key in SECRETS},
            "storage": {key: value for key, value in store.items() if key in _STORAGE_SECRETS},
        }
        parallelism = self._parallelism()
        job = JobDocument(
            pipeline=pipeline.name,
            seq=batch.seq,
            created_at=batch.planned_at.isoformat(),
            sink_root=pipeline.sink.root.rstrip("/"),
            format=pipeline.source.format,
            format_options=portable_options(pipeline.source.format, pipeline.source.options),
            schema_topic=pipeline.source.schema_topic,
            kafka={key: value for key, value in self._kafka.items() if key not in SECRETS},
            chunks=self._chunks(parallelism),
            policy=pipeline.policy.document(),
            tables=pipeline.tables.document(),
            earlier=[b.seq for b in self._ledger.batches(pipeline.name) if ran_engine(b) and b.seq < batch.seq],
            schema_changes=[_without_id(change) for change in self._ledger.schema_changes(pipeline.name)],
            states=[TableState(**document) for document in self._states.values()],
            storage={key: value for key, value in store.items() if key not in _STORAGE_SECRETS},
            parallelism=parallelism,
            session=self._needs_session(),
            until=batch.until.isoformat() if batch.until else None,
            start=offsets_document(batch.start),
            end=offsets_document(batch.end),
            topics=batch.topics or {},
            ledger=self._ledger.id,
            fingerprint=pipeline.fingerprint(),
            recreated=self.recreated,
            new_generation=self._new_generation,
        )
        return job, secrets

    def _needs_session(self) -> bool:
        """Tell whether the Spark reader or the Spark writer may be used; plain tasks start several seconds sooner."""
        policy = self._pipeline.policy
        if policy.engine != "spark":
            return False
        writers = {policy.writer, *(rule.writer for rule in self._pipeline.tables.tables.values())}
        large = "auto" in writers and self._batch.records >= policy.spark_writer_rows
        return policy.reader == "spark" or "spark" in writers or large

    def _parallelism(self) -> int:
        if self._pipeline.policy.parallelism:
            return self._pipeline.policy.parallelism
        if self._pipeline.policy.engine == "inline":
            return 1
        from airflow_provider_cdc.engine.spark import local_cores

        return local_cores(spark_target(self._pipeline.spark.connection).master)

    def _chunks(self, parallelism: int) -> list[Chunk]:
        from airflow_provider_cdc.core.formats.registry import open_format
        from airflow_provider_cdc.core.plan.chunks import chunks
        from airflow_provider_cdc.core.plan.ranges import Range

        planned = Range(self._batch.start, self._batch.end)
        split = open_format(self._pipeline.source.format, self._pipeline.source.options).splits_partitions
        cut = chunks(planned, self._pipeline.policy.chunk_records, parallelism=parallelism, split=split)
        return [Chunk(**asdict(part)) for chunk in cut for part in chunk.slices]

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """Return where the documents lie: in the sink where that is a folder, so that they can be looked at later.

        Each holder of a lease has its own: another ledger's host, or one that went on after a halt, may be at work on
        the same batch number.
        """
        root = self._pipeline.sink.root.removeprefix("file://")
        if "://" in root:
            with tempfile.TemporaryDirectory(prefix="airflow-cdc-job-") as folder:
                yield Path(folder)
            return
        holder = f"{self._ledger.id}-{self._lease.token}"
        folder = Path(root) / "_cdc" / self._pipeline.name / "jobs" / str(self._batch.seq) / holder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "job.json").touch()
        except OSError as error:
            raise SinkError(
                "sink.not_writable",
                f"the lake cannot be written: {error.strerror}",
                where={"root": self._pipeline.sink.root},
                hint="mount it or correct sink.root; nothing was read and nothing was committed",
            ) from None
        yield folder

    # ---- engine

    def _engine(
        self, job: JobDocument, secrets: dict[str, dict[str, str]], folder: Path, scratch: Path
    ) -> dict[str, Any]:
        from airflow_provider_cdc.payload import payload

        paths = folder / "job.json", folder / "result.json"
        paths[1].unlink(missing_ok=True)
        paths[0].write_text(json.dumps(job.document()), encoding="utf-8")
        name = f"{job.pipeline} {job.seq}"
        task = EngineTask(*paths, secrets, payload(), name, scratch, self._say, self._stopper, job.session)
        if self._pipeline.policy.engine == "inline":
            from airflow_provider_cdc.engine.inline import run_inline

            return run_inline(task)
        from airflow_provider_cdc.engine.spark import run_spark

        return run_spark(task, self._pipeline.spark)

    # ---- publish

    def _publish(self, document: dict[str, Any], told: dict[str, Any]) -> None:
        tables: dict[str, dict[str, Any] | None] = {state["table_id"]: state for state in document["states"]}
        tables.update({table_id: None for table_id in document.get("removed", ())})
        changes = [{**change, "id": schema_change_id(change)} for change in document["new_schema_changes"]]
        self._ledger.commit(self._lease, self._batch.seq, told, tables, changes)


def _without_id(change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in change.items() if name != "id"}
