# SPDX-License-Identifier: Apache-2.0
"""Run the tasks of a batch one after the other in one Python process of this machine, without a JVM."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Callable, Sequence

from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.engine.payload import spark_jobs
from airflow_provider_cdc.engine.process import run_process
from airflow_provider_cdc.engine.task import LAST_LINES, EngineTask, read_result


def run_inline(task: EngineTask) -> Result:
    """Run a batch and return its result.

    :raises UnavailableError: the process crashed or was stopped.
    """
    last: deque[str] = deque(maxlen=LAST_LINES)
    code = start(task, [str(task.job), str(task.result), "--inline"], lambda line: task.hear(line, last))
    return read_result(task, list(last), code)


def as_process(task: EngineTask, arguments: Sequence[str], forward: Callable[[str], None]) -> int:
    """Run an engine as a process and return its exit code.

    :param forward: takes each line of its output.
    """
    folder = spark_jobs()
    environment = task.environment()
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(folder.parent), environment.get("PYTHONPATH")]))
    return run_process(task, [sys.executable, str(folder / "launch" / "run.py"), *arguments], environment, forward)


start: Callable[[EngineTask, Sequence[str], Callable[[str], None]], int] = as_process
"""Runs an engine to its end and returns its exit code; a fork that is the engine itself replaces it."""
