# SPDX-License-Identifier: Apache-2.0
"""Column names that a converter changed, as ``field.name.adjustment.mode=avro`` does: nothing is mapped on a guess."""

from __future__ import annotations

from pathlib import Path

from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.scripted import Script


def test_a_table_whose_rows_have_other_names_than_its_statements_gets_no_rows(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(ddl("CREATE TABLE n (id INT PRIMARY KEY, `a-b c` INT)", 10))
    script.send(row("c", "n", 20, {"id": 1, "a_b_c": 2}, key=("id",)))
    script.sync()
    ((state),) = script.states.values()
    assert state.state == "waiting"
    assert "[apply.schema_missing] a row has other columns" in state.reason
    assert not script.rows("shop", "n")
