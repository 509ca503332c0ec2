# SPDX-License-Identifier: Apache-2.0
"""Run a batch for what an operator orders: rows or tables again, a decision, an approval."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from airflow_provider_cdc.batch.course import Course, carry_out
from airflow_provider_cdc.batch.planned_batch import PlannedBatch
from airflow_provider_cdc.batch.planner import plan_settling
from airflow_provider_cdc.batch.result import BatchResult, newest_by_name, table_states
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.documents import Approval, BatchOrder, Decision, Rebuild, Replay, Result, TableState
from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.model.status import ResultStatus, TableStatus
from airflow_provider_cdc.core.timeline.asked_changes import AskedChange
from airflow_provider_cdc.ledger import Batch, Ledger


def run_replay(pipeline: CdcPipeline, replay: Replay, **course: Any) -> BatchResult:
    """Apply rows of the change log again, in a batch that reads nothing new; an unfinished batch is finished first.

    Each row keeps its position: it changes a table only where the table has no newer change of its key.

    :param replay: which rows.
    :param course: ``say``, ``kill`` and ``owner`` as of :func:`course.carry_out`.
    :raises ConfigurationError: it names a table that the pipeline does not have.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    demand_tables(replay.tables, table_states(Ledger(ledger_url(pipeline.ledger)), pipeline.name).values())
    return carry_out(pipeline, _Ordered(replay), **course)


def run_rebuild(pipeline: CdcPipeline, rebuild: Rebuild, **course: Any) -> BatchResult:
    """Make tables again from all that the change log has of them, each in one commit, whatever lies at their locations.

    The batch reads nothing new; an unfinished one is finished first. Readers see the rows of before until the commit. A
    table that cannot be rebuilt stays as it is; its line of the result says why, and the status is ``parked``.

    :param rebuild: which tables.
    :param course: ``say``, ``kill`` and ``owner`` as of :func:`course.carry_out`.
    :raises ConfigurationError: it names a table that the pipeline does not have.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    states = table_states(Ledger(ledger_url(pipeline.ledger)), pipeline.name).values()
    demand_tables(
        rebuild.tables,
        [state for state in states if state.state != TableStatus.DROPPED and not state.table_id.startswith("?")],
    )
    return carry_out(pipeline, _Ordered(rebuild), **course)


def run_decision(pipeline: CdcPipeline, decision: Decision, **course: Any) -> BatchResult:
    """Carry out a decision about quarantined records, in a batch that reads nothing new, or in the unfinished one.

    :param course: ``say``, ``kill`` and ``owner`` as of :func:`course.carry_out`.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    return carry_out(pipeline, _Ordered(decision), **course)


def run_approval(pipeline: CdcPipeline, approval: AskedChange, **course: Any) -> BatchResult:
    """Decide about a schema change that a table waits for, in a batch that reads nothing new; see ``batch.approvals``.

    :param course: ``say``, ``kill`` and ``owner`` as of :func:`course.carry_out`.
    :raises BusyError: another holder has the pipeline's lease; names it.
    """
    return carry_out(pipeline, _Ordered(Approval(approval.document())), **course)


@dataclass(slots=True)
class _Ordered:
    """Ask for a batch that reads nothing new and carries out an order."""

    order: BatchOrder

    def next_batch(self, course: Course) -> Batch:
        """Return the batch that an earlier request left unfinished, else a new one without records."""
        return course.left_over or plan_settling(course.ledger, course.lease, course.pipeline.name)

    def prepare(self, run: PlannedBatch, course: Course, batch: Batch) -> None:
        """Let a batch of its own carry out the order; a batch that waits for a decision takes it itself."""
        if course.left_over is None or isinstance(self.order, Decision):
            run.documents.order = self.order

    def result(self, course: Course, batch: Batch, outcome: Result, result: BatchResult) -> BatchResult | None:
        """Return the result once a batch has carried out the order."""
        if result.status == ResultStatus.FAILED or outcome.replayed:
            return result
        course.say(f"batch {batch.seq} was left over and is finished; continuing with what was asked for")
        return None


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
