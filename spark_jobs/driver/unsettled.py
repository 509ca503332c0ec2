# SPDX-License-Identifier: Apache-2.0
"""States of tables that wait for a schema change or are parked."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.model.status import TableStatus

REPLACED = "replaced by a table of a late schema change"
"""Reason of a table that a late schema change showed to be another one."""

_OUTSIDE_THE_LOG = ("sink.", "target.", "log.", "apply.memory", "apply.fault")


def set_aside(
    job: JobDocument, state: TableState, reason: str, code: str = "", seen_version: int | None = None
) -> TableState:
    """Return the state of a table that is parked with a reason.

    :param seen_version: version that its location had, None where no table could be opened.
    """
    return replace(
        state, state=TableStatus.PARKED, reason=reason, code=code, tried_with=job.fingerprint, seen_version=seen_version
    )


def waiting(job: JobDocument, state: TableState, reason: str) -> TableState:
    """Return the state of a table that waits for a schema change; after the grace time it is parked.

    The time does not run while the request has more batches: what the table waits for may be in the next one.
    """
    if job.cut_at is not None:
        return replace(state, state=TableStatus.WAITING, reason=reason, waiting_since=None)
    since = state.waiting_since or job.created_at
    waited = (datetime.fromisoformat(job.created_at) - datetime.fromisoformat(since)).total_seconds()
    state = replace(state, waiting_since=since)
    if waited > job.policy.ddl_grace_seconds:
        return set_aside(job, state, reason)
    return replace(state, state=TableStatus.WAITING, reason=reason)


def may_go_on(job: JobDocument, state: TableState) -> bool:
    """Return whether a table may be well when it is tried again although the log has nothing new of it.

    A parked table is tried again under another configuration, and where the cause lies outside of the log.
    """
    if state.state == TableStatus.PARKED:
        return state.tried_with != job.fingerprint or state.code.startswith(_OUTSIDE_THE_LOG)
    return state.state == TableStatus.WAITING
