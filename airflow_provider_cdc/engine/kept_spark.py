# SPDX-License-Identifier: Apache-2.0
"""Run a batch in a Spark application of this machine that was started before and goes on afterwards.

A process that serves batches owns the application: a JVM that waits for drivers. A batch's own process borrows it,
becomes its driver, and ends with the batch.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from airflow_provider_cdc.engine.here import run_here
from airflow_provider_cdc.engine.payload import Payload
from airflow_provider_cdc.engine.task import EngineTask, kill_group

GATEWAY_FILE = "gateway"
"""Name of the file, in an application's folder, where Spark's JVM writes how drivers reach it."""


@dataclass(frozen=True)
class Start:
    """Say how an application is started.

    :param environment: all variables of its process.
    """

    command: list[str]
    environment: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class Application:
    """An application that waits for a driver.

    :param pid: its JVM, which leads a group.
    :param port: where the JVM listens, on this machine's own address.
    :param secret: what a driver has to know.
    :param log: file with the lines that Spark writes during the batch.
    """

    pid: int
    port: int
    secret: str = field(repr=False)
    log: Path

    def is_gone(self) -> bool:
        """Return whether its JVM has ended."""
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=10).close()
        except OSError:
            return True
        return False

    def lines(self) -> list[str]:
        """Return what Spark has written during the batch."""
        return self.log.read_text(encoding="utf-8", errors="replace").splitlines()


@dataclass(frozen=True)
class Wish:
    """Ask for an application.

    :param key: names the settings that an application starts with.
    :param keep_seconds: how long it stays for the next batch.
    """

    key: str
    keep_seconds: int


Borrow = Callable[[Wish, Callable[[Path], Start | None], Callable[[], None]], Application | None]

borrow: Borrow | None = None
"""Returns an application for the batch: of a wish, what starts one in a folder, and what raises after a stop.

The process of a served batch sets it; a batch elsewhere has an application of its own.
"""

loaded: Payload | None = None
"""The payload whose modules a process that serves batches has imported."""


def run_kept(
    task: EngineTask, application: Application, environment: Mapping[str, str], forward: Callable[[str], None]
) -> int:
    """Run a batch with this process as the application's driver, and return its exit code.

    :param environment: all variables of a driver.
    :param forward: takes each line of the driver's output.
    """
    gateway = {"PYSPARK_GATEWAY_PORT": str(application.port), "PYSPARK_GATEWAY_SECRET": application.secret}
    try:
        with task.stopper.running(lambda: kill_group(application.pid)):
            return run_here(task, [str(task.job), str(task.result), "--attach"], forward, {**environment, **gateway})
    except BaseException:
        kill_group(application.pid)
        raise
