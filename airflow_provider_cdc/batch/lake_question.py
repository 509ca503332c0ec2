# SPDX-License-Identifier: Apache-2.0
"""Run a job that changes nothing in a process of this machine, and return what it answers."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from pathlib import Path

from airflow_provider_cdc.core.documents import JobDocument, Result
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.engine.task import EngineTask
from airflow_provider_cdc.reporting.reporter import Say, reported


def _take(line: str) -> None:
    """Take a line of progress: an answer that comes at once needs none."""


def ask(
    job: JobDocument,
    secrets: dict[str, dict[str, str]],
    name: str,
    *,
    say: Say = _take,
    stopper: Stopper | None = None,
) -> Result:
    """Return the result of a job.

    :param name: of the question, for messages.
    :param say: takes one line of progress.
    :param stopper: stops it from outside.
    :raises UnavailableError: the process ended without a result.
    """
    from airflow_provider_cdc.engine.inline import run_inline

    with tempfile.TemporaryDirectory(prefix="airflow-cdc-") as folder:
        paths = Path(folder) / "job.json", Path(folder) / "result.json"
        paths[0].write_text(json.dumps(job.document()), encoding="utf-8")
        with reported(say) as reporter, reporter.engine() as on_progress:
            scratch = Path(folder)
            task = EngineTask(*paths, secrets, name, scratch, reporter, stopper or Stopper())
            return run_inline(replace(task, on_progress=on_progress))
