# SPDX-License-Identifier: Apache-2.0
"""A change that waits for a decision is not carried out because its policy becomes ``fail``."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import DataError
from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)


def insert(number: int, pos: int, table: str = "t") -> Record:
    return row("c", table, pos, {"id": number, "v": number}, key=KEY)


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return tables t and u with one row each."""
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "u": (COLUMNS, KEY)}), insert(1, 110), insert(1, 120, "u"))
    script.sync()
    return script


def demand_refused(script: Script, name: str = "t") -> None:
    before = script.rows("shop", name)
    with pytest.raises(DataError) as raised:
        script.sync()
    assert raised.value.code == "apply.change_refused"
    assert script.rows("shop", name) == before


@pytest.mark.sampled
@pytest.mark.parametrize("more", [True, False])
@pytest.mark.parametrize(
    ("policy", "record"),
    [
        ("on_truncate", ddl("TRUNCATE TABLE t", 200, table="t")),
        ("on_truncate", row("t", "t", 200, None)),
        ("on_drop_table", ddl("DROP TABLE t", 200, table="t")),
        ("on_drop_column", ddl("ALTER TABLE t DROP COLUMN v", 200, table="t")),
        ("on_rename_column", ddl("ALTER TABLE t RENAME COLUMN v TO w", 200, table="t")),
        ("on_add_column", ddl("ALTER TABLE t ADD COLUMN w INT", 200, table="t")),
        ("on_convert_column", ddl("ALTER TABLE t MODIFY v SMALLINT", 200, table="t")),
    ],
    ids=["truncate", "truncate-row", "drop-table", "drop-column", "rename-column", "add-column", "convert-column"],
)
def test_a_change_that_waits_is_refused_once_its_policy_is_fail(
    script: Script, policy: str, record: Record, more: bool
) -> None:
    script.tables = {"shop.t": {policy: "ask"}}
    script.send(record)
    script.sync()
    assert [item.policy for item in script.waiting("t")] == [policy]
    script.tables = {"shop.t": {policy: "fail"}}
    if more:
        script.send(insert(2, 220, "u"))
    demand_refused(script)
    assert [item.policy for item in script.waiting("t")] == [policy]


@pytest.mark.parametrize("policy", ["on_truncate", "on_drop_column"])
def test_a_change_that_waits_is_refused_under_another_name(script: Script, policy: str) -> None:
    statement = {"on_truncate": "TRUNCATE TABLE t", "on_drop_column": "ALTER TABLE t DROP COLUMN v"}[policy]
    script.tables = {"shop.t": {policy: "ask"}}
    script.send(ddl(statement, 200, table="t"), ddl("RENAME TABLE t TO t2", 210, table="t"))
    script.sync()
    assert [item.policy for item in script.waiting("t")] == [policy]
    script.tables = {"shop.t": {policy: "fail"}}
    demand_refused(script)
    assert [item.policy for item in script.waiting("t")] == [policy]


def test_a_change_that_was_refused_while_it_waited_is_decided_by_another_value(script: Script) -> None:
    script.tables = {"shop.t": {"on_truncate": "ask"}}
    script.send(row("t", "t", 200, None), insert(2, 210))
    script.sync()
    script.tables = {"shop.t": {"on_truncate": "fail"}}
    demand_refused(script)
    script.tables = {"shop.t": {"on_truncate": "ignore"}}
    script.sync()
    script.tables = {"shop.t": {"on_truncate": "fail"}}
    script.sync()
    assert script.waiting("t") == []
