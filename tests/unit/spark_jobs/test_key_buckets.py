# SPDX-License-Identifier: Apache-2.0
"""A table with more changes than one task resolves is split by key, and becomes what it would have become at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.config import RunPolicy
from airflow_provider_cdc.core.documents import Proof
from airflow_provider_cdc.core.errors import UnavailableError
from spark_jobs.driver import key_buckets
from spark_jobs.sinks.delta.table import DeltaLocation
from tests.unit.spark_jobs.debezium_batches import carry_out, change, statement

_SPLIT = RunPolicy(bucket_rows=2)


def rows(root: Path) -> list[dict[str, Any]]:
    return DeltaLocation(f"{root}/shop/t", {}).rows().sort_by("id").to_pylist()


def staged(root: Path) -> list[Path]:
    return [path for path in root.rglob("*") if "staged" in path.parts and path.is_file()]


def test_rows_that_move_between_buckets_leave_their_old_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"t": [change(10 * i, {"id": i, "n": i}) for i in range(1, 9)]}
    moved = [
        (change(100 * i, None, {"id": i, "n": i}), change(100 * i + 1, {"id": i + 100, "n": i})) for i in range(1, 9)
    ]
    moves = {"t": [record for records in moved for record in records]}
    _, result = carry_out(tmp_path, [first, moves], _SPLIT, monkeypatch)
    assert [state.proof for state in result.states] == [Proof()]  # no change was compared
    assert [(table.action, table.upserts, table.deletes) for table in result.tables] == [("merge", 8, 8)]
    assert rows(tmp_path) == [{"id": i + 100, "n": i} for i in range(1, 9)]
    table = DeltaLocation(f"{tmp_path}/shop/t", {})
    assert table.version == 1  # one commit for each batch
    assert json.loads(table.table.history(1)[0]["cdc"])["changes"] == {"delete": 8, "insert": 8}
    assert not staged(tmp_path)


_WITHOUT_KEY = {"create": "CREATE TABLE shop.t (id INT, n INT)"}


@pytest.mark.parametrize("policy", [_SPLIT, RunPolicy()], ids=["split", "whole"])
def test_equal_rows_of_a_table_without_key_are_counted_over_all_parts(
    policy: RunPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits, commit = [], key_buckets.commit_parts
    monkeypatch.setattr(key_buckets, "commit_parts", lambda *arguments: commits.append(1) or commit(*arguments))
    monkeypatch.setattr(key_buckets, "_PART_ROWS", 1)
    one, two, three = ({"id": i, "n": i} for i in (1, 2, 3))
    first = [change(10, one), change(20, one), change(30, two), change(40, None, two), change(20, one)]  # 20 twice
    second = [
        change(110, None, one), change(120, three), change(130, two, three), change(140, None, one), change(150, one)
    ]  # fmt: skip
    batches = [{"t": records, "schema": []} for records in (first, second)]
    results = carry_out(tmp_path, batches, policy, monkeypatch, rule=_WITHOUT_KEY)
    assert len(commits) == (2 if policy is _SPLIT else 0)
    lines = [result.tables[0] for result in results]
    assert [(line.action, line.upserts, line.deletes) for line in lines] == [("create", 3, 1), ("subtract", 3, 3)]
    assert rows(tmp_path) == [one, two]
    assert [state.pending_seq for result in results for state in result.states] == [None, None]
    assert [state.proof.until == state.applied_position for result in results for state in result.states] == [True] * 2
    assert not staged(tmp_path)


@pytest.mark.parametrize("policy", [_SPLIT, RunPolicy()], ids=["split", "whole"])
def test_a_removed_row_of_a_table_without_key_that_is_not_there_parks_it(
    policy: RunPolicy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two, three = ({"id": i, "n": i} for i in (1, 2, 3))
    first = [change(10, one), change(20, two)]
    second = [change(210, None, three), change(220, two), change(230, three)]  # it is added only after its removal
    batches = [{"t": records, "schema": []} for records in (first, second)]
    results = carry_out(tmp_path, batches, policy, monkeypatch, rule=_WITHOUT_KEY)
    (state,) = results[-1].states
    assert (state.state, state.code) == ("parked", "apply.row_not_found")
    assert results[-1].tables[0].contradictions == {"row_missing": 1}
    assert rows(tmp_path) == [one, two]
    assert not staged(tmp_path)


def test_truncate_empties_every_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = {"t": [change(10 * i, {"id": i, "n": i}) for i in range(1, 9)]}
    cleared = {
        "schema": [statement(200, "TRUNCATE TABLE shop.t")],
        "t": [change(90 + i, {"id": i, "n": 0}) for i in range(5)] + [change(300, {"id": 7, "n": 7})],
    }
    carry_out(tmp_path, [first, cleared], _SPLIT, monkeypatch)
    assert rows(tmp_path) == [{"id": 7, "n": 7}]


def test_rows_that_do_not_fit_count_over_all_buckets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = {"t": [change(10 * i, {"id": i, "n": "none" if i < 4 else i}) for i in range(1, 9)]}
    (result,) = carry_out(tmp_path / "few", [batch], RunPolicy(bucket_rows=2, quarantine_limit=3), monkeypatch)
    assert (result.quarantined, [row["column"] for row in result.quarantine]) == (3, ["n"] * 3)
    assert [row["id"] for row in rows(tmp_path / "few")] == [4, 5, 6, 7, 8]
    (result,) = carry_out(tmp_path / "many", [batch], RunPolicy(bucket_rows=2, quarantine_limit=2), monkeypatch)
    (table,) = result.tables
    assert (table.status, "apply.quarantine_exceeded" in table.reason) == ("parked", True), table
    assert not staged(tmp_path)


def test_rows_whose_key_does_not_fit_are_left_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = {"t": [change(10 * i, {"id": "none" if i == 3 else i, "n": i}) for i in range(1, 9)]}
    (result,) = carry_out(tmp_path, [batch], RunPolicy(bucket_rows=2, quarantine_limit=1), monkeypatch)
    assert (result.quarantined, [row["column"] for row in result.quarantine]) == (1, ["id"])
    assert [row["id"] for row in rows(tmp_path)] == [1, 2, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("step", ["write_events", "find_newest", "write_rows", "commit_parts"])
def test_a_batch_that_died_is_repeated_with_the_same_rows(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {"t": [change(10 * i, {"id": i, "n": i}) for i in range(1, 9)]}
    work, calls = getattr(key_buckets, step), []

    def dies(*arguments: Any) -> Any:
        calls.append(arguments)
        if step == "commit_parts":
            raise KeyboardInterrupt
        report = work(*arguments)
        if step != "find_newest" or len(calls) == 2:
            raise KeyboardInterrupt
        return report

    with monkeypatch.context() as patch:
        patch.setattr(key_buckets, step, dies)
        with pytest.raises(KeyboardInterrupt):
            carry_out(tmp_path, [first], _SPLIT, patch)
    assert staged(tmp_path)
    (result,) = carry_out(tmp_path, [first], _SPLIT, monkeypatch)
    assert [table.status for table in result.tables] == ["committed"]
    assert rows(tmp_path) == [{"id": i, "n": i} for i in range(1, 9)]
    assert not staged(tmp_path)


def test_a_batch_that_died_behind_its_commit_is_not_split_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {"t": [change(10 * i, {"id": i, "n": i}) for i in range(1, 9)]}
    commit = key_buckets.commit_parts

    def dies_behind(*arguments: Any) -> Any:
        commit(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(key_buckets, "commit_parts", dies_behind)
        with pytest.raises(KeyboardInterrupt):
            carry_out(tmp_path, [first], _SPLIT, patch)
    (result,) = carry_out(tmp_path, [first], _SPLIT, monkeypatch)
    assert [table.status for table in result.tables] == ["repeated"]
    assert (DeltaLocation(f"{tmp_path}/shop/t", {}).version, len(rows(tmp_path))) == (0, 8)
    assert not staged(tmp_path)


@pytest.mark.parametrize(
    ("step", "kind"), [("find_newest", "events"), ("write_rows", "newest"), ("commit_parts", "removed")]
)
def test_staged_files_that_are_gone_let_the_batch_run_again(
    step: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = {"t": [change(10 * i, {"id": i, "n": i}) for i in range(1, 9)]}
    second = {"t": [change(100 + i, None, {"id": i, "n": i}) for i in range(1, 5)]}
    work = getattr(key_buckets, step)

    def without_one(*arguments: Any) -> Any:
        for path in staged(tmp_path):
            if path.name.startswith(kind):
                path.unlink()
        return work(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(key_buckets, step, without_one)
        with pytest.raises(UnavailableError) as raised:
            carry_out(tmp_path, [{"t": first["t"] + second["t"]}], _SPLIT, patch)
    assert raised.value.code == "apply.staged_missing"
    carry_out(tmp_path, [{"t": first["t"] + second["t"]}], _SPLIT, monkeypatch)
    assert rows(tmp_path) == [{"id": i, "n": i} for i in range(5, 9)]
    assert not staged(tmp_path)


def test_a_parked_table_leaves_no_files_at_its_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = {"t": [change(10 * i, {"id": i, "n": "none" if i > 6 else i}) for i in range(1, 9)]}
    monkeypatch.setattr(key_buckets, "_PART_ROWS", 3)
    (result,) = carry_out(tmp_path, [batch], RunPolicy(bucket_rows=2, quarantine_limit=1), monkeypatch)
    assert [table.status for table in result.tables] == ["parked"]
    assert not list((tmp_path / "shop").rglob("*.parquet"))
