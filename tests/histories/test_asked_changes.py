# SPDX-License-Identifier: Apache-2.0
"""A table with ``on_truncate: ask`` or ``on_drop_table: ask`` is parked until somebody decides about the change."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.decisions import decide_twice, state_of
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)
ASK = {"on_drop_table": "ask", "on_truncate": "ask"}
TRUNCATES = {"statement": ddl("TRUNCATE TABLE t", 200, table="t"), "row": row("t", "t", 200, None)}
EMPTIED, STAYED = Counter({(2, 2): 1, (3, 3): 1}), Counter({(1, 1): 1, (2, 2): 1, (3, 3): 1})


def insert(number: int, pos: int, table: str = "t") -> Record:
    return row("c", table, pos, {"id": number, "v": number}, key=KEY)


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return tables t and u with one row each, which ask before they lose all rows."""
    script = Script(log, lake, policy=dict(ASK))
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "u": (COLUMNS, KEY)}), insert(1, 110), insert(1, 120, "u"))
    script.sync()
    return script


@pytest.mark.parametrize("kind", TRUNCATES)
@pytest.mark.parametrize(("answer", "expected"), [(Answer.APPLY, EMPTIED), (Answer.DENY, STAYED)])
def test_a_truncate_waits_for_a_decision(script: Script, kind: str, answer: Answer, expected: Counter[Any]) -> None:
    script.send(TRUNCATES[kind], insert(2, 210), insert(2, 220, "u"))
    for _ in range(2):  # the second batch has nothing new of the table
        script.sync()
        assert state_of(script, "t") == ("parked", "apply.approval_required")
        assert script.rows("shop", "t") == Counter({(1, 1): 1})
        assert script.rows("shop", "u") == Counter({(1, 1): 1, (2, 2): 1})
    (waiting,) = script.waiting("t")
    assert waiting.policy == "on_truncate"
    assert waiting.statement.startswith("TRUNCATE TABLE")
    (reason,) = (s.reason for s in script.states.values() if s.table == "t")
    assert "airflow-cdc approve PIPELINE.yaml shop.t" in reason
    script.send(insert(3, 230))
    script.sync()
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    script.decide("t", answer)
    assert state_of(script, "t") == ("ok", "")
    assert script.rows("shop", "t") == expected
    # sent again, it is not asked about again
    script.send(TRUNCATES[kind], insert(3, 230))
    script.sync()
    assert script.rows("shop", "t") == expected
    assert script.waiting("t") == []


@pytest.mark.parametrize("kind", TRUNCATES)
@pytest.mark.parametrize(("answer", "expected"), [(Answer.APPLY, EMPTIED), (Answer.DENY, STAYED)])
def test_a_rewind_and_a_rebuild_over_the_truncate_give_the_same(
    script: Script, kind: str, answer: Answer, expected: Counter[Any]
) -> None:
    script.send(TRUNCATES[kind], insert(2, 210))
    script.sync()
    script.decide("t", answer)
    script.send(ddl("ALTER TABLE t MODIFY v BIGINT", 105, table="t"), insert(3, 230))
    script.sync()
    assert script.rows("shop", "t") == expected
    shutil.rmtree(script.root / "shop" / "t")
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert script.rows("shop", "t") == expected
    assert state_of(script, "t") == ("ok", "")


@pytest.mark.parametrize("kind", TRUNCATES)
@pytest.mark.parametrize(("answer", "expected"), [(Answer.APPLY, EMPTIED), (Answer.DENY, STAYED)])
def test_a_batch_that_is_carried_out_again_has_the_decision(
    script: Script, kind: str, answer: Answer, expected: Counter[Any]
) -> None:
    script.send(TRUNCATES[kind], insert(2, 210), insert(3, 230))
    script.sync()
    decide_twice(script, answer)
    assert script.rows("shop", "t") == expected
    assert state_of(script, "t") == ("ok", "")
    script.send(insert(4, 240))
    script.sync()
    assert script.rows("shop", "t") == expected + Counter({(4, 4): 1})


@pytest.mark.parametrize("kind", TRUNCATES)
def test_a_truncate_that_was_denied_can_be_approved_after_all(script: Script, kind: str) -> None:
    script.send(TRUNCATES[kind], insert(2, 210), insert(3, 230))
    script.sync()
    (item,) = script.waiting("t")
    script.decide("t", Answer.DENY)
    assert script.rows("shop", "t") == STAYED
    script.asked.append(item.document())
    script.decide("t", Answer.APPLY)
    assert script.rows("shop", "t") == EMPTIED


def test_each_truncate_is_decided_by_itself(script: Script) -> None:
    first, second = TRUNCATES["statement"], ddl("TRUNCATE TABLE t", 300, table="t")
    script.send(first, insert(2, 210), second, insert(3, 310))
    script.sync()
    script.decide("t", Answer.APPLY)
    assert state_of(script, "t") == ("parked", "apply.approval_required")
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    script.decide("t", Answer.DENY)
    assert script.rows("shop", "t") == EMPTIED


@pytest.mark.parametrize("kind", TRUNCATES)
@pytest.mark.parametrize(("value", "expected"), [("apply", EMPTIED), ("ignore", STAYED)])
def test_another_policy_decides_what_waits(script: Script, kind: str, value: str, expected: Counter[Any]) -> None:
    script.send(TRUNCATES[kind], insert(2, 210), insert(3, 230))
    script.sync()
    script.policy["on_truncate"] = value
    script.sync()
    assert script.waiting("t") == []
    assert script.rows("shop", "t") == expected


@pytest.mark.parametrize("kind", TRUNCATES)
def test_what_an_earlier_batch_took_is_not_asked_about(script: Script, kind: str) -> None:
    script.policy["on_truncate"] = "apply"
    script.send(TRUNCATES[kind], insert(2, 210))
    script.sync()
    script.policy["on_truncate"] = "ask"
    script.send(TRUNCATES[kind], ddl("ALTER TABLE t MODIFY v BIGINT", 105, table="t"), insert(3, 230))
    script.sync()
    assert script.rows("shop", "t") == EMPTIED
    assert script.waiting("t") == []


@pytest.mark.parametrize("statement", ["DROP TABLE t", "DROP DATABASE shop"])
def test_an_approved_drop_empties_the_location(script: Script, statement: str) -> None:
    script.send(ddl(statement, 200, table="t"))
    script.sync()
    assert state_of(script, "t") == ("parked", "apply.approval_required")
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    decide_twice(script, Answer.APPLY)
    assert script.states_of("shop", "t") == ["dropped"]
    assert script.rows("shop", "t") == Counter()
    assert script.rows("shop", "u") == Counter({(1, 1): 1})


def test_a_table_whose_drop_is_denied_stays_as_it_is(script: Script) -> None:
    script.send(ddl("DROP TABLE t", 200, table="t"))
    script.sync()
    decide_twice(script, Answer.DENY)
    assert state_of(script, "t") == ("ok", "")
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert script.rows("shop", "t") == Counter({(1, 1): 1})


@pytest.mark.parametrize(
    ("answer", "expected"), [(Answer.APPLY, Counter({(2, 2): 1, (3, 3): 1})), (Answer.DENY, STAYED)]
)
@pytest.mark.parametrize("together", [True, False])
def test_a_table_of_the_same_name_waits_with_the_drop(
    script: Script, answer: Answer, expected: Counter[Any], together: bool
) -> None:
    """Approved, it replaces the dropped one; denied, its rows are added to those that are there."""
    script.send(ddl("DROP TABLE t", 200, table="t"))
    if not together:
        script.sync()
    script.send(ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)", 205, table="t"), insert(2, 210))
    script.sync()
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    assert script.states_of("shop", "t") == ["parked"]
    script.decide("t", answer)
    script.send(insert(3, 230))
    script.sync()
    assert script.rows("shop", "t") == expected
    assert "parked" not in script.states_of("shop", "t")


@pytest.mark.parametrize("together", [True, False])
def test_a_table_that_takes_the_name_does_not_replace_rows_before_the_drop_is_approved(
    script: Script, together: bool
) -> None:
    script.send(ddl("DROP TABLE t", 200, table="t"))
    if not together:
        script.sync()
    script.send(ddl("RENAME TABLE u TO t", 205, table="u"), insert(2, 210))
    script.sync()
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    assert script.rows("shop", "u") == Counter({(1, 1): 1})
    script.decide("t", Answer.APPLY)
    assert script.rows("shop", "t") == Counter({(1, 1): 1, (2, 2): 1})  # row 1 is that of u
    assert sorted(script.states_of("shop", "t")) == ["dropped", "ok"]
