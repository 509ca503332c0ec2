# SPDX-License-Identifier: Apache-2.0
"""A platform whose runs are processes of this machine; each token has a folder, and at most one run."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from airflow_provider_cdc.connections.lookup import find_connection
from airflow_provider_cdc.core.config import SparkSettings
from airflow_provider_cdc.platforms.contract import RunState, Submission

LOCAL_SETTINGS = f"""
from airflow_provider_cdc.core.config.platform_kinds import PLATFORMS
PLATFORMS["process"] = "{__name__}"
"""
"""``airflow_local_settings.py``, which each process of an Airflow imports."""


class ProcessPlatform:
    """Runs jobs as processes that outlive whoever started them.

    :param folder: of the runs; while it has a file ``hold``, those that were started do not begin.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def submit(self, job: Submission, environment: Mapping[str, str] | None = None) -> str:
        """Start a job, unless its token has a run.

        :param environment: variables of it alone.
        """
        run = self._folder / job.token
        with suppress(FileExistsError):
            run.mkdir(parents=True)
            command = shlex.join([sys.executable, "-m", "airflow_provider_cdc.job", *job.arguments])
            with (run / "log").open("wb") as log:
                hold, code = (shlex.quote(str(file)) for file in (self._folder / "hold", run / "code"))
                script = f"while [ -e {hold} ]; do sleep 0.05; done; {command}; echo $? >{code}"
                process = subprocess.Popen(
                    ["sh", "-c", script], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    env={**os.environ, **(environment or {})},
                )  # fmt: skip
            (run / "group").write_text(str(process.pid))
        return job.token

    def state(self, run: str) -> RunState:
        """Return whether a run's process group is gone."""
        code = self._folder / run / "code"
        if code.exists():
            return RunState(True, f"exit code {code.read_text().strip()}")
        group = int((self._folder / run / "group").read_text())
        running = group in _groups()
        return RunState(not running, "running" if running else "killed")

    def cancel(self, run: str) -> None:
        """Kill the processes of a run, unless it has ended."""
        if not self.state(run).ended:
            os.killpg(int((self._folder / run / "group").read_text()), signal.SIGKILL)

    def stop(self) -> None:
        """Kill the processes of all runs."""
        for file in self._folder.glob("*/group"):
            self.cancel(file.parent.name)


def _groups() -> set[int]:
    """Return the process groups that have a living member."""
    groups = set()
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, group, *_ = stat.read_text().rsplit(")", 1)[1].split()
            groups |= set() if state in "ZX" else {int(group)}
    return groups


def open_platform(settings: SparkSettings) -> ProcessPlatform:
    """Return the platform whose runs are in the folder that a connection of type ``process`` has as host."""
    return ProcessPlatform(Path(find_connection(settings.connection or "", ("process",)).host or ""))
