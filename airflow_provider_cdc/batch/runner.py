# SPDX-License-Identifier: Apache-2.0
"""Run one batch from plan to publish: lease, range, engine, ledger."""

from __future__ import annotations

import getpass
import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from airflow_provider_cdc.batch.attempts import recorded
from airflow_provider_cdc.batch.job import JobMaker
from airflow_provider_cdc.batch.recovery import take_over
from airflow_provider_cdc.batch.result import (
    BatchResult,
    from_ledger,
    joined,
    newest_by_name,
    published,
    ran_engine,
    schema_change_id,
    table_states,
)
from airflow_provider_cdc.batch.source_log import held, open_log
from airflow_provider_cdc.batch.unsettled import Unsettled
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Decision, JobDocument, LakeIdentity, Rebuild, Replay, Result, TableState
from airflow_provider_cdc.core.errors import (
    LOG_LOST,
    NEW_GENERATION,
    SECOND_LOG,
    CdcError,
    ConfigurationError,
    DataError,
    SinkError,
    UnavailableError,
)
from airflow_provider_cdc.core.lake.own_lake import demand_same_lake
from airflow_provider_cdc.core.ledger import Batch, Lease, Ledger, Owner
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.plan.progress import SLACK_MS
from airflow_provider_cdc.core.timeline.asked_changes import AskedChange
from airflow_provider_cdc.engine import EngineTask, Stopper
from airflow_provider_cdc.hooks.connections import ledger_url

Say = Callable[[str], None]


@recorded
def run_batch(
    pipeline: CdcPipeline,
    *,
    until: datetime | None = None,
    say: Say = print,
    kill: Stopper | None = None,
    owner: Owner | None = None,
    accept_loss: bool = False,
    new_generation: str = "",
    on_start: Callable[[Batch], None] | None = None,
    on_application: Callable[[str], None] = lambda application_id: None,
) -> BatchResult:
    """Plan, run and publish a batch; the same request again returns its stored result.

    With ``policy.batch_records`` a large request becomes a sequence of batches, and the result is that of all of them;
    the same request goes on with the first one that is missing.

    :param until: the tables then hold everything the source committed before it; None means up to the
        present ends.
    :param say: takes one line of progress.
    :param kill: stops the batch from outside.
    :param owner: who requests it, shown to others while the pipeline is leased; a later try of an Airflow task takes
        over the lease of its dead one.
    :param accept_loss: continue although Kafka deleted records that no batch has read.
    :param new_generation: ``topic/partition:offset`` of the record with which a new log of the source may begin, as
        ``source.new_generation`` names it.
    :param on_start: is called with each batch before its engine starts.
    :param on_application: takes the id of each Spark application as soon as it runs.
    :raises BusyError: another holder has the pipeline's lease; names it.
    :raises CdcError: with a hint; nothing was committed.
    """
    from airflow_provider_cdc.batch.planner import made_again, plan_batch, plan_settling

    started, began = time.monotonic(), datetime.now(UTC)
    parts: list[BatchResult] = []
    stopper = kill or Stopper()
    ledger = Ledger(ledger_url(pipeline.ledger))
    with ledger.lease(pipeline.name, owner or this_process(), pipeline.policy.lease_seconds) as lease:
        log = open_log(pipeline, right=held(lease, stopper.check))
        while True:
            stopper.check()
            left_over = ledger.open(pipeline.name)
            batch = plan_batch(pipeline, ledger, lease, log, until, accept_loss=accept_loss, say=say)
            if batch.committed:
                if left_over is not None:  # nothing may be planned before the batch of another request is finished
                    return _already_done(ledger, batch, started)
                unsettled = Unsettled(pipeline, ledger, lease)
                unsettled.end_grace(say)
                if unsettled.waiting and ran_engine(batch):
                    batch = plan_batch(pipeline, ledger, lease, log, until, again=True)
                if not batch.committed:
                    say("a table waits for a schema change, and the log has more records: reading them")
                elif reason := unsettled.why_continue():
                    say(f"nothing new, but {reason}")
                    batch = plan_settling(ledger, lease, pipeline.name)
                else:
                    return joined(parts) if parts else _already_done(ledger, batch, started)
                until = None
            run = _Run(pipeline, ledger, lease, batch, log.client_config(), say, stopper, new_generation)
            run.on_application = on_application
            if left_over is not None and batch.seq == left_over.seq:
                run.documents.recreated = made_again(log, batch, pipeline.source.heartbeat_topic)
            if on_start is not None:
                on_start(batch)
            outcome = run.carry_out()
            if outcome.status == ResultStatus.BEHIND:
                say(take_over(ledger, lease, outcome.lake_batches))
                continue
            result = run.publish(outcome, time.monotonic() - started)
            if accept_loss and left_over is not None and result.error is not None and result.error.code in LOG_LOST:
                # none of it was landed: a landed batch is not read again
                ledger.abandon(lease, batch.seq)
                say(f"batch {batch.seq} can no longer be read and is abandoned: {result.error.message}")
                continue
            if left_over is not None and batch.seq == left_over.seq and _was_of_other_topics(pipeline, batch, result):
                ledger.abandon(lease, batch.seq)
                say(f"batch {batch.seq} was planned with topics that source.topics matches no more and is abandoned")
                continue
            if result.status == ResultStatus.FAILED:
                return result
            if _ends(batch, until, began):
                return joined([*parts, result])
            if batch.cut_at is None:
                # A batch left over from another request was finished first; this request comes next.
                say(f"batch {batch.seq} was left over and is finished; continuing with the requested one")
                continue
            parts.append(result)
            say(f"batch {batch.seq} holds what came up to {batch.cut_at.isoformat()}; continuing with the next part")


def _was_of_other_topics(pipeline: CdcPipeline, batch: Batch, result: BatchResult) -> bool:
    """Return whether a batch was refused, unlanded, for records of topics that the pipeline reads no more."""
    if result.error is None or result.error.code != SECOND_LOG:
        return False
    read = {
        topic
        for topic, ends in batch.end.items()
        if any(end > batch.start.get(topic, {}).get(partition, 0) for partition, end in ends.items())
    }
    mine = {*pipeline.source.data_topics(list(read)), pipeline.source.schema_topic, pipeline.source.heartbeat_topic}
    return not read <= mine


def run_replay(pipeline: CdcPipeline, replay: Replay, **course: Any) -> BatchResult:
    """Apply rows of the change log again, in a batch that reads nothing new; an unfinished batch is finished first.

    Each row keeps its position: it changes a table only where the table has no newer change of its key.

    :param replay: which rows.
    :param course: ``say``, ``kill`` and ``owner`` as of :func:`run_batch`.
    :raises ConfigurationError: it names a table that the pipeline does not have.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    demand_tables(replay.tables, table_states(Ledger(ledger_url(pipeline.ledger)), pipeline.name).values())
    return _run_order(pipeline, replay=replay, **course)


def run_rebuild(pipeline: CdcPipeline, rebuild: Rebuild, **course: Any) -> BatchResult:
    """Make tables again from all that the change log has of them, each in one commit, whatever lies at their locations.

    The batch reads nothing new; an unfinished one is finished first. Readers see the rows of before until the commit. A
    table that cannot be rebuilt stays as it is; its line of the result says why, and the status is ``parked``.

    :param rebuild: which tables.
    :param course: ``say``, ``kill`` and ``owner`` as of :func:`run_batch`.
    :raises ConfigurationError: it names a table that the pipeline does not have.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    states = table_states(Ledger(ledger_url(pipeline.ledger)), pipeline.name).values()
    demand_tables(rebuild.tables, [state for state in states if state.state != TableStatus.DROPPED and state.location])
    return _run_order(pipeline, rebuild=rebuild, **course)


def run_decision(pipeline: CdcPipeline, decision: Decision, **course: Any) -> BatchResult:
    """Carry out a decision about quarantined records, in a batch that reads nothing new, or in the unfinished one.

    :param course: ``say``, ``kill`` and ``owner`` as of :func:`run_batch`.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    return _run_order(pipeline, decision=decision, **course)


def run_approval(pipeline: CdcPipeline, approval: AskedChange, **course: Any) -> BatchResult:
    """Decide about a schema change that a table waits for, in a batch that reads nothing new; see ``batch.approvals``.

    :param course: ``say``, ``kill`` and ``owner`` as of :func:`run_batch`.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    return _run_order(pipeline, approval=approval, **course)


@recorded
def _run_order(
    pipeline: CdcPipeline,
    *,
    replay: Replay | None = None,
    rebuild: Rebuild | None = None,
    decision: Decision | None = None,
    approval: AskedChange | None = None,
    say: Say = print,
    kill: Stopper | None = None,
    owner: Owner | None = None,
) -> BatchResult:
    """Run a batch that does what an operator asks for; a batch that waits for a decision takes it itself."""
    from airflow_provider_cdc.batch.planner import made_again, plan_settling

    started = time.monotonic()
    stopper = kill or Stopper()
    ledger = Ledger(ledger_url(pipeline.ledger))
    with ledger.lease(pipeline.name, owner or this_process(), pipeline.policy.lease_seconds) as lease:
        log = open_log(pipeline, right=held(lease, stopper.check))
        while True:
            stopper.check()
            left_over = ledger.open(pipeline.name)
            batch = left_over or plan_settling(ledger, lease, pipeline.name)
            run = _Run(pipeline, ledger, lease, batch, log.client_config(), say, stopper)
            run.documents.decision = decision
            if left_over is None:
                run.documents.replay, run.documents.rebuild = replay, rebuild
                run.documents.approval = None if approval is None else approval.document()
            else:
                run.documents.recreated = made_again(log, batch, pipeline.source.heartbeat_topic)
            outcome = run.carry_out()
            if outcome.status == ResultStatus.BEHIND:
                say(take_over(ledger, lease, outcome.lake_batches))
                continue
            result = run.publish(outcome, time.monotonic() - started)
            if result.status == ResultStatus.FAILED or outcome.replayed:
                return result
            say(f"batch {batch.seq} was left over and is finished; continuing with what was asked for")


def demand_tables(names: Sequence[str], states: Iterable[TableState]) -> None:
    """Reject names that are not of tables of the pipeline.

    :raises ConfigurationError: names all of them.
    """
    known = newest_by_name(states)
    problems = []
    for name in (name for name in names if name not in known):
        near = get_close_matches(name, known, 1)
        problems.append(f"{name!r} is not a table of the pipeline" + (f"; did you mean {near[0]!r}?" if near else ""))
    if problems:
        raise ConfigurationError(problems)


def _ends(batch: Batch, until: datetime | None, began: datetime) -> bool:
    """Return whether a batch is the last one that a request needs.

    :param began: when the request came: one without a time asks for what was in the log then, however much comes since.
    """
    if until is not None:
        return batch.until == until
    return batch.cut_at is None or batch.cut_at >= began + timedelta(milliseconds=SLACK_MS)


def _already_done(ledger: Ledger, batch: Batch, started: float) -> BatchResult:
    """Return the result of a batch that is committed already."""
    states = table_states(ledger, batch.pipeline)
    return from_ledger(batch, states.values(), time.monotonic() - started)


def this_process() -> str:
    """Return a name of this process, shown to others while the pipeline is leased."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"airflow-cdc of {user} on {socket.gethostname()}, process {os.getpid()}"


class _Run:
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
        say: Say,
        stopper: Stopper,
        new_generation: str = "",
    ) -> None:
        self._pipeline, self._ledger, self._lease, self._batch = pipeline, ledger, lease, batch
        self._say, self._stopper = say, stopper
        self._states = table_states(ledger, pipeline.name)
        self.on_application: Callable[[str], None] = lambda application_id: None
        self.documents = JobMaker(pipeline, ledger, batch, kafka, self._states, new_generation)

    def carry_out(self) -> Result:
        """Run the batch's engine and return its result.

        :raises CdcError: the engine ended without a result.
        """
        batch = self._batch
        self._say(f"batch {batch.seq} of {batch.pipeline}: up to {batch.records} records")
        for loss in batch.lost:
            end = "an unknown offset" if loss["end"] is None else loss["end"]
            self._say(f"lost: {loss['topic']}/{loss['partition']} from {loss['start']} up to {end}")
        self._ledger.started(self._lease, batch.seq, self.documents.engine)
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
            states = {state.table_id: state.document() for state in result.states}
            changes = [{**change, "id": schema_change_id(change)} for change in result.new_schema_changes]
            lake = None if result.lake is None else result.lake.document()
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
        """Return the folder of the documents: in the sink if that is a folder, so that they can be read later.

        Each holder of a lease has its own: another ledger's host, or one that continued after a halt, may work on the
        same batch number.
        """
        root = self._pipeline.sink.root
        if not root.startswith("/"):
            with tempfile.TemporaryDirectory(prefix="airflow-cdc-job-") as folder:
                yield Path(folder)
            return
        holder, folder_of_pipeline = f"{self._ledger.id}-{self._lease.token}", Path(root) / "_cdc" / self._pipeline.name
        self._demand_same_lake(folder_of_pipeline / "lake.json")
        own = folder_of_pipeline / "jobs" / str(self._batch.seq) / holder
        try:
            own.mkdir(parents=True, exist_ok=True)
            (own / "job.json").touch()
        except OSError as error:
            raise SinkError(
                "sink.not_writable",
                f"the lake cannot be written: {error.strerror}",
                where={"root": self._pipeline.sink.root},
                hint="mount it or correct sink.root; nothing was read and nothing was committed",
            ) from None
        yield own

    def _demand_same_lake(self, file: Path) -> None:
        """Refuse a copied or moved lake before a document is written to it; the engine looks again, and at all else."""
        with suppress(OSError, ValueError, TypeError):
            there = LakeIdentity.from_document(json.loads(file.read_text()))
            known = self._ledger.lake(self._pipeline.name)
            mine = None if known is None else LakeIdentity.from_document(known)
            demand_same_lake(there, mine, self._pipeline.sink.root, self._pipeline.name)

    # ---- engine

    def _started_application(self, application_id: str) -> None:
        """Record and report the Spark application; the batch does not depend on it."""
        try:
            self._ledger.started_application(self._lease, self._batch.seq, application_id)
        except CdcError as error:
            self._say(f"the id of the Spark application is not in the ledger: {error.message}")
        self.on_application(application_id)

    def _engine(self, job: JobDocument, secrets: dict[str, dict[str, str]], folder: Path, scratch: Path) -> Result:
        from airflow_provider_cdc.engine.payload import payload

        paths = folder / "job.json", folder / "result.json"
        paths[1].unlink(missing_ok=True)
        paths[0].write_text(json.dumps(job.document()), encoding="utf-8")
        name = f"{job.pipeline} {job.seq}"
        task = EngineTask(
            *paths,
            secrets,
            payload(),
            name,
            scratch,
            self._say,
            self._stopper,
            job.session,
            self._started_application,
            session_on_s3=job.session and job.on_s3,
        )
        if self.documents.engine == "inline":
            from airflow_provider_cdc.engine.inline import run_inline

            return run_inline(task)
        from airflow_provider_cdc.engine.spark import run_spark

        return run_spark(task, self._pipeline.spark)
