# SPDX-License-Identifier: Apache-2.0
"""The first commit of a table is what delta-rs would write, and exactly one of two writers makes it."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from airflow_provider_cdc.core.errors import UnavailableError
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Commit, Owner
from spark_jobs.sinks.contract import Action
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.task_writer import TaskWriter
from spark_jobs.sinks.ownership import owns

COMMIT = Commit("cdc/shop/orders/0", 7, {"app": "cdc/shop/orders/0", "note": 'é "quoted" \n'})
TABLES = {
    "plain types": pa.table({"id": [1, 2], "name": ["a", None]}),
    "a local time": pa.table({"id": [1], "at": pa.array([datetime(2026, 1, 2, 3, 4, 5, 6)], pa.timestamp("us"))}),
    "an instant": pa.table({"at": pa.array([datetime(2026, 1, 2, tzinfo=UTC)], pa.timestamp("us", "UTC"))}),
    "a wide decimal": pa.table({"sum": pa.array([Decimal(2**63)], pa.decimal128(20, 0))}),
    "a vector": pa.table({"v": pa.array([[0.5, 1.5]], pa.list_(pa.float32()))}),
    "names from outside": pa.table({'semi;colon "q" `b` é\n': [1], "%20": [2]}),
    "no rows": pa.table({"id": pa.array([], pa.int64()), "at": pa.array([], pa.timestamp("us"))}),
}


def _create(location: Path, rows: pa.Table) -> int | None:
    return TaskWriter().commit(DeltaLocation(str(location), {}), Action("create", COMMIT, rows))


def _facts(location: Path) -> dict[str, Any]:
    table = DeltaTable(str(location))
    protocol = table.protocol()
    return {
        "rows": pa.table(QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()).to_pylist(),
        "columns": [(field.name, str(field.type), field.nullable) for field in table.schema().fields],
        "versions": (protocol.min_reader_version, protocol.min_writer_version),
        "features": (protocol.reader_features, protocol.writer_features),
        "partitions": table.metadata().partition_columns,
        "version": table.version(),
    }


@pytest.mark.parametrize("name", TABLES)
def test_the_table_is_the_one_that_delta_rs_makes(name: str, tmp_path: Path) -> None:
    """Compare rows, columns, protocol and version with those of a table that delta-rs made."""
    rows = TABLES[name]
    assert _create(tmp_path / "ours", rows) == 0
    write_deltalake(str(tmp_path / "theirs"), rows)
    assert _facts(tmp_path / "ours") == _facts(tmp_path / "theirs")


def test_the_commit_states_the_batch_and_its_facts(tmp_path: Path) -> None:
    """Read the marks by which repeats and other writers' commits are known."""
    _create(tmp_path / "t", TABLES["plain types"])
    location = DeltaLocation(str(tmp_path / "t"), {})
    assert location.applied(COMMIT.app) == 7
    assert location.facts(COMMIT.app) == COMMIT.facts
    assert owns(Owner("cdc/shop/"), location)


def test_delta_rs_commits_behind_it(tmp_path: Path) -> None:
    """Append with delta-rs, checkpoint, and read all of it."""
    _create(tmp_path / "t", TABLES["a local time"])
    table = DeltaTable(str(tmp_path / "t"))
    write_deltalake(table, TABLES["a local time"], mode="append")
    table.create_checkpoint()
    assert len(_facts(tmp_path / "t")["rows"]) == 2


def test_one_of_two_writers_makes_the_table(tmp_path: Path) -> None:
    """Let somebody else make the table between the look at its location and the commit."""
    target = DeltaLocation(str(tmp_path / "t"), {})
    write_deltalake(str(tmp_path / "t"), TABLES["no rows"])
    with pytest.raises(UnavailableError, match="another writer") as caught:
        TaskWriter().commit(target, Action("create", COMMIT, TABLES["plain types"]))
    assert caught.value.code == "sink.commit_conflict"
    assert _facts(tmp_path / "t")["rows"] == []


def test_a_commit_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    """Leave what a process that dies while it writes the commit leaves: a folder with a part of the file."""
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json.0123abcd.part").write_text('{"commitInfo":', encoding="utf-8")
    assert not DeltaLocation(str(tmp_path / "t"), {}).exists
    assert _create(tmp_path / "t", TABLES["plain types"]) == 0
    assert len(_facts(tmp_path / "t")["rows"]) == 2


def test_a_store_that_fails_is_to_be_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the store refuse the commit's file: nothing is visible, and the batch runs again."""

    def refuse(self: Storage, name: str, content: bytes, *, durable: bool) -> bool:
        raise OSError("no answer")

    monkeypatch.setattr(Storage, "create", refuse)
    with pytest.raises(UnavailableError) as caught:
        _create(tmp_path / "t", TABLES["plain types"])
    assert caught.value.code == "sink.write_failed"
    assert not DeltaLocation(str(tmp_path / "t"), {}).exists
