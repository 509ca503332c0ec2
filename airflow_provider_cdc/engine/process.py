# SPDX-License-Identifier: Apache-2.0
"""Run an engine as a process of this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence

from airflow_provider_cdc.engine.task import EngineTask, die_with_parent, kill_group


def run_process(
    task: EngineTask, command: Sequence[str], environment: Mapping[str, str], forward: Callable[[str], None]
) -> int:
    """Run a command to its end and return its exit code; it never outlives this process.

    :param forward: takes each line of its output.
    """
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=dict(environment),
        start_new_session=True,
        preexec_fn=die_with_parent,
    ) as process:
        assert process.stdout is not None
        try:
            with task.stopper.running(lambda: kill_group(process.pid)):
                for line in process.stdout:
                    forward(line.rstrip("\n"))
        except BaseException:
            kill_group(process.pid)
            raise
    return process.returncode
