# SPDX-License-Identifier: Apache-2.0
"""Record in the ledger how each attempt at a batch ended, also one that failed before it had a batch."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
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
        try:
            result = work(pipeline, *args, **course)
        except BusyError:
            raise
        except Exception as error:
            _record(pipeline, error.code if isinstance(error, CdcError) else type(error).__name__, task)
            raise
        _record(pipeline, "" if result.error is None else result.error.code, task)
        return result

    return attempt


def _record(pipeline: CdcPipeline, code: str, task: TaskTry | None) -> None:
    """Write the end of an attempt; what came of it does not depend on that."""
    with suppress(CdcError, OSError):
        Ledger(ledger_url(pipeline.ledger)).record_attempt(pipeline.name, code, task)
