# SPDX-License-Identifier: Apache-2.0
"""A table with ``on_truncate: fail`` or ``on_drop_table: fail`` keeps its rows until somebody decides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.errors import DataError
from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)
REFUSE = {"on_drop_table": "fail", "on_truncate": "fail"}


def insert(number: int, pos: int, table: str = "t") -> Record:
    return row("c", table, pos, {"id": number, "v": number}, key=KEY)


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return tables t and u with one row each, which refuse what removes all rows."""
    script = Script(log, lake, policy=dict(REFUSE))
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "u": (COLUMNS, KEY)}), insert(1, 110), insert(1, 120, "u"))
    script.sync()
    return script


def refused(script: Script) -> None:
    """Demand that a batch is refused, twice the same, and that no table changed."""
    before = script.rows("shop", "t"), script.rows("shop", "u"), script.seqs[:]
    for _ in range(2):
        with pytest.raises(DataError, match="nothing of this batch was applied") as raised:
            script.sync()
        assert raised.value.code == "apply.change_refused"
    assert (script.rows("shop", "t"), script.rows("shop", "u"), script.seqs) == before


@pytest.mark.parametrize(
    ("decision", "expected"),
    [("apply", Counter({(2, 2): 1})), ("ignore", Counter({(1, 1): 1, (2, 2): 1}))],
)
def test_a_refused_truncate_waits_for_a_decision(script: Script, decision: str, expected: Counter[object]) -> None:
    script.send(ddl("TRUNCATE TABLE t", 200, table="t"), insert(2, 210), insert(2, 220, "u"))
    refused(script)
    script.tables = {"shop.t": {"on_truncate": decision}}
    script.sync()
    assert script.rows("shop", "t") == expected
    assert script.rows("shop", "u") == Counter({(1, 1): 1, (2, 2): 1})


def test_a_truncate_that_a_batch_took_is_not_refused_again(script: Script) -> None:
    """It is sent again, and a late statement makes the table go back to before it."""
    script.send(ddl("TRUNCATE TABLE t", 200, table="t"), insert(2, 210))
    refused(script)
    script.tables = {"shop.t": {"on_truncate": "apply"}}
    script.sync()
    script.tables = {}
    script.send(ddl("TRUNCATE TABLE t", 200, table="t"), insert(3, 230))
    script.send(ddl("ALTER TABLE t MODIFY v BIGINT", 105, table="t"))
    script.sync()
    assert script.rows("shop", "t") == Counter({(2, 2): 1, (3, 3): 1})
    assert script.states_of("shop", "t") == ["ok"]


@pytest.mark.parametrize("as_row", [False, True])
def test_a_truncate_that_was_ignored_stays_so_when_the_key_is_another_one(script: Script, *, as_row: bool) -> None:
    """A late statement makes the table go back to before it, and a rebuild takes it again."""
    script.tables = {"shop.t": {"on_truncate": "ignore"}}
    script.send(row("t", "t", 200, None) if as_row else ddl("TRUNCATE TABLE t", 200, table="t"), insert(2, 210))
    script.sync()
    script.tables = {}
    script.send(insert(3, 230), ddl("ALTER TABLE t MODIFY v BIGINT", 105, table="t"))
    for order in (None, Rebuild(["shop.t"])):
        script.sync(rebuild=order)
        assert script.rows("shop", "t") == Counter({(1, 1): 1, (2, 2): 1, (3, 3): 1})
        assert script.states_of("shop", "t") == ["ok"]


def test_a_truncate_that_came_as_a_row_waits_for_a_decision_once(script: Script) -> None:
    truncate = row("t", "t", 200, None)
    script.send(truncate, insert(2, 210))
    refused(script)
    script.tables = {"shop.t": {"on_truncate": "apply"}}
    script.sync()
    assert script.rows("shop", "t") == Counter({(2, 2): 1})
    script.tables = {}
    script.send(truncate, insert(2, 210), insert(3, 230))
    script.sync()
    assert script.rows("shop", "t") == Counter({(2, 2): 1, (3, 3): 1})


@pytest.mark.parametrize("decision", ["keep", "apply"])
def test_a_refused_drop_waits_for_a_decision(script: Script, decision: str) -> None:
    script.send(ddl("DROP TABLE t", 200, table="t"), insert(2, 220, "u"))
    refused(script)
    script.tables = {"shop.t": {"on_drop_table": decision}}
    script.sync()
    assert script.rows("shop", "t") == (Counter({(1, 1): 1}) if decision == "keep" else Counter())
    assert script.states_of("shop", "t") == ["dropped"]
    assert script.rows("shop", "u") == Counter({(1, 1): 1, (2, 2): 1})


@pytest.mark.parametrize(
    ("policy", "statement", "text"),
    [
        ("on_add_column", "ALTER TABLE t ADD COLUMN w INT", "ADD COLUMN"),
        ("on_widen_column", "ALTER TABLE t MODIFY v BIGINT", "to a wider type"),
        ("on_convert_column", "ALTER TABLE t MODIFY v VARCHAR(20)", "that converts values"),
        ("on_convert_column", "ALTER TABLE t MODIFY v SMALLINT", "that converts values"),
        ("on_convert_column", "ALTER TABLE t MODIFY v INT NOT NULL", "that converts values"),
        ("on_key_change", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)", "PRIMARY KEY"),
        ("on_rename_table", "RENAME TABLE t TO t2", "RENAME TABLE"),
        ("on_create_table", "CREATE TABLE t3 (id INT PRIMARY KEY)", "CREATE TABLE"),
    ],
)
def test_a_refused_kind_of_change_waits_for_a_decision(
    policy: str, statement: str, text: str, log: Log, lake: Path
) -> None:
    refuses, applies = (Script(log, lake / name, policy={policy: name}) for name in ("fail", "apply"))
    refuses.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "u": (COLUMNS, KEY)}), insert(1, 110))
    refuses.sync()  # the tables that a pipeline begins with are not refused
    refuses.send(ddl(statement, 200, table="t"), insert(2, 210, "u"))
    applies.sync()
    refused(refuses)
    with pytest.raises(DataError, match=f"{text} of a table whose {policy} is fail"):
        refuses.sync()
    name = {"on_rename_table": "t2", "on_create_table": "t3"}.get(policy, "t")
    rule = "t" if policy == "on_rename_table" else name  # the name that it had
    refuses.tables = {f"shop.{rule}": {policy: "apply"}}
    refuses.sync()
    refuses.tables = {}
    refuses.send(insert(3, 310, "u"))
    refuses.sync()  # a change that a batch took is not refused again
    assert refuses.rows("shop", name) == applies.rows("shop", name)
    assert refuses.rows("shop", "u") == Counter({(2, 2): 1, (3, 3): 1})


@pytest.mark.parametrize("policy", ["on_add_column", "on_convert_column", "on_key_change", "on_rename_table"])
def test_other_kinds_of_changes_are_not_refused(policy: str, script: Script) -> None:
    script.policy = {policy: "fail"}
    script.send(ddl("ALTER TABLE t MODIFY v BIGINT, ALTER v SET DEFAULT 5", 200, table="t"))
    script.send(ddl("ALTER TABLE t MODIFY v BIGINT FIRST", 205, table="t"), insert(2, 210))
    script.sync()
    assert script.states_of("shop", "t") == ["ok"]


def test_an_old_name_in_a_column_that_stays_is_no_added_column(script: Script) -> None:
    script.policy = {"on_add_column": "fail", "on_rename_column": "keep"}
    script.send(ddl("ALTER TABLE t RENAME COLUMN v TO w", 200, table="t"))
    script.send(row("c", "t", 210, {"id": 2, "w": 2}, key=KEY))
    script.sync()
    assert script.states_of("shop", "t") == ["ok"]


def test_what_a_batch_took_is_not_refused_under_another_name(script: Script) -> None:
    script.policy = {"on_drop_column": "fail"}
    script.tables = {"shop.t": {"on_drop_column": "apply"}}
    script.send(ddl("ALTER TABLE t DROP COLUMN v", 200, table="t"))
    script.sync()
    script.tables = {}
    script.send(ddl("RENAME TABLE t TO t2", 300, table="t"))
    script.sync()
    assert script.rows("shop", "t2") == Counter({(1,): 1})


@pytest.mark.parametrize("excluded", [False, True])
def test_a_rename_is_refused_by_the_rule_of_the_old_name(script: Script, excluded: bool) -> None:
    script.tables = {"shop.t": {"on_rename_table": "fail"}, **({"exclude": ["shop.old"]} if excluded else {})}
    script.send(ddl("RENAME TABLE t TO old", 200, table="t"), ddl("RENAME TABLE u TO u2", 205, table="u"))
    refused(script)
    script.tables = {"shop.u": {"on_rename_table": "fail"}}
    refused(script)
    script.tables = {"shop.old": {"on_rename_table": "fail"}, "shop.u2": {"on_rename_table": "fail"}}
    script.sync()
    assert script.rows("shop", "old") == script.rows("shop", "u2") == Counter({(1, 1): 1})
