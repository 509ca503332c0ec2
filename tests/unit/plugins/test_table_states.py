# SPDX-License-Identifier: Apache-2.0
"""The page shows how far a table is proved, and nothing of a hostile name as it came."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_cdc.core.documents import Proof, TableState
from airflow_provider_cdc.plugins.table_states import table_state


@pytest.mark.parametrize(
    ("proof", "proved"),
    [
        (Proof(), ""),
        (Proof("20", agreed_rows=7), "yes"),
        (Proof("20", "20"), "whole table"),
        (Proof("1\u202e0", contradictions={"row_differs": 3}, contradicted=True), r"until 1\u202e0"),
    ],
)
def test_how_far_a_table_is_proved(proof: Proof, proved: str) -> None:
    shown = table_state(TableState("a", "shop", "a", "shop/a", applied_position="20", proof=proof).document())
    assert shown["proved"] == proved
    assert (shown["agreed_rows"], shown["contradictions"]) == (proof.agreed_rows, proof.contradictions)


def test_mode_and_columns_are_those_of_the_stored_table() -> None:
    schema = {"columns": [{"id": number} for number in range(3)]}
    plain = table_state(TableState("a", "shop", "a", "shop/a", schema=schema).document())
    laid = [[0, "id", ""], [1, "customer", "mask redact"]]
    made = {"mode": "history (track: ['v'])"}
    shown = table_state(TableState("a", "shop", "a", "shop/a", schema=schema, laid=laid, made_with=made).document())
    assert (plain["mode"], plain["columns"]) == ("mirror", 3)
    assert (shown["mode"], shown["columns"]) == ("history (track: ['v'])", 2)


def test_a_state_of_an_earlier_version_has_no_proof() -> None:
    document: dict[str, Any] = TableState("a", "shop", "a", "shop/a", applied_position="20").document()
    del document["proof"]
    assert (table_state(document)["proved"], table_state(document)["contradictions"]) == ("", {})
