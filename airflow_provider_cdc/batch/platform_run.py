# SPDX-License-Identifier: Apache-2.0
"""Carry a batch out as the run of a platform, which nobody here need wait for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_provider_cdc.batch.staged_job import place_of, staged_job
from airflow_provider_cdc.core.documents import Progress, Result, StagedPlace
from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.plain_data import Document
from airflow_provider_cdc.platforms.contract import Platform, RunState, open_platform

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.course import Course
    from airflow_provider_cdc.batch.planned_batch import PlannedBatch
    from airflow_provider_cdc.ledger import Batch

_FIRST_POLL, _LONGEST_POLL = 0.5, 10.0  # seconds between two looks of a process that waits


@dataclass(slots=True)
class AwayBatch(Document):
    """A batch that a platform runs while only the lease is kept; plain data for whoever keeps it.

    :param seq: number of the batch.
    :param run: the platform's id of the run.
    :param job: folder of the job on the lake.
    :param lease: token of the pipeline's lease.
    :param began: when the request came, in seconds since 1970.
    :param parts: batches that the request became before this one.
    """

    seq: int
    run: str
    job: str
    lease: int = 0
    began: float = 0.0
    parts: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Absence:
    """Say how a request leaves batches to a platform; without it, it waits for the ends of their runs.

    :param leave: takes a batch that is away and does not return.
    :param back: the batch that an earlier process of the request left.
    """

    leave: Callable[[AwayBatch], None]
    back: AwayBatch | None = None


def on_platform(course: Course, run: PlannedBatch, batch: Batch) -> Result:
    """Let the platform run a batch's job, and return the result; a run of the job that is there is adopted.

    :raises UnavailableError: ``engine.crashed``, the run ended without a result; ``platform.unavailable``.
    """
    pipeline, back = course.pipeline, course.taken_back(batch)
    if back is not None and (outcome := place_of(pipeline, back.job).result()) is not None:
        return outcome
    platform = open_platform(pipeline.spark)
    run.announce()
    while True:
        job = staged_job(pipeline, run, batch)
        if (outcome := job.folder.result()) is not None:
            return outcome
        submitted = platform.submit(job.submission)
        run.started_application(submitted)
        with run.followed() as show:
            state = _ended(course, platform, AwayBatch(batch.seq, submitted, job.folder.address), job.folder, show)
        if (outcome := job.folder.result()) is not None:
            return outcome
        error = _without_result(course, job.folder, batch, submitted, state)
        waited_for = back is not None and back.run == submitted
        if waited_for or batch.application_id != submitted:
            raise error
        course.say(f"run {submitted} of an earlier try ended without a result: starting another")


def _ended(
    course: Course, platform: Platform, away: AwayBatch, folder: StagedPlace, show: Callable[[Progress], None]
) -> RunState:
    """Wait for the end of a run, or leave it and its lease to whoever keeps them; where the request is stopped it ends.

    :param show: takes how far the job of the folder is.
    :raises UnavailableError: ``engine.stopped``.
    """
    woken, pause = threading.Event(), _FIRST_POLL
    try:
        with course.stopper.running(woken.set):
            state = platform.state(away.run)
            course.say(f"batch {away.seq}: run {away.run} of {course.pipeline.spark.submit}: {state.text}")
            if course.absence is not None and not state.ended:
                away.began, away.parts = time.time() - course.seconds(), course.parts
                away.lease = course.lease.hand_over()
                course.absence.leave(away)
            while not state.ended:
                woken.wait(pause)
                pause = min(_LONGEST_POLL, 1.5 * pause)
                course.stopper.check()
                course.lease.check()
                if (progress := folder.news()) is not None:
                    show(progress)
                state = platform.state(away.run)
            return state
    except BaseException:
        if course.stopper.stopped:
            platform.cancel(away.run)
        raise


def _without_result(
    course: Course, folder: StagedPlace, batch: Batch, submitted: str, state: RunState
) -> UnavailableError:
    """Return the error of a run that left no result, and let the job have it: the next try is another attempt."""
    error = UnavailableError(
        "engine.crashed", f"run {submitted} ended without a result: {state.text}",
        where={"pipeline": batch.pipeline, "seq": batch.seq, "platform": course.pipeline.spark.submit},
        hint="the platform's log says why; run again",
    )  # fmt: skip
    folder.end(Result(batch.pipeline, batch.seq, ResultStatus.FAILED, error=error))
    return error
