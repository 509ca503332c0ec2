# SPDX-License-Identifier: Apache-2.0
"""Run a job that lies on the lake, on whatever platform this is, and leave its status and result next to it."""

from __future__ import annotations

import platform
import re
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol

from airflow_provider_cdc.core.documents import JobDocument, Progress, Result, StagedPlace, take_secrets
from airflow_provider_cdc.core.errors import CdcError, Transient
from airflow_provider_cdc.core.printable import printable
from spark_jobs.workers.present_spark import is_connected, is_submitted, running_context

RUN_AGAIN = 75
"""Exit code of a run that may succeed when it is repeated: ``EX_TEMPFAIL``."""
REFUSED = 2
"""Exit code of a run that could not read its job, or not write its result."""
_STATUS_SECONDS = 10.0
_APPLICATION = re.compile(r"Spark application ([\w.-]+)")

Say = Callable[[str], None]


class Engine(Protocol):
    """Run a job and return its result."""

    def __call__(self, job: JobDocument, secrets: dict[str, dict[str, str]], say: Say, *, inline: bool) -> Result:
        """Run it.

        :param inline: in this process, without Spark.
        """
        ...


def run_staged(address: str, store: Mapping[str, str], engine: Engine, say: Say) -> int:
    """Run the job at an address and return the exit code: 0 where it has a result that counts.

    :param address: of the folder of the job: path or URL.
    :param store: options of the lake's store that are no secrets, in delta-rs' names.
    """
    try:
        secrets = take_secrets()
        there = StagedPlace(address, {**store, **secrets.get("storage", {})})
        result = _result(there, secrets, engine, say)
    except CdcError as error:
        say(printable(str(error)))
        return RUN_AGAIN if isinstance(error, Transient) else REFUSED
    if result.error is None:
        return 0
    say(printable(str(result.error)))
    return RUN_AGAIN if isinstance(result.error, Transient) else 0


def _result(there: StagedPlace, secrets: dict[str, dict[str, str]], engine: Engine, say: Say) -> Result:
    """Return the result that the place has already, or run its job and write one."""
    before = there.result()
    if before is not None and before.is_final:
        say(f"done before: the job at {there.address} has its result already")
        if is_submitted():  # on YARN an application that starts no context has failed
            from pyspark import SparkContext

            SparkContext.getOrCreate().stop()
        return before
    staged = there.job()
    staged.demand_secrets(secrets)
    inline = _is_inline(staged.job)
    result = engine(staged.job, secrets, _Shown(there, say, "inline" if inline else "spark"), inline=inline)
    there.end(result)
    return result


def _is_inline(job: JobDocument) -> bool:
    """Return whether a job runs in this process: where no Spark is at work here, unless the pipeline demands one."""
    started = running_context() is not None or is_connected() or is_submitted()
    return job.policy.engine == "inline" or (job.policy.engine != "spark" and not started)


class _Shown:
    """Takes the lines of a running job: says them, and writes its status next to the job."""

    def __init__(self, there: StagedPlace, say: Say, engine: str) -> None:
        self._there, self._say, self._due = there, say, 0.0
        self._status: dict[str, Any] = {
            "engine": engine,
            "application": None,
            "host": socket.gethostname(),
            "python": platform.python_version(),
            "progress": None,
        }
        self._show()

    def __call__(self, line: str) -> None:
        progress = Progress.of_line(line)
        if progress is None:
            self._say(line)
            started = _APPLICATION.fullmatch(line)
            if started is not None:
                self._status["application"] = started[1]
                self._show()
        elif time.monotonic() >= self._due:
            self._status["progress"] = progress.document()
            self._say(progress.sentence())
            self._show()

    def _show(self) -> None:
        self._due = time.monotonic() + _STATUS_SECONDS
        with suppress(CdcError):  # the batch meets the same store and says so
            self._there.show(self._status)
