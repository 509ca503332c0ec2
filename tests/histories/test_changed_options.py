# SPDX-License-Identifier: Apache-2.0
"""Options that decide how a table's cells look are changed in a running pipeline, and taken back."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import Rebuild
from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

KEYED = "CREATE TABLE t (id INT PRIMARY KEY, d DATE, b TINYINT(1))"
KEYLESS = "CREATE TABLE t (id INT, d DATE, b TINYINT(1))"


def insert(number: int, pos: int, day: int | None, flag: int, *, key: bool, table: str = "t") -> Record:
    return row("c", table, pos, {"id": number, "d": day, "b": flag}, key=("id",) if key else ())


def contents(script: Script, table: str = "t") -> Counter[tuple[Any, ...]] | None:
    return script.rows("shop", table)


def state_of(script: Script, table: str = "t") -> tuple[str, str]:
    (state,) = [s for s in script.states.values() if s.table == table and s.state != "dropped"]
    return state.state, state.reason


@pytest.fixture(params=[KEYED, KEYLESS], ids=["keyed", "keyless"])
def script(log: Log, lake: Path, request: pytest.FixtureRequest) -> Script:
    """Return a table with a date and flags 2 and 3, and one without such columns."""
    script = Script(log, lake)
    keyed = request.param == KEYED
    script.send(ddl(request.param, 100), ddl("CREATE TABLE u (id INT PRIMARY KEY, v VARCHAR(20))", 105))
    script.send(insert(1, 110, 1, 2, key=keyed), insert(2, 120, None, 3, key=keyed))
    script.send(row("c", "u", 130, {"id": 1, "v": "a"}, key=("id",)))
    script.sync()
    return script


def keyed(script: Script) -> bool:
    return "PRIMARY" in script.schema_changes[0]["statement"]


@pytest.mark.parametrize("more", [True, False], ids=["with a new row", "with nothing new"])
@pytest.mark.parametrize("statement", [True, False], ids=["with DDL", "without DDL"])
def test_flags_become_booleans_and_the_numbers_come_back(script: Script, more: bool, statement: bool) -> None:
    numbers = [(1, date(1970, 1, 2), 2), (2, None, 3)]
    flags = [(number, day, True) for number, day, _ in numbers]
    script.policy = {"tinyint1_as_boolean": True}
    tail: tuple[Any, ...] = ()
    if statement:
        script.send(ddl("ALTER TABLE t ADD COLUMN w INT", 200))
        tail = (None,)
    if more:
        script.send(
            row(
                "c",
                "t",
                210,
                {"id": 3, "d": None, "b": 0, **({"w": None} if statement else {})},
                key=("id",) if keyed(script) else (),
            )
        )
        numbers, flags = [*numbers, (3, None, 0)], [*flags, (3, None, False)]
    result = script.sync()
    assert contents(script) == Counter([(*one, *tail) for one in flags])
    assert result.lossy == {"tinyint_as_boolean": 2}
    script.policy = {}
    script.sync()
    assert contents(script) == Counter([(*one, *tail) for one in numbers])
    assert state_of(script) == ("ok", "")
    script.send(
        row(
            "c",
            "t",
            220,
            {"id": 4, "d": None, "b": 7, **({"w": None} if statement else {})},
            key=("id",) if keyed(script) else (),
        )
    )
    script.sync()
    assert contents(script) == Counter([*((*one, *tail) for one in numbers), (4, None, 7, *tail)])


def test_dates_become_text_and_come_back(script: Script) -> None:
    script.tables = {"shop.t": {"zero_dates": "text"}}
    script.send(insert(3, 200, 2, 0, key=keyed(script)))
    script.sync()
    assert contents(script) == Counter([(1, "1970-01-02", 2), (2, None, 3), (3, "1970-01-03", 0)])
    script.tables = {}
    script.send(insert(4, 210, 3, 0, key=keyed(script)))
    script.sync()
    days = [date(1970, 1, 2), None, date(1970, 1, 3), date(1970, 1, 4)]
    assert contents(script) == Counter(zip((1, 2, 3, 4), days, (2, 3, 0, 0), strict=True))
    assert state_of(script) == ("ok", "")


def test_a_table_without_such_columns_is_not_made_again(script: Script) -> None:
    before = {s.table: s.version for s in script.states.values()}
    script.policy = {"zero_dates": "text", "tinyint1_as_boolean": True}
    result = script.sync()
    after = {s.table: s.version for s in script.states.values()}
    assert after["u"] == before["u"]
    assert [line.table for line in result.tables] == ["t"]
    assert script.sync().tables == []


def test_an_option_of_a_name_counts_when_a_table_takes_the_name(script: Script) -> None:
    script.tables = {"shop.t2": {"zero_dates": "text"}}
    script.send(ddl("RENAME TABLE t TO t2", 200), insert(3, 210, 2, 0, key=keyed(script), table="t2"))
    script.sync()
    assert contents(script, "t2") == Counter([(1, "1970-01-02", 2), (2, None, 3), (3, "1970-01-03", 0)])


def canal(number: int, at: str, table: str = "t", *, second: int = 0) -> Record:
    """Return an INSERT as Canal's flat JSON has it; u has no TIMESTAMP."""
    row = {"id": str(number), "at": at} if table == "t" else {"id": str(number), "v": at}
    types = {"id": "int", "at": "timestamp"} if table == "t" else {"id": "int", "v": "varchar(20)"}
    time = 1_767_600_000_000 + 1000 * second
    members = {
        "data": [row], "database": "shop", "es": time, "id": second + 1, "isDdl": False, "mysqlType": types,
        "old": None, "pkNames": ["id"], "sql": "", "sqlType": {"id": 4, "at": 93, "v": 12}, "table": table,
        "ts": time + 10, "type": "INSERT",
    }  # fmt: skip
    return Record("canal", 0, time + 20, None, json.dumps(members).encode())


@pytest.fixture
def zoned(log: Log, lake: Path) -> Script:
    script = Script(log, lake, "canal-json", None, {"timezone": "+08:00"})
    script.send(canal(1, "2026-01-01 08:00:00"), canal(1, "a", "u", second=1))
    script.sync()
    return script


MIDNIGHT = datetime(2026, 1, 1, tzinfo=UTC)


def test_another_time_zone_never_mixes_instants_and_can_be_taken_back(zoned: Script) -> None:
    assert contents(zoned) == Counter([(1, MIDNIGHT)])
    zoned.options = {}
    zoned.send(canal(2, "2026-01-01 00:00:00", second=2), canal(2, "b", "u", second=3))
    zoned.sync()
    state, reason = state_of(zoned)
    assert state == "parked"
    assert "timezone" in reason and "rebuild" in reason
    assert contents(zoned) == Counter([(1, MIDNIGHT)])
    assert contents(zoned, "u") == Counter([(1, "a"), (2, "b")])
    zoned.options = {"timezone": "+08:00"}
    zoned.sync()
    assert state_of(zoned) == ("ok", "")
    assert contents(zoned) == Counter([(1, MIDNIGHT), (2, datetime(2025, 12, 31, 16, tzinfo=UTC))])


def test_a_rebuild_makes_all_rows_with_the_new_time_zone(zoned: Script) -> None:
    zoned.options = {"timezone": "UTC"}
    zoned.sync()
    zoned.sync(rebuild=Rebuild(["shop.t"]))
    assert state_of(zoned) == ("ok", "")
    assert contents(zoned) == Counter([(1, datetime(2026, 1, 1, 8, tzinfo=UTC))])


def test_the_default_that_is_stated_changes_nothing(log: Log, lake: Path) -> None:
    script = Script(log, lake, "canal-json", None)
    script.send(canal(1, "2026-01-01 00:00:00"))
    script.sync()
    script.options = {"timezone": "UTC"}
    script.send(canal(2, "2026-01-01 00:00:00", second=2))
    script.sync()
    assert contents(script) == Counter([(1, MIDNIGHT), (2, MIDNIGHT)])


def test_a_handling_mode_that_is_corrected_parks_only_tables_with_such_columns(script: Script) -> None:
    script.options = {"time.precision.mode": "isostring"}
    script.send(insert(3, 200, 2, 0, key=keyed(script)), row("c", "u", 210, {"id": 2, "v": "b"}, key=("id",)))
    script.sync()
    assert state_of(script)[0] == "parked"
    assert contents(script, "u") == Counter([(1, "a"), (2, "b")])
    script.options = {}
    script.sync()
    assert state_of(script) == ("ok", "")


def test_rows_of_another_format_are_never_added(zoned: Script) -> None:
    zoned.format, zoned.options = "canal-protobuf", {"timezone": "+08:00"}
    zoned.sync()
    assert state_of(zoned)[0] == "parked"
    zoned.sync(rebuild=Rebuild(["shop.t"]))
    assert state_of(zoned)[0] == "parked"
    zoned.format = "canal-json"
    zoned.sync()
    assert state_of(zoned) == ("ok", "")


def test_a_stated_create_that_is_corrected_makes_the_table_again(log: Log, lake: Path) -> None:
    script = Script(log, lake, tables={"shop.t": {"create": "CREATE TABLE t (id INT PRIMARY KEY, d INT)"}})
    script.send(row("c", "t", 110, {"id": 1, "d": 1}, key=("id",)))
    script.sync()
    assert contents(script) == Counter([(1, 1)])
    script.tables = {"shop.t": {"create": "CREATE TABLE t (id INT PRIMARY KEY, d DATE)"}}
    script.sync()
    assert contents(script) == Counter([(1, date(1970, 1, 2))])


def test_a_column_that_was_excluded_by_mistake_comes_back_with_its_values(script: Script) -> None:
    script.tables = {"shop.t": {"exclude_columns": ["b"]}}
    script.send(row("c", "t", 200, {"id": 3, "d": 2}, key=("id",) if keyed(script) else ()))
    script.sync()
    rows = [(1, date(1970, 1, 2), 2), (2, None, 3)]
    assert contents(script) == Counter([*(one[:2] for one in rows), (3, date(1970, 1, 3))])
    script.tables = {}
    script.send(row("d", "t", 210, None, before={"id": 3, "d": 2, "b": None}, key=("id",) if keyed(script) else ()))
    script.sync()
    (state,) = [s for s in script.states.values() if s.table == "t"]
    if state.state == "ok":
        assert contents(script) == Counter(rows)
    else:  # the row without the column waits for a schema change
        assert contents(script) == Counter([*(one[:2] for one in rows), (3, date(1970, 1, 3))])


def test_a_table_that_is_excluded_and_included_again_comes_back_without_new_rows(script: Script) -> None:
    before = contents(script)
    script.tables = {"exclude": ["shop.t"]}  # type: ignore[dict-item]
    script.sync()
    assert script.states_of("shop", "t") == ["dropped"]
    script.tables = {}
    script.sync()
    assert state_of(script) == ("ok", "")
    assert contents(script) == before
