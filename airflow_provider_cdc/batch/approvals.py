# SPDX-License-Identifier: Apache-2.0
"""Decide about changes that the policy of a table asks about: of the source's schema, and of the pipeline's rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.batch.orders import run_approval
from airflow_provider_cdc.batch.planned_batch import this_process
from airflow_provider_cdc.batch.result import BatchResult, from_ledger, stored_result, table_states
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.asked_changes import (
    DENIABLE,
    ON_CREATE_TABLE,
    ON_FAILOVER,
    ON_MISSING_CREATE,
    ON_RULE_CHANGE,
    ON_UNSEEN_DDL,
    Answer,
    AskedChange,
    newest_answers,
)
from airflow_provider_cdc.ledger import Batch, Ledger, TaskTry

_SETTLED = (ON_FAILOVER, ON_UNSEEN_DDL)
_EXCLUDE = ", or exclude the table with tables.exclude"
_INSTEAD = {
    ON_CREATE_TABLE: _EXCLUDE,
    ON_MISSING_CREATE: _EXCLUDE,
    ON_RULE_CHANGE: ", or take the rules back: then the table goes on by itself",
}


def asked_changes(batches: Sequence[Batch]) -> list[AskedChange]:
    """Return the schema changes that a pipeline asked about, by position, each with the decision about it.

    :param batches: all batches of the pipeline, ascending.
    """
    results = filter(None, map(stored_result, batches))
    return newest_answers(document for result in results for document in result.asked_changes or ())


def waiting_changes(ledger: Ledger, pipeline: str) -> list[AskedChange]:
    """Return the schema changes that wait for a decision, by position.

    Of a table that is well a snapshot has settled what its rows, or a failover, left open.
    """
    states = table_states(ledger, pipeline).values()
    well = {TableName(state.database, state.table) for state in states if state.state == TableStatus.OK}
    return [
        item
        for item in asked_changes(ledger.batches(pipeline))
        if item.answer == Answer.OPEN and not (item.policy in _SETTLED and item.name in well)
    ]


def decide(
    pipeline: CdcPipeline, table: str, *, deny: bool = False, change: str = "", by: str = "", **course: Any
) -> BatchResult:
    """Approve or deny a change that a table waits for, and let the table catch up.

    A change that was denied is carried out after all only where it is named. A repeat decides nothing else: of a named
    change, of a task's earlier try, and where nothing waits and the newest decision is the same.

    :param table: ``database.table``, the name that the table had at the change.
    :param deny: leave the change out.
    :param change: ``id`` of the change; the oldest that waits if empty.
    :param by: who decides; the user and the host of this process if empty.
    :param course: ``say``, ``kill`` and ``owner`` as of ``run_batch``.
    :raises DataError: ``approve.nothing_waits``, ``approve.cannot_deny``, ``approve.other_change``,
        ``approve.carried_out``.
    """
    ledger = Ledger(ledger_url(pipeline.ledger))
    batches = ledger.batches(pipeline.name)
    asked = asked_changes(batches)
    order, answer = _order(course.get("owner")), Answer.DENY if deny else Answer.APPLY
    item = _change_to_decide(asked, table, answer, change, order)
    if item.answer == answer:
        decided = next(batch for batch in reversed(batches) if item.document() in _asked_in(batch))
        return from_ledger(decided, table_states(ledger, pipeline.name).values(), 0.0)
    if deny:
        _demand_deniable(item)
    if item.cost is not None and "say" in course:
        for sentence in item.cost.sentences(table):
            course["say"](f"{table}: {sentence}")
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    decision = replace(item, answer=answer, by=by or this_process(), at=at, order=order)
    return run_approval(pipeline, decision, **course)


def _order(owner: object) -> str:
    """Identify the task that decides, whichever try of it runs; empty outside of Airflow."""
    if not isinstance(owner, TaskTry):
        return ""
    return f"{owner.dag_id}/{owner.run_id}/{owner.task_id}/{owner.map_index}"


def _asked_in(batch: Batch) -> list[dict[str, Any]]:
    """Return the documents of the changes that a batch asked about or decided, as they are written now."""
    result = stored_result(batch)
    documents = [] if result is None else result.asked_changes or []
    return [AskedChange.from_document(document).document() for document in documents]


def _demand_deniable(item: AskedChange) -> None:
    """Refuse to leave out a change without which the table could not hold the rows after it.

    :raises DataError: ``approve.cannot_deny``.
    """
    if item.policy in DENIABLE:
        return
    instead = _INSTEAD.get(item.policy, "")
    raise DataError(
        "approve.cannot_deny",
        f"{item.policy}: a change of this kind cannot be left out",
        where={"table": str(item.name), "position": item.position},
        hint=f"approve it{instead}; until then the table stays as it was",
    )


def _change_to_decide(asked: Sequence[AskedChange], table: str, answer: Answer, change: str, order: str) -> AskedChange:
    """Return the change that a decision is about; one that has the answer already is not decided again.

    :param change: its ``id``, empty for the oldest that waits.
    :param order: identifies a task whose earlier try may have decided, empty without one.
    :raises DataError: ``approve.nothing_waits``, ``approve.other_change``, ``approve.carried_out``.
    """
    mine = [one for one in asked if str(one.name) == table]
    if change:
        return _named(mine, table, answer, change)
    repeated = next((one for one in mine if order and one.order == order and one.answer == answer), None)
    waiting = (one for one in mine if one.answer == Answer.OPEN)
    decided = (one for one in mine if one.answer in (Answer.APPLY, Answer.DENY))
    newest = max(decided, key=lambda one: one.at, default=None)
    item = repeated or next(waiting, newest)
    if item is not None and item.answer in (Answer.OPEN, answer):
        return item
    names = dict.fromkeys(str(one.name) for one in asked if one.answer == Answer.OPEN)
    hint = f"tables with a change that waits: {', '.join(names)}" if names else "none of any table waits"
    if item is not None and answer == Answer.APPLY:
        hint += f"; `airflow-cdc approve PIPELINE.yaml {table} --change {item.id}` carries out what was denied last"
    raise DataError(
        "approve.nothing_waits", "no change of the table waits for a decision", where={"table": table}, hint=hint
    )


def _named(mine: Sequence[AskedChange], table: str, answer: Answer, change: str) -> AskedChange:
    """Return the change of a table that has an ``id``.

    :raises DataError: ``approve.other_change``, ``approve.nothing_waits``, ``approve.carried_out``.
    """
    item = next((one for one in mine if one.id == change), None)
    if item is None:
        raise DataError(
            "approve.other_change",
            "no change that the table waited for has this id",
            where={"table": table, "change": printable(change)},
            hint=f"its changes: {', '.join(f'{one.id} ({one.policy}, {one.answer})' for one in mine) or 'none'}",
        )
    if item.answer == Answer.WITHDRAWN:
        raise DataError(
            "approve.nothing_waits",
            "the rules were taken back, or changed again, so nothing is to be decided",
            where={"table": table, "change": item.id},
            hint="`airflow-cdc approve PIPELINE.yaml` shows what waits",
        )
    if item.answer == Answer.APPLY != answer:
        raise DataError(
            "approve.carried_out",
            "the change is carried out already and cannot be denied any more",
            where={"table": table, "change": item.id},
            hint="`airflow-cdc tables PIPELINE.yaml --history` says when, and who decided",
        )
    return item
