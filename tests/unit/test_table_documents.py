# SPDX-License-Identifier: Apache-2.0
"""``airflow-cdc tables``: one line for each name, of the table that has the name and the location now."""

from __future__ import annotations

from airflow_provider_cdc.commands.show import table_documents
from airflow_provider_cdc.core.documents import Proof, TableState
from airflow_provider_cdc.core.model.status import TableStatus


def table(table_id: str, name: str, location: str, state: TableStatus, **more: object) -> TableState:
    return TableState(table_id, "shop", name, f"shop/{location}", state=state, **more)  # type: ignore[arg-type]


def shown(*states: TableState) -> list[tuple[str, str, str | None, int | None]]:
    return [(t["table"], t["state"], t["location"], t["version"]) for t in table_documents(states)]


def test_a_parked_table_that_was_renamed_is_not_shown_where_another_table_is_now() -> None:
    renamed = table("a", "t_old", "t", TableStatus.PARKED, version=3, applied_position="9", applied_seq=9)
    successor = table("b", "t", "t", TableStatus.OK, version=4, applied_position="1", applied_seq=1)
    expected = [("t", "ok", "shop/t", 4), ("t_old", "parked", None, None)]
    assert shown(renamed, successor) == shown(successor, renamed) == expected


def test_a_parked_table_that_was_renamed_is_shown_where_its_rows_are_until_another_table_takes_them_over() -> None:
    renamed = table("a", "t_old", "t", TableStatus.PARKED, version=3)
    assert shown(renamed) == [("t_old", "parked", "shop/t", 3)]


def test_of_tables_that_had_a_name_the_living_one_is_shown() -> None:
    dropped = table("a", "t", "t", TableStatus.DROPPED, version=8, applied_position="9")
    waiting = table("b", "t", "t", TableStatus.WAITING)
    assert shown(dropped, waiting) == [("t", "waiting", "shop/t", None)]
    assert shown(dropped) == [("t", "dropped", "shop/t", 8)]


def test_it_is_shown_how_far_a_table_is_proved() -> None:
    expected = [
        (Proof(), None),
        (Proof("20"), "yes"),
        (Proof("20", "20"), "whole table"),
        (Proof("20", "10"), "yes"),
        (Proof("10", "10"), "until 10"),
    ]
    for proof, text in expected:
        (document,) = table_documents([table("a", "t", "t", TableStatus.OK, applied_position="20", proof=proof)])
        assert (document["proved"], document["proved_until"]) == (text, proof.until or None)
    counted = Proof("10", "5", 7, {"key_there": 2}, contradicted=True)
    (document,) = table_documents([table("a", "t", "t", TableStatus.OK, applied_position="20", proof=counted)])
    assert (document["proved_whole_until"], document["agreed_rows"]) == ("5", 7)
    assert document["contradictions"] == {"key_there": 2}
