# SPDX-License-Identifier: Apache-2.0
"""Decide about schema changes that the policy of a table asks about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from airflow_provider_cdc.batch.result import BatchResult, stored_result
from airflow_provider_cdc.batch.runner import run_approval, this_process
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.ledger import Batch, Ledger
from airflow_provider_cdc.core.timeline.asked_changes import (
    DENIABLE,
    ON_CREATE_TABLE,
    ON_MISSING_CREATE,
    Answer,
    AskedChange,
    newest_answers,
)
from airflow_provider_cdc.hooks.connections import ledger_url


def asked_changes(batches: Sequence[Batch]) -> list[AskedChange]:
    """Return the schema changes that a pipeline asked about, by position, each with the decision about it.

    :param batches: all batches of the pipeline, ascending.
    """
    results = filter(None, map(stored_result, batches))
    return newest_answers(document for result in results for document in result.asked_changes or ())


def decide(pipeline: CdcPipeline, table: str, *, deny: bool = False, by: str = "", **course: Any) -> BatchResult:
    """Approve or deny the oldest schema change that a table waits for, and let the table catch up.

    Where none waits, an approval is of the change that was denied last: it is carried out after all.

    :param table: ``database.table``, the name that the table had at the change.
    :param deny: leave the change out.
    :param by: who decides; the user and the host of this process if empty.
    :param course: ``say``, ``kill`` and ``owner`` as of ``run_batch``.
    :raises DataError: ``approve.nothing_waits``, ``approve.cannot_deny``.
    """
    asked = asked_changes(Ledger(ledger_url(pipeline.ledger)).batches(pipeline.name))
    item = _change_to_decide([one for one in asked if str(one.name) == table], deny)
    if item is None:
        names = dict.fromkeys(str(one.name) for one in asked if one.answer == Answer.OPEN)
        raise DataError(
            "approve.nothing_waits",
            "no schema change of the table waits for a decision",
            where={"pipeline": pipeline.name, "table": table},
            hint=f"tables with a change that waits: {', '.join(names)}" if names else "none of any table waits",
        )
    if deny:
        _demand_deniable(item)
    answer = Answer.DENY if deny else Answer.APPLY
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return run_approval(pipeline, replace(item, answer=answer, by=by or this_process(), at=at), **course)


def _demand_deniable(item: AskedChange) -> None:
    """Refuse to leave out a change without which the table could not hold the rows after it.

    :raises DataError: ``approve.cannot_deny``.
    """
    if item.policy in DENIABLE:
        return
    begins = item.policy in (ON_CREATE_TABLE, ON_MISSING_CREATE)
    instead = ", or exclude the table with tables.exclude" if begins else ""
    raise DataError(
        "approve.cannot_deny",
        f"{item.policy}: a change of this kind cannot be left out",
        where={"table": str(item.name), "position": item.position},
        hint=f"approve it{instead}; until then the table stays as it was",
    )


def _change_to_decide(asked: Sequence[AskedChange], deny: bool) -> AskedChange | None:
    """Return the change that a decision is about, None without one."""
    waiting = [one for one in asked if one.answer == Answer.OPEN]
    if waiting or deny:
        return next(iter(waiting), None)
    return max((one for one in asked if one.answer == Answer.DENY), key=lambda one: one.at, default=None)
