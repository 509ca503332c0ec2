# SPDX-License-Identifier: Apache-2.0
"""Run DAGs of folders one after the other in one process of Airflow: to start it takes longer than most runs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.airflow import dag_steps
from tests.airflow.dag_steps import Step
from tests.airflow.installed import has_airflow

_TOO_NEW = set() if has_airflow(3, 1) else {"shop_approval.py", "shop_decisions.py"}  # examples that ask a person


@dataclass(frozen=True)
class Ran:
    """Hold what came of a step.

    :param log: everything that was logged meanwhile.
    """

    log: str
    state: str
    tasks: dict[str, str]
    tries: dict[str, int]
    named: dict[str, str | None]
    values: dict[str, Any]
    events: list[list[Any]]

    def extras(self, uri: str) -> list[dict[str, Any]]:
        """Return the extras of an asset's events; of a pipeline's asset with and without its slash."""
        return [extra for of, extra in self.events if of.rstrip("/") == uri]


def run_steps(folder: Path, dags: Path, steps: Mapping[str, Step], environment: Mapping[str, str]) -> dict[str, Ran]:
    """Run steps in a process of its own, and demand that every DAG of their folders loads.

    :param folder: where it runs.
    :param dags: folder of the steps that name none.
    """
    own = {
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        # of its own each, for every run of a DAG loads the bundle that has it
        "AIRFLOW__DAG_PROCESSOR__DAG_BUNDLE_CONFIG_LIST": json.dumps(
            [
                {
                    "name": f"bundle {number}",
                    "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
                    "kwargs": {"path": path},
                }
                for number, path in enumerate(dict.fromkeys(step.folder or str(dags) for step in steps.values()))
            ]
        ),
    }
    environment = {**environment, **own, "COLUMNS": "1000"}  # older releases wrap errors in their logs
    file = dag_steps.write(folder / "steps.json", list(steps.values()))
    run = subprocess.run(
        [sys.executable, str(Path(dag_steps.__file__)), str(dags), str(file)],
        env=environment, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=590,
    )  # fmt: skip
    _, *parts = run.stdout.split(f"\n{dag_steps.MARK}")
    results = [_result(part) for part in parts]
    assert len(results) == len(steps), run.stdout[-5000:]
    loaded = [line for line in run.stdout.splitlines() if line.startswith(f'{dag_steps.RESULT}{{"import_errors"')]
    assert loaded
    for line in loaded:
        errors = json.loads(line.removeprefix(dag_steps.RESULT))["import_errors"]
        assert not [error for file, error in errors.items() if Path(file).name not in _TOO_NEW], errors
    return dict(zip(steps, results, strict=True))


def _result(part: str) -> Ran:
    log, _, result = part.partition(f"\n{dag_steps.RESULT}")
    assert result, part[-5000:]
    return Ran(log=log, **json.loads(result.splitlines()[0]))
