# SPDX-License-Identifier: Apache-2.0
"""A table with ``on_truncate: fail`` or ``on_drop_table: fail`` keeps its rows until somebody decides."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

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
