# SPDX-License-Identifier: Apache-2.0
"""Run a job that changes nothing in a process of this machine, and return what it answers."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from airflow_provider_cdc.core.documents import JobDocument, Result
from airflow_provider_cdc.engine import EngineTask, Stopper


def ask(job: JobDocument, secrets: dict[str, dict[str, str]], name: str, **task: Any) -> Result:
    """Return the result of a job.

    :param name: of the question, for messages.
    :param task: ``say`` and ``stopper`` of the task.
    :raises UnavailableError: the process ended without a result.
    """
    from airflow_provider_cdc.engine.inline import run_inline
    from airflow_provider_cdc.engine.payload import payload

    with tempfile.TemporaryDirectory(prefix="airflow-cdc-") as folder:
        paths = Path(folder) / "job.json", Path(folder) / "result.json"
        paths[0].write_text(json.dumps(job.document()), encoding="utf-8")
        course = {"say": _take, "stopper": Stopper(), **task}
        return run_inline(EngineTask(*paths, secrets, payload(), name, Path(folder), **course))


def _take(line: str) -> None:
    """Take a line of progress: an answer that comes at once needs none."""
