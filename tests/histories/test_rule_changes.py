# SPDX-License-Identifier: Apache-2.0
"""A table with rows whose rules are others now waits for approval, and says what carrying them out costs."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.timeline.asked_changes import Answer, newest_answers
from spark_jobs.driver.run_batch import sync
from tests.histories.debezium_records import row
from tests.histories.decisions import decide_twice, state_of
from tests.histories.log import Log
from tests.histories.ruled_table import (
    BOB,
    MORE,
    OPTIONS,
    OTHER,
    RECORDS,
    SALT,
    change,
    digest,
    lying,
    put,
    question,
    statement,
    stored,
    version,
    with_another,
)
from tests.histories.run import inline
from tests.histories.scripted import Script

HASHED: dict[str, Any] = {"columns": {"mask": {"name": "hash"}}}
WAITS = ("parked", "shape.changed")


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return table t with two rows, and another one."""
    return with_another(log, lake)


RULES: list[dict[str, Any]] = [
    HASHED,
    {"columns": {"exclude": ["name"]}},
    {"columns": {"rename": {"name": "nick"}}},
    {"columns": {"type": {"born": "string"}}},
    {"columns": {"add": {"x": "id + 1"}}},
    {"columns": {"metadata": {"op": "_op"}}},
    {"filter": "name IS NOT NULL"},
    {"mode": "soft_delete"},
    {"mode": "history"},
    {"mode": "append"},
]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_the_table_stays_as_it_was_until_it_is_approved_and_others_go_on(
    script: Script, log: Log, lake: Path, rule: dict[str, Any]
) -> None:
    before, at = lying(script), version(script)
    more = row("c", "o", 52, {"id": 2}, key=("id",), time=52)
    change(script, rule, MORE, more)
    assert state_of(script, "t") == WAITS
    assert (lying(script), version(script)) == (before, at)
    assert script.rows("shop", "o") == {(1,): 1, (2,): 1}
    late = put(61, id=4, name="Dan", born=2, n="4.00")
    script.send(late)
    script.sync()
    assert version(script) == at
    assert question(script).policy == "on_rule_change"
    script.decide("t", Answer.APPLY)
    assert script.waiting("t") == []
    approved = stored(script)
    log.partitions.clear()
    fresh = Script(log, lake / "fresh", secrets=SALT, options=OPTIONS, tables={"shop.t": rule})
    fresh.send(*RECORDS, *OTHER, MORE, more, late)
    fresh.sync()
    assert approved == stored(fresh)


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_rule_that_is_taken_back_lets_the_table_go_on_by_itself(script: Script, rule: dict[str, Any]) -> None:
    change(script, rule, MORE)
    asked = question(script)
    change(script, {})
    assert [one["id"] for one in stored(script)] == [1, 2, 3]
    assert script.waiting("t") == []
    (item,) = newest_answers(script.asked)
    assert (item.id, item.answer) == (asked.id, Answer.WITHDRAWN)
    script.sync(approval=replace(asked, answer=Answer.APPLY, by="ann"))  # it was sent before
    change(script, rule)
    assert state_of(script, "t") == WAITS


@pytest.mark.parametrize("policy", ["pipeline", "table"])
def test_with_apply_it_goes_on_at_once(script: Script, policy: str) -> None:
    if policy == "pipeline":
        script.policy = {"on_rule_change": "apply"}
    change(script, HASHED if policy == "pipeline" else {**HASHED, "on_rule_change": "apply"}, MORE)
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None, digest("Cid")]
    assert script.asked == []


def test_apply_decides_what_waits(script: Script) -> None:
    change(script, HASHED)
    assert state_of(script, "t") == WAITS
    script.policy = {"on_rule_change": "apply"}
    script.sync()
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None]
    (item,) = newest_answers(script.asked)
    assert (item.answer, item.by) == (Answer.APPLY, "policy on_rule_change: apply")


def test_new_tables_and_tables_without_rows_are_not_asked_about(log: Log, lake: Path) -> None:
    script = Script(log, lake, secrets=SALT, options=OPTIONS, tables={"shop.t": HASHED})
    script.send(RECORDS[0])
    script.sync()
    change(script, {"columns": {"exclude": ["name"]}})
    assert state_of(script, "t") == ("ok", "")
    change(script, HASHED, *RECORDS[1:])
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None]
    assert script.asked == []
    truncated = row("t", "t", 60, None)
    change(script, HASHED, truncated)
    change(script, {})
    assert (state_of(script, "t"), script.asked) == (("ok", ""), [])


def test_the_question_names_each_rule_and_no_value(script: Script) -> None:
    columns = {
        "exclude": "born",
        "rename": {"name": "nick"},
        "mask": {"name": "hash"},
        "add": {"x": "CONCAT(name, 'secret 1')"},
        "metadata": {"op": "_op"},
    }
    change(script, {"columns": columns, "filter": "name <> 'secret 2'", "mode": "soft_delete"})
    expected = [
        "exclude of born: none -> left out",
        "rename of name: none -> nick",
        "mask of name: none -> hash",
        "add of x: none -> an expression",
        "metadata of op: none -> _op",
        "filter: none -> a condition",
        "mode: mirror -> soft_delete",
    ]
    assert sorted(question(script).statement.split("; ")) == sorted(expected)
    script.decide("t", Answer.APPLY)
    columns |= {"exclude": [], "add": {"x": "CONCAT(name, 'secret 3')"}, "mask": {"name": "truncate(1)"}}
    columns = {key: value for key, value in columns.items() if value}
    change(script, {"columns": columns, "filter": "name <> 'secret 4'"})
    expected = [
        "exclude of born: left out -> none",
        "mask of name: hash -> truncate(1)",
        "add of x: an expression -> another expression",
        "filter: a condition -> another condition",
        "mode: soft_delete -> mirror",
    ]
    item = question(script)
    assert sorted(item.statement.split("; ")) == sorted(expected)
    (reason,) = (state.reason for state in script.states.values() if state.table == "t")
    assert item.statement in reason
    assert f"`airflow-cdc approve PIPELINE.yaml shop.t --change {item.id}`" in reason
    assert "secret" not in reason + repr(script.asked)


def test_each_time_that_a_rule_changes_somebody_is_asked(script: Script) -> None:
    for rule, names in ((HASHED, [digest("Ann"), None]), ({}, ["Ann", None])) * 2:
        change(script, rule)
        assert state_of(script, "t") == WAITS
        script.decide("t", Answer.APPLY)
        assert [one["name"] for one in stored(script)] == names


def test_an_approval_is_of_the_rules_that_were_asked_about(script: Script) -> None:
    change(script, HASHED)
    hashed = question(script)
    script.tables = {"shop.t": {"columns": {"mask": {"born": "redact"}}}}
    script.sync(approval=replace(hashed, answer=Answer.APPLY, by="ann"))
    assert state_of(script, "t") == WAITS
    assert [one["name"] for one in lying(script)] == ["Ann", None]
    assert question(script).id != hashed.id
    change(script, HASHED)  # as it was approved
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None]
    assert script.waiting("t") == []


def test_a_batch_that_is_carried_out_again_has_the_approval(script: Script) -> None:
    change(script, HASHED, MORE)
    decide_twice(script, Answer.APPLY)
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None, digest("Cid")]


def test_rules_that_say_the_same_of_the_table_are_no_change_of_it(script: Script) -> None:
    change(script, {"columns": {"mask": {"name": "hash"}, "exclude": ["tmp_*"]}})
    script.decide("t", Answer.APPLY)
    at = version(script)
    change(script, {"columns": {"mask": {"na*": "hash", "email*": "redact"}}}, put(61, "u", BOB, **BOB))
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None]
    assert (script.waiting("t"), version(script)) == ([], at + 1)
    assert script.sync().tables == []


def test_a_rule_that_does_not_fit_is_not_asked_about(script: Script) -> None:
    change(script, {"columns": {"mask": {"nickname": "hash"}}})
    assert state_of(script, "t") == ("parked", "shape.column_unknown")
    assert script.asked == []


def test_another_salt_waits_too_and_with_the_old_one_the_table_goes_on(script: Script) -> None:
    script.policy = {"on_rule_change": "apply"}
    change(script, HASHED)
    script.policy = {}
    script.secrets = {"mask": {"salt": "sea"}}
    script.send(MORE)
    script.sync()
    assert state_of(script, "t") == WAITS
    assert question(script).statement == "mask_connection: another salt"
    script.secrets = SALT
    script.send(put(61, id=4, name="Ann", born=None, n="1.00"))
    script.sync()
    assert [one["name"] for one in stored(script)] == [digest("Ann"), None, digest("Cid"), digest("Ann")]
    script.secrets = {"mask": {"salt": "sea"}}
    script.send(put(71, id=5, name="Ann", born=None, n="1.00"))
    script.sync()
    script.decide("t", Answer.APPLY)
    other = [hashlib.sha256(f"sea{name}".encode()).hexdigest() for name in ("Ann", "Cid")]
    assert [one["name"] for one in stored(script)] == [other[0], None, other[1], other[0], other[0]]


def test_a_table_that_takes_a_name_with_other_rules_waits(script: Script) -> None:
    script.tables = {"shop.u": HASHED}
    renamed = row("c", "u", 51, {"id": 3, "name": "Cid", "born": 1, "n": "3.00"}, key=("id",), time=51)
    script.send(statement("RENAME TABLE shop.t TO shop.u", 45), renamed)
    script.sync()
    assert state_of(script, "u") == WAITS
    assert [one["name"] for one in lying(script)] == ["Ann", None]
    script.decide("u", Answer.APPLY)
    rows = DeltaTable(str(script.root / "shop" / "u")).to_pyarrow_table().to_pylist()
    assert {one["name"] for one in rows} == {digest("Ann"), None, digest("Cid")}


@pytest.mark.parametrize("compared", [False, True])
def test_a_table_that_waits_is_neither_rebuilt_nor_compared(script: Script, compared: bool, tmp_path: Path) -> None:
    script.tables = {"shop.t": HASHED}
    order = Rebuild(["shop.t"], compared=compared)
    scratch = str(tmp_path / "scratch") if compared else ""
    result = sync(replace(script._job(script.ends), order=order, scratch=scratch), SALT, inline, lambda text: None)
    (line,) = result.tables
    assert line.reason.startswith("[shape.changed]")
    assert [one["name"] for one in lying(script)] == ["Ann", None]
