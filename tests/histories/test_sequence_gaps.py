# SPDX-License-Identifier: Apache-2.0
"""A record of a transaction that never came to Kafka: no later change touches its row, and the table is parked."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from airflow_provider_cdc.core.documents import Result
from tests.histories.debezium_records import TOPIC, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

TABLES = {"k": ({"id": "int", "v": "int"}, ("id",)), "n": ({"id": "int", "v": "int"}, ())}
SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.fixture
def script(log: Log, tmp_path: Path) -> Script:
    """Return a pipeline whose tables have come from a snapshot."""
    log.partitions.update({(f"{TOPIC}.shop.{table}", part): [] for table in TABLES for part in range(2)})
    script = Script(log, tmp_path)
    script.send(*snapshot_ddl(10, TABLES), *(row("r", table, 10, {"id": 0, "v": 0}, mark="true") for table in TABLES))
    script.sync()
    return script


def inserted(table: str, number: int, count: int, *, parts: int = 1, lost: int = 0) -> list[Record]:
    """Return the inserts of a transaction, by turns on the table's partitions.

    :param number: of the transaction; ``lost`` that of the change that never came.
    """
    key = ("id",) if table == "k" else ()
    return [
        row(
            "c",
            table,
            100 * number,
            {"id": 100 * number + order, "v": 1},
            key=key,
            partition=order % parts,
            total_order=order,
            order=order,
            row=order - 1,
            gtid=f"{SERVER}:{number}",
        )
        for order in range(1, count + 1)
        if order != lost
    ]


def gaps(result: Result) -> list[tuple[str, str, str]]:
    return [(one["table"], one["kind"], one["position"]) for one in result.contradictions]


@pytest.mark.parametrize("table", TABLES)
def test_the_table_of_a_record_that_never_came_is_parked(script: Script, table: str) -> None:
    other = next(name for name in TABLES if name != table)
    script.log.partitions = {where: part for where, part in script.log.partitions.items() if where[1] == 0}
    script.send(*inserted(table, 1, 2), *inserted(table, 2, 3, lost=2), *inserted(other, 3, 2), *inserted(other, 4, 3))
    result = script.sync()
    states = {state.table: state for state in script.states.values()}
    assert (states[table].state, states[other].state) == ("parked", "ok")
    assert "apply.contradicted" in states[table].reason
    assert "a change is missing" in states[table].reason
    assert gaps(result) == [(f"shop.{table}", "sequence_gap", "0000.0000000001.00000000000000000200.0000000002")]
    assert result.contradictions[0]["offset"] == 4  # behind the snapshot's row, a transaction, and one change


def test_a_gap_is_counted_where_the_pipeline_says_so(script: Script) -> None:
    script.policy["on_contradiction"] = "count"
    script.log.partitions = {where: part for where, part in script.log.partitions.items() if where[1] == 0}
    script.send(*inserted("k", 1, 1), *inserted("k", 2, 3, lost=1))
    result = script.sync()
    (line,) = [line for line in result.tables if line.table == "k"]
    assert (line.action, line.contradictions) == ("merge", {"sequence_gap": 1})
    assert {state.state for state in script.states.values()} == {"ok"}


def test_a_gap_and_a_row_that_is_missing_are_both_counted(script: Script) -> None:
    script.policy["on_contradiction"] = "count"
    script.log.partitions = {where: part for where, part in script.log.partitions.items() if where[1] == 0}
    script.send(*inserted("n", 1, 3, lost=2), row("d", "n", 300, None, before={"id": 999, "v": 1}))
    (line,) = [line for line in script.sync().tables if line.table == "n"]
    assert line.contradictions == {"sequence_gap": 1, "row_missing": 1}
    assert [state.code for state in script.states.values() if state.table == "n"] == ["apply.row_not_found"]


@pytest.mark.parametrize("table", TABLES)
def test_a_transaction_of_which_a_partition_is_read_less_far_is_no_gap(script: Script, table: str) -> None:
    script.send(*inserted(table, 1, 2, parts=2), *inserted(table, 2, 6, parts=2))
    every = {where: len(part) for where, part in script.log.partitions.items()}
    for read in (0, 1, 4):  # of the second partition
        assert gaps(script.sync({**every, (f"{TOPIC}.shop.{table}", 1): read})) == []
    assert {state.state for state in script.states.values()} == {"ok"}


def test_a_transaction_that_a_batch_cuts_is_no_gap(script: Script) -> None:
    for record in (*inserted("k", 1, 2), *inserted("k", 2, 5)):
        script.send(record)
        assert gaps(script.sync()) == []
    assert {state.state for state in script.states.values()} == {"ok"}


def test_a_change_log_of_before_the_numbers_is_read(script: Script) -> None:
    """Files of older versions lack the column; the table goes back to them with a late row."""
    script.send(*inserted("k", 2, 2))
    script.sync()
    for file in script.root.rglob("_cdc/**/*.parquet"):
        with pq.ParquetFile(file) as old:
            groups = [old.read_row_group(n).drop_columns(["transaction_order"]) for n in range(old.num_row_groups)]
        with pq.ParquetWriter(file, groups[0].schema) as writer:
            for group in groups:
                writer.write_table(group)
    late = row("u", "k", 150, {"id": 0, "v": 7}, before={"id": 0, "v": 0}, key=("id",), partition=1)
    script.send(late, *inserted("k", 3, 3))
    assert gaps(script.sync()) == []
    assert {state.state for state in script.states.values()} == {"ok"}
