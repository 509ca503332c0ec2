# SPDX-License-Identifier: Apache-2.0
"""A table whose policy asks before its structure changes is parked until somebody approves, then it equals the source.

These kinds of changes cannot be denied: without them the table could not hold the rows that follow.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)
KINDS = [
    ("on_add_column", "ALTER TABLE t ADD COLUMN w INT DEFAULT 7", "t", {"id": 2, "v": 2, "w": 2}),
    ("on_widen_column", "ALTER TABLE t MODIFY v BIGINT", "t", {"id": 2, "v": 1 << 40}),
    ("on_convert_column", "ALTER TABLE t MODIFY v VARCHAR(20)", "t", {"id": 2, "v": "two"}),
    ("on_convert_column", "ALTER TABLE t MODIFY v INT NOT NULL", "t", {"id": 2, "v": 2}),
    ("on_key_change", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)", "t", {"id": 2, "v": 2}),
    ("on_rename_table", "RENAME TABLE t TO t2", "t2", {"id": 2, "v": 2}),
    ("on_rename_table", "ALTER TABLE t RENAME TO t2", "t2", {"id": 2, "v": 2}),
    ("on_create_table", "CREATE TABLE t3 (id INT PRIMARY KEY, v INT)", "t3", {"id": 2, "v": 2}),
]


def insert(number: int, pos: int, table: str = "t") -> Record:
    return row("c", table, pos, {"id": number, "v": number}, key=KEY)


def begin(script: Script) -> None:
    """Send and sync tables t and u with one row each."""
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "u": (COLUMNS, KEY)}), insert(1, 110), insert(1, 120, "u"))
    script.sync()


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return tables t and u with one row each, with policies that apply."""
    script = Script(log, lake)
    begin(script)
    return script


def state_of(script: Script, table: str) -> tuple[str, str]:
    (state,) = (s for s in script.states.values() if s.table == table)
    return state.state, state.code


def demand_parked(script: Script, table: str = "t") -> None:
    assert state_of(script, table) == ("parked", "apply.approval_required")


def repeat(script: Script) -> None:
    """Carry out the last batch again, as after a crash before its result."""
    folder = script.root / "_cdc" / "scripted" / "log" / f"{script.seqs.pop():08d}"
    (folder / "result.json").unlink()
    script.sync(ends=script.ends)


@pytest.mark.parametrize(("policy", "statement", "table", "image"), KINDS)
def test_a_change_waits_until_it_is_approved_and_is_then_as_any_other(
    policy: str, statement: str, table: str, image: dict[str, object], log: Log, lake: Path
) -> None:
    asks, applies = (Script(log, lake / value, policy={policy: value}) for value in ("ask", "apply"))
    begin(asks)  # the tables that a pipeline begins with are not asked about
    change, news = ddl(statement, 200, table="t"), row("c", table, 210, image, key=KEY)
    asks.send(change, news, insert(2, 220, "u"))
    before = asks.rows("shop", "t")
    for _ in range(2):  # the second batch has nothing new of the table
        asks.sync()
        demand_parked(asks, table)
        assert asks.rows("shop", "t") == before
        assert asks.rows("shop", "u") == Counter({(1, 1): 1, (2, 2): 1})
    name = "t" if policy == "on_rename_table" else table  # the name that it had
    (waiting,) = asks.waiting(name)
    assert (waiting.policy, waiting.statement) == (policy, statement)
    (reason,) = (s.reason for s in asks.states.values() if s.table == table)
    assert f"`airflow-cdc approve PIPELINE.yaml shop.{name} --change " in reason
    assert "` carries it out" in reason
    assert "--deny" not in reason
    asks.decide(name, Answer.APPLY)
    applies.sync()
    assert state_of(asks, table) == ("ok", "")
    assert asks.rows("shop", table) == applies.rows("shop", table)
    assert sum((asks.rows("shop", table) or Counter()).values()) == (1 if policy == "on_create_table" else 2)
    asks.send(change, news)
    asks.sync()  # sent again, it is not asked about again
    asks.sync(rebuild=Rebuild([f"shop.{table}"]))
    assert asks.waiting(name) == []
    assert asks.rows("shop", table) == applies.rows("shop", table)


def test_a_batch_that_is_carried_out_again_has_the_decision(script: Script) -> None:
    script.policy = {"on_add_column": "ask"}
    script.send(ddl("ALTER TABLE t ADD w INT DEFAULT 7", 200, table="t"))
    script.sync()
    states = dict(script.states)
    script.decide("t", Answer.APPLY)
    script.states = states
    repeat(script)
    assert state_of(script, "t") == ("ok", "")
    assert script.rows("shop", "t") == Counter({(1, 1, 7): 1})


def test_another_policy_decides_what_waits(script: Script) -> None:
    script.policy = {"on_widen_column": "ask"}
    script.send(ddl("ALTER TABLE t MODIFY v BIGINT", 200, table="t"), insert(2, 210))
    script.sync()
    demand_parked(script)
    script.policy = {"on_widen_column": "apply"}
    script.sync()
    assert script.waiting("t") == []
    assert script.rows("shop", "t") == Counter({(1, 1): 1, (2, 2): 1})


def test_what_an_earlier_batch_took_is_not_asked_about(script: Script) -> None:
    script.send(ddl("ALTER TABLE t MODIFY v BIGINT", 200, table="t"), insert(2, 210))
    script.sync()
    script.policy = {"on_widen_column": "ask", "on_add_column": "ask"}
    script.send(ddl("ALTER TABLE t MODIFY v BIGINT", 200, table="t"), ddl("ALTER TABLE u ADD w INT", 205, table="u"))
    script.send(insert(3, 230))
    script.sync()
    assert script.waiting("t") == []
    assert script.rows("shop", "t") == Counter({(1, 1): 1, (2, 2): 1, (3, 3): 1})
    demand_parked(script, "u")


def test_each_kind_of_one_statement_is_decided_by_itself(script: Script) -> None:
    script.policy = {"on_add_column": "ask", "on_key_change": "ask", "on_drop_column": "ask"}
    statement = "ALTER TABLE t ADD w INT NOT NULL DEFAULT 7, DROP v, DROP PRIMARY KEY, ADD PRIMARY KEY (w, id)"
    script.send(ddl(statement, 200, table="t"))
    script.sync()
    policies = []
    while waiting := script.waiting("t"):
        demand_parked(script)
        policies.append(waiting[0].policy)
        script.decide("t", Answer.APPLY)
    assert sorted(policies) == ["on_add_column", "on_drop_column", "on_key_change"]
    assert state_of(script, "t") == ("ok", "")
    assert script.rows("shop", "t") == Counter({(1, 7): 1})


@pytest.mark.parametrize("together", [True, False])
def test_a_statement_that_is_possible_only_after_one_that_waits_is_asked_about_then(
    script: Script, together: bool
) -> None:
    script.policy = {"on_drop_column": "ask", "on_add_column": "ask"}
    script.send(ddl("ALTER TABLE t DROP COLUMN v", 200, table="t"))
    if not together:
        script.sync()
    script.send(ddl("ALTER TABLE t ADD COLUMN v BIGINT DEFAULT 9", 210, table="t"))
    script.sync()
    assert [item.policy for item in script.waiting("t")] == ["on_drop_column"]
    script.decide("t", Answer.APPLY)
    demand_parked(script)
    assert [item.policy for item in script.waiting("t")] == ["on_add_column"]
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    script.decide("t", Answer.APPLY)
    assert script.rows("shop", "t") == Counter({(1, 9): 1})


def test_a_table_that_swaps_its_name_with_another_waits_for_both_names(script: Script) -> None:
    script.policy = {"on_rename_table": "ask"}
    script.send(ddl("RENAME TABLE t TO old, u TO t", 200, table="t"), insert(5, 210), insert(6, 220, "old"))
    script.sync()
    demand_parked(script, "t")
    demand_parked(script, "old")
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    script.decide("u", Answer.APPLY)
    assert script.rows("shop", "t") == Counter({(1, 1): 1, (5, 5): 1})
    demand_parked(script, "old")
    script.decide("t", Answer.APPLY)
    assert script.rows("shop", "old") == Counter({(1, 1): 1, (6, 6): 1})
    assert script.rows("shop", "u") == Counter()


@pytest.mark.parametrize("excluded", [False, True])
def test_the_rule_of_the_old_name_decides_about_a_rename(script: Script, excluded: bool) -> None:
    """Also where the pipeline does not select the new name."""
    script.tables = {"shop.t": {"on_rename_table": "ask"}, **({"exclude": ["shop.old"]} if excluded else {})}
    script.send(ddl("RENAME TABLE t TO old", 200, table="t"), ddl("RENAME TABLE u TO u2", 205, table="u"))
    for _ in range(2):
        script.sync()
        demand_parked(script, "old")
        assert script.rows("shop", "t") == Counter({(1, 1): 1})
        assert script.rows("shop", "u2") == Counter({(1, 1): 1})
    script.decide("t", Answer.APPLY)
    assert script.states_of("shop", "old") == ["dropped" if excluded else "ok"]
    script.send(insert(2, 210, "old"))
    script.sync()
    assert script.rows("shop", "old") == (None if excluded else Counter({(1, 1): 1, (2, 2): 1}))


def test_a_new_table_that_is_excluded_while_it_waits_is_left_out(script: Script) -> None:
    script.policy = {"on_create_table": "ask"}
    script.send(ddl("CREATE TABLE t3 (id INT PRIMARY KEY, v INT)", 200, table="t3"), insert(2, 210, "t3"))
    assert script.sync().status == "parked"
    script.tables = {"exclude": ["shop.t3"]}
    assert script.sync().status == "done"
    assert script.states_of("shop", "t3") == ["dropped"]
    assert script.rows("shop", "t3") is None
