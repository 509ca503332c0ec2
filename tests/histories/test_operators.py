# SPDX-License-Identifier: Apache-2.0
"""Tables equal the model whatever operators did between the batches, or say why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.histories.cases import case_of
from tests.histories.log import Log
from tests.histories.operators import Operated
from tests.histories.run import described
from tests.histories.tools import TOOLS
from tests.sample import TIMES, amount

SEEDS = range(700, 700 + 3 * TIMES)
LEAST = amount(1, 3)  # more where those show nothing of what is asked for


@pytest.mark.every(2)
@pytest.mark.parametrize("name", TOOLS)
def test_no_table_is_wrong_after_acts_of_operators(name: str, log: Log, lake: Path) -> None:
    acts = 0
    for number, seed in enumerate(SEEDS):
        if number >= LEAST and acts:
            break
        history = Operated(case_of(name, seed, sizes=(5, 8)), log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        acts += history.replayed + history.rebuilt + history.removed + history.settled + history.maintained
    assert acts > 0


class _Deciding(Operated):
    """Has no broken records, and fewer acts."""

    acts = ("nothing", "replay", "replay", "rebuild", "rebuild", "shorten", "decide", "decide")
    chances = (0.0,)


@pytest.mark.parametrize(("name", "seed"), [("drs-json-c", 52008), ("canal-protobuf", 61055), ("canal-json", 83019)])
def test_an_approved_drop_empties_what_a_table_of_that_name_left_that_was_never_there(
    name: str, seed: int, log: Log, lake: Path
) -> None:
    """A late CREATE replaced the table by another one, whose DROP was approved before it was ever written."""
    history = _Deciding(case_of(name, seed), log, lake)
    problems = history.run()
    assert not problems, described(history.case, history.story, problems)


def test_what_a_replaced_table_left_goes_although_the_policy_asks_before_a_drop(log: Log, lake: Path) -> None:
    """No table was dropped: a late CREATE replaced one that waits to be renamed, and the new one moved at once."""
    history = Operated(case_of("drs-json-c", 820064), log, lake)
    problems = history.run()
    assert not problems, described(history.case, history.story, problems)


def test_a_dropped_table_has_no_code_of_what_it_was_parked_for(log: Log, lake: Path) -> None:
    """Its folder was deleted, and its DROP approved before anybody rebuilt it."""
    history = Operated(case_of("debezium-json", 1150137), log, lake)
    problems = history.run()
    assert not problems, described(history.case, history.story, problems)
    assert {state.code for state in history.states.values() if state.state == "dropped"} == {""}
