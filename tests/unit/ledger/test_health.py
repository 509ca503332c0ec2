# SPDX-License-Identifier: Apache-2.0
"""Know how the last attempt ended, and since when tables are not applied, on both databases."""

from __future__ import annotations

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.ledger import Ledger, TaskTry
from airflow_provider_cdc.ledger.database import Database
from airflow_provider_cdc.ledger.health import last_attempts
from tests.airflow.page_ledger import batch, state, sync_run


def failed(url: str) -> dict[str, tuple[str, str | None]]:
    with Database(url, read_only=True).reading() as connection:
        rows = connection.execute(last_attempts(["shop", "bank"]))
        return {row.pipeline: (row.code, row.dag_id) for row in rows if row.code}


def test_the_last_attempt_counts(url: str) -> None:
    ledger = Ledger(url)
    ledger.record_attempt("shop", "kafka.unavailable", TaskTry("shop_hourly", "r1", "sync"))
    ledger.record_attempt("bank", "config.invalid", "ann on host")
    assert failed(url) == {"shop": ("kafka.unavailable", "shop_hourly"), "bank": ("config.invalid", None)}
    ledger.record_attempt("shop", "", None)
    assert failed(url) == {"bank": ("config.invalid", None)}


def test_a_table_is_not_applied_since_the_batch_that_parked_it(url: str) -> None:
    ledger = Ledger(url)
    planned = [
        batch(ledger, "shop", sync_run(hour), [state("orders", status), state("items")]).planned_at
        for hour, status in ((1, TableStatus.OK), (2, TableStatus.PARKED), (3, TableStatus.WAITING))
    ]
    (table,) = ledger.unsettled_tables("shop")
    assert (table.table, table.state) == ("orders", TableStatus.WAITING)
    assert table.since is not None and table.since[:26] == planned[1].isoformat()[:26]
    batch(ledger, "shop", sync_run(4), [state("orders")])
    assert ledger.unsettled_tables("shop") == []


def test_a_table_that_never_was_well_counts_from_its_first_batch(url: str) -> None:
    ledger = Ledger(url)
    first = batch(ledger, "shop", sync_run(1), [state("orders", TableStatus.PARKED, source_time=None)])
    batch(ledger, "shop", sync_run(2), [state("orders", TableStatus.PARKED, reason="still")])
    (table,) = ledger.unsettled_tables("shop")
    assert table.since is not None and table.since[:26] == first.planned_at.isoformat()[:26]
    assert table.source_time is None


def test_a_table_whose_earlier_states_are_forgotten_is_not_applied_for_that_long_at_least(url: str) -> None:
    ledger = Ledger(url)
    batch(ledger, "shop", sync_run(1), [state("orders", applied_seq=1)])
    for hour in (2, 3, 4):
        batch(ledger, "shop", sync_run(hour), [state("orders", TableStatus.PARKED, applied_seq=1, reason=f"{hour}")])
    (table,) = ledger.unsettled_tables("shop")
    assert (table.seq, table.at_least) == (2, False)
    with ledger.lease("shop", "a test") as lease:
        assert ledger.forget_states(lease, 3) == 2
    (table,) = ledger.unsettled_tables("shop")
    assert (table.seq, table.at_least) == (3, True)
