# SPDX-License-Identifier: Apache-2.0
"""Stage a request's batch for a platform that Airflow's own operators know, and publish what came of it there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from airflow_provider_cdc.batch.attempts import recorded
from airflow_provider_cdc.batch.course import Course, course_of
from airflow_provider_cdc.batch.planned_batch import PlannedBatch
from airflow_provider_cdc.batch.recovery import take_over
from airflow_provider_cdc.batch.result import BatchResult
from airflow_provider_cdc.batch.runner import NewestChanges, already_done
from airflow_provider_cdc.batch.staged_job import place_of, staged_job
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.errors import BusyError, ConfigurationError, DataError, UnavailableError
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.ledger import Batch, Owner
from airflow_provider_cdc.reporting.reporter import Say

STAGED, DONE = "staged", "done"
"""Status of a staged request: a platform has to run its job, or nothing has to be run."""
_AGAIN = "clear the task that stages the batch, and those behind it"


def stage(
    pipeline: CdcPipeline,
    *,
    until: datetime | None,
    say: Say = print,
    kill: Stopper | None = None,
    owner: Owner | None = None,
    accept_loss: bool = False,
    new_generation: str = "",
) -> dict[str, Any]:
    """Plan a request's batch, write its job to the lake, and return what a platform's operator needs to run it.

    The same request again returns the same, until its job failed: then it is a new attempt, with a token of its own.

    :param until: and the other parameters are those of :func:`runner.run_batch`.
    :return: plain data without secrets: ``status``, ``seq``, ``token``, ``job``, ``arguments``, ``main``, ``payload``,
        ``conf`` and the names of the ``secrets``.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    request = NewestChanges(until, accept_loss, new_generation)
    with course_of(pipeline, say=say, kill=kill, owner=owner) as course:
        batch = course.next(request)
        answer: dict[str, Any] = {
            "status": DONE,
            "pipeline": pipeline.name,
            "seq": batch.seq,
            "until": None if request.until is None else request.until.isoformat(),
            "began": request.began.isoformat(),
            "accept_loss": accept_loss,
        }
        if isinstance(batch, BatchResult):
            return answer
        run = course.prepared(request, batch)
        course.ledger.started(course.lease, batch.seq, STAGED)
        job = staged_job(pipeline, run, batch)
        course.say(f"batch {batch.seq}: up to {batch.records} records, staged at {job.folder.address}")
        return {**answer, "status": STAGED, "records": batch.records, **job.outputs()}


# ---- publish


@recorded
def publish(
    pipeline: CdcPipeline,
    staged: Mapping[str, Any],
    *,
    say: Say = print,
    kill: Stopper | None = None,
    owner: Owner | None = None,
    on_start: Callable[[Batch], None] = lambda batch: None,
    on_application: Callable[[str], None] = lambda application_id: None,
) -> BatchResult:
    """Publish what came of a staged batch; the same again returns the stored result.

    :param staged: what :func:`stage` returned.
    :param say: and the other parameters are those of :func:`runner.run_batch`.
    :return: the result, with ``more`` where the request needs further batches.
    :raises UnavailableError: ``engine.no_result``, the job has not ended.
    :raises BusyError: another holder has the pipeline's lease, or the lake has batches that the ledger did not know.
    """
    if staged["pipeline"] != pipeline.name:
        raise ConfigurationError([f"plan: was made for pipeline {staged['pipeline']}, not for {pipeline.name}"])
    until, began = staged["until"], datetime.fromisoformat(staged["began"])
    request = _Staged(
        datetime.fromisoformat(until) if until else None, staged["accept_loss"], began=began, seq=staged["seq"]
    )
    with course_of(pipeline, say=say, kill=kill, owner=owner) as course:
        batch = course.next(request)
        if isinstance(batch, Batch):
            on_start(batch)
            run = course.planned(batch)
            run.on_application = on_application
            result = _published(course, run, _outcome(pipeline, staged, run))
            if result.error is not None:
                if request.abandons(course, batch, result):
                    result.error.hint = _AGAIN
                return result
        else:
            result = batch
        stored = course.ledger.batch(pipeline.name, request.seq)
        needs_more = staged["status"] == STAGED and stored is not None and not request.ends_with(stored)
        return replace(result, more=needs_more or None)


@dataclass(slots=True)
class _Staged(NewestChanges):
    """Ask for the one batch that was staged.

    :param seq: its number.
    """

    seq: int = 0

    def next_batch(self, course: Course) -> Batch | BatchResult:
        """Return the staged batch, or its result where the ledger has it.

        :raises DataError: ``engine.no_job``, it was given up meanwhile.
        """
        batch = course.ledger.batch(course.pipeline.name, self.seq)
        if batch is not None and batch.committed:
            return already_done(course, batch)
        if course.left_over is not None and course.left_over.seq == self.seq:
            return course.left_over
        where = {"pipeline": course.pipeline.name, "seq": self.seq}
        raise DataError("engine.no_job", f"batch {self.seq} was given up meanwhile", where=where, hint=_AGAIN)


def _outcome(pipeline: CdcPipeline, staged: Mapping[str, Any], run: PlannedBatch) -> Result:
    """Return the result of a staged job, and record the application that it ran as.

    :raises UnavailableError: ``engine.no_result``, there is none.
    """
    there = place_of(pipeline, staged["job"])
    outcome, status = there.result(), there.status()
    if status.get("application"):
        run.started_application(status["application"])
    if outcome is None:
        began = f"it began on {status['host']}" if status else "nothing has begun to run it"
        raise UnavailableError(
            "engine.no_result", f"the job of batch {staged['seq']} has no result: {began}",
            where={"job": there.address},
            hint="let the platform's operator wait for the job's end; the platform's log says why a job has no result",
        )  # fmt: skip
    return outcome


def _published(course: Course, run: PlannedBatch, outcome: Result) -> BatchResult:
    """Record a result in the ledger; of a ledger that did not know all batches of the lake it says so."""
    if outcome.status == ResultStatus.BEHIND:
        line = take_over(course.ledger, course.lease, outcome.lake_batches)
        raise BusyError("ledger.was_behind", line, where={"pipeline": course.pipeline.name}, hint=_AGAIN)
    return run.publish(outcome, course.seconds())
