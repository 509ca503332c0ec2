# SPDX-License-Identifier: Apache-2.0
"""Say how far the log has proved a table: on with what agrees, not beyond what does not, and back with the rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import Proof, Rebuild, TableState
from spark_jobs.sinks.registry import open_sink
from tests.histories.debezium_records import TOPIC, ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.sinks.kinds import options_of

KEY = ("id",)
CREATE = ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)", 100, table="t", columns={"id": "int", "v": "int"}, key=KEY)


def insert(pos: int, key: int, value: int) -> Record:
    return row("c", "t", pos, {"id": key, "v": value}, key=KEY)


def update(pos: int, key: int, before: int, after: int) -> Record:
    return row("u", "t", pos, {"id": key, "v": after}, before={"id": key, "v": before}, key=KEY)


@pytest.fixture(params=["delta", "iceberg"])
def script(request: pytest.FixtureRequest, log: Log, tmp_path: Path) -> Script:
    """Return a pipeline that has synced a table with two rows."""
    kind = request.param
    script = Script(log, tmp_path, sink_type=kind, policy={"verify": "all"})
    script.sink_options = options_of(kind, tmp_path) if kind == "iceberg" else {}
    synced(script, CREATE, insert(110, 1, 1), insert(120, 2, 2))
    return script


def state_of(script: Script) -> TableState:
    (state,) = script.states.values()
    assert state.state == "ok", state.reason
    return state


def synced(script: Script, *records: Record, **order: Any) -> TableState:
    script.send(*records)
    script.sync(**order)
    return state_of(script)


def test_it_moves_on_with_what_agrees_and_with_what_nothing_says_of(script: Script) -> None:
    first = state_of(script)
    assert first.proof == Proof(until=first.applied_position)
    second = synced(script, update(200, 1, 1, 10), update(210, 2, 2, 20))
    assert second.applied_position > first.applied_position
    assert second.proof == Proof(until=second.applied_position, agreed_rows=2)
    third = synced(script, insert(300, 3, 3))
    assert third.proof == Proof(until=third.applied_position, agreed_rows=2)


def test_the_commit_of_the_table_states_it(script: Script) -> None:
    state = synced(script, update(200, 1, 1, 10))
    assert state.proof.agreed_rows == 1
    sink = open_sink(script._job({}), {})
    facts = sink.open(f"{script.root}/{state.location}").facts(f"cdc/{script.name}/{state.table_id}/0")
    assert facts is not None
    assert TableState.from_document(facts["state"]).proof == state.proof


def test_it_stays_from_a_contradiction_that_is_counted_on(script: Script) -> None:
    script.policy["on_contradiction"] = "count"
    before = state_of(script)
    counted = synced(script, update(200, 1, 1, 10), update(210, 2, -2, 20), update(220, 9, 1, 2))
    until, kinds = before.applied_position, {"row_differs": 1, "key_missing": 1}
    assert counted.proof == Proof(until, agreed_rows=1, contradictions=kinds, contradicted=True)
    agreed = synced(script, update(300, 1, 10, 11))
    assert agreed.proof == replace(counted.proof, agreed_rows=2)
    compared = agreed.proof.of_whole_table(agreed.applied_position)
    script.states = {agreed.table_id: replace(agreed, proof=compared)}
    again = synced(script, update(400, 1, 11, 12))
    assert again.proof == Proof(again.applied_position, agreed.applied_position, 3, kinds)


def test_it_stays_where_a_table_is_parked(script: Script) -> None:
    before = state_of(script)
    script.send(update(200, 1, 1, 10), update(210, 2, -2, 20))
    result = script.sync()
    (state,) = script.states.values()
    assert (state.state, state.code) == ("parked", "apply.contradicted")
    assert result.tables[0].contradictions == {"row_differs": 1}
    assert state.proof == before.proof


def test_it_begins_again_with_a_rebuild(script: Script) -> None:
    script.policy["on_contradiction"] = "count"
    synced(script, update(200, 9, 1, 2))
    two = synced(script, update(300, 8, 1, 2))
    assert two.proof.contradictions == {"key_missing": 2}
    rebuilt = synced(script, rebuild=Rebuild(["shop.t"]))
    assert rebuilt.proof == Proof(contradictions={"key_missing": 2}, contradicted=True)


def test_it_goes_back_with_rows_and_comes_again_in_the_same_batch(script: Script) -> None:
    early = synced(script, update(200, 1, 1, 10))
    later = synced(script, update(300, 1, 10, 11), update(310, 2, 2, 20))
    assert later.proof == Proof(later.applied_position, agreed_rows=3)
    text, columns = "ALTER TABLE t MODIFY COLUMN v BIGINT", {"id": "int", "v": "bigint"}
    back = synced(script, ddl(text, 250, table="t", columns=columns, key=KEY))
    assert back.applied_position == later.applied_position
    assert back.proof == replace(later.proof, agreed_rows=early.proof.agreed_rows + 2)
    last = synced(script, update(400, 1, 11, 12))
    assert last.proof == Proof(last.applied_position, agreed_rows=4)


@pytest.mark.parametrize("verify", ["off", "all"])
def test_it_stays_where_nothing_is_compared(script: Script, verify: str) -> None:
    before = state_of(script)
    script.policy["verify"] = verify
    state = synced(script, update(200, 1, 1, 10))
    compared = Proof(state.applied_position, agreed_rows=1)
    assert state.proof == (before.proof if verify == "off" else compared)


def test_a_state_of_an_earlier_version_begins_with_the_next_batch(script: Script) -> None:
    document = state_of(script).document()
    del document["proof"]
    old = TableState.from_document(document)
    assert old.proof == Proof()
    script.states = {old.table_id: old}
    state = synced(script, update(200, 1, 1, 10))
    assert state.proof == Proof(state.applied_position, agreed_rows=1)


def test_tables_that_are_resolved_together_have_one_each(log: Log, tmp_path: Path) -> None:
    script, names = Script(log, tmp_path, policy={"on_contradiction": "count"}), [f"t{n}" for n in range(6)]
    columns = {"id": "int", "v": "int"}
    for number, name in enumerate(names):
        text = f"CREATE TABLE {name} (id INT PRIMARY KEY, v INT)"
        script.send(ddl(text, 100 + number, table=name, columns=columns, key=KEY))
        script.send(row("c", name, 200 + number, {"id": 1, "v": 1}, key=KEY))
    script.sync()
    for number, name in enumerate(names):
        before = {"id": 1, "v": 1 if number else 7}
        script.send(row("u", name, 300 + number, {"id": 1, "v": 2}, before=before, key=KEY))
    script.sync()
    states = {state.table: state for state in script.states.values()}
    assert states["t0"].proof.contradictions == {"row_differs": 1}
    assert states["t0"].proof.until < states["t0"].applied_position
    for name in names[1:]:
        assert states[name].proof == Proof(states[name].applied_position, agreed_rows=1)


def test_what_a_partition_may_still_explain_holds_the_proof(script: Script) -> None:
    before = synced(script, row("c", "t", 130, {"id": 3, "v": 3}, key=KEY, partition=1))
    script.held = {(f"{TOPIC}.shop.t", 1)}
    opened = synced(script, row("c", "t", 200, {"id": 9, "v": 1}, key=KEY, partition=1), update(210, 9, 1, 2))
    assert opened.proof == before.proof
    assert opened.applied_position > opened.proof.until
    script.held = set()
    state = synced(script, update(300, 1, 1, 10))
    assert state.proof == Proof(state.applied_position, agreed_rows=1)


PLAIN = ddl("CREATE TABLE t (id INT, v INT)", 100, table="t", columns={"id": "int", "v": "int"})


def added(pos: int, value: int, partition: int = 0) -> Record:
    return row("c", "t", pos, {"id": 1, "v": value}, partition=partition)


def removed(pos: int, value: int) -> Record:
    return row("d", "t", pos, None, before={"id": 1, "v": value})


@pytest.fixture
def plain(log: Log, tmp_path: Path) -> Script:
    """Return a pipeline that has synced a table without key with three rows, one of them on another partition."""
    script = Script(log, tmp_path)
    synced(script, PLAIN, added(110, 1), added(120, 2), added(130, 3, partition=1))
    return script


def test_a_removal_of_a_row_without_key_agrees_with_the_row_that_goes(plain: Script) -> None:
    assert state_of(plain).proof == Proof(state_of(plain).applied_position)
    changed = row("u", "t", 210, {"id": 1, "v": 20}, before={"id": 1, "v": 2})
    state = synced(plain, removed(200, 1), changed)
    assert state.proof == Proof(state.applied_position, agreed_rows=2)
    plain.policy = {"verify": "off"}
    assert synced(plain, removed(300, 20)).proof == state.proof


def test_a_removal_that_waits_for_its_row_holds_the_proof(plain: Script) -> None:
    before = state_of(plain)
    plain.held = {(f"{TOPIC}.shop.t", 1)}
    waits = synced(plain, added(200, 7, partition=1), removed(210, 7), removed(220, 1))
    assert waits.pending_seq is not None
    assert waits.proof == Proof(before.applied_position, agreed_rows=1)
    plain.held = set()
    state = synced(plain)
    assert (state.pending_seq, state.proof.until) == (None, state.applied_position)


@pytest.mark.parametrize("rewritten", [False, True])
def test_a_removal_whose_row_is_missing_is_counted_next_to_parking(plain: Script, rewritten: bool) -> None:
    before = state_of(plain)
    if rewritten:
        text = "ALTER TABLE t MODIFY COLUMN v BIGINT"
        plain.send(ddl(text, 200, table="t", columns={"id": "int", "v": "bigint"}))
    plain.send(removed(210, 8), removed(220, 9), removed(230, 1), added(240, 3, partition=1))
    (line,) = plain.sync().tables
    (state,) = plain.states.values()
    assert (state.state, state.code) == ("parked", "apply.row_not_found")
    assert line.contradictions == {"row_missing": 2}
    assert state.proof == before.proof
