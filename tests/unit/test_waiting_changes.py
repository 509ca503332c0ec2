# SPDX-License-Identifier: Apache-2.0
"""List what waits for `approve`: not what a snapshot has settled."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from airflow_provider_cdc.batch import approvals
from airflow_provider_cdc.batch.approvals import waiting_changes
from airflow_provider_cdc.core.timeline.asked_changes import Answer, AskedChange
from airflow_provider_cdc.ledger import Ledger

FAILOVER = AskedChange("100", "app", "t", "on_failover", "another server took over")
DROP = AskedChange("200", "app", "t", "on_drop_table", "DROP TABLE t")


@pytest.mark.parametrize(("state", "shown"), [("ok", [DROP]), ("parked", [FAILOVER, DROP])])
def test_of_a_table_that_is_well_no_failover_waits(
    state: str, shown: list[AskedChange], monkeypatch: pytest.MonkeyPatch
) -> None:
    approved = AskedChange("050", "app", "t", "on_failover", "another server took over", Answer.APPLY)
    monkeypatch.setattr(approvals, "stored_result", lambda batch: batch)
    documents = [item.document() for item in (approved, FAILOVER, DROP)]
    table = {"table_id": "1", "database": "app", "table": "t", "location": "app/t", "state": state}
    ledger: Any = SimpleNamespace(
        batches=lambda name: [SimpleNamespace(asked_changes=documents)], tables=lambda name: {"1": table}
    )
    assert waiting_changes(cast(Ledger, ledger), "shop") == shown
