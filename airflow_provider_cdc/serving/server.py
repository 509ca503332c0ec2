# SPDX-License-Identifier: Apache-2.0
"""Start a batch of each pipeline whenever it is due, and hand on what came of it."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerProcess
from typing import Any

from airflow_provider_cdc.core.errors import UnavailableError, error_in, error_members
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.engine.kept_spark import Start, Wish
from airflow_provider_cdc.engine.task import PROCESS_SETTINGS
from airflow_provider_cdc.serving.applications import Applications
from airflow_provider_cdc.serving.batch import run

_LOOK = 0.5  # seconds between two looks at the clock
_SHORT_LOOK = 0.02  # while a batch waits for Spark to start
_PATIENCE = 30.0  # seconds that batches have to give their leases back

Report = Callable[[str, dict[str, Any]], None]


@dataclass
class Turns:
    """Say whose turn it is; turns that a pipeline misses are left out.

    :param every: seconds between two turns of a pipeline.
    """

    every: float
    _due: dict[str, float] = field(default_factory=dict)

    def next(self, files: Iterable[str], busy: Collection[str], free: int, now: float) -> list[str]:
        """Return the pipelines whose turn it is, the longest due first.

        :param busy: those whose batch still runs.
        :param free: how many batches may start.
        :param now: seconds of any clock that never goes back.
        """
        self._due = {file: self._due.get(file, now) for file in files}
        due = sorted(
            (file for file, at in self._due.items() if at <= now and file not in busy), key=self._due.__getitem__
        )
        for file in due[:free]:
            late = now - self._due[file]
            self._due[file] += self.every * (1 + late // self.every)
        return due[:free]


@dataclass
class Server:
    """Run batches until it is stopped; a pipeline has one at a time.

    :param files: returns the pipelines' files of the moment.
    :param every: seconds between two batches of a pipeline.
    :param jobs: batches at a time.
    :param report: takes a file and the document of what came of its batch.
    """

    files: Callable[[], Iterable[str]]
    every: float
    jobs: int
    report: Report
    _applications: Applications = field(default_factory=Applications)
    _running: dict[Connection, tuple[str, ForkServerProcess]] = field(default_factory=dict)
    _stopped: bool = False

    def stop(self) -> None:
        """Start no more batches, and end those that run; safe in a signal handler."""
        self._stopped = True

    def serve(self) -> None:
        """Run batches until :meth:`stop`."""
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["airflow_provider_cdc.serving.preloaded"])
        os.environ.update({name: os.environ.get(name, value) for name, value in PROCESS_SETTINGS.items()})
        turns = Turns(self.every)
        try:
            while not self._stopped:
                busy = {file for file, _ in self._running.values()}
                for file in turns.next(self.files(), busy, self.jobs - len(busy), time.monotonic()):
                    self._start(context, file)
                self._wait()
                self._applications.look(time.monotonic())
        finally:
            self._end()

    def _wait(self) -> None:
        """Wait a moment for batches that end; a signal handler may not wake what waits, so it is a short one."""
        if not self._running:
            time.sleep(_LOOK)
            return
        ready = wait(list(self._running), timeout=_SHORT_LOOK if self._applications.starting else _LOOK)
        for batch in [one for one in self._running if one in ready]:
            self._hear(batch)

    def _start(self, context: Any, file: str) -> None:
        batch, its_end = context.Pipe()
        process = context.Process(target=run, args=(file, its_end), name=file)
        process.start()
        its_end.close()  # the connection ends when the process does
        self._running[batch] = (file, process)

    def _hear(self, batch: Connection) -> None:
        """Take what a batch says: what it needs of Spark, or its result."""
        try:
            said = batch.recv()
        except (EOFError, ConnectionResetError):
            said = None
        if isinstance(said, Wish):
            self._applications.wish(batch, said)
        elif isinstance(said, Start):
            self._applications.start(batch, said)
        else:
            self._finish(batch, said)

    def _finish(self, batch: Connection, document: Mapping[str, Any] | None) -> None:
        file, process = self._running.pop(batch)
        process.join()
        document = _killed(process.exitcode) if document is None else document
        error = error_in(document)
        self._applications.give_back(batch, well=error is None or not error.code.startswith("engine."))
        batch.close()
        self.report(file, dict(document))

    def _end(self) -> None:
        """Ask the batches that run to end, and kill those that do not."""
        processes = [process for _, process in self._running.values()]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _PATIENCE
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            process.kill()
        self._applications.end()


def _killed(code: int | None) -> Mapping[str, Any]:
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    error = UnavailableError(
        "engine.crashed", f"the batch's process ended with {how}", hint="the next turn finishes it"
    )
    return {"status": str(ResultStatus.FAILED), **error_members(error)}
