# SPDX-License-Identifier: Apache-2.0
"""Columns that the tool leaves out of its rows: statements name them, no row has them."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

CREATE = "CREATE TABLE shop.t (id int NOT NULL, ssn varchar(11) NOT NULL, v varchar(20), PRIMARY KEY (id))"


def put(pos: int, **image: Any) -> Record:
    """Return an insert, or a change of the row with the same id."""
    return row("c" if pos % 20 else "u", "t", pos, image, before=None if pos % 20 else image, key=("id",), time=pos)


def statement(text: str, pos: int) -> Record:
    return ddl(text, pos, time=pos)


def synced(log: Log, lake: Path, records: list[Record], *cuts: int, patterns: Any = "ssn") -> Script:
    """Return a pipeline that read records in batches."""
    rule = {} if patterns is None else {"shop.t": {"exclude_columns": patterns}}
    script = Script(log, lake, tables=rule)
    for start, end in pairwise([0, *cuts, len(records)]):
        script.send(*records[start:end])
        script.sync()
    return script


def table(script: Script) -> list[dict[str, Any]]:
    """Return the rows of the table, which is as it should be."""
    assert script.states_of("shop", "t") == ["ok"], script.states
    rows = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda one: int(one["id"]))


ROWS = [put(21, id=1, v="a"), put(31, id=2, v="b")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("patterns", ["ssn", ["SSN"], "s*", ["x", "ss?"]])
@pytest.mark.parametrize("cuts", [(), (1,), (1, 2)])
def test_the_table_does_not_have_them(log: Log, lake: Path, patterns: Any, cuts: tuple[int, ...]) -> None:
    script = synced(log, lake, [statement(CREATE, 4), *ROWS], *cuts, patterns=patterns)
    assert table(script) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


@pytest.mark.parametrize("cuts", [(), (1,), (1, 2)])
def test_a_table_that_waits_says_which_columns_no_row_has(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    script = synced(log, lake, [statement(CREATE, 4), *ROWS], *cuts, patterns=None)
    (state,) = script.states.values()
    assert state.state == "waiting"
    for text in ("no row has the columns ssn", "column.exclude.list", "exclude_columns"):
        assert text in str(state.reason)
    script.tables = {"shop.t": {"exclude_columns": ["ssn"]}}
    script.sync()
    assert table(script) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


STATEMENTS = {
    "added": ("ALTER TABLE shop.t ADD COLUMN ssn2 varchar(9) NOT NULL DEFAULT 'x'", {}),
    "changed": ("ALTER TABLE shop.t MODIFY ssn text NOT NULL", {}),
    "renamed": ("ALTER TABLE shop.t RENAME COLUMN ssn TO ssn9", {}),
    "changed_and_renamed": ("ALTER TABLE shop.t CHANGE ssn ssn3 int", {}),
    "dropped": ("ALTER TABLE shop.t DROP COLUMN ssn", {}),
    "indexed": ("ALTER TABLE shop.t ADD INDEX (ssn)", {}),
    "unique": ("ALTER TABLE shop.t ADD UNIQUE KEY u (ssn)", {}),
    "with_another": ("ALTER TABLE shop.t ADD COLUMN w int NOT NULL DEFAULT 3, DROP COLUMN ssn", {"w": 3}),
    "behind_it": ("ALTER TABLE shop.t ADD COLUMN w int NOT NULL DEFAULT 3 AFTER ssn", {"w": 3}),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cuts", [(), (2,), (2, 3)])
@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_about_them_are_followed(log: Log, lake: Path, name: str, cuts: tuple[int, ...]) -> None:
    text, more = STATEMENTS[name]
    records = [statement(CREATE, 4), ROWS[0], statement(text, 25), put(31, id=2, v="b", **more)]
    script = synced(log, lake, records, *cuts, patterns="ssn*")
    assert table(script) == [{"id": 1, "v": "a", **more}, {"id": 2, "v": "b", **more}]


def test_a_column_that_comes_into_the_rows_by_its_new_name_has_no_older_values(log: Log, lake: Path) -> None:
    records = [
        statement(CREATE, 4), ROWS[0], statement("ALTER TABLE shop.t RENAME COLUMN ssn TO code", 25),
        put(31, id=2, code="c", v="b"),
    ]  # fmt: skip
    script = synced(log, lake, records)
    (state,) = script.states.values()
    assert state.state == "parked" and "code" in str(state.reason) and "needs rebuild" in str(state.reason)
    script.send(statement("TRUNCATE TABLE shop.t", 40), put(51, id=3, code="d", v="c"))
    script.sync()
    assert table(script) == [{"id": 3, "code": "d", "v": "c"}]


@pytest.mark.parametrize(
    "create", [CREATE.replace("KEY (id)", "KEY (id, ssn)"), CREATE.replace("PRIMARY KEY (id)", "PRIMARY KEY (ssn)")]
)
def test_a_key_column_cannot_be_left_out(log: Log, lake: Path, create: str) -> None:
    script = synced(log, lake, [statement(create, 4), *ROWS])
    (state,) = script.states.values()
    assert state.state == "parked" and "the key has the column ssn" in str(state.reason)


def test_a_key_that_takes_one_in_parks_the_table(log: Log, lake: Path) -> None:
    text = "ALTER TABLE shop.t DROP PRIMARY KEY, ADD PRIMARY KEY (id, ssn)"
    script = synced(log, lake, [statement(CREATE, 4), ROWS[0], statement(text, 25), ROWS[1]], 2)
    (state,) = script.states.values()
    assert state.state == "parked" and "exclude_columns" in str(state.reason)


def test_a_generated_column_over_one_parks_the_table(log: Log, lake: Path) -> None:
    text = "ALTER TABLE shop.t ADD COLUMN n int GENERATED ALWAYS AS (k + 1) STORED"
    create = CREATE.replace("ssn varchar(11)", "k int")
    script = synced(log, lake, [statement(create, 4), ROWS[0], statement(text, 25)], patterns="k")
    (state,) = script.states.values()
    assert state.state == "parked" and "exclude_columns" in str(state.reason)


def test_rows_that_have_one_all_the_same_leave_it_out(log: Log, lake: Path) -> None:
    records = [statement(CREATE, 4), put(21, id=1, ssn="1", v="a"), ROWS[1]]
    assert table(synced(log, lake, records, 2)) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


def test_a_table_that_had_it_loses_it(log: Log, lake: Path) -> None:
    script = synced(log, lake, [statement(CREATE, 4), put(21, id=1, ssn="1", v="a")], patterns=None)
    assert table(script) == [{"id": 1, "ssn": "1", "v": "a"}]
    script.send(ROWS[1])
    script.sync()
    assert script.states_of("shop", "t") == ["waiting"]
    script.tables = {"shop.t": {"exclude_columns": ["ssn"]}}
    script.sync()
    assert table(script) == [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}]


def test_the_rule_is_of_the_name_that_a_table_has(log: Log, lake: Path) -> None:
    create = CREATE.replace("shop.t", "shop._t_gho")
    records = [
        statement(CREATE, 4), ROWS[0], statement(create, 25),
        row("c", "_t_gho", 31, {"id": 1, "ssn": "1", "v": "a"}, key=("id",), time=31),
        statement("RENAME TABLE shop.t TO shop._t_del, shop._t_gho TO shop.t", 40), put(51, id=2, v="b"),
    ]  # fmt: skip
    script = synced(log, lake, records, 3)
    assert script.rows("shop", "t") == {(1, "a"): 1, (2, "b"): 1}


def canal(op: str, sent: int, rows: list[dict[str, Any]]) -> Record:
    types = {"id": "int", "ssn": "varchar(11)", "v": "varchar(20)"}
    message = {
        "data": rows, "database": "shop", "table": "t", "type": op, "isDdl": False, "es": sent, "ts": sent, "id": sent,
        "pkNames": ["id"], "old": None, "sql": "", "sqlType": dict.fromkeys(rows[0], 12),
        "mysqlType": {name: types[name] for name in rows[0]},
    }  # fmt: skip
    return Record("canal", 0, sent, None, json.dumps(message).encode())


def test_flat_json_of_canal(log: Log, lake: Path) -> None:
    create = {
        "data": None, "database": "shop", "table": "t", "type": "CREATE", "isDdl": True, "es": 1000, "ts": 1001,
        "id": 1, "pkNames": None, "old": None, "sql": CREATE, "sqlType": None, "mysqlType": None,
    }  # fmt: skip
    script = Script(log, lake, "canal-json", None)
    script.send(
        Record("canal", 0, 1001, None, json.dumps(create).encode()), canal("INSERT", 2000, [{"id": "1", "v": "a"}])
    )
    script.sync()
    (state,) = script.states.values()
    assert "no row has the columns ssn" in str(state.reason)
    script.tables = {"shop.t": {"exclude_columns": ["ssn"]}}
    script.sync()
    assert table(script) == [{"id": 1, "v": "a"}]


@pytest.mark.parametrize("cuts", [(), (1,)])
def test_a_table_of_which_no_column_is_left_is_parked(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    records = [statement("CREATE TABLE shop.t (id int, v varchar(20))", 4), row("c", "t", 21, {}, time=21)]
    (state,) = synced(log, lake, records, *cuts, patterns="*").states.values()
    assert state.state == "parked"
    assert "exclude_columns or columns.unlogged names all of its columns" in str(state.reason)
    assert not (lake / "shop" / "t" / "_delta_log").exists()
