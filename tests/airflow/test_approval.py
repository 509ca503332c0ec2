# SPDX-License-Identifier: Apache-2.0
"""A person answers what tables wait for: the dialog, what the answer carries out, and an Airflow without dialogs."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.batch.approvals import waiting_changes
from airflow_provider_cdc.ledger import Ledger
from tests.airflow.installed import needs_airflow
from tests.airflow.shop import demand_data
from tests.system.recorded_files import FilesSite

pytestmark = pytest.mark.airflow

CUSTOMERS = {"shop.customers": {"columns": {"exclude": ["phone"]}}}
PRODUCTS = {"shop.products": {"columns": {"exclude": ["name"]}}}


class TaskInstance:
    """A task instance whose XCom outlives the wait."""

    dag_id, run_id, task_id, map_index, try_number, id = "shop", "run 1", "ask", -1, 1, "0"

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.values[key] = value

    def xcom_pull(self, task_ids: str, key: str, map_indexes: int) -> Any:
        assert (task_ids, map_indexes) == (self.task_id, self.map_index)
        return self.values[key]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> FilesSite:
    """Return a pipeline of which a table waits for changed rules."""
    demand_data()
    site = FilesSite(tmp_path_factory.mktemp("approval"), {})
    site.feed(0)
    assert site.sync().code == 0
    site.changes["tables"] = CUSTOMERS
    assert site.sync().code == 3
    return site


def columns(site: FilesSite, table: str) -> list[str]:
    return DeltaTable(str(site.location(table))).to_pyarrow_table().column_names


def waiting(site: FilesSite) -> list[str]:
    return [str(item.name) for item in waiting_changes(Ledger(site.document()["ledger"]), "shop")]


def answer(operator: Any, context: Any, option: str) -> dict[str, Any]:
    """Answer a question as Airflow does when it resumes the task, which was made again from its DAG."""
    event = {
        "chosen_options": [option],
        "params_input": {},
        "responded_at": datetime.now(UTC),
        "responded_by_user": {"id": "7", "name": "eve"},
    }
    done: dict[str, Any] = operator.execute_complete(context, event)
    return done


@needs_airflow(3, 1)
def test_an_answer_counts_for_the_changes_that_were_shown(filled: FilesSite, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow_provider_cdc import CdcApprovalOperator

    dialog: dict[str, Any] = {}
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.upsert_hitl_detail", lambda **kw: dialog.update(kw))

    def ask(**arguments: Any) -> CdcApprovalOperator:
        return CdcApprovalOperator(task_id="ask", pipeline=str(filled.file()), defaults="Deny", **arguments)

    context: Any = {"ti": TaskInstance(), "task_instance": TaskInstance()}
    assert ask(tables=["shop.orders"]).execute(context) == {"answer": None, "changes": []}
    assert dialog == {}
    with pytest.raises(BaseException) as left:
        ask().execute(context)
    assert type(left.value).__name__ in ("TaskAwaitingInput", "TaskDeferred")
    (change,) = waiting_changes(Ledger(filled.document()["ledger"]), "shop")
    assert dialog["subject"] == "shop: a decision about 1 change"
    assert dialog["options"] == ["Approve", "Leave"] and dialog["defaults"] == ["Leave"], "rules cannot be denied"
    lines = dialog["body"].splitlines()
    assert lines[0] == f"    shop.customers: on_rule_change, change {change.id}"
    assert lines[1] == "    exclude of phone: none -> left out"
    assert any("are written again from the stored ones" in line for line in lines)
    assert all(line.startswith("    ") for line in lines)

    filled.changes["tables"] = {**CUSTOMERS, **PRODUCTS}
    assert filled.sync().code == 3
    assert waiting(filled) == ["shop.customers", "shop.products"]
    left_alone = answer(ask(), context, "Leave")
    assert left_alone["batches"] == [] and waiting(filled) == ["shop.customers", "shop.products"]
    done = answer(ask(), context, "Approve")
    assert (done["answer"], done["by"], done["changes"]) == ("Approve", "eve", [["shop.customers", change.id]])
    assert len(done["batches"]) == 1 and waiting(filled) == ["shop.products"]
    assert "phone" not in columns(filled, "customers") and "name" in columns(filled, "products")
    assert answer(ask(), context, "Approve")["batches"] == done["batches"], "a repeat decides nothing else"


def test_an_airflow_without_dialogs_says_so_and_loads_the_package(filled: FilesSite) -> None:
    code = (
        "import sys\n"
        "sys.modules['airflow.providers.standard.operators.hitl'] = None\n"
        "from airflow_provider_cdc import CdcApprovalOperator, CdcApproveOperator\n"
        f"CdcApprovalOperator(task_id='ask', pipeline={str(filled.file())!r})\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1].endswith(
        "CdcApprovalOperator asks a person, which needs Airflow 3.1 or newer; without it decide with "
        "CdcApproveOperator or `airflow-cdc approve`"
    ), run.stderr
