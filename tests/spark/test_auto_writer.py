# SPDX-License-Identifier: Apache-2.0
"""``writer: auto`` chooses by what a merge would touch, whatever died in between, and the result says why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.documents import TableLine
from spark_jobs.driver import apply_step
from spark_jobs.sinks.delta.spark_writer import SparkWriter
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.sample import ALL
from tests.unit.spark_jobs.debezium_batches import carry_out, change, statement

FIRST = {"t": [change(10 * i, {"id": i, "n": i}) for i in range(1, 9)]}
SECOND = {
    "t": [
        change(200, {"id": 1, "n": 100}, {"id": 1, "n": 1}),
        change(210, None, {"id": 2, "n": 2}),
        *(change(220 + i, {"id": 10 + i, "n": i}) for i in range(6)),
    ]
}
MERGED = {1: 100, **{i: i for i in range(3, 9)}, **{10 + i: i for i in range(6)}}
TINY, ENOUGH = RunPolicy(spark_writer_bytes=1), RunPolicy(spark_writer_bytes=1 << 20)
SPLIT = {"bucket_rows": 2}
PIECES = {"apply_bytes": 1}  # rows are typed while they are written


class Killed(BaseException):
    """Ends a process at a certain place."""


def content(root: Path) -> dict[int, int]:
    return {row["id"]: row["n"] for row in DeltaLocation(f"{root}/shop/t", {}).rows().to_pylist()}


def said(line: TableLine) -> tuple[str, str, str]:
    return str(line.status), line.action, line.writer


def files(root: Path) -> set[str]:
    """Return the data files at the table's location."""
    return {path.name for path in (root / "shop" / "t").rglob("*.parquet")}


def named(root: Path) -> set[str]:
    """Return the data files that versions of the table have."""
    newest = DeltaLocation(f"{root}/shop/t", {}).version
    assert newest is not None
    return {
        Path(uri).name
        for version in range(newest + 1)
        for uri in DeltaLocation(f"{root}/shop/t", {}, version).table.file_uris()
    }


def staged(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if "staged" in path.parts and path.is_file()]


@pytest.mark.sampled
@pytest.mark.parametrize("split", [{}, PIECES, *[SPLIT] * ALL])
@pytest.mark.parametrize("limit", [1, 1 << 20])
def test_a_merge_is_sparks_where_it_may_touch_more_than_the_limit(
    limit: int, split: dict[str, int], session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = RunPolicy(spark_writer_bytes=limit, **split)
    results = carry_out(tmp_path, [FIRST, SECOND], policy, monkeypatch, session)
    (create,), (merge,) = (result.tables for result in results)
    assert said(create) == ("committed", "create", "task")
    assert "only a merge" in create.writer_reason
    assert said(merge) == ("committed", "merge", "spark" if limit == 1 else "task")
    assert "policy.spark_writer_bytes is " + ("1 byte" if limit == 1 else "1.0 MiB") in merge.writer_reason
    assert ("the merge touches" if limit == 1 else "the table has") in merge.writer_reason
    assert content(tmp_path) == MERGED
    assert [state.version for state in results[-1].states] == [1]
    assert (files(tmp_path), staged(tmp_path)) == (named(tmp_path), [])


def test_only_the_bytes_of_files_that_may_hold_the_keys_count(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = [{"t": [change(1000 * k + i, {"id": 1000 * k + i, "n": 1}) for i in range(9)]} for k in range(1, 6)]
    carry_out(tmp_path, wide, RunPolicy(spark_writer_bytes=1 << 30), monkeypatch)
    sizes = sorted(path.stat().st_size for path in (tmp_path / "shop" / "t").glob("*.parquet"))
    assert len(sizes) > 1
    # less than the table has, more than the files with the newest keys
    policy = RunPolicy(spark_writer_bytes=sum(sizes) - 1)
    newest = {"t": [change(9000, {"id": 5000, "n": 2}, {"id": 5000, "n": 1})]}
    (line,) = carry_out(tmp_path, [*wide, newest], policy, monkeypatch, session)[-1].tables
    assert said(line) == ("committed", "merge", "task")
    assert f"the merge touches 1 of {len(sizes)} files" in line.writer_reason


def test_an_overwrite_is_the_tasks_and_an_append_too(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cleared = {"schema": [statement(200, "TRUNCATE TABLE shop.t")], "t": [change(300, {"id": 7, "n": 7})]}
    *_, result = carry_out(tmp_path / "a", [FIRST, cleared], TINY, monkeypatch, session)
    assert [said(line) for line in result.tables] == [("committed", "overwrite", "task")]
    keyless = {"create": "CREATE TABLE shop.t (id INT, n INT)"}
    *_, result = carry_out(
        tmp_path / "b", [FIRST, {"t": [change(300, {"id": 9, "n": 9})]}], TINY, monkeypatch, session, keyless
    )
    assert [said(line) for line in result.tables] == [("committed", "append", "task")]
    assert all("only a merge" in line.writer_reason for line in result.tables)


@pytest.mark.parametrize("split", [*[{}] * ALL, SPLIT])
def test_a_stated_writer_is_taken_whatever_a_merge_touches(
    split: dict[str, int], session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spark = RunPolicy(writer="spark", **split)
    for line in (r.tables[0] for r in carry_out(tmp_path / "s", [FIRST, SECOND], spark, monkeypatch, session)):
        assert (line.writer, line.writer_reason) == ("spark", "policy.writer is spark")
    assert content(tmp_path / "s") == MERGED
    tiny = RunPolicy(spark_writer_bytes=1, **split)
    *_, result = carry_out(tmp_path / "t", [FIRST, SECOND], tiny, monkeypatch, session, {"writer": "task"})
    (line,) = result.tables
    assert (line.writer, line.writer_reason) == ("task", "tables.shop.t.writer is task")


@pytest.mark.sampled
@pytest.mark.parametrize("split", [{}, PIECES, *[SPLIT] * ALL])
@pytest.mark.parametrize("then", [TINY, ENOUGH])
def test_a_batch_that_died_before_sparks_commit_is_repeated_by_either_writer(
    then: RunPolicy, split: dict[str, int], session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(writer: SparkWriter, folder: str) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(SparkWriter, "commit_staged", dies)
        with pytest.raises(Killed):
            carry_out(tmp_path, [FIRST, SECOND], RunPolicy(spark_writer_bytes=1, **split), patch, session)
    assert staged(tmp_path)
    policy = RunPolicy(spark_writer_bytes=then.spark_writer_bytes, **split)
    *_, result = carry_out(tmp_path, [FIRST, SECOND], policy, monkeypatch, session)
    assert [said(line) for line in result.tables] == [("committed", "merge", "spark" if then is TINY else "task")]
    assert (content(tmp_path), DeltaLocation(f"{tmp_path}/shop/t", {}).version) == (MERGED, 1)
    assert not staged(tmp_path)


@pytest.mark.parametrize("first", [TINY, ENOUGH])
def test_a_batch_that_died_behind_its_commit_is_not_committed_by_the_other_writer(
    first: RunPolicy, session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: Any) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(apply_step, "demand_answers", lambda *arguments: dies() if _committed(tmp_path) else None)
        with pytest.raises(Killed):
            carry_out(tmp_path, [FIRST, SECOND], first, patch, session)
    other = ENOUGH if first is TINY else TINY
    *_, result = carry_out(tmp_path, [FIRST, SECOND], other, monkeypatch, session)
    # the table says who wrote it
    assert [said(line) for line in result.tables] == [("repeated", "", "spark" if first is TINY else "task")]
    assert (content(tmp_path), DeltaLocation(f"{tmp_path}/shop/t", {}).version) == (MERGED, 1)


def _committed(root: Path) -> bool:
    return (DeltaLocation(f"{root}/shop/t", {}).version or 0) > 0


def test_what_is_staged_is_committed_once_however_often_it_is_tried(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = SparkWriter.commit_staged

    def twice(writer: SparkWriter, folder: str) -> None:
        commit(writer, folder)
        commit(writer, folder)

    monkeypatch.setattr(SparkWriter, "commit_staged", twice)
    carry_out(tmp_path, [FIRST, SECOND], TINY, monkeypatch, session)
    assert (content(tmp_path), DeltaLocation(f"{tmp_path}/shop/t", {}).version) == (MERGED, 1)


def test_without_a_session_the_task_writes_and_the_next_batch_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, result = carry_out(tmp_path, [FIRST, SECOND], TINY, monkeypatch)
    (line,), (state,) = result.tables, result.states
    assert (said(line), state.spark_may_write) == (("committed", "merge", "task"), True)
    assert "the batch has no Spark session" in line.writer_reason
    *_, result = carry_out(tmp_path / "b", [FIRST, SECOND], ENOUGH, monkeypatch)
    assert [state.spark_may_write for state in result.states] == [False]


def test_names_that_spark_refuses_are_the_tasks(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rule = {"create": "CREATE TABLE shop.t (id INT PRIMARY KEY, `n` INT, `a b` INT)"}
    batches = [
        {"t": [change(10 * i, {"id": i, "n": i, "a b": 1}) for i in range(1, 9)]},
        {"t": [change(200, {"id": 1, "n": 5, "a b": 2}, {"id": 1, "n": 1, "a b": 1})]},
    ]
    *_, result = carry_out(tmp_path, batches, TINY, monkeypatch, session, rule)
    (line,) = result.tables
    assert (said(line), "cannot write" in line.writer_reason) == (("committed", "merge", "task"), True)
