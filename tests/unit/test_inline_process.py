# SPDX-License-Identifier: Apache-2.0
"""The process of an inline engine: what it can import."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_cdc.engine.inline import as_process
from airflow_provider_cdc.engine.stopper import Stopper
from airflow_provider_cdc.engine.task import EngineTask


def test_packages_that_a_worker_reaches_by_its_pythonpath_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a Python that imports sitecustomize from PYTHONPATH has the folder, and that of the Spark side
    (tmp_path / "sitecustomize.py").write_text("import spark_jobs.launch\nprint('found', spark_jobs.launch.__name__)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    task = EngineTask(tmp_path / "job.json", tmp_path / "result.json", {}, "shop 1", tmp_path, print, Stopper())
    lines: list[str] = []
    assert as_process(task, ["--help"], lines.append) == 0
    assert lines[0] == "found spark_jobs.launch"
