# SPDX-License-Identifier: Apache-2.0
"""Rules and modes of tables without key, by a clock, and of partial rows: right, or refused, as the pages say."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.histories.ddl_statements import Create
from tests.histories.log import Log
from tests.histories.plain_tables import INT, A, B, T
from tests.histories.row_statements import Delete, Insert, Update
from tests.histories.run import Case
from tests.histories.shaped import Rule, ShapedReplay
from tests.histories.source import Column, Structure
from tests.histories.tools import Style

GUIDES = Path(__file__).parents[2] / "docs" / "guides"
KEYED, KEYLESS = (Structure((A, B, Column("c", INT)), key) for key in (("a",), ()))
ROWS = Insert(T, tuple({"a": number, "b": number, "c": number or None} for number in range(3)))
MODED = "another mode than `mirror`"
CASES = {
    "a table without key": Case(1, (Create(T, KEYLESS), ROWS, Delete(T, (0,))), batches=1),
    "a format ordered by a clock": Case(1, (Create(T, KEYED), ROWS, Delete(T, (0,))), batches=1, format="canal-json"),
    "rows that lack columns": Case(
        1, (Create(T, KEYED), ROWS, Update(T, (0,), {"b": 7})), Style(minimal=True), batches=1, format="dts-protobuf"
    ),
    MODED: Case(1, (Create(T, KEYED), ROWS, Update(T, (0,), {"b": 7})), batches=1),
}
RULES = {
    "mirror": Rule({}),
    "soft_delete": Rule({}, mode="soft_delete"),
    "append": Rule({}, mode="append"),
    "history": Rule({}, mode="history"),
    "exclude": Rule({"exclude": ["c"]}),
    "rename": Rule({"rename": {"c": "renamed"}}),
    "mask": Rule({"mask": {"c": "hash"}}),
    "type": Rule({"type": {"c": "bigint"}}),
    "add": Rule({"add": {"computed": "CASE WHEN `c` IS NULL THEN 'none' ELSE 'some' END"}}),
    "filter": Rule({}, null=("c", True)),
    "metadata": Rule({"metadata": {"op": "_op"}}),
    "batch": Rule({"metadata": {"op": "_op", "batch": "_batch"}}),
}


def said() -> dict[tuple[str, str], str]:
    """Return what the tables of the pages say of cases and rules: ``right``, or the code of what is refused."""
    cells: dict[tuple[str, str], str] = {}
    for page in ("modes.md", "columns.md"):
        heads: list[str] = []
        for line in (GUIDES / page).read_text().splitlines():
            first, *others = (cell.strip() for cell in line.strip("|").split("|"))
            others = [other.strip("`") for other in others]
            if others and set(others) <= RULES.keys():
                heads = others
            elif first in CASES and len(others) == len(heads):
                cells |= {(first, head): other for head, other in zip(heads, others, strict=True)}
    return cells


def test_the_pages_name_each_rule_in_each_case() -> None:
    modes = {"mirror", "soft_delete", "append", "history"}
    assert said().keys() == {(case, name) for case in CASES for name in RULES if case != MODED or name not in modes}


@pytest.mark.parametrize(("case", "name"), said())
def test_what_the_pages_refuse_is_refused_and_all_else_is_right(case: str, name: str, log: Log, lake: Path) -> None:
    rule = RULES[name]
    attempt = ShapedReplay(CASES[case], log, lake)
    attempt._of_all, attempt._by_name = replace(rule, mode="history") if case == MODED else rule, {}
    problems = attempt.run()
    assert not problems
    (state,) = attempt.states.values()
    reason = re.search(r"(mode|shape)\.\w+|column_absent", state.reason)
    answer = reason[0] if state.state == "parked" and reason else "right"
    assert (answer, attempt.quarantined > 0) == (said()[case, name], answer == "column_absent")
