# SPDX-License-Identifier: Apache-2.0
"""A commit whose version is due writes a checkpoint of the table's log, and stands whatever becomes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from spark_jobs.sinks.commits import Commit
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.table_commits import TableCommits
from spark_jobs.sinks.delta.task_writer import TaskWriter

NONE = pa.table({"id": pa.array([], pa.int64())})


def _commit(location: Path, seq: int) -> int | None:
    rows = pa.table({"id": pa.array([seq, 0], pa.int64()), "v": [str(seq), str(seq)]})
    verb: Any = "merge" if seq else "create"
    target = DeltaLocation(str(location), {})
    return TaskWriter().commit(target, Action(verb, Commit("a", seq, {"app": "a", "seq": seq}), rows, NONE, ["id"]))


def _checkpoints(location: Path) -> list[int]:
    return sorted(int(file.name[:20]) for file in location.glob("_delta_log/*.checkpoint.parquet"))


def test_each_tenth_commit_writes_one(tmp_path: Path) -> None:
    assert [_commit(tmp_path, seq) for seq in range(26)] == list(range(26))
    assert _checkpoints(tmp_path) == [10, 20]
    assert json.loads((tmp_path / "_delta_log" / "_last_checkpoint").read_text())["version"] == 20
    for number in range(20):  # the log is read from the checkpoint on
        (tmp_path / "_delta_log" / f"{number:020d}.json").unlink()
    target = DeltaLocation(str(tmp_path), {})
    assert (target.version, target.applied("a"), target.rows().num_rows) == (25, 25, 26)


def test_the_tables_property_says_how_often(tmp_path: Path) -> None:
    _commit(tmp_path, 0)
    DeltaTable(str(tmp_path)).alter.set_table_properties({"delta.checkpointInterval": "3"})
    for seq in range(1, 6):
        _commit(tmp_path, seq)
    assert _checkpoints(tmp_path) == [2, 5]  # delta-rs counts from one


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_the_commit_stands_without_it(error: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the store fail, or the process die, between commit and checkpoint."""

    def fails(self: DeltaTable) -> None:
        raise error

    for seq in range(10):
        _commit(tmp_path, seq)
    with monkeypatch.context() as patch:
        patch.setattr(DeltaTable, "create_checkpoint", fails)
        if isinstance(error, OSError):
            assert _commit(tmp_path, 10) == 10
        else:
            with pytest.raises(KeyboardInterrupt):
                _commit(tmp_path, 10)
    assert (DeltaLocation(str(tmp_path), {}).applied("a"), _checkpoints(tmp_path)) == (10, [])
    _commit(tmp_path, 11)
    assert DeltaLocation(str(tmp_path), {}).rows().num_rows == 12


def test_two_that_write_one_leave_a_table_that_opens(tmp_path: Path) -> None:
    for seq in range(10):
        _commit(tmp_path, seq)
    other = DeltaLocation(str(tmp_path), {})
    assert _commit(tmp_path, 10) == 10
    TableCommits(other).write_due_checkpoint(10)
    assert _commit(tmp_path, 11) == 11
    assert DeltaLocation(str(tmp_path), {}).rows().num_rows == 12
