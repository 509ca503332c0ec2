# SPDX-License-Identifier: Apache-2.0
"""Run the tasks of a batch one after the other in one Python process of this machine, without a JVM."""

from __future__ import annotations

import sys
from collections import deque

from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.engine.process import run_process as run_process  # a fork that serves replaces it
from airflow_provider_cdc.engine.task import LAST_LINES, EngineTask, read_result


def run_inline(task: EngineTask) -> Result:
    """Run a batch and return its result.

    :raises UnavailableError: the process crashed or was stopped.
    """
    command = [sys.executable, str(task.payload.main), str(task.job), str(task.result), "--inline"]
    last: deque[str] = deque(maxlen=LAST_LINES)
    environment = task.environment(PYTHONPATH=str(task.payload.folder))
    code = run_process(task, command, environment, lambda line: task.hear(line, last))
    return read_result(task, list(last), code)
