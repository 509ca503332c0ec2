# SPDX-License-Identifier: Apache-2.0
"""Runs a DAG for one interval after the other in one Airflow process; started by ``airflow.py`` next to it.

Reads one JSON request a line from standard input (``date``, ``environment``), writes what came of it as a line that
begins with MARK. Everything else it prints is Airflow's log.

Usage: python runs.py DAG_FOLDER DAG_ID
"""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import datetime

MARK = "DEMO-ANSWER "


def main(folder: str, dag_id: str) -> None:
    """Answer that Airflow is ready, then run the DAG for every date asked for."""
    # Who was started in the background of a shell ignores it, and so would we.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    from airflow.utils.db import initdb

    initdb()
    from airflow.dag_processing.dagbag import DagBag

    bag = DagBag(folder)
    answer({"ready": dag_id in bag.dags, "problems": {str(k): str(v) for k, v in bag.import_errors.items()}})
    for line in sys.stdin:
        request = json.loads(line)
        os.environ.update(request["environment"])
        try:
            run = bag.dags[dag_id].test(logical_date=datetime.fromisoformat(request["date"]))
            tasks = {ti.task_id: str(ti.state) for ti in run.get_task_instances()}
            answer({"state": str(run.state), "tasks": tasks})
        except Exception as error:
            answer({"state": "failed", "tasks": {}, "problem": f"{type(error).__name__}: {error}"})


def answer(document: dict[str, object]) -> None:
    """Print one answer on a line of its own."""
    print(f"\n{MARK}{json.dumps(document)}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
