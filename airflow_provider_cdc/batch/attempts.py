# SPDX-License-Identifier: Apache-2.0
"""Record in the ledger how each attempt at a batch ended, also one that failed before it had a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Concatenate, ParamSpec

from airflow_provider_cdc.batch.result import BatchResult
from airflow_provider_cdc.connections.lookup import ledger_url
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import BusyError, CdcError
from airflow_provider_cdc.ledger import Ledger, TaskTry

P = ParamSpec("P")
Work = Callable[Concatenate[CdcPipeline, P], BatchResult]


def recorded(work: Work[P]) -> Work[P]:
    """Return work on a pipeline that leaves in the ledger how it ended; one that met another holder says nothing."""

    @wraps(work)
    def attempt(pipeline: CdcPipeline, /, *args: P.args, **course: P.kwargs) -> BatchResult:
        owner = course.get("owner")
        task = owner if isinstance(owner, TaskTry) else None
        with failure_noted(pipeline, task):
            result = work(pipeline, *args, **course)
        note_attempt(pipeline, "" if result.error is None else result.error.code, task)
        return result

    return attempt


@contextmanager
def failure_noted(pipeline: CdcPipeline, task: TaskTry | None, errors: type[Exception] = Exception) -> Iterator[None]:
    """Leave in the ledger that work on a pipeline failed; work that met another holder says nothing.

    :param task: the task that works; None outside of Airflow.
    :param errors: those that count.
    """
    try:
        yield
    except BusyError:
        raise
    except errors as error:
        note_attempt(pipeline, error.code if isinstance(error, CdcError) else type(error).__name__, task)
        raise


def note_attempt(pipeline: CdcPipeline, code: str, task: TaskTry | None) -> None:
    """Write to the ledger how an attempt ended; what came of it does not depend on that.

    :param code: of its error, empty where it ended well.
    :param task: the task that made it; None outside of Airflow.
    """
    with suppress(CdcError, OSError):
        Ledger(ledger_url(pipeline.ledger)).record_attempt(pipeline.name, code, task)
