# SPDX-License-Identifier: Apache-2.0
"""Distinct values by number."""

from __future__ import annotations

from airflow_provider_cdc.core.formats.common.interning import Interner


def test_each_distinct_value_has_one_number_in_the_order_of_first_sight() -> None:
    interner = Interner[str]()
    assert [interner.id_of(text) for text in ("b", "a", "b", "c", "a")] == [0, 1, 0, 2, 1]
    assert interner.values == ["b", "a", "c"]
