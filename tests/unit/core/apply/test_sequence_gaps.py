# SPDX-License-Identifier: Apache-2.0
"""Examples of transactions whose numbers have a hole, and of those that only look so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.contradictions import Findings, Verification
from airflow_provider_cdc.core.apply.resolve import ordered, resolve
from airflow_provider_cdc.core.apply.sequence_gaps import changes_behind_gaps
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.values.types import TypeOptions
from tests.unit.core.apply.changes import change, table_of, timeline_of

KEYED, KEYLESS = "CREATE TABLE t (id INT PRIMARY KEY)", "CREATE TABLE t (id INT)"
BEFORE = f"{10:08d}.{0:010d}"  # where the stored rows stand

Numbers = Sequence[tuple[str | None, int | None]]


def behind(numbers: Numbers, first: int = 0) -> list[int]:
    """Return which changes stand behind a gap.

    :param numbers: transaction and number of each change.
    :param first: changes before it were applied.
    """
    transactions, orders = [one for one, _ in numbers], [one for _, one in numbers]
    columns = {
        "transaction_id": pa.chunked_array([pa.array(transactions, pa.string())]),
        "transaction_order": pa.chunked_array([pa.array(orders, pa.int64())]),
    }
    return changes_behind_gaps(pa.table(columns), np.arange(first, len(numbers))).tolist()


def test_numbers_without_a_hole_say_nothing() -> None:
    assert behind([("a", 1), ("a", 2), ("b", 1), ("c", 1), ("c", 2), ("c", 3)]) == []


def test_the_change_behind_each_hole_is_named() -> None:
    assert behind([("a", 1), ("a", 3), ("b", 2), ("b", 3), ("b", 7)]) == [1, 2, 4]


def test_the_first_transaction_may_have_begun_in_an_earlier_batch() -> None:
    assert behind([("a", 4), ("a", 5), ("b", 1)]) == []
    assert behind([("a", 4), ("a", 6), ("b", 1)]) == [1]
    assert behind([("a", 1), ("a", 2), ("b", 1), ("b", 2)], first=3) == []


def test_a_number_that_comes_again_is_no_hole() -> None:
    assert behind([("a", 1), ("b", 1), ("b", 1), ("b", 2), ("b", 2), ("a", 1)]) == []


def test_changes_of_one_position_come_in_any_order() -> None:
    assert behind([("a", 1), ("b", 2), ("b", 1), ("b", 3)]) == []


@pytest.mark.parametrize("unknown", [(None, 3), ("b", None), (None, None)])
def test_changes_without_transaction_or_number_are_left_out(unknown: tuple[str | None, int | None]) -> None:
    assert behind([unknown, ("a", 1), unknown, ("a", 2), unknown]) == []
    assert behind([unknown]) == []


def test_changes_of_a_format_that_numbers_none_are_passed_over() -> None:
    assert changes_behind_gaps(pa.table({"position": ["1", "2"]}), np.arange(2)).tolist() == []


def findings_of(
    numbers: Numbers, *, create: str = KEYED, read: Sequence[int] | None = None, denied: int | None = None
) -> Findings:
    """Return what resolving inserts gave, each in a place of its own.

    :param numbers: transaction and number of each; odd ones lie on partition 1.
    :param read: up to which change each partition is read, None where all is.
    :param denied: which of them is a TRUNCATE, and was denied.
    """
    ops = ["truncate" if n == denied else "insert" for n in range(len(numbers))]
    rows = [change(20 + n, op, None, {"id": n}, partition=n % 2) for n, op in enumerate(ops)]
    table = table_of(rows)
    for name, kind, column in zip(
        ("transaction_id", "transaction_order"), (pa.string(), pa.int64()), zip(*numbers, strict=True), strict=True
    ):
        table = table.append_column(name, pa.array(column, kind))
    marks: dict[str, Any] | None = None
    if read is not None:
        marks = {f"rows/{partition}": f"{20 + n:08d}.{0:010d}" for partition, n in enumerate(read)}
    timeline = timeline_of(create)
    timeline.denied += [] if denied is None else [rows[denied]["position"]]
    plan = resolve(
        ordered(table),
        timeline,
        timeline.schema,
        open_format("debezium-json"),
        TypeOptions(),
        base_position=BEFORE,
        verification=Verification(marks=marks),
    )
    witness = plan.steps[0].witness
    assert witness is not None
    return witness.finish()


@pytest.mark.parametrize("create", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_the_record_behind_a_gap_is_named(create: str) -> None:
    findings = findings_of([("a", 1), ("b", 1), ("b", 3)], create=create)
    assert findings.counts == {"sequence_gap": 1}
    (one,) = findings.first
    assert (one.kind, one.topic, one.offset, one.column) == ("sequence_gap", "rows", 22, "")
    assert bool(one.key) == (create == KEYED)


def test_a_gap_counts_only_behind_what_every_partition_shows() -> None:
    hole: Numbers = [("a", 1), ("b", 1), ("b", 3), ("c", 1), ("c", 2)]
    assert findings_of(hole, read=[4, 3]).counts == {"sequence_gap": 1}
    waits = findings_of(hole, read=[4, 1])
    assert (waits.counts, waits.undecided) == ({}, 1)


@pytest.mark.parametrize("create", [KEYED, KEYLESS], ids=["keyed", "keyless"])
def test_a_change_that_counts_no_more_has_its_number(create: str) -> None:
    assert findings_of([("a", 1), ("b", 1), ("b", 2), ("b", 3)], create=create, denied=2).counts == {}
    assert findings_of([("a", 1), ("b", 1), ("b", 3), ("b", 4)], create=create, denied=2).counts == {}
    assert findings_of([("a", 1), ("b", 1), ("b", 2), ("b", 4)], create=create, denied=2).counts == {"sequence_gap": 1}
