# SPDX-License-Identifier: Apache-2.0
"""Report how a task of a table ended: errors become its status, and are not raised."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

from airflow_provider_cdc.core.apply.contradictions import Findings
from airflow_provider_cdc.core.apply.foreign_key_actions import RowsUnknown
from airflow_provider_cdc.core.apply.merge_plan import ImagesLack
from airflow_provider_cdc.core.apply.rewinding import RewindNeeded
from airflow_provider_cdc.core.apply.row_images import SchemaMissing
from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.core.faults import course, may_be_caught
from airflow_provider_cdc.core.model.status import ApplyStatus
from airflow_provider_cdc.core.printable import printable
from spark_jobs.tasks.parking import as_cdc_error
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask
from spark_jobs.workers.malloc import keep_memory, release_memory

_BRIEF = 0.1  # seconds: what so short a task held is given back with what the next ones hold


class TableWork(Protocol):
    """A table's way through apply.

    :ivar refused: rows that do not fit, where they are too many, the first of them.
    """

    job: JobDocument
    task: ApplyTask
    refused: list[dict[str, Any]]

    @property
    def findings(self) -> Findings:
        """Return the outcome of comparing its changes with the rows that they found."""
        ...

    @property
    def first(self) -> dict[str, Any]:
        """Topic, partition and offset of its first record, once changes were read."""
        ...

    @property
    def seen_version(self) -> int | None:
        """Version that the table's location had, None where no table could be opened."""
        ...

    def again(self) -> Self:
        """Return the same, to be tried once more."""
        ...

    def may_hold_batch(self) -> bool:
        """Return whether this attempt's commit may have gone through."""
        ...


Applying = TypeVar("Applying", bound=TableWork)


def reported(table: Applying, work: Callable[[Applying], ApplyReport]) -> ApplyReport:
    """Return what a task of a table reports; an error is reported, not raised."""
    begin = time.monotonic()
    job, task = table.job, table.task
    keep_memory()
    try:
        try:
            report = work(table)
        except UnavailableError as error:
            if error.code != "sink.commit_conflict":
                raise
            table = table.again()  # maintenance may have come in between; it changes no rows
            report = work(table)
    except SchemaMissing as error:
        report = ApplyReport(task.table_id, ApplyStatus.WAITING, reason=str(error), error=error)
    except RowsUnknown as error:
        report = ApplyReport(task.table_id, ApplyStatus.PARKED, reason=f"needs rebuild: {error}", error=error)
    except ImagesLack:
        report = ApplyReport(task.table_id, ApplyStatus.WHOLE)
    except RewindNeeded as error:
        report = ApplyReport(task.table_id, ApplyStatus.REWIND, reason=str(error), rewind_to=error.position)
    except BaseException as error:
        if not may_be_caught(error):
            raise
        report = _set_aside(task, error, table.first, table.seen_version)
        if report.status == ApplyStatus.PARKED and table.may_hold_batch():
            report.status = ApplyStatus.UNAVAILABLE  # the repeat of the batch finds what is committed
        report.refused = table.refused
        report.findings = table.findings
    report.seconds = round(time.monotonic() - begin, 3)
    if report.seconds > _BRIEF:
        release_memory(large=task.image_bytes > job.policy.apply_bytes)
    return report


def _set_aside(task: ApplyTask, error: BaseException, first: dict[str, Any], seen_version: int | None) -> ApplyReport:
    """Report an error: that the batch should run again, or why the table is parked.

    :param first: topic, partition and offset of the first record that has to wait.
    :param seen_version: version that the table's location has, None where no table could be opened.
    """
    table = f"{task.database}.{task.table}"
    cdc_error = as_cdc_error(error, {"table": table, **first})
    if cdc_error is not error:
        print(f"{cdc_error.code} in table {printable(table)}: {course(error)}", file=sys.stderr)
    report = ApplyReport(task.table_id, ApplyStatus.PARKED, seen_version)
    report.fail(cdc_error)
    return report
