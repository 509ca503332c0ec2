# SPDX-License-Identifier: Apache-2.0
"""Run an inline engine in this process, for one that has imported it and ends with the batch."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence

from airflow_provider_cdc.engine.payload import spark_jobs
from airflow_provider_cdc.engine.task import EngineTask


def run_here(
    task: EngineTask,
    arguments: Sequence[str],
    forward: Callable[[str], None],
    environment: Mapping[str, str] | None = None,
) -> int:
    """Call an engine's main function in place of its process and return its exit code.

    :param forward: takes each line of its output.
    :param environment: all variables of its process; None means those of the task.
    """
    reach_spark_jobs()
    main = importlib.import_module("spark_jobs.launch.run").main  # by name, as the process's command has it
    lines = _Lines(forward)
    task.stopper.check()
    with environment_of(environment or task.environment()), contextlib.redirect_stdout(lines):
        try:
            return int(main(arguments))
        except Exception:  # of whatever kind: a process would print it and end so
            traceback.print_exc(file=lines)
            return 1


def reach_spark_jobs() -> None:
    """Let the Spark side be imported, which an installed package has in a folder of its own."""
    folder = str(spark_jobs().parent)
    if folder not in sys.path:
        sys.path.append(folder)


class _Lines(io.TextIOBase):
    """Hands on each line that is written."""

    def __init__(self, forward: Callable[[str], None]) -> None:
        self._forward, self._rest = forward, ""

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        for line in lines:
            self._forward(line)
        return len(text)


@contextlib.contextmanager
def environment_of(variables: Mapping[str, str]) -> Iterator[None]:
    """Let these be all variables for a while."""
    before = {**os.environ}
    try:
        os.environ.clear()
        os.environ.update(variables)
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
