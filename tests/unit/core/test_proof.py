# SPDX-License-Identifier: Apache-2.0
"""A proof moves on only with what was compared and agrees, and keeps what contradicted the rows."""

from __future__ import annotations

from itertools import product

from airflow_provider_cdc.core.documents import Proof


def test_a_contradiction_holds_it_until_the_whole_table_is_compared() -> None:
    proof = Proof().after("10", {}, 2, compared=True).after("20", {"key_missing": 1}, 3, compared=True)
    assert proof == Proof("10", "", 5, {"key_missing": 1}, contradicted=True)
    proof = proof.after("30", {"key_missing": 1, "key_there": 2}, 0, compared=True)
    assert proof.contradictions == {"key_missing": 2, "key_there": 2}
    whole = proof.of_whole_table("30")
    assert (whole.until, whole.whole_until, whole.contradictions) == ("30", "30", proof.contradictions)
    assert whole.after("40", {}, 1, compared=True) == Proof("40", "30", 6, proof.contradictions)


def test_it_never_reaches_a_batch_that_was_not_compared_or_was_contradicted() -> None:
    steps = [({}, True), ({}, False), ({"row_differs": 1}, True), ({"row_differs": 1}, False)]
    for course in product(steps, repeat=3):
        proof, reached, holds = Proof(), "", True
        for number, (counts, compared) in enumerate(course, 1):
            proof = proof.after(str(number), counts, 0, compared=compared)
            holds = holds and not counts
            reached = str(number) if compared and holds else reached
            assert proof.until == reached
        assert proof.contradictions == ({} if holds else {"row_differs": sum(bool(counts) for counts, _ in course)})


def test_it_is_the_same_after_its_document() -> None:
    proof = Proof("10", "9", 5, {"key_missing": 1}, contradicted=True)
    assert Proof.from_document(proof.document()) == proof
