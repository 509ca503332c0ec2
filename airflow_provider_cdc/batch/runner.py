# SPDX-License-Identifier: Apache-2.0
"""Run what a request for the newest changes needs: one batch, or several where it is large."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from airflow_provider_cdc.batch.course import Course, carry_out
from airflow_provider_cdc.batch.planned_batch import PlannedBatch
from airflow_provider_cdc.batch.platform_run import Absence
from airflow_provider_cdc.batch.result import BatchResult, from_ledger, joined, ran_engine, table_states
from airflow_provider_cdc.batch.unsettled import Unsettled
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.core.errors import LOG_LOST, SECOND_LOG
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.core.plan.progress import SLACK_MS
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.ledger import Batch, Owner
from airflow_provider_cdc.reporting.reporter import Say


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
    absence: Absence | None = None,
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
    :param on_application: takes the id of each Spark application, or run of a platform, as soon as it runs.
    :param absence: lets nobody wait here while a platform runs a batch.
    :raises BusyError: another holder has the pipeline's lease; names it.
    :raises CdcError: with a hint; nothing was committed.
    """
    request = NewestChanges(until, accept_loss, new_generation, on_start, on_application)
    if absence is not None and absence.back is not None:
        request.began = datetime.fromtimestamp(absence.back.began, UTC)
        request.earlier = absence.back.parts
    return carry_out(pipeline, request, say=say, kill=kill, owner=owner, absence=absence)


@dataclass(slots=True)
class NewestChanges:
    """Ask for all changes up to a time; parameters are those of :func:`run_batch`.

    :ivar began: when the request came: one without a time asks for what was in the log then.
    :ivar parts: results of the batches that the request became so far; ``earlier`` are those of an earlier process.
    """

    until: datetime | None
    accept_loss: bool = False
    new_generation: str = ""
    on_start: Callable[[Batch], None] | None = None
    on_application: Callable[[str], None] = lambda application_id: None
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    parts: list[BatchResult] = field(default_factory=list)
    earlier: list[int] = field(default_factory=list)

    def next_batch(self, course: Course) -> Batch | BatchResult:
        """Return the next batch of the request, or its result where the tables hold all of it."""
        from airflow_provider_cdc.batch.planner import plan_batch, plan_settling

        pipeline, ledger, lease, log, say = course.pipeline, course.ledger, course.lease, course.log, course.say
        if self.earlier:
            stored = [ledger.batch(pipeline.name, seq) for seq in self.earlier]
            self.parts, self.earlier = [already_done(course, part) for part in stored if part is not None], []
        batch = plan_batch(pipeline, ledger, lease, log, self.until, accept_loss=self.accept_loss, say=say)
        if not batch.committed:
            return batch
        if course.left_over is not None:  # nothing may be planned before the batch of another request is finished
            return already_done(course, batch)
        unsettled = Unsettled(pipeline, ledger, lease)
        unsettled.end_grace(say)
        if unsettled.waiting and ran_engine(batch):
            further = plan_batch(pipeline, ledger, lease, log, self.until, again=True)
            batch = batch if further.committed else further
        if not batch.committed:
            say("a table waits for a schema change, and the log has more records: reading them")
        elif reason := unsettled.why_continue():
            say(f"nothing new, but {reason}")
            batch = plan_settling(ledger, lease, pipeline.name)
        else:
            return joined(self.parts) if self.parts else already_done(course, batch)
        self.until = None
        return batch

    def prepare(self, run: PlannedBatch, course: Course, batch: Batch) -> None:
        """Let the batch begin a new log of the source where that was approved, and report its start."""
        run.documents.new_generation = self.new_generation
        run.on_application = self.on_application
        course.parts = [part.seq for part in self.parts if part.seq is not None]
        if self.on_start is not None:
            self.on_start(batch)

    def result(self, course: Course, batch: Batch, outcome: Result, result: BatchResult) -> BatchResult | None:
        """Return the result of the request, None where another batch has to follow."""
        if self.abandons(course, batch, result):
            return None
        if result.status == ResultStatus.FAILED:
            return result
        if self.ends_with(batch):
            return joined([*self.parts, result])
        if batch.cut_at is None:
            # A batch left over from another request was finished first; this request comes next.
            course.say(f"batch {batch.seq} was left over and is finished; continuing with the requested one")
            return None
        self.parts.append(result)
        course.say(f"batch {batch.seq} holds what came up to {batch.cut_at.isoformat()}; continuing with the next part")
        return None

    def ends_with(self, batch: Batch) -> bool:
        """Return whether a batch is the last one that the request needs."""
        if self.until is not None:
            return batch.until == self.until
        return batch.cut_at is None or batch.cut_at >= self.began + timedelta(milliseconds=SLACK_MS)

    def abandons(self, course: Course, batch: Batch, result: BatchResult) -> bool:
        """Give up a batch of an earlier request that can never be carried out; return whether that is so."""
        lost = result.error is not None and result.error.code in LOG_LOST
        if self.accept_loss and course.left_over is not None and result.error is not None and lost:
            # none of it was landed: a landed batch is not read again
            reason = f"can no longer be read and is abandoned: {result.error.message}"
        elif course.finishes(batch) and _was_of_other_topics(course.pipeline, batch, result):
            reason = "was planned with topics that source.topics matches no more and is abandoned"
        else:
            return False
        course.ledger.abandon(course.lease, batch.seq)
        course.say(f"batch {batch.seq} {reason}")
        return True


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


def already_done(course: Course, batch: Batch) -> BatchResult:
    """Return the result of a batch that is committed already."""
    states = table_states(course.ledger, batch.pipeline)
    return from_ledger(batch, states.values(), course.seconds())
