# SPDX-License-Identifier: Apache-2.0
"""Run DAGs one after the other with ``dag.test()`` in one process, and print what came of each step as JSON.

Usage: python dag_steps.py DAG_FOLDER STEPS.json
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

MARK = "STEP "
RESULT = "RESULT "


@dataclass(frozen=True)
class Step:
    """One run of a DAG.

    :param date: logical date, ISO text; empty for a run without one, as by hand or by an asset.
    :param conf: configuration of the run.
    :param hold: a lease that somebody else holds meanwhile: ``ledger``, ``pipeline`` and ``seconds``.
    :param folder: of the DAG, empty for that of all steps; loaded with the first step that names it.
    :param environment: added to the process's from this step on.
    """

    dag: str
    date: str
    conf: dict[str, Any] = field(default_factory=dict)
    hold: dict[str, Any] | None = None
    folder: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def main(folder: str, steps_file: str) -> None:
    """Run the steps of a file."""
    from airflow_provider_cdc.engine import inline
    from tests.airflow.dag_bag import bag_of, make_database
    from tests.services import forked

    inline.start = forked.run_engine  # steps are about operators; an engine's own process starts elsewhere
    make_database()
    bags: dict[str, Any] = {}
    for document in json.loads(Path(steps_file).read_text()):
        step = Step(**document)
        os.environ.update(step.environment)
        home = step.folder or folder
        if home not in bags:
            bags[home] = bag_of(home)
            print(RESULT + json.dumps({"import_errors": bags[home].import_errors}), flush=True)
        print(MARK + step.dag, flush=True)
        with _held(step.hold):
            date = datetime.fromisoformat(step.date) if step.date else None
            run = bags[home].dags[step.dag].test(logical_date=date, run_conf=step.conf)
        print(RESULT + json.dumps(_outcome(run), default=str), flush=True)


@contextmanager
def _held(lease: dict[str, Any] | None) -> Iterator[None]:
    if lease is None:
        yield
        return
    from airflow_provider_cdc.ledger import Ledger

    held = Ledger(lease["ledger"]).lease(lease["pipeline"], "somebody else")
    timer = threading.Timer(lease["seconds"], held.release)
    timer.start()
    yield
    timer.cancel()
    held.release()


def _outcome(run: Any) -> dict[str, Any]:
    instances = {_name(ti): ti for ti in run.get_task_instances()}
    return {
        "state": str(run.state),
        "tasks": {name: str(ti.state) for name, ti in instances.items()},
        "tries": {name: ti.try_number for name, ti in instances.items()},
        "named": {name: ti.rendered_map_index for name, ti in instances.items()},
        "values": {name: ti.xcom_pull(task_ids=ti.task_id, map_indexes=ti.map_index) for name, ti in instances.items()},
        "events": _events(run.run_id),
    }


def _name(ti: Any) -> str:
    return f"{ti.task_id}[{ti.map_index}]" if ti.map_index >= 0 else str(ti.task_id)


def _events(run_id: str) -> list[Any]:
    """Return the asset events of a run as pairs of URI and extra, in the order in which they were registered."""
    from airflow.models.asset import AssetEvent, AssetModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        query = select(AssetModel.uri, AssetEvent.extra).join(AssetModel, AssetModel.id == AssetEvent.asset_id)
        pairs = session.execute(query.where(AssetEvent.source_run_id == run_id).order_by(AssetEvent.id))
        return [[uri, extra] for uri, extra in pairs]


def write(path: Path, steps: list[Step]) -> Path:
    """Write the steps to a file."""
    path.write_text(json.dumps([asdict(step) for step in steps]))
    return path


if __name__ == "__main__":
    main(*sys.argv[1:])
