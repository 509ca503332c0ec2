# SPDX-License-Identifier: Apache-2.0
"""A merge by Spark reads only the files that may hold keys of the batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.spark_writer import SparkWriter, StageWriter
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter

APP = "cdc/tests/t1/0"


def commit(seq: int) -> Commit:
    return Commit(APP, seq, {"app": APP, "seq": seq})


def test_the_spark_writer_reads_no_file_without_keys_of_the_batch(session: Any, tmp_path: Path) -> None:
    location, storage = str(tmp_path / "t"), Storage(str(tmp_path / "stage"))
    key = ["id", "it's `x`"]

    def keyed(*names: str) -> pa.Table:
        ids = pa.array([ord(name[0]) for name in names], pa.int64())
        return pa.table({"id": ids, "it's `x`": list(names), "v": [name + "!" for name in names]})

    TaskWriter().commit(DeltaLocation(location, {}), Action("create", commit(1), keyed("a'", "b\\")))
    TaskWriter().commit(DeltaLocation(location, {}), Action("append", commit(2), keyed("x'", "y")))
    for file in DeltaLocation(location, {}).table.file_uris():
        if pq.read_table(file.removeprefix("file://")).column("id")[0].as_py() == ord("x"):
            Path(file.removeprefix("file://")).write_bytes(b"not to be read")
    merge = Action("merge", commit(3), keyed("a'", "c"), keyed("b\\").select(key), key)
    StageWriter(storage, "_cdc/staged/1").commit(DeltaLocation(location, {}), merge)
    SparkWriter(session, storage).commit_staged("_cdc/staged/1")
    files = {file.removeprefix("file://") for file in DeltaLocation(location, {}).table.file_uris()}
    tables = [pq.read_table(file) for file in files if Path(file).read_bytes() != b"not to be read"]
    assert sorted(pa.concat_tables(tables).column("it's `x`").to_pylist()) == ["a'", "c"]
