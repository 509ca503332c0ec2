# SPDX-License-Identifier: Apache-2.0
"""Check which writer is chosen for a table, from its log alone."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from airflow_provider_cdc.core.sizes import size_text
from spark_jobs.sinks.commits import Choice, Commit
from spark_jobs.sinks.contract import Action, WriterRule
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.sinks.delta.writer_choice import WriterChoice
from spark_jobs.workers.memory import task_memory

MEMORY = 1 << 40
GONE = pa.table({"id": pa.array([], pa.int64())})


def rows(first: int, *, last: int | None = None) -> pa.Table:
    ids = range(first, (first if last is None else last) + 1)
    return pa.table({"id": pa.array(ids, pa.int64()), "v": [f"v{number}" for number in ids]})


def target(folder: Path) -> DeltaLocation:
    """Return a table of four files, each with its own range of keys."""
    for first in range(0, 400, 100):
        write_deltalake(str(folder), rows(first, last=first + 99), mode="append")
    return DeltaLocation(str(folder), {})


def merge(changed: pa.Table) -> Action:
    return Action("merge", Commit("cdc/p/t/0", 1, {}), changed, GONE, ["id"])


def test_files_are_counted_that_may_hold_a_key_and_none_is_opened(tmp_path: Path) -> None:
    table = target(tmp_path / "t")
    for file in (tmp_path / "t").glob("*.parquet"):
        file.write_bytes(b"not to be read")
    one, two = (size for size in (table.file_bytes // 4 + 50, table.file_bytes // 2 + 50))
    rule = WriterChoice(WriterRule(None, one, MEMORY))
    assert rule.choose(table, merge(rows(50))) is None
    near, far = rows(50), pa.concat_tables([rows(50), rows(350)])
    assert rule.choose_by_keys(table, near.select(["id"])).writer == "task"
    choice = rule.choose_by_keys(table, far.select(["id"]))
    assert choice.writer == "spark"
    assert choice.reason.startswith("the merge touches 2 of 4 files with ")
    assert choice.reason.endswith(f"; policy.spark_writer_bytes is {size_text(one)}")
    assert WriterChoice(WriterRule(None, two, MEMORY)).choose_by_keys(table, far.select(["id"])).writer == "task"


def test_a_table_below_the_limit_needs_no_keys(tmp_path: Path) -> None:
    table = target(tmp_path / "t")
    rule = WriterChoice(WriterRule(None, table.file_bytes, MEMORY))
    choice = rule.choose(table, merge(rows(1)))
    assert choice is not None and choice.writer == "task"
    assert choice.reason.startswith("the table has 4 files with ")
    assert not rule.may_choose_spark(table)
    assert WriterChoice(WriterRule(None, table.file_bytes - 1, MEMORY, "no Spark")).may_choose_spark(table)


def test_what_delta_rs_has_to_merge_is_bounded_by_a_tasks_memory(tmp_path: Path) -> None:
    table = target(tmp_path / "t")
    rule = WriterChoice(WriterRule(None, 1 << 40, 4 * table.file_bytes))
    table.table.alter.set_table_properties({"delta.enableChangeDataFeed": "true"})
    featured = DeltaLocation(str(tmp_path / "t"), {})
    assert not featured.takes_files
    choice = rule.choose(featured, merge(rows(1)))
    assert choice is not None and choice.writer == "task"
    choice = WriterChoice(WriterRule(None, 1 << 40, 4 * table.file_bytes - 4)).choose(featured, merge(rows(1)))
    assert choice is not None and choice.writer == "spark"
    assert "delta-rs has to merge all of it, and a task has " in choice.reason


def test_without_a_way_to_the_tables_spark_is_not_chosen(tmp_path: Path) -> None:
    table = target(tmp_path / "t")
    choice = WriterChoice(WriterRule(None, 1, MEMORY, "the batch has no Spark session")).choose(table, merge(rows(1)))
    assert choice is not None and choice.writer == "task"
    assert choice.reason.endswith("is 1 byte, but the batch has no Spark session")


def test_columns_that_are_added_are_the_tasks(tmp_path: Path) -> None:
    table, wider = target(tmp_path / "t"), rows(1).append_column("w", pa.array([1], pa.int64()))
    choice = WriterChoice(WriterRule(None, 1, MEMORY)).choose(table, merge(wider))
    assert choice is not None and (choice.writer, "adds columns" in choice.reason) == ("task", True)


def test_a_settled_writer_stays(tmp_path: Path) -> None:
    stated = Choice("spark", "policy.writer is spark")
    rule = WriterChoice(WriterRule(stated, 1, MEMORY))
    table = target(tmp_path / "t")
    assert rule.choose(table, merge(rows(1))) is stated
    assert not rule.may_choose_spark(table)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1024, "1.0 KiB"),
        (1 << 36, "64.0 GiB"),
        (1 << 52, "4096.0 TiB"),
    ],
)
def test_sizes_are_written_for_people(size: int, text: str) -> None:
    assert size_text(size) == text


def test_a_task_has_some_memory() -> None:
    assert 1 << 26 < task_memory() < 1 << 50
