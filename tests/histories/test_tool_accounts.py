# SPDX-License-Identifier: Apache-2.0
"""Accounts of a tool that its statements contradict: columns and lengths that ``tableChanges`` lost."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.histories.debezium_records import TOPIC, ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.scripted import Script

pytestmark = pytest.mark.sampled

COLUMNS = {"id": "int", "a": "int", "b": "int", "z": "varchar"}
KEYS: dict[str, tuple[str, ...]] = {"keyed": ("id",), "keyless": ()}
PARTITION = (f"{TOPIC}.shop.t", 0)


@pytest.fixture(params=KEYS)
def key(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the key of the table."""
    return KEYS[request.param]


@pytest.fixture
def script(log: Log, lake: Path, key: tuple[str, ...]) -> Script:
    """Return a pipeline after a snapshot of two rows."""
    script = Script(log, lake)
    script.send(*snapshot_ddl(10, {"t": (COLUMNS, key)}))
    script.send(*(row("r", "t", 10, image, key=key, mark="true") for image in images(1, 2)))
    script.sync()
    return script


def images(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": number, "a": 10 + number, "b": 20 + number, "z": f"z{number}"} for number in numbers]


def swapped(*numbers: int) -> list[dict[str, Any]]:
    return [{"id": i["id"], "b": i["a"], "a": i["b"], "z": i["z"]} for i in images(*numbers)]


def columns_of(script: Script) -> list[tuple[str, str]]:
    """Return names and types of the table's columns."""
    (state,) = (state for state in script.states.values() if state.table == "t")
    assert state.schema is not None
    return [(column["name"], column["type"]["name"]) for column in state.schema["columns"]]


SWAPS = {
    "rename": "RENAME COLUMN a TO b, RENAME COLUMN b TO a",
    "change": "CHANGE a b INT, CHANGE b a INT",
    "change with types": "CHANGE COLUMN `a` `b` BIGINT NULL, CHANGE COLUMN `b` `a` BIGINT",
}
ACCOUNTS = {
    "a column is lost": {"id": "int", "a": "int", "z": "varchar"},
    "the other is lost": {"id": "int", "b": "int", "z": "varchar"},
    "both are lost": {"id": "int", "z": "varchar"},
    "as before": COLUMNS,
    "right": {"id": "int", "b": "int", "a": "int", "z": "varchar"},
    "a column too many": {"id": "int", "b": "int", "a": "int", "z": "varchar", "y": "int"},
}


@pytest.mark.parametrize("account", ACCOUNTS)
@pytest.mark.parametrize("swap", SWAPS)
@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "batches"])
def test_two_columns_swap_their_names(
    script: Script, key: tuple[str, ...], swap: str, account: str, apart: bool
) -> None:
    """Recorded with Debezium 3.5: the connector dies at the next row, and comes back with a recovery snapshot."""
    script.send(ddl(f"ALTER TABLE t {SWAPS[swap]}", 100, table="t", columns=ACCOUNTS[account], key=key))
    if apart:
        script.sync()
    kind = "bigint" if "BIGINT" in SWAPS[swap] else "int"
    script.send(*snapshot_ddl(110, {"t": ({**ACCOUNTS["right"], "a": kind, "b": kind}, key)}, rows=False))
    if apart:
        script.sync()
    script.send(*(row("c", "t", 200, image, key=key) for image in swapped(3)))
    script.sync()
    expected = [tuple(image[name] for name in ("id", "b", "a", "z")) for image in swapped(1, 2, 3)]
    assert script.rows("shop", "t") == Counter(expected)
    assert script.states_of("shop", "t") == ["ok"]


def test_three_columns_change_places(script: Script, key: tuple[str, ...]) -> None:
    text = "ALTER TABLE t CHANGE a b INT, CHANGE b c INT, CHANGE z a VARCHAR(20)"
    script.send(ddl(text, 100, table="t", columns={"id": "int", "a": "varchar"}, key=key))
    script.send(row("c", "t", 200, {"id": 3, "b": 13, "c": 23, "a": "z3"}, key=key))
    script.sync()
    assert script.rows("shop", "t") == Counter((i, 10 + i, 20 + i, f"z{i}") for i in (1, 2, 3))
    assert columns_of(script) == [("id", "int"), ("b", "int"), ("c", "int"), ("a", "varchar")]


@pytest.mark.parametrize(
    ("text", "account"),
    [
        ("ADD COLUMN w INT", {"id": "int", "a": "int", "w": "int"}),
        ("MODIFY z VARCHAR(30)", {"id": "int", "a": "int", "b": "int"}),
        ("COMMENT = 'x'", {"id": "int"}),
    ],
)
def test_a_column_that_an_account_lacks_stays(script: Script, key: tuple[str, ...], text: str, account: Any) -> None:
    script.send(ddl(f"ALTER TABLE t {text}", 100, table="t", columns=account, key=key))
    script.sync()
    rows = script.rows("shop", "t")
    assert rows is not None
    assert {row[:4] for row in rows} == {(1, 11, 21, "z1"), (2, 12, 22, "z2")}


def _with_type(record: Any, name: str, **stated: Any) -> Any:
    """Return a record of the schema topic whose account states a column otherwise."""
    value = json.loads(record.value)
    for change in value["tableChanges"]:
        for column in change["table"]["columns"]:
            if column["name"] == name:
                column.update(stated)
    return replace(record, value=json.dumps(value).encode())


@pytest.mark.parametrize(
    ("declared", "stated"),
    [
        ("VARCHAR(20)", {"typeName": "CHAR", "length": 1}),
        ("VARCHAR(20)", {"typeName": "VARCHAR", "length": 1}),
        ("CHAR(20) BINARY", {"typeName": "CHAR BINARY", "length": 20}),
        ("CHAR(20) ASCII", {"typeName": "CHAR ASCII", "length": 20}),
        ("VARCHAR(20)", {"typeName": "INT", "length": None}),
        ("VARCHAR(20) NULL", {"optional": False}),
    ],
)
@pytest.mark.parametrize("verb", ["MODIFY z", "CHANGE z z"])
def test_the_type_of_the_statement_counts(
    script: Script, key: tuple[str, ...], verb: str, declared: str, stated: dict[str, Any]
) -> None:
    script.send(row("c", "t", 50, {"id": 3, "a": 1, "b": 1, "z": None}, key=key))
    script.sync()
    changed = ddl(f"ALTER TABLE t {verb} {declared}", 100, table="t", columns=COLUMNS, key=key)
    script.send(_with_type(changed, "z", **stated))
    script.send(row("c", "t", 200, {"id": 4, "a": 1, "b": 1, "z": "twenty characters ok"}, key=key))
    script.sync()
    assert script.states_of("shop", "t") == ["ok"]
    rows = script.rows("shop", "t")
    assert rows is not None
    assert {row[3] for row in rows} == {"z1", "z2", None, "twenty characters ok"}


def test_a_create_table_counts_before_its_account(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    create = "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, z CHAR(20) BINARY)"
    lost = ddl(create, 10, table="t", columns={"id": "int", "a": "int", "z": "varchar"}, key=("id",))
    script.send(
        _with_type(lost, "z", typeName="CHAR", length=1), *(row("c", "t", 20, i, key=("id",)) for i in images(1))
    )
    script.sync()
    assert script.rows("shop", "t") == Counter([(1, 11, 21, "z1")])


@pytest.mark.parametrize(
    ("described", "reason"),
    [
        ({"id": "int", "a": "int", "z": "varchar"}, "'b' is gone"),
        ({"id": "int", "a": "int", "b": "int", "z": "int"}, "'z' has become int"),
    ],
)
def test_a_description_that_would_drop_or_cut_stored_values_parks(
    script: Script, key: tuple[str, ...], described: dict[str, str], reason: str
) -> None:
    script.send(*snapshot_ddl(100, {"t": (described, key)}, rows=False))
    script.sync()
    assert script.states_of("shop", "t") == ["parked"]
    assert script.rows("shop", "t") == Counter((i, 10 + i, 20 + i, f"z{i}") for i in (1, 2))
    assert any(reason in (state.reason or "") for state in script.states.values())


def test_a_description_with_its_rows_needs_no_statement(script: Script, key: tuple[str, ...]) -> None:
    script.send(*snapshot_ddl(100, {"t": ({"id": "int", "a": "int"}, key)}, time=60_000))
    script.send(row("r", "t", 100, {"id": 7, "a": 17}, key=key, mark="last", time=61_000))
    script.sync()
    assert script.rows("shop", "t") == Counter([(7, 17)])
    assert script.states_of("shop", "t") == ["ok"]


def test_the_first_unique_key_of_an_account_is_given_up_with_its_index(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    columns = {"id": "int", "a": "int"}
    script.send(
        ddl("CREATE TABLE t (id INT NOT NULL, a INT, UNIQUE u (id))", 10, table="t", columns=columns, key=("id",)),
        row("c", "t", 20, {"id": 1, "a": 1}, key=("id",)),
        ddl("ALTER TABLE t DROP INDEX u", 30, table="t", columns=columns),
        row("c", "t", 40, {"id": 1, "a": 2}),
        row("c", "t", 50, {"id": 1, "a": 2}),
    )
    script.sync()
    assert script.rows("shop", "t") == Counter({(1, 1): 1, (1, 2): 2})
