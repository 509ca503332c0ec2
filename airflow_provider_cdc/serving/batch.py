# SPDX-License-Identifier: Apache-2.0
"""Run one batch of a pipeline in this process, a fork that ends with it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from airflow_provider_cdc.batch.runner import run_batch
from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.errors import CdcError, UnavailableError, error_members
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.engine import inline, kept_spark
from airflow_provider_cdc.engine.here import run_here
from airflow_provider_cdc.engine.kept_spark import Application, Start, Wish
from airflow_provider_cdc.engine.task import die_with_parent

_LOOK = 0.1  # seconds between two looks at whether the batch was stopped


class Stopped(BaseException):
    """The process was asked to stop: the lease is given back on the way out."""


def run(file: str, server: Connection) -> None:
    """Run a batch and answer with its result document, or with that of the error that kept it from running.

    :param file: the pipeline's YAML file, read for each batch.
    """
    die_with_parent()
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # where the server's lines go; what a library logs is none
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the server decides
    signal.signal(signal.SIGTERM, _stop)
    inline.start = run_here
    kept_spark.borrow = _Borrow(server)
    try:
        document = run_batch(CdcPipeline.from_yaml(file), say=_nothing).document()
    except CdcError as error:
        document = {"status": str(ResultStatus.FAILED), **error_members(error)}
    except Stopped:
        return
    server.send(document)


@dataclass
class _Borrow:
    """Ask the server for a Spark application."""

    server: Connection

    def __call__(
        self, wish: Wish, start: Callable[[Path], Start | None], check: Callable[[], None]
    ) -> Application | None:
        """Return one that waits, or one that is started now; None where it cannot be started for more than one batch.

        :param start: says how one is started in a folder.
        :param check: raises after a stop.
        :raises UnavailableError: it ended before it could be used.
        """
        answer = self._answer(wish, check)
        if isinstance(answer, Path):
            how = start(answer)
            if how is None:
                return None
            answer = self._answer(how, check)
        if isinstance(answer, Application):
            return answer
        text = f"Spark ended before it could be used; its last output:\n{answer}"
        raise UnavailableError("engine.crashed", text, hint="run again; if it crashes again, the lines above say why")

    def _answer(self, request: Wish | Start, check: Callable[[], None]) -> Any:
        self.server.send(request)
        while not self.server.poll(_LOOK):
            check()
        return self.server.recv()


def _stop(*_: Any) -> None:
    raise Stopped


def _nothing(line: str) -> None:
    """Leave out lines of progress: there is one line for each batch."""
