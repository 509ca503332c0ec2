# SPDX-License-Identifier: Apache-2.0
"""That tables are equal as a whole is recorded in the states that were compared, and in no later ones."""

from __future__ import annotations

from typing import Any

from airflow_provider_cdc.core.documents import Proof, TableState
from airflow_provider_cdc.ledger import Ledger
from airflow_provider_cdc.ledger.proofs import TableProofs

PROOF = Proof("10", "10").document()


def commit(ledger: Ledger, *states: TableState) -> None:
    with ledger.lease("shop", "test", 30) as lease:
        batch = ledger.plan(lease, {"t": {0: 0}}, {"t": {0: 1}}, None)
        ledger.commit(lease, batch.seq, {}, {state.table_id: state.document() for state in states})


def proofs(ledger: Ledger) -> dict[str, Any]:
    return {table_id: document["proof"] for table_id, document in ledger.tables("shop").items()}


def test_a_state_that_changed_meanwhile_keeps_its_own(url: str, ledger: Ledger) -> None:
    one, two, three = (TableState(name, "shop", name, f"shop/{name}", applied_position="10") for name in "abc")
    commit(ledger, one, two, three)
    compared = ledger.tables("shop")
    later = TableState("b", "shop", "b", "shop/b", applied_position="20")
    commit(ledger, later)
    TableProofs(url).record("shop", [(compared["a"], PROOF), (compared["b"], PROOF)])
    assert proofs(ledger) == {"a": PROOF, "b": Proof().document(), "c": Proof().document()}
    assert ledger.tables("shop")["a"] == {**compared["a"], "proof": PROOF}
    assert ledger.tables("shop")["b"]["applied_position"] == "20"


def test_a_table_that_is_forgotten_or_of_another_pipeline_is_left_alone(url: str, ledger: Ledger) -> None:
    state = TableState("a", "shop", "a", "shop/a", applied_position="10")
    commit(ledger, state)
    TableProofs(url).record("another", [(state.document(), PROOF)])
    TableProofs(url).record("shop", [({**state.document(), "table_id": "gone"}, PROOF)])
    assert proofs(ledger) == {"a": Proof().document()}
