# SPDX-License-Identifier: Apache-2.0
"""No commit adds rows under other types than the table states, whoever writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta import by_delta_rs
from spark_jobs.sinks.delta.spark_writer import StageWriter
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.table_commits import TableCommits
from spark_jobs.sinks.delta.task_writer import TaskWriter

STORED = pa.table({"id": pa.array([1], pa.int32()), "b": pa.array([2], pa.int8())})
OTHERS = {
    "boolean": pa.table({"id": pa.array([2], pa.int32()), "b": pa.array([True])}),
    "wider": pa.table({"id": pa.array([2], pa.int64()), "b": pa.array([3], pa.int8())}),
    "text": pa.table({"id": pa.array([2], pa.int32()), "b": pa.array(["3"])}),
    "missing": pa.table({"id": pa.array([2], pa.int32())}),
}


def commit(seq: int) -> Commit:
    return Commit("cdc/shop/t/0", seq, {"app": "cdc/shop/t/0", "seq": seq})


@pytest.fixture
def location(tmp_path: Path) -> Callable[[], DeltaLocation]:
    root = str(tmp_path / "t")
    TaskWriter().commit(DeltaLocation(root, {}), Action("create", commit(1), STORED))
    return lambda: DeltaLocation(root, {})


@pytest.mark.parametrize("rows", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("writer", ["task", "stage", "delta-rs append", "delta-rs merge", "files"])
def test_rows_of_other_types_are_refused_and_the_table_stays(
    location: Callable[[], DeltaLocation], tmp_path: Path, writer: str, rows: pa.Table
) -> None:
    target = location()
    action = Action("merge", commit(2), rows, rows.select(["id"]).slice(0, 0), ["id"])
    with pytest.raises(SinkError) as raised:
        if writer == "task":
            TaskWriter().commit(target, action)
        elif writer == "stage":
            StageWriter(Storage(str(tmp_path), {}), "staged").commit(target, action)
        elif writer == "delta-rs append":
            by_delta_rs.write(target, rows, "append", commit(2))
        elif writer == "delta-rs merge":
            by_delta_rs.merge(target, rows, rows.select(["id"]).slice(0, 0), ["id"], commit(2))
        else:
            files = target.new_files(rows.schema)
            files.add(rows)
            TableCommits(target).commit_files(rows.schema, files.close(), [], "append", commit(2))
    assert raised.value.code == "sink.types_differ"
    assert location().version == 0
    assert location().rows().equals(STORED)


def test_an_overwrite_and_further_columns_go_through(location: Callable[[], DeltaLocation]) -> None:
    TaskWriter().commit(location(), Action("overwrite", commit(2), OTHERS["boolean"]))
    assert location().rows().equals(OTHERS["boolean"])
    more = OTHERS["boolean"].append_column("c", pa.array([None], pa.string()))
    TaskWriter().commit(location(), Action("append", commit(3), more))
    assert location().rows().num_rows == 2
