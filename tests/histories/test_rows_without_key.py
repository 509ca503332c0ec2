# SPDX-License-Identifier: Apache-2.0
"""Tables without key: rows that a removal names by their values, in all ways of resolving and cuts of batches."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import Decision, DecisionAction
from tests.histories.debezium_records import TOPIC, ddl, row
from tests.histories.log import Log
from tests.histories.quarantined import cut_off, repair
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.histories.ways import resolved
from tests.sample import TIMES

pytestmark = pytest.mark.sampled

TOPIC_OF_ROWS = f"{TOPIC}.shop.n"
# as the server prints it in a snapshot, and as the stream has it
JSON = '{"k": 2, "l": [1, 2.50, "x"], "m": {"b": null, "a": true}}', '{"m":{"a":true,"b":null},"k":2,"l":[1,2.5,"x"]}'
FLOAT = 1.23457, 1.2345678806304932
TIMESTAMP = None, "1970-01-01T00:00:00Z"
TWICE = {"json": JSON, "float": FLOAT, "timestamp": TIMESTAMP}


@pytest.fixture(params=["alone", "buckets", "pieces"])
def script(request: pytest.FixtureRequest, log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return a pipeline that resolves its tables in one of the ways that there are."""
    return Script(log, lake, policy=resolved(request.param, monkeypatch))


@pytest.fixture(params=[1, 2, None], ids=["single", "pairs", "whole"])
def cut(request: pytest.FixtureRequest) -> int | None:
    """Return how many row records each batch has, None for all."""
    size: int | None = request.param
    return size


def created(kind: str) -> Record:
    return ddl(f"CREATE TABLE n (a INT, v {kind.upper()} NULL)", 8, mark="true")


def change(
    op: str, pos: int, a: int, value: Any, was: Any = ..., *, mark: str | None = None, partition: int = 0
) -> Record:
    """Return a change of a row; of an update ``was`` is the value before."""
    image = {"a": a, "v": value}
    before = image if op == "d" else None if was is ... else {"a": a, "v": was}
    return row(op, "n", pos, None if op == "d" else image, before=before, mark=mark, partition=partition)


def synced(script: Script, cut: int | None, *records: Record) -> None:
    """Sync records of one partition, as many as each batch has."""
    size = cut or len(records)
    for start in range(0, len(records), size):
        script.send(*records[start : start + size])
        script.sync()


def values(script: Script) -> list[tuple[int, Any]]:
    rows = script.rows("shop", "n")
    assert rows is not None
    return sorted(((a, v) for a, v in rows.elements()), key=str)


@pytest.mark.parametrize("kind", TWICE)
def test_a_row_of_a_snapshot_is_found_by_its_values(script: Script, cut: int | None, kind: str) -> None:
    printed, exact = TWICE[kind]
    script.send(created(kind))
    synced(
        script,
        cut,
        change("r", 8, 1, printed, mark="true"),
        change("r", 8, 2, printed, mark="true"),
        change("r", 8, 3, None, mark="true"),
        change("d", 20, 1, exact),
        change("u", 30, 2, None, exact),
    )
    assert script.states_of("shop", "n") == ["ok"]
    assert values(script) == [(2, None), (3, None)]


def test_of_several_rows_of_one_value_the_equal_one_goes(script: Script, cut: int | None) -> None:
    script.send(created("float"))
    other = 1.2345699071884155
    synced(
        script,
        cut,
        change("r", 8, 1, FLOAT[0], mark="true"),
        change("c", 20, 1, FLOAT[1]),
        change("c", 30, 1, other),
        change("d", 40, 1, other),
        change("d", 50, 1, FLOAT[1]),
    )
    assert script.states_of("shop", "n") == ["ok"]
    ((_, left),) = values(script)
    assert left == pytest.approx(FLOAT[0], rel=1e-7)


@pytest.mark.parametrize("removal", [change("d", 30, 2, 7), change("u", 30, 2, 8, 7)], ids=["delete", "update"])
def test_a_removed_row_that_is_not_there_parks_the_table(script: Script, cut: int | None, removal: Record) -> None:
    script.send(created("int"))
    synced(script, cut, change("c", 10, 1, 7), change("c", 20, 2, 6), removal, change("c", 40, 2, 7))
    (state,) = script.states.values()
    assert (state.state, state.code) == ("parked", "apply.row_not_found")
    assert "a deleted row was not found" in state.reason
    assert script.rows("shop", "n") in (None, Counter([(1, 7)]), Counter([(1, 7), (2, 6)]))


@pytest.mark.parametrize(
    ("removal", "left"), [(change("d", 30, 1, 7), []), (change("u", 30, 1, 8, 7), [(1, 8)])], ids=["delete", "update"]
)
def test_a_removal_waits_for_a_row_that_lies_in_the_quarantine(
    script: Script, cut: int | None, removal: Record, left: list[tuple[int, int]]
) -> None:
    script.policy = {**script.policy, "quarantine_limit": 1}
    script.send(created("int"))
    synced(script, cut, change("c", 10, 2, 7), change("c", 20, 1, "no number"), removal)
    assert script.states_of("shop", "n") == ["ok"] and values(script) == [*left, (2, 7)]
    assert [entry.code for entry in script.open_records()] != []
    script.sync(decision=repair((TOPIC_OF_ROWS, 0, 1, change("c", 20, 1, 7))))
    assert script.states_of("shop", "n") == ["ok"] and values(script) == [*left, (2, 7)]
    assert script.open_records() == [] and [state.notes for state in script.states.values()] == [[]]


UNREAD = cut_off(change("c", 20, 1, 7))
UNFIT = change("c", 20, 1, "no number")


@pytest.mark.parametrize("broken", [UNREAD, UNFIT], ids=["unread", "unfit"])
def test_a_removal_of_a_row_that_an_operator_discards_waits_on(script: Script, cut: int | None, broken: Record) -> None:
    """The row that it names is the one that the table was to go on without; another one's parks the table."""
    script.policy = {**script.policy, "quarantine_limit": 1}
    script.send(created("int"))
    synced(script, cut, change("c", 10, 2, 7), broken, change("d", 30, 1, 7))
    assert script.states_of("shop", "n") == ["ok"] and values(script) == [(2, 7)]
    script.sync(decision=Decision(DecisionAction.DISCARD, [[TOPIC_OF_ROWS, 0, 1]]))
    synced(script, cut, change("c", 40, 1, 7))
    (state,) = script.states.values()
    assert (state.state, script.open_records()) == ("ok", []) and values(script) == [(1, 7), (2, 7)]
    assert "1 deleted rows were not found" in " ".join(state.notes)
    synced(script, cut, change("d", 50, 3, 9))
    (state,) = script.states.values()
    assert (state.state, state.code) == ("parked", "apply.row_not_found")


def test_a_removal_of_another_row_parks_the_table_once_the_quarantine_has_none(script: Script) -> None:
    script.policy = {**script.policy, "quarantine_limit": 1}
    script.send(created("int"))
    synced(script, None, change("c", 10, 2, 7), change("c", 20, 1, "no number"), change("d", 30, 3, 9))
    assert script.states_of("shop", "n") == ["ok"]
    script.sync(decision=repair((TOPIC_OF_ROWS, 0, 1, change("c", 20, 1, 7))))
    (state,) = script.states.values()
    assert (state.state, state.code) == ("parked", "apply.row_not_found")


@pytest.mark.parametrize("late", ["c", "r"])
def test_a_removal_waits_for_a_partition_that_is_read_less_far(script: Script, late: str) -> None:
    mark = "true" if late == "r" else None
    script.send(created("int"), change("r", 8, 9, 9, mark="true", partition=1), change("r", 8, 8, 8, mark="true"))
    script.sync()
    script.held = {(TOPIC_OF_ROWS, 1)}
    script.send(change(late, 8 if mark else 20, 1, 7, mark=mark, partition=1), change("d", 30, 1, 7))
    script.sync()
    (state,) = script.states.values()
    assert state.state == "ok"
    assert "1 deleted rows were not found yet" in " ".join(state.notes)

    script.send(change("c", 40, 1, 7))  # another row with these values: the removal does not mean it
    script.sync()
    assert values(script) == [(1, 7), (8, 8), (9, 9)]
    script.held = set()
    script.send(change("c", 50, 2, 7, partition=1))
    script.sync()
    assert script.states_of("shop", "n") == ["ok"]
    assert values(script) == [(1, 7), (2, 7), (8, 8), (9, 9)]
    assert [state.notes for state in script.states.values()] == [[]]


def test_a_removal_parks_once_no_partition_can_bring_its_row(script: Script) -> None:
    script.send(created("int"), change("c", 10, 9, 9, partition=1))
    script.sync()
    script.send(change("d", 30, 1, 7))
    script.sync()
    assert script.states_of("shop", "n") == ["ok"]
    script.send(change("c", 50, 2, 7, partition=1))
    script.sync()
    assert script.states_of("shop", "n") == ["parked"]


@pytest.mark.parametrize("restart", [2, 3, 4])
def test_changes_that_are_sent_again_after_a_restart_do_not_park(script: Script, cut: int | None, restart: int) -> None:
    script.send(created("int"))
    first = [
        change("c", 10, 1, 7),
        change("c", 20, 2, 7),
        change("d", 30, 1, 7),
        change("u", 40, 2, 8, 7),
        change("d", 50, 2, 8),
    ]
    synced(script, cut, *first[:4], *first[4 - restart :], change("c", 60, 3, 3))
    assert script.states_of("shop", "n") == ["ok"]
    assert values(script) == [(3, 3)]


def test_json_texts_of_other_values_are_other_rows(script: Script) -> None:
    script.send(created("json"))
    texts = ["[1, 2]", "[2, 1]", '{"a": 1}', '{"a": "1"}', "1", '"1"', "true", "null", '{"a": 1, "b": 2}', "[]", "{}"]
    script.send(*(change("r", 8, number, text, mark="true") for number, text in enumerate(texts)))
    script.sync()
    script.send(*(change("d", 20 + number, number, json.dumps(json.loads(text))) for number, text in enumerate(texts)))
    script.sync()
    assert script.rows("shop", "n") == Counter()


@pytest.mark.sampled
@pytest.mark.parametrize("seed", [*range(6 * TIMES), 388])
def test_equal_rows_of_partitions_that_are_read_in_turns_are_counted(script: Script, seed: int) -> None:
    """Removals are read before the rows that they take, and later equal rows are not those."""
    rnd = random.Random(seed)
    count: Counter[tuple[int, int]] = Counter()
    sent: list[list[Record]] = [[], [], []]
    for number in range(24):
        row = (1, rnd.randint(0, 1))
        gone = count[row] > 0 and rnd.random() < 0.5
        count[row] += -1 if gone else 1
        partition = rnd.randint(0, 2)
        sent[partition].append(change("d" if gone else "c", 10 * (number + 1), *row, partition=partition))
    script.send(created("int"))
    while any(sent):
        for records in sent:
            size = rnd.randint(0, 5)
            script.send(*records[:size])
            del records[:size]
        script.sync()
    assert script.states_of("shop", "n") == ["ok"], script.states
    assert script.rows("shop", "n") == +count
