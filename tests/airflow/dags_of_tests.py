# SPDX-License-Identifier: Apache-2.0
"""Runs a DAG for some dates with ``dag.test()`` in a process of its own and prints what came of it, as JSON.

Usage: python dags_of_tests.py DAG_FOLDER DAG_ID DATE…
"""

from __future__ import annotations

import json
import sys
from datetime import datetime
from typing import Any

MARK = "RESULT "


def main(folder: str, dag_id: str, *dates: str) -> None:
    """Run the DAG and print one line that begins with MARK."""
    from tests.airflow.dag_bag import loaded

    bag = loaded(folder)
    runs: list[dict[str, Any]] = []
    for date in dates:
        run = bag.dags[dag_id].test(logical_date=datetime.fromisoformat(date))
        tasks = {ti.task_id: str(ti.state) for ti in run.get_task_instances()}
        values = {ti.task_id: ti.xcom_pull(task_ids=ti.task_id) for ti in run.get_task_instances()}
        runs.append({"state": str(run.state), "tasks": tasks, "values": values, "events": _events(run.run_id)})
    print(MARK + json.dumps({"import_errors": bag.import_errors, "runs": runs}, default=str), flush=True)


def _events(run_id: str) -> list[Any]:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(AssetEvent.extra).where(AssetEvent.source_run_id == run_id)
        return list(session.execute(query).scalars())


if __name__ == "__main__":
    main(*sys.argv[1:])
