# SPDX-License-Identifier: Apache-2.0
"""Count what the present step of an engine has done, wherever its tasks run, and say it while the step lasts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from airflow_provider_cdc.core.documents import Progress

Count = Callable[[int], object]

_done = [0, 0]  # rows and tables since the process began
_count: tuple[Count, Count] | None = None  # in a worker of Spark, whose driver counts
_counted: Callable[[], tuple[int, int]] = lambda: (_done[0], _done[1])  # noqa: E731
_step = ("", 0, 0, 0.0, (0, 0))  # name, all rows, all tables, when it began, what was done by then
_say: Callable[[str], None] = lambda line: None  # noqa: E731


def begin(step: str, rows: int = 0, tables: int = 0) -> None:
    """End the present step and begin another one.

    :param rows: that it has to do, and ``tables``; 0 where that cannot be known.
    """
    global _step
    _report()
    _step = step, rows, tables, time.monotonic(), _counted()


def advance(rows: int = 0, tables: int = 0) -> None:
    """Count what a task has done."""
    if _count is not None:
        _count[0](rows)
        _count[1](tables)
        return
    _done[0] += rows
    _done[1] += tables


def count_elsewhere(rows: Count, tables: Count) -> None:
    """Let another process count what tasks of this one do."""
    global _count
    _count = rows, tables


def follow(counted: Callable[[], tuple[int, int]]) -> None:
    """Take from elsewhere the rows and tables that tasks of other processes have done so far."""
    global _counted
    _counted = counted


def _report() -> None:
    name, all_rows, all_tables, began, before = _step
    if not name:
        return
    rows, tables = (now - then for now, then in zip(_counted(), before, strict=True))
    _say(Progress(name, round(time.monotonic() - began, 1), rows, all_rows, tables, all_tables).line())


@contextmanager
def step_reports(say: Callable[[str], None], every: float = 1.0) -> Iterator[None]:
    """Say how far the present step is: every so many seconds, and at its end.

    :param every: seconds; a second is often enough for a bar that moves.
    """
    global _say
    over, _say = threading.Event(), say

    def report() -> None:
        while not over.wait(every):
            _report()

    reporter = threading.Thread(target=report, name="progress", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()
        begin("")
