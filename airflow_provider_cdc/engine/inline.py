# SPDX-License-Identifier: Apache-2.0
"""Run the tasks of a batch one after the other in one Python process of this machine, without a JVM."""

from __future__ import annotations

import subprocess
import sys
from collections import deque

from airflow_provider_cdc.core.documents import Result
from airflow_provider_cdc.engine.task import LAST_LINES, EngineTask, die_with_parent, kill_group, read_result


def run_inline(task: EngineTask) -> Result:
    """Run a batch and return its result.

    :raises UnavailableError: the process crashed or was stopped.
    """
    command = [sys.executable, str(task.payload.main), str(task.job), str(task.result), "--inline"]
    last: deque[str] = deque(maxlen=LAST_LINES)
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=task.environment(PYTHONPATH=str(task.payload.folder)),
        start_new_session=True,
        preexec_fn=die_with_parent,
    ) as process:
        assert process.stdout is not None
        try:
            with task.stopper.running(lambda: kill_group(process.pid)):
                for line in process.stdout:
                    last.append(line.rstrip("\n"))
                    task.say(last[-1])
        except BaseException:
            kill_group(process.pid)
            raise
    return read_result(task, list(last), process.returncode)
