# SPDX-License-Identifier: Apache-2.0
"""A table that its rows made known, and whose CREATE comes a batch later with what happened to it since."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.ddl_statements import Create, Drop, Rename
from tests.histories.log import Log
from tests.histories.plain_tables import KEYED, T, U, rows
from tests.histories.run import Case, Replay, described
from tests.histories.source import Statement
from tests.histories.tools import Style


@pytest.mark.parametrize(
    ("end", "on_drop"), [(Rename(((T, U),)), "keep"), (Drop((T,)), "apply")], ids=["renamed", "dropped"]
)
@pytest.mark.parametrize("seed", range(3))
def test_the_location_of_the_name_it_had_holds_nothing(
    end: Statement, on_drop: str, seed: int, log: Log, lake: Path
) -> None:
    statements = (Create(T, KEYED), *(rows(number) for number in range(6)), end)
    style = Style(partitions=2)
    case = Case(seed, statements, style, batches=2, late=2, format="canal-protobuf", on_drop=on_drop)
    replay = Replay(case, log, lake)
    problems = replay.run()
    assert not problems, described(case, replay.story, problems)
