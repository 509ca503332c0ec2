# SPDX-License-Identifier: Apache-2.0
"""Stage a request's batch for a platform that Airflow's own operators know, and publish what came of it there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any

from airflow_provider_cdc import __version__
from airflow_provider_cdc.batch.attempts import recorded
from airflow_provider_cdc.batch.course import Course, course_of
from airflow_provider_cdc.batch.planned_batch import PlannedBatch
from airflow_provider_cdc.batch.recovery import take_over
from airflow_provider_cdc.batch.result import BatchResult
from airflow_provider_cdc.batch.runner import NewestChanges, already_done
from airflow_provider_cdc.connections.lookup import storage_options
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import JobDocument, Result, StagedJob, StagedPlace, secret_names
from airflow_provider_cdc.core.errors import BusyError, ConfigurationError, DataError, UnavailableError
from airflow_provider_cdc.core.json_documents import json_bytes
from airflow_provider_cdc.core.lake.lake_files import LakeFiles
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.engine.payload import payload
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.engine.task import PROCESS_SETTINGS, conf_text
from airflow_provider_cdc.ledger import Batch, Owner
from airflow_provider_cdc.reporting.reporter import Say

STAGED, DONE = "staged", "done"
"""Status of a staged request: a platform has to run its job, or nothing has to be run."""
_AGAIN = "clear the task that stages the batch, and those behind it"
_TOKEN_NAME = 24  # characters of the pipeline's name: platforms take tokens and names of up to 63


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
        return {**answer, **_staged(course, run, batch)}


def _staged(course: Course, run: PlannedBatch, batch: Batch) -> dict[str, Any]:
    """Write a batch's job, and the code that it needs, to the lake."""
    pipeline = course.pipeline
    run.documents.staged = True
    job, secrets = run.documents.make()
    options = {**job.storage, **secrets["storage"]}
    files, home = LakeFiles(job.lake_root, options), f"_cdc/{pipeline.name}"
    run.demand_same_lake(files.read(f"{home}/lake.json"))
    staged = StagedJob(__version__, secret_names(secrets), job)
    digest = hashlib.sha256(json_bytes(staged.document())).hexdigest()[:16]
    for attempt in count(1):
        name = f"{home}/jobs/{batch.seq}/{job.ledger}-{digest}-{attempt}"
        there = StagedPlace(f"{files.root}/{name}", options)
        before = there.result()
        if before is None or before.is_final:
            break
    there.stage(staged)
    course.say(f"batch {batch.seq} of {batch.pipeline}: up to {batch.records} records, staged at {there.address}")
    main, archive = _code(files, home)
    return {
        "status": STAGED,
        "records": batch.records,
        "token": _token(job, digest, attempt),
        "job": there.address,
        "arguments": [there.address, *(part for item in job.storage.items() for part in ("--store", "=".join(item)))],
        "main": main,
        "payload": archive,
        "conf": _conf(pipeline),
        "secrets": staged.secrets,
    }


def _token(job: JobDocument, digest: str, attempt: int) -> str:
    """Return a name of the attempt that every platform takes: of a run, or as a token that makes a request unique."""
    name = re.sub(r"[^a-z0-9]+", "-", job.pipeline.lower()).strip("-")[:_TOKEN_NAME].strip("-")
    return f"cdc-{name or 'pipeline'}-{job.seq}-{digest[:12]}-{attempt}"


def _code(files: LakeFiles, home: str) -> tuple[str, str]:
    """Write the code to the lake where it is not there yet; return the addresses of its main file and of its zip."""
    code = payload()
    folder = f"{home}/code/{code.archive.parent.name}"
    main, archive = f"{folder}/{code.main.name}", f"{folder}/{code.archive.name}"
    if files.read(main) is None:
        files.create(archive, code.archive.read_bytes())
        files.create(main, code.main.read_bytes())
    return f"{files.root}/{main}", f"{files.root}/{archive}"


def _conf(pipeline: CdcPipeline) -> dict[str, str]:
    """Return Spark's properties as all platforms take them: texts."""
    stated = {key: conf_text(value) for key, value in pipeline.spark.conf.items()}
    return {**{f"spark.executorEnv.{name}": value for name, value in PROCESS_SETTINGS.items()}, **stated}


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
    lake = pipeline.lake
    there = StagedPlace(staged["job"], {**storage_options(lake.storage_connection), **lake.storage_options})
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
