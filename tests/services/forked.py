# SPDX-License-Identifier: Apache-2.0
"""Run commands as forks of a process that has imported everything: processes, but without the seconds of an import.

A command has its own environment, folder and exit code. Its inline engine runs in the same process, from the checkout
and not from the cached payload: where the engine's process is what is tested, start the command itself.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from airflow_provider_cdc.engine.here import environment_of

TIMEOUT = 500.0
_ROOT = Path(__file__).parents[2]


def run(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> tuple[int, str, str]:
    """Run a command of ``airflow-cdc`` to its end; return its exit code, output and error output.

    environment: all of it.
    folder: where it runs.
    """
    return _forked(_command, arguments, environment, folder)


def run_staged(arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> tuple[int, str, str]:
    """Run a staged job as a platform does; return its exit code, output and error output."""
    return _forked(_launched, arguments, environment, folder)


def run_engine(task: Any, arguments: Sequence[str], forward: Callable[[str], None]) -> int:
    """Run an inline engine in place of ``engine.inline.start``; its lines are forwarded when it has ended."""
    code, out, err = _forked(_launched, arguments, task.environment(), Path.cwd())
    for line in (out + err).splitlines():
        forward(line)
    return code


def _forked(
    work: Callable[[list[str]], int], arguments: Sequence[str], environment: Mapping[str, str], folder: Path
) -> tuple[int, str, str]:
    """Do some work in a fork; return its exit code, output and error output."""
    with tempfile.TemporaryDirectory() as temporary:
        out, err = Path(temporary, "out"), Path(temporary, "err")
        process = _context().Process(target=_start, args=(work, [*arguments], {**environment}, folder, out, err))
        for file in (out, err):
            file.touch()
        process.start()
        process.join(TIMEOUT)
        if process.exitcode is None:
            process.kill()
            raise TimeoutError(f"{arguments}: {err.read_text()[-2000:]}")
        code: int = process.exitcode
        return code, out.read_text(), err.read_text()


@cache
def _context() -> Any:
    """Return what starts forks, with the process whose forks they are."""
    from multiprocessing import forkserver

    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.services.forked_imports"])
    path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    with environment_of({**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"}):
        forkserver.ensure_running()
    return context


def _start(
    work: Callable[[list[str]], int],
    arguments: list[str],
    environment: dict[str, str],
    folder: Path,
    out: Path,
    err: Path,
) -> None:
    for number, file in ((1, out), (2, err)):
        opened = os.open(file, os.O_WRONLY)
        os.dup2(opened, number)
        os.close(opened)
    os.chdir(folder)
    with environment_of(environment):
        raise SystemExit(work(arguments))


def _command(arguments: list[str]) -> int:
    from airflow_provider_cdc import cli
    from airflow_provider_cdc.engine import here, inline

    inline.start = here.run_here
    return cli.main(arguments)


def _launched(arguments: list[str]) -> int:
    from spark_jobs.launch import run as launched

    return launched.main(arguments)
