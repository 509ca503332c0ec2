# SPDX-License-Identifier: Apache-2.0
"""Report work that lasts: the lines that it says, and every so many seconds how far it is."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airflow_provider_cdc.core.documents import Progress
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.reporting.screen import Screen

LOG_SECONDS = 30.0
"""Seconds between two lines of progress in the log of a task."""
SILENCE = 9.0
"""The same where somebody waits at a command line: it is never silent for ten seconds."""
_BAR = 20

Say = Callable[[str], None]


class Reporter:
    """Say lines, and how far the present work is.

    :param write: takes a line that stays.
    :param every: seconds between two lines of progress.
    :param show: takes the progress of each second in the place of those lines, for a terminal.
    """

    def __init__(self, write: Say, every: float = LOG_SECONDS, show: Say | None = None) -> None:
        self._write, self._every, self._show = write, every, show
        self._began = time.monotonic()
        self._progress: Progress | None = None
        self._over = threading.Event()

    def __call__(self, line: str) -> None:
        """Say a line of progress."""
        self._write(line)

    @contextmanager
    def engine(self) -> Iterator[Callable[[Progress], None]]:
        """Return what takes how far an engine is, which runs inside the block."""
        try:
            yield self._take
        finally:
            self._take(None)

    def _take(self, progress: Progress | None) -> None:
        self._progress = progress
        if self._show is not None:
            self._show(self._now() if progress is None else bar(progress))

    def _now(self) -> str:
        progress = self._progress
        return f"at work for {time.monotonic() - self._began:.0f} s" if progress is None else progress.sentence()

    def _tick(self) -> None:
        while not self._over.wait(self._every):
            self._write(self._now())

    @contextmanager
    def at_work(self) -> Iterator[Reporter]:
        """Report for as long as the block lasts."""
        ticker = None
        if self._show is None:
            ticker = threading.Thread(target=self._tick, name="reporter", daemon=True)
            ticker.start()
        try:
            yield self
        finally:
            self._over.set()
            if ticker is not None:
                ticker.join()


@contextmanager
def reported(say: Say) -> Iterator[Reporter]:
    """Return the reporter that a caller gave, or one that adds lines of progress to the caller's log.

    :param say: a reporter, or what takes one line.
    """
    if isinstance(say, Reporter):
        yield say
        return
    with Reporter(say).at_work() as reporter:
        yield reporter


@contextmanager
def at_a_command_line() -> Iterator[Reporter]:
    """Return a reporter for whoever waits: a bar that moves on a terminal, else lines; documents go elsewhere."""
    screen = Screen(sys.stderr)
    show = screen.step if screen.moves else None
    if show is not None:
        show("at work")
    try:
        with Reporter(lambda line: screen.line(printable(line)), SILENCE, show).at_work() as reporter:
            yield reporter
    finally:
        screen.close()


def bar(progress: Progress) -> str:
    """Return the progress as a bar with its numbers; without a bar where the whole is not known."""
    if not (progress.all_rows or progress.all_tables):
        return progress.sentence()
    done = int(progress.share * _BAR)
    return f"[{'#' * done}{'.' * (_BAR - done)}] {progress.share:4.0%}  {progress.sentence()}"
