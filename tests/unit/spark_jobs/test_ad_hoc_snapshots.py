# SPDX-License-Identifier: Apache-2.0
"""Rows of ad hoc snapshots that a table may be rebuilt from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.stored_layout import StoredLayouts
from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import DataError, SinkError
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from spark_jobs.driver.ad_hoc_snapshots import demand_ad_hoc_snapshots, first_row
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.full_snapshots import FullSnapshots
from spark_jobs.driver.table_groups import TableGroups
from spark_jobs.lake.manifest import RowGroup
from tests.unit.spark_jobs.batches import (
    Batch,
    applied,
    history_of,
    job_of,
    position,
    rows,
    statement,
    table_of,
    timelines,
)

LAYOUTS = StoredLayouts(TableRules(), RunPolicy(), "debezium-json", {})
SNAPSHOTS = FullSnapshots(announced=True, full=False, keeps=lambda name: False)

CREATE = statement(100, "CREATE TABLE t (id INT PRIMARY KEY, v INT)")
KEYLESS = statement(100, "CREATE TABLE t (id INT, v INT)")
PARTITION = statement(150, "ALTER TABLE t DROP PARTITION p0")
Rows = Sequence[tuple[str, int]]  # operation and position; a row's source time is its position in microseconds


def first(
    *batches: Rows, state: TableState | None = None, known: Sequence[SchemaChange] = (CREATE,), since: int | None = None
) -> str:
    """Return what a table is rebuilt from after some batches."""
    groups = [rows("t", batch[0][1], batch[-1][1]) for batch in batches]
    contents = {group.file: _content(batch) for group, batch in zip(groups, batches, strict=True)}
    history = history_of([Batch([group]) for group in groups], contents)
    timeline, groups = table_of(known, "t"), _groups(known, history)
    return first_row(timeline, state, groups, history, since)


def _content(batch: Rows) -> pa.Table:
    times = pa.array([pos for _, pos in batch], pa.timestamp("us", "UTC"))
    return pa.table({"op": [op for op, _ in batch], "position": [position(p) for _, p in batch], "source_time": times})


def _groups(known: Sequence[SchemaChange], history: History) -> TableGroups:
    now, _ = timelines(known)
    return TableGroups(now, {}, history)


def test_all_rows_count_that_came_after_the_rows_became_unknown() -> None:
    """Row 160 changed while a chunk was read that leaves its key out: its own record states the row."""
    changes = [("insert", 110), ("update", 160), ("incremental", 170), ("incremental", 180)]
    assert first(changes, known=[CREATE, PARTITION]) == position(160)


def test_rows_of_a_blocking_snapshot_count_and_those_of_the_first_snapshot_do_not() -> None:
    known = [CREATE, PARTITION]
    assert first([("snapshot", 100), ("snapshot", 170), ("insert", 180)], known=known) == position(170)
    with pytest.raises(DataError) as caught:
        first([("snapshot", 100), ("insert", 180)], known=known)
    assert caught.value.code == "rebuild.no_snapshot"


def test_rows_that_the_table_holds_are_no_snapshot_to_rebuild_it_from() -> None:
    state = applied([CREATE], "t", seq=1, pos=180)
    for batch in ([("insert", 110), ("insert", 180)], [("incremental", 110), ("incremental", 180)]):
        with pytest.raises(DataError) as caught:
            first(batch, state=state)
        assert caught.value.code == "rebuild.no_snapshot"


def test_a_snapshot_that_may_have_begun_before_the_rows_became_unknown_is_unclear() -> None:
    batches = [("insert", 110), ("incremental", 140)], [("incremental", 170), ("incremental", 180)]
    with pytest.raises(DataError) as caught:
        first(*batches, known=[CREATE, PARTITION])
    assert caught.value.code == "rebuild.snapshot_unclear" and "--since" in caught.value.hint
    assert first(*batches, known=[CREATE, PARTITION], since=165) == position(170)


def test_a_stated_time_leaves_out_earlier_snapshots() -> None:
    state = applied([CREATE], "t", seq=2, pos=180)
    batches = [("incremental", 120), ("incremental", 140)], [("incremental", 170), ("incremental", 180)]
    assert first(*batches, state=state, since=150) == position(170)
    with pytest.raises(DataError) as caught:
        first(*batches, state=state, since=181)
    assert caught.value.code == "rebuild.no_snapshot"


def test_a_table_without_key_has_no_ad_hoc_snapshot() -> None:
    keyed_later = [KEYLESS, statement(175, "ALTER TABLE t ADD PRIMARY KEY (id)")]
    for known in ([KEYLESS], keyed_later):
        with pytest.raises(DataError) as caught:
            first([("insert", 110), ("incremental", 170)], known=known)
        assert caught.value.code == "rebuild.no_key"
    assert first([("insert", 110), ("incremental", 180)], known=keyed_later, since=176) == position(180)


def test_batches_that_left_the_change_log_matter_only_where_they_are_needed() -> None:
    groups = [rows("t", 110, 140), rows("t", 160, 180)]
    content = _content([("update", 160), ("incremental", 180)])

    def read(asked: Sequence[RowGroup], columns: Sequence[str]) -> pa.Table:
        if any(group.file == groups[0].file for group in asked):
            raise SinkError("retention.log_expired", "it was removed")
        return content.select(list(columns))

    history = history_of([Batch([group]) for group in groups])
    history.rows = read
    known = [CREATE, PARTITION]
    assert first_row(table_of(known, "t"), None, _groups(known, history), history, None) == position(160)
    with pytest.raises(SinkError):
        first_row(table_of([CREATE], "t"), None, _groups([CREATE], history), history, None)


@pytest.mark.parametrize("name", ["dtle-json", "canal-protobuf", "drs-json", "oms-default"])
def test_other_formats_have_no_ad_hoc_snapshots(name: str) -> None:
    with pytest.raises(DataError) as caught:
        demand_ad_hoc_snapshots(replace(job_of(), format=name, format_options={}))
    assert caught.value.code == "rebuild.no_snapshot"
    assert name in str(caught.value)
