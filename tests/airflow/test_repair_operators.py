# SPDX-License-Identifier: Apache-2.0
"""The operators that replay rows, rebuild and maintain tables, as a task's process runs them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from airflow.providers.common.compat.sdk import AirflowException, AirflowFailException
from deltalake import DeltaTable

from airflow_provider_cdc import (
    CdcMaintainOperator,
    CdcPlanOperator,
    CdcRebuildOperator,
    CdcReplayOperator,
    CdcVerifyOperator,
)
from airflow_provider_cdc.ledger import Ledger

from .shop import Shop, rows, until

if TYPE_CHECKING:
    from tests.services.broker import Broker

pytestmark = pytest.mark.airflow


@pytest.fixture
def shop(filled: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forked_engine: None) -> Shop:
    site = Shop(tmp_path, {"bootstrap.servers": filled.bootstrap})
    for name, value in site.env().items():
        if name.startswith("AIRFLOW_CONN_"):
            monkeypatch.setenv(name, value)
    return site


def run(operator: Any) -> dict[str, Any]:
    """Run a task and return its result as XCom has it."""
    answer: dict[str, Any] = json.loads(json.dumps(operator.execute({})))
    return answer


def test_rows_are_replayed_and_tables_maintained(shop: Shop) -> None:
    file = str(shop.file())
    assert shop.run("sync", "--until", until(0)).code == 0
    explained = run(CdcPlanOperator(task_id="plan", pipeline=file, until="now", explain=True))
    assert {table["table"] for table in explained["explain"]["tables"]} >= {"shop.customers", "shop.orders"}
    assert shop.run("sync").code == 0
    before = sorted(map(str, rows(shop.lake, "shop", "customers")))

    again = run(CdcReplayOperator(task_id="replay", pipeline=file, tables=["shop.customers"], until=until(0)))
    assert again["changes"]["replayed"] > 0
    assert [table["table"] for table in again["tables"]] == ["customers"]

    done = run(CdcMaintainOperator(task_id="maintain", pipeline=file))
    assert {line["table"] for line in done["tables"]} >= {"shop.customers", "shop.orders"}
    assert (done["busy"], done["log"]["files"]) == (None, 0)
    done = run(CdcMaintainOperator(task_id="purge", pipeline=file, purge="shop.orders"))
    assert ([line["table"] for line in done["tables"]], done["log"]) == (["shop.orders"], None)
    assert sorted(map(str, rows(shop.lake, "shop", "customers"))) == before


def test_a_deleted_table_is_rebuilt_and_one_that_cannot_be_fails_the_task(shop: Shop) -> None:
    file = str(shop.file())
    assert shop.run("sync").code == 0
    before = sorted(map(str, rows(shop.lake, "shop", "customers")))
    shutil.rmtree(shop.lake / "shop" / "customers")
    done = run(CdcRebuildOperator(task_id="rebuild", pipeline=file, tables=["shop.customers"]))
    assert [(table["table"], table["action"]) for table in done["tables"]] == [("customers", "create")]
    assert sorted(map(str, rows(shop.lake, "shop", "customers"))) == before

    file_of_rows = shop.folder / "customers.parquet"
    pq.write_table(DeltaTable(shop.lake / "shop" / "customers").to_pyarrow_table(), file_of_rows)
    shutil.rmtree(shop.lake / "shop" / "customers")
    rebuild = CdcRebuildOperator(
        task_id="rebuild", pipeline=file, tables=["shop.customers"], source=str(file_of_rows), since="2100-01-01"
    )
    assert [(table["table"], table["action"]) for table in run(rebuild)["tables"]] == [("customers", "create")]
    assert sorted(map(str, rows(shop.lake, "shop", "customers"))) == before

    for rows_file in (shop.lake / "_cdc" / "shop" / "log" / "00000001").glob("*.parquet"):
        rows_file.unlink()
    with pytest.raises(AirflowFailException, match=r"shop\.customers: \[log\.missing\]"):
        run(CdcRebuildOperator(task_id="rebuild", pipeline=file, tables=["shop.customers"]))
    assert sorted(map(str, rows(shop.lake, "shop", "customers"))) == before


def state_of(shop: Shop) -> dict[str, Any]:
    """Return the ledger's state of the customers."""
    states = Ledger(f"sqlite:///{shop.ledger}").tables("shop").values()
    return next(state for state in states if state["table"] == "customers")


def proof_of(shop: Shop) -> dict[str, Any]:
    proof: dict[str, Any] = state_of(shop)["proof"]
    return proof


def position_of(shop: Shop) -> str:
    return str(state_of(shop)["applied_position"])


def test_rows_that_somebody_removed_by_hand_are_named_and_rebuilt(shop: Shop) -> None:
    operator = CdcVerifyOperator(task_id="verify", pipeline=str(shop.file()))
    assert shop.run("sync", "--until", until(0)).code == 0
    equal = run(operator)
    assert equal["equal"]
    assert {table["table"] for table in equal["tables"]} >= {"shop.customers", "shop.orders"}
    proved = proof_of(shop)
    assert proved["until"] == proved["whole_until"] == position_of(shop) >= equal["position"]
    table = DeltaTable(shop.lake / "shop" / "customers")
    keys = sorted(row["id"] for row in table.to_pyarrow_table(columns=["id"]).to_pylist())
    gone, before = keys[5:15], sorted(map(str, rows(shop.lake, "shop", "customers")))
    table.delete(f"id IN ({', '.join(map(str, gone))})")

    with pytest.raises(AirflowFailException, match=r"shop\.customers: \{'row_missing': 10\}"):
        run(operator)
    shown = shop.run("verify", "shop.customers", "--json")
    assert shown.code == 3
    (verdict,) = shown.json["tables"]
    assert {one["kind"] for one in verdict["differences"]} == {"row_missing"}
    assert sorted(int(one["row"][0]) for one in verdict["differences"]) == gone

    assert proof_of(shop) == proved
    assert shop.run("rebuild", "shop.customers").code == 0
    assert proof_of(shop)["whole_until"] == ""
    assert run(operator)["equal"]
    assert proof_of(shop)["whole_until"] == position_of(shop)
    assert sorted(map(str, rows(shop.lake, "shop", "customers"))) == before


def test_a_wrong_table_fails_for_good_and_a_busy_pipeline_for_now(shop: Shop) -> None:
    file = str(shop.file())
    assert shop.run("sync").code == 0
    with pytest.raises(AirflowFailException, match="custmers"):
        run(CdcReplayOperator(task_id="replay", pipeline=file, tables=["shop.custmers"]))
    with Ledger(f"sqlite:///{shop.ledger}").lease("shop", "somebody else"):
        with pytest.raises(AirflowException, match="somebody else") as caught:
            run(CdcReplayOperator(task_id="replay", pipeline=file))
        assert not isinstance(caught.value, AirflowFailException)
