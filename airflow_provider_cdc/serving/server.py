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

from airflow_provider_cdc.core.errors import UnavailableError, error_members
from airflow_provider_cdc.core.model.status import ResultStatus
from airflow_provider_cdc.engine.task import PROCESS_SETTINGS
from airflow_provider_cdc.serving.batch import run

_LOOK = 0.5  # seconds between two looks at the clock
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
        finally:
            self._end()

    def _wait(self) -> None:
        """Wait a moment for batches that end; a signal handler may not wake what waits, so it is a short one."""
        if not self._running:
            time.sleep(_LOOK)
            return
        ready = wait(list(self._running), timeout=_LOOK)
        for answer in [one for one in self._running if one in ready]:
            self._finish(answer)

    def _start(self, context: Any, file: str) -> None:
        answer, its_end = context.Pipe(duplex=False)
        process = context.Process(target=run, args=(file, its_end), name=file)
        process.start()
        its_end.close()  # the answer ends when the process does
        self._running[answer] = (file, process)

    def _finish(self, answer: Connection) -> None:
        file, process = self._running.pop(answer)
        try:
            document = answer.recv()
        except EOFError:
            process.join()
            document = _killed(process.exitcode)
        answer.close()
        process.join()
        self.report(file, document)

    def _end(self) -> None:
        """Ask the batches that run to end, and kill those that do not."""
        processes = [process for _, process in self._running.values()]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + _PATIENCE
        for process in processes:
            process.join(max(0.0, deadline - time.monotonic()))
            process.kill()


def _killed(code: int | None) -> Mapping[str, Any]:
    how = f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"
    error = UnavailableError(
        "engine.crashed", f"the batch's process ended with {how}", hint="the next turn finishes it"
    )
    return {"status": str(ResultStatus.FAILED), **error_members(error)}
