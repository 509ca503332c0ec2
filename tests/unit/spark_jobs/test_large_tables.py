# SPDX-License-Identifier: Apache-2.0
"""Changes too large to be held at once: a task's memory is bounded, and the table is what it would have been."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.errors import UnavailableError
from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter
from tests.sinks.actions import in_pieces, rows
from tests.unit.spark_jobs import large_records
from tests.unit.spark_jobs.large_records import RECORDS, SIZE, text


@pytest.mark.every(2)
@pytest.mark.parametrize("key", ["PRIMARY KEY", ""])
def test_a_process_takes_less_than_a_gigabyte_for_records_of_8_mb(tmp_path: Path, key: str) -> None:
    command = [sys.executable, "-m", large_records.__name__, str(tmp_path), key]
    peak = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)  # held at once: 1 900
    assert peak < 1_000
    table = DeltaLocation(f"{tmp_path}/shop/t", {})
    assert table.version == 2  # one commit for each batch
    actual = table.rows()
    batches = [1] if key else [0, 1]
    assert sorted(actual.column("id").to_pylist()) == sorted([*range(RECORDS)] * len(batches))
    expected = {text(batch, number) for batch in batches for number in range(RECORDS)}
    assert set(actual.column("w").to_pylist()) == expected and all(len(value) == SIZE for value in expected)


def commit(seq: int) -> Commit:
    return Commit("a", seq, {"app": "a", "seq": seq})


def test_files_say_how_many_rows_nulls_and_which_bounds_they_have(tmp_path: Path) -> None:
    names = ["a", "b", None]
    table = pa.table({"id": pa.array([3, 1, 2], pa.int64()), "v": names, "long": ["x" * 33, "y", "z"]})
    TaskWriter().commit(DeltaLocation(str(tmp_path), {}), in_pieces(Action("create", commit(1), table)))
    lines = (tmp_path / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    (statistics,) = [json.loads(actual["add"]["stats"]) for line in lines if "add" in (actual := json.loads(line))]
    assert statistics == {
        "numRecords": 3,
        "minValues": {"id": 1, "v": "a", "long": "x" * 32},
        "maxValues": {"id": 3, "v": "b", "long": "z"},
        "nullCount": {"id": 0, "v": 1, "long": 0},
    }


def test_files_without_rows_of_the_merged_keys_stay(tmp_path: Path) -> None:
    location = str(tmp_path)
    TaskWriter().commit(DeltaLocation(location, {}), Action("create", commit(1), rows((1, "a"), (2, "b"))))
    TaskWriter().commit(DeltaLocation(location, {}), Action("append", commit(2), rows((3, "c"))))
    first, second = DeltaLocation(location, {}).table.file_uris()
    gone = pa.table({"id": pa.array([], pa.int64())})
    TaskWriter().commit(
        DeltaLocation(location, {}), in_pieces(Action("merge", commit(3), rows((3, "C")), gone, ["id"]))
    )
    untouched = set(DeltaLocation(location, {}).table.file_uris()) & {first, second}
    assert len(untouched) == 1
    assert sorted(DeltaLocation(location, {}).rows().column("v").to_pylist()) == ["C", "a", "b"]


def test_a_table_that_somebody_made_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    late = DeltaLocation(str(tmp_path), {})
    TaskWriter().commit(DeltaLocation(str(tmp_path), {}), Action("create", commit(1), rows((1, "a"))))
    with pytest.raises(UnavailableError):
        TaskWriter().commit(late, in_pieces(Action("create", commit(2), rows((2, "b")))))
    assert DeltaLocation(str(tmp_path), {}).rows().to_pylist() == [{"id": 1, "v": "a"}]


@pytest.mark.parametrize("verb", ["append", "merge", "overwrite"])
def test_a_commit_of_somebody_else_meanwhile_is_a_conflict(
    tmp_path: Path, verb: Literal["append", "merge", "overwrite"]
) -> None:
    TaskWriter().commit(DeltaLocation(str(tmp_path), {}), Action("create", commit(1), rows((1, "a"))))
    late = DeltaLocation(str(tmp_path), {})
    TaskWriter().commit(DeltaLocation(str(tmp_path), {}), Action("overwrite", commit(2), rows((1, "b"))))
    gone = pa.table({"id": pa.array([], pa.int64())})
    action = Action(verb, commit(3), rows((1, "c")), gone, ["id"])
    with pytest.raises(UnavailableError) as error:
        TaskWriter().commit(late, in_pieces(action))
    assert error.value.code == "sink.commit_conflict"
    assert DeltaLocation(str(tmp_path), {}).rows().to_pylist() == [{"id": 1, "v": "b"}]


def test_what_was_written_before_a_fault_is_removed(tmp_path: Path) -> None:
    def refuse(count: int) -> None:
        raise MemoryError

    action = in_pieces(Action("create", commit(1), rows((1, "a"))))
    action.typed = refuse
    with pytest.raises(MemoryError):
        TaskWriter().commit(DeltaLocation(str(tmp_path), {}), action)
    assert not list(tmp_path.glob("*.parquet"))
