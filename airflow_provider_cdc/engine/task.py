# SPDX-License-Identifier: Apache-2.0
"""Describe the task of an engine, stop it, and read its result."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import signal
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.documents import SECRETS_VARIABLE, Progress, Result
from airflow_provider_cdc.core.errors import UnavailableError
from airflow_provider_cdc.core.json_documents import json_data
from airflow_provider_cdc.engine.payload import Payload, payload
from airflow_provider_cdc.engine.stopper import Stopper

LAST_LINES = 30

# environment of processes that run tasks, unless the user's own says otherwise
PROCESS_SETTINGS: Mapping[str, str] = {
    # nothing here multiplies matrices, for which numpy starts a thread a core; each runs in a loop for a while
    "OPENBLAS_NUM_THREADS": "1",
    # Arrow's allocator would ask for huge pages, which the kernel clears whole before their first byte is written
    "MIMALLOC_ALLOW_THP": "0",
}


def conf_text(value: object) -> str:
    """Return a value of Spark's configuration as a text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# Looked up before any fork: loading a library between fork and exec may hang.
try:
    _PRCTL: Any = ctypes.CDLL(None, use_errno=True).prctl
except (OSError, AttributeError):  # no Linux
    _PRCTL = None
_PR_SET_PDEATHSIG = 1

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)')
_JAVA_FRAME = re.compile(r"\s*(at [\w.$/<>]+\(|\.\.\. \d+ more)")
_RAISED = re.compile(r"((?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt|Fault))\b")


@dataclass(frozen=True)
class EngineTask:
    """One batch for an engine.

    :param job: path of the job document.
    :param result: path of the result document.
    :param secrets: ``{"kafka": {...}, "storage": {...}, "spark": {...}}``; handed over in the environment only.
    :param name: name of pipeline and batch, for messages.
    :param scratch: folder that is removed after the batch.
    :param say: takes one line of progress.
    :param session: the batch needs the jars of the Spark reader or the Spark writer.
    :param session_on_s3: the Spark writer needs those of S3, too.
    :param on_application: takes the id of the Spark application as soon as it runs.
    :param on_progress: takes how far the engine is, each second.
    """

    job: Path
    result: Path
    secrets: dict[str, dict[str, str]]
    name: str
    scratch: Path
    say: Callable[[str], None]
    stopper: Stopper
    session: bool = False
    on_application: Callable[[str], None] = lambda application_id: None
    on_progress: Callable[[Progress], None] = lambda progress: None
    session_on_s3: bool = False

    @cached_property
    def payload(self) -> Payload:
        """The files that a process of the engine starts with, written where they are missing."""
        return payload()

    def hear(self, line: str, last: deque[str]) -> None:
        """Take a line of the engine's output.

        :param last: keeps the last ones, for an error; of a stack of Java, which has hundreds, what was raised.
        """
        progress = Progress.of_line(line)
        if progress is not None:
            self.on_progress(progress)
            return
        if _JAVA_FRAME.match(line) is None:
            last.append(line)
        self.say(line)

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a process that runs this task."""
        own = {SECRETS_VARIABLE: json.dumps(self.secrets), "PYTHONUNBUFFERED": "1"}
        return {**PROCESS_SETTINGS, **os.environ, **own, **more}


def die_with_parent() -> None:
    """Make the kernel end this process when its parent is gone; called between fork and exec."""
    if _PRCTL is not None:
        _PRCTL(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def kill_group(pid: int) -> None:
    """End a process that leads its own group, with all of the group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _crash_site(last_lines: list[str]) -> str | None:
    """Return the last frame of the newest traceback; None where the engine was killed or ran out of memory."""
    frames = [match for line in last_lines if (match := _FRAME.search(line)) is not None]
    if not frames:
        return None
    raised = [match[1] for line in last_lines if (match := _RAISED.match(line)) is not None]
    name, line, function = frames[-1].groups()
    return f"{name.rsplit('/', 1)[-1]}:{line} in {function}{f', {raised[-1]}' if raised else ''}"


def read_result(task: EngineTask, last_lines: list[str], code: int | None) -> Result:
    """Return the result.

    :param last_lines: the last lines of the engine's output.
    :param code: its exit code.
    :raises UnavailableError: the engine crashed and left no result.
    """
    task.stopper.check()
    try:
        return Result.from_document(json_data(task.result.read_bytes()))
    except FileNotFoundError:
        output = "\n".join(last_lines[-LAST_LINES:])
        crash = _crash_site(last_lines)
        status = f"exit code {code}" if code is not None else "it was not submitted"
        raise UnavailableError(
            "engine.crashed", f"the engine ended without a result ({status}); its last output:\n{output}",
            where={"batch": task.name, **({"place": crash} if crash else {})},
            hint="run again; if it crashes again, the lines above say why",
        ) from None  # fmt: skip
