# SPDX-License-Identifier: Apache-2.0
"""Let a batch run again where the store failed for a table; park a table for which it fails twice in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import CdcError, Transient, UnavailableError
from airflow_provider_cdc.core.model.status import ApplyStatus, TableStatus
from spark_jobs.lake.layout import batch_document
from spark_jobs.lake.storage import Storage
from spark_jobs.tasks.table_task import ApplyReport

_ANSWERED = (ApplyStatus.COMMITTED, ApplyStatus.UNCHANGED, ApplyStatus.REPEATED)
_TRIED_AGAIN = ("sink.", "log.")  # codes of parked tables that each batch tries again (``unsettled.may_go_on``)


def demand_answers(job: JobDocument, storage: Storage, reports: Mapping[str, ApplyReport]) -> None:
    """Park tables for which the store failed again while it answered for others; else let the batch run again.

    What is committed stays, and is not repeated. Each batch tries such a parked table again.

    :raises UnavailableError: the store failed for a table.
    """
    failed = [report for report in reports.values() if report.status == ApplyStatus.UNAVAILABLE]
    if not failed:
        return
    answered = any(report.status in _ANSWERED for report in reports.values())
    if answered:
        parked = {state.table_id: state.code for state in job.states if state.state == TableStatus.PARKED}
        before = {**parked, **_noted(job, storage)}
        for report in failed:
            if _is_repeated(report.error, before.get(report.table_id)):
                report.status = ApplyStatus.PARKED
    left = [report for report in failed if report.status == ApplyStatus.UNAVAILABLE]
    if not left:
        return
    if answered:
        _note(job, storage, {report.table_id: report.error.code for report in failed if report.error is not None})
    errors = [report.error for report in (*left, *failed) if report.error is not None]
    first = UnavailableError.from_document(errors[0].document())
    if len(left) > 1:
        first.message += f" (and for {len(left) - 1} other tables)"
    raise first


def fails_again(job: JobDocument, storage: Storage, left: TableState, error: CdcError) -> bool:
    """Return whether emptying the location that a table left failed in an attempt before in the same way."""
    name = f"{left.table_id} {left.location}"
    if _is_repeated(error, _noted(job, storage).get(name)):
        return True
    _note(job, storage, {name: error.code})
    return False


def _noted(job: JobDocument, storage: Storage) -> dict[str, str]:
    """Return error codes by table id that earlier attempts at the batch noted."""
    return dict(storage.read_unfinished(batch_document(job.pipeline, job.seq, "failed")) or {})


def _note(job: JobDocument, storage: Storage, codes: dict[str, str]) -> None:
    with suppress(CdcError):  # the store may be away by now
        storage.write_json(batch_document(job.pipeline, job.seq, "failed"), {**_noted(job, storage), **codes})


def _is_repeated(error: CdcError | None, before: str | None) -> bool:
    return isinstance(error, Transient) and error.code == before and error.code.startswith(_TRIED_AGAIN)


def not_tried(reports: Iterable[ApplyReport]) -> set[str]:
    """Return the ids of tables that were given up because the store failed for those before them."""
    return {report.table_id for report in reports if report.status == ApplyStatus.UNAVAILABLE and report.error is None}
