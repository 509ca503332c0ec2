# SPDX-License-Identifier: Apache-2.0
"""Run one batch of a pipeline in this process, a fork that ends with it."""

from __future__ import annotations

import signal
from multiprocessing.connection import Connection
from typing import Any

from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import CdcError, error_members
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.engine import inline
from airflow_provider_cdc.engine.here import run_here
from airflow_provider_cdc.engine.task import die_with_parent


class Stopped(BaseException):
    """The process was asked to stop: the lease is given back on the way out."""


def run(file: str, answer: Connection) -> None:
    """Run a batch and answer with its result document, or with that of the error that kept it from running.

    :param file: the pipeline's YAML file, read for each batch.
    """
    die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the server decides
    signal.signal(signal.SIGTERM, _stop)
    inline.start = run_here
    try:
        document = run_batch(CdcPipeline.from_yaml(file), say=_nothing).document()
    except CdcError as error:
        document = {"status": str(ResultStatus.FAILED), **error_members(error)}
    except Stopped:
        return
    answer.send(document)


def _stop(*_: Any) -> None:
    raise Stopped


def _nothing(line: str) -> None:
    """Leave out lines of progress: there is one line for each batch."""
