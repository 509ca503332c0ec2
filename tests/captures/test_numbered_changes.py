# SPDX-License-Identifier: Apache-2.0
"""Debezium's captures number the changes of a transaction by table without a hole; one record less is a gap."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_provider_cdc.core.apply.sequence_gaps import NUMBERED_COLUMNS, changes_behind_gaps
from airflow_provider_cdc.core.apply.source_order import source_order
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from tests.captures.in_memory import checkpoints, pipeline, records
from tests.histories.log import Log

# connectors with ``provide.transaction.metadata=true``; with a restart, a failover, or incremental snapshots in between
NUMBERED = ["public-a", "public-a-restart", "public-b", "public-c", "public-failover-my8", "public-incremental-my8"]


@cache
def changes(name: str) -> dict[tuple[str, str], pa.Table]:
    """Return the row changes of each table in source order."""
    wire, parts = open_format("debezium-json"), {}
    for record in records(name):
        part = parts.setdefault((record.topic, record.partition), ([], [], [], []))
        for column, value in zip(part, (record.offset, record.timestamp, record.key, record.value), strict=True):
            column.append(value)
    batches = [wire.decode(Records(*where, *part)).replace_schema_metadata() for where, part in parts.items()]
    rows = pa.Table.from_batches(batches).unify_dictionaries()
    rows = rows.filter(pc.equal(rows.column("kind").cast(pa.string()), "row"))
    rows = rows.take(pa.array(source_order(rows)))
    names = [rows.column(part).cast(pa.string()).to_pylist() for part in ("database", "table")]
    of_table: dict[tuple[str, str], list[int]] = {}
    for number, full in enumerate(zip(*names, strict=True)):
        of_table.setdefault(full, []).append(number)
    return {full: rows.take(pa.array(numbers)) for full, numbers in of_table.items()}


def behind(rows: pa.Table) -> list[int]:
    return changes_behind_gaps(rows, np.arange(rows.num_rows)).tolist()


@pytest.mark.parametrize("name", NUMBERED)
def test_a_capture_has_no_gap(name: str) -> None:
    numbered = 0
    for full, rows in changes(name).items():
        numbered += rows.num_rows - rows.column("transaction_order").null_count
        assert behind(rows) == [], full
    assert numbered > 300


@pytest.mark.every(3)
@pytest.mark.parametrize("name", NUMBERED)
def test_each_change_that_has_another_one_behind_it_in_its_transaction_is_missed(name: str) -> None:
    missed = 0
    for full, rows in changes(name).items():
        numbered = rows.select(NUMBERED_COLUMNS)
        numbers = list(zip(*(column.to_pylist() for column in numbered.columns), strict=True))
        known = set(numbers)
        for transaction, number in dict.fromkeys(numbers):
            if None in (transaction, number) or (transaction, number + 1) not in known:
                continue
            left = [n for n, one in enumerate(numbers) if one != (transaction, number)]
            first = next((one for n in left if None not in (one := numbers[n])), None)
            if number > 1 or first is None or first[0] != transaction:
                missed += 1
                gap = [numbers[at] for at in changes_behind_gaps(numbered, np.array(left))]
                assert (transaction, number + 1) in gap, (full, transaction, number)
    assert missed > 30


@pytest.mark.parametrize("name", ["public-failover-my8", "public-incremental-my8"])
def test_batches_that_are_cut_anywhere_show_no_gap(name: str, log: Log, tmp_path: Path) -> None:
    script = pipeline(name, log, tmp_path)
    (_, ends), *_ = checkpoints(name)
    for part in (0.3, 0.31, 0.6, 0.95, 1):
        result = script.sync({where: int(end * part) for where, end in ends.items()})
        assert result.contradictions == []
    assert [state.reason for state in script.states.values() if state.state == "parked"] == []
