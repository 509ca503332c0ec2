# SPDX-License-Identifier: Apache-2.0
"""Every table equals the model where rules name it, however often the rules change, and no rows stay elsewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.histories.cases import case_of
from tests.histories.log import Log
from tests.histories.routed import TAKEN, Meeting, Routed
from tests.histories.run import described

SEEDS = range(400, 406)
MEETING = (426, 430, 433, 437)  # seeds with tables that get one name


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
@pytest.mark.parametrize("name", ["debezium-json", "canal-json", "dtle-json"])
def test_tables_are_where_the_rules_put_them(name: str, sink: str, log: Log, lake: Path) -> None:
    for seed in SEEDS:
        history = Routed(replace(case_of(name, seed, sizes=(5, 8)), sink=sink), log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)


@pytest.mark.parametrize("sink", ["delta", "iceberg"])
def test_tables_that_get_one_name_are_never_mixed(sink: str, log: Log, lake: Path) -> None:
    codes: Counter[str] = Counter()
    for seed in MEETING:
        history = Meeting(replace(case_of("debezium-json", seed, sizes=(5, 8)), sink=sink), log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        codes.update(history.parked.values())
    assert codes[TAKEN] >= len(MEETING)
