# SPDX-License-Identifier: Apache-2.0
"""Take a request through its batches: lease, plan, engine, ledger, until the request has its result."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

from airflow_provider_cdc.batch.attempts import recorded
from airflow_provider_cdc.batch.planned_batch import PlannedBatch, this_process
from airflow_provider_cdc.batch.platform_run import Absence, AwayBatch, on_platform
from airflow_provider_cdc.batch.recovery import take_over
from airflow_provider_cdc.batch.registration import register_tables
from airflow_provider_cdc.batch.result import BatchResult, table_states
from airflow_provider_cdc.batch.source_log import held, open_log
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.config.platform_kinds import PLATFORMS
from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.ledger import Batch, Lease, Ledger, Owner
from airflow_provider_cdc.reporting.reporter import Reporter, Say, reported


@dataclass(slots=True)
class Course:
    """Hold what a request works with while it has the pipeline's lease.

    :param log: the source's log (``batch.source_log``).
    :param started: when the request came, by the monotonic clock.
    :param left_over: batch that an earlier request left unfinished, as the present turn found it.
    :param stopper: stops the request from outside.
    :param absence: lets nobody wait here while a platform runs a batch.
    :param parts: batches that the request became so far.
    """

    pipeline: CdcPipeline
    ledger: Ledger
    lease: Lease
    log: Any
    say: Reporter
    started: float
    left_over: Batch | None = None
    stopper: Stopper = field(default_factory=Stopper)
    absence: Absence | None = None
    parts: list[int] = field(default_factory=list)

    def seconds(self) -> float:
        """Return how long the request has taken so far."""
        return time.monotonic() - self.started

    def finishes(self, batch: Batch) -> bool:
        """Return whether a batch is the one that an earlier request left unfinished."""
        return self.left_over is not None and batch.seq == self.left_over.seq

    def taken_back(self, batch: Batch) -> AwayBatch | None:
        """Return what an earlier process of this request left of a batch, once."""
        if self.absence is None or self.absence.back is None or self.absence.back.seq != batch.seq:
            return None
        back, self.absence.back = self.absence.back, None
        return back

    def next(self, request: Request) -> Batch | BatchResult:
        """Return the batch that is to be carried out now, or the request's result if there is none."""
        self.stopper.check()
        self.left_over = self.ledger.open(self.pipeline.name)
        batch = request.next_batch(self)
        if isinstance(batch, BatchResult):
            states = partial(table_states, self.ledger, self.pipeline.name)
            return replace(
                batch, warnings=register_tables(self.pipeline, self.lease, states, self.stopper.check) or None
            )
        return batch

    def planned(self, batch: Batch) -> PlannedBatch:
        """Return what takes a batch through its engine."""
        config = self.log.client_config()
        return PlannedBatch(self.pipeline, self.ledger, self.lease, batch, config, self.say, self.stopper)

    def prepared(self, request: Request, batch: Batch) -> PlannedBatch:
        """Return what takes a batch through its engine, with what the request asks for."""
        from airflow_provider_cdc.batch.planner import made_again

        run = self.planned(batch)
        if self.finishes(batch):
            run.documents.recreated = made_again(self.log, batch, self.pipeline.source.heartbeat_topic)
        request.prepare(run, self, batch)
        return run


class Request(Protocol):
    """Decide which batch comes next, and when a request has its result."""

    def next_batch(self, course: Course) -> Batch | BatchResult:
        """Return the batch that is to be carried out now, or the result if there is none."""
        ...

    def prepare(self, run: PlannedBatch, course: Course, batch: Batch) -> None:
        """Add to a batch what the request asks for, before its engine starts."""
        ...

    def result(self, course: Course, batch: Batch, outcome: Result, result: BatchResult) -> BatchResult | None:
        """Return the result of the request, None where another batch has to follow.

        :param outcome: as the engine returned it; ``result`` as it was published.
        """
        ...


@contextmanager
def course_of(
    pipeline: CdcPipeline,
    *,
    say: Say = print,
    kill: Stopper | None = None,
    owner: Owner | None = None,
    absence: Absence | None = None,
) -> Iterator[Course]:
    """Hold a pipeline's lease for the length of a block.

    :param say: takes one line of progress.
    :param kill: stops it from outside.
    :param owner: who requests it, shown to others while the pipeline is leased; a later try of an Airflow task takes
        over the lease of its dead one.
    :param absence: lets nobody wait here while a platform runs a batch.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    stopper, started = kill or Stopper(), time.monotonic()
    ledger = Ledger(ledger_url(pipeline.ledger))
    back = None if absence is None else absence.back
    if back is not None:
        started -= max(0.0, time.time() - back.began)
    taken = ledger.lease(
        pipeline.name,
        owner or this_process(),
        pipeline.policy.lease_seconds,
        handed_over=None if back is None else back.lease,
    )
    with reported(say) as reporter, taken as lease:
        log = open_log(pipeline, right=held(lease, stopper.check))
        yield Course(pipeline, ledger, lease, log, reporter, started, stopper=stopper, absence=absence)


@recorded
def carry_out(
    pipeline: CdcPipeline,
    request: Request,
    *,
    say: Say = print,
    kill: Stopper | None = None,
    owner: Owner | None = None,
    absence: Absence | None = None,
) -> BatchResult:
    """Carry out batch after batch until a request has its result; parameters are those of :func:`course_of`.

    :raises BusyError: another holder has the pipeline's lease; names it.
    :raises CdcError: with a hint; nothing was committed.
    """
    with course_of(pipeline, say=say, kill=kill, owner=owner, absence=absence) as course:
        while True:
            batch = course.next(request)
            if isinstance(batch, BatchResult):
                return batch
            run = course.prepared(request, batch)
            away = run.documents.engine in PLATFORMS
            outcome = on_platform(course, run, batch) if away else run.carry_out()
            if outcome.status == ResultStatus.BEHIND:
                course.say(take_over(course.ledger, course.lease, outcome.lake_batches))
                continue
            result = request.result(course, batch, outcome, run.publish(outcome, course.seconds()))
            if result is not None:
                return result
