# SPDX-License-Identifier: Apache-2.0
"""Rows of a table without CREATE TABLE: ``on_missing_create`` says whether their own description counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from tests.histories import canal_rows as canal
from tests.histories.canal_columns import canal_row
from tests.histories.debezium_records import ddl, row
from tests.histories.described_tables import described
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

ONE, TWO = Counter({(1, 1): 1}), Counter({(1, 1): 1, (2, 2): 1})
CREATE = "CREATE TABLE n (id BIGINT PRIMARY KEY, v BIGINT)"


def script_of(log: Log, lake: Path, value: str, format: str = "debezium-json") -> Script:
    return Script(log, lake / value, format=format, schema_topic=None, policy={"on_missing_create": value})


@pytest.mark.parametrize("together", [True, False])
def test_a_table_that_only_rows_show_waits_until_their_description_is_approved(
    log: Log, lake: Path, together: bool
) -> None:
    parks, infers = (script_of(log, lake, value) for value in ("park", "infer"))
    parks.send(described(100, 1, 0))
    if not together:
        parks.sync()
    parks.send(described(100, 2, 0))
    for _ in range(2):
        parks.sync()
        ((state),) = parks.states.values()
        assert (state.state, state.code) == ("parked", "apply.approval_required")
        assert "on_missing_create is park: rows without CREATE TABLE" in state.reason
        assert "tables.<database.table>.create" in state.reason
        assert parks.rows("shop", "n") is None
    parks.decide("n", Answer.APPLY)
    infers.sync()
    assert parks.rows("shop", "n") == infers.rows("shop", "n") == TWO
    parks.send(described(100, 2, 0), described(101, 3, 0))
    parks.sync()
    infers.sync()
    assert parks.waiting("n") == []
    assert parks.rows("shop", "n") == infers.rows("shop", "n")


@pytest.mark.parametrize("value", ["park", "fail"])
def test_a_stated_create_decides_about_a_table_that_only_rows_show(log: Log, lake: Path, value: str) -> None:
    script = script_of(log, lake, value)
    script.send(described(100, 1, 0))
    if value == "park":
        script.sync()
    else:
        demand_refused(script)
    script.tables = {"shop.n": {"create": CREATE}}
    script.sync()
    assert script.rows("shop", "n") == ONE


def demand_refused(script: Script) -> None:
    for _ in range(2):
        with pytest.raises(
            DataError, match="rows without CREATE TABLE of a table whose on_missing_create is fail"
        ) as e:
            script.sync()
        assert e.value.code == "apply.change_refused"
        assert script.rows("shop", "n") is None


@pytest.mark.parametrize("value", ["park", "fail"])
def test_another_value_of_the_policy_decides(log: Log, lake: Path, value: str) -> None:
    script = script_of(log, lake, value)
    script.send(described(100, 1, 0))
    if value == "park":
        script.sync()
    else:
        demand_refused(script)
    script.policy = {"on_missing_create": "infer"}
    script.sync()
    assert script.rows("shop", "n") == ONE
    script.policy = {"on_missing_create": value}
    script.send(described(101, 2, 0))
    script.sync()  # a table that a batch took is not asked about, or refused, again
    assert script.rows("shop", "n") == Counter({(2, 2): 1})  # a new snapshot


def test_a_create_that_comes_later_ends_the_wait(log: Log, lake: Path) -> None:
    """DDL among the rows may be on another partition, so that a later batch reads it."""
    script = script_of(log, lake, "park", "canal-json")
    script.send(canal_row(10, "INSERT", {"id": 1, "v": 1}))
    script.sync()
    assert script.states_of("shop", "t") == ["parked"]
    script.send(canal.ddl(0, "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)", partition=1))
    script.sync()
    assert script.rows("shop", "t") == ONE
    assert sorted(script.states_of("shop", "t")) == ["dropped", "ok"]


def test_fail_refuses_where_rows_would_be_parked_for_a_create_that_never_came(log: Log, lake: Path) -> None:
    """With a schema topic nothing is inferred: the CREATE may still come, so the rows wait first."""
    script = Script(log, lake, policy={"on_missing_create": "fail", "ddl_grace_seconds": 0})
    script.send(_insert(1, 110))
    script.sync()
    assert script.states_of("shop", "n") == ["waiting"]
    demand_refused(script)
    script.tables = {"shop.n": {"create": CREATE}}
    script.sync()
    assert script.rows("shop", "n") == ONE


def test_a_create_in_time_is_not_refused(log: Log, lake: Path) -> None:
    script = Script(log, lake, policy={"on_missing_create": "fail"})
    script.send(_insert(1, 110))
    script.sync()
    script.send(ddl("CREATE TABLE n (id INT PRIMARY KEY, v INT)", 100, table="n"))
    script.sync()
    assert script.rows("shop", "n") == ONE


def _insert(number: int, pos: int) -> Record:
    return row("c", "n", pos, {"id": number, "v": number}, key=("id",))


def _older(script: Script) -> None:
    """Send and sync a row of another partition that is older than the one that made the table known."""
    older = canal_row(10, "INSERT", {"id": 2, "v": 2})
    script.send(replace(older, partition=1))
    script.sync()


@pytest.mark.parametrize("value", ["park", "fail"])
def test_an_older_row_of_a_table_that_a_batch_took_changes_nothing_about_that(log: Log, lake: Path, value: str) -> None:
    script = script_of(log, lake, "infer", "canal-json")
    script.send(canal_row(2000, "INSERT", {"id": 1, "v": 1}))
    script.sync()
    script.policy = {"on_missing_create": value}
    _older(script)
    assert script.rows("shop", "t") == TWO
    assert script.waiting("t") == []


def test_an_older_row_of_a_table_that_waits_lets_it_wait_on(log: Log, lake: Path) -> None:
    script = script_of(log, lake, "park", "canal-json")
    script.send(canal_row(2000, "INSERT", {"id": 1, "v": 1}))
    script.sync()
    _older(script)
    assert script.rows("shop", "t") is None
    while script.waiting("t"):
        script.decide("t", Answer.APPLY)
    assert script.rows("shop", "t") == TWO


@pytest.mark.parametrize("value", ["ask", "fail"])
@pytest.mark.parametrize("late", ["row", "statement"])
def test_a_create_that_comes_after_rows_made_its_table_known_is_no_new_table(
    log: Log, lake: Path, value: str, late: str
) -> None:
    script = script_of(log, lake, "infer", "canal-json")
    script.send(canal.ddl(0, "CREATE TABLE shop.u (id INT PRIMARY KEY)"), canal_row(2000, "INSERT", {"id": 1, "v": 1}))
    script.sync()
    script.policy = {"on_create_table": value}
    if late == "statement":
        script.send(canal.ddl(5, "CREATE TABLE shop.t (id INT PRIMARY KEY, v INT)", partition=1))
    _older(script)
    assert script.waiting("t") == []
    assert script.rows("shop", "t") == TWO
