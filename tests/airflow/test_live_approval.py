# SPDX-License-Identifier: Apache-2.0
"""A whole Airflow asks a person what a table waits for, and carries out the answer.

It needs a machine with room for a scheduler, so it runs only on demand, as ``test_live``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from airflow_provider_cdc.batch.approvals import asked_changes
from airflow_provider_cdc.ledger import Ledger
from tests.airflow.installed import needs_airflow
from tests.airflow.shop import demand_data
from tests.system.recorded_files import FilesSite

from .live import PATIENCE, LiveAirflow

if TYPE_CHECKING:
    from tests.services.postgres import Postgres

pytestmark = [
    pytest.mark.airflow,
    needs_airflow(3, 1),
    pytest.mark.timeout(PATIENCE),
    pytest.mark.skipif("CDC_WINDOWS" not in os.environ, reason="set CDC_WINDOWS to run a whole Airflow"),
]

DAGS = """
import os
from datetime import timedelta
from airflow.sdk import DAG
from airflow_provider_cdc import CdcApprovalOperator

soon = dict(defaults="Leave", response_timeout=timedelta(seconds=1))
for name, arguments in {"answered": {}, "forgotten": soon}.items():
    with DAG(name, schedule=None):
        CdcApprovalOperator(task_id="ask", pipeline=os.environ["PIPELINE"], **arguments)
"""


def test_what_a_person_answers_is_carried_out(postgres: Postgres, tmp_path: Path) -> None:
    demand_data()
    site = FilesSite(tmp_path / "site", {})
    site.folder.mkdir()
    site.feed(0)
    assert site.sync().code == 0
    site.changes["tables"] = {"shop.customers": {"columns": {"exclude": ["phone"]}}}
    assert site.sync().code == 3
    ledger = Ledger(site.document()["ledger"])
    home = tmp_path / "airflow"
    (home / "dags").mkdir(parents=True)
    (home / "dags" / "asks.py").write_text(DAGS)
    with LiveAirflow(postgres.new_database(), home, {**os.environ, "PIPELINE": str(site.file())}) as live:
        live.trigger("forgotten")
        assert live.wait_for_tasks("forgotten", 1)[0][1] == "success", live.log
        assert json.loads(json.dumps(live.value("forgotten", "ask")))["batches"] == []
        live.trigger("answered")
        waiting = "/dags/~/dagRuns/~/hitlDetails?response_received=false&dag_id=answered"
        live.wait(lambda: live.call("GET", waiting)["hitl_details"], PATIENCE)
        (detail,) = live.call("GET", waiting)["hitl_details"]
        assert detail["subject"] == "shop: a decision about 1 change" and detail["options"] == ["Approve", "Leave"]
        assert "exclude of phone: none -> left out" in detail["body"]
        # an answer that comes before the executor has reported the end of the asking process fails the task in Airflow
        ended = "event with state success for task instance TaskInstanceKey(dag_id='answered'"
        live.wait(lambda: ended in (home / "scheduler.log").read_text(errors="replace"), PATIENCE)
        run = detail["task_instance"]["dag_run_id"]
        path = f"/dags/answered/dagRuns/{run}/taskInstances/ask/-1/hitlDetails"
        live.call("PATCH", path, {"chosen_options": ["Approve"], "params_input": {}})
        assert live.wait_for_tasks("answered", 1)[0][1] == "success", live.log
        assert live.value("answered", "ask")["answer"] == "Approve"
    (decided,) = asked_changes(ledger.batches("shop"))
    assert (decided.answer, str(decided.name)) == ("apply", "shop.customers") and decided.by
