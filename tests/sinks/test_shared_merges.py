# SPDX-License-Identifier: Apache-2.0
"""Merges of Iceberg tables that tasks share: the same table as by one task, in one commit, or nothing of it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from airflow_provider_cdc.core.apply.target_schema import TargetSchema
from airflow_provider_cdc.core.config.partition_rules import partition_rules
from airflow_provider_cdc.core.config.table_layout import TableLayout
from airflow_provider_cdc.core.errors import SinkError, UnavailableError
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.commits import Choice
from spark_jobs.sinks.contract import Action, WriterRule
from spark_jobs.sinks.iceberg import shared_merge
from spark_jobs.sinks.iceberg.partitions import spec_by_id
from spark_jobs.sinks.iceberg.sink import IcebergSink, open_sink
from tests.sample import ALL, amount
from tests.services.rest_catalog import LosingProxy, shared_catalog
from tests.sinks.actions import APP, columns_of, commit, rows
from tests.sinks.kinds import options_of
from tests.sinks.tables import here

KINDS = ("iceberg", "iceberg copy-on-write")
MERGES = amount(2, 3)
NONE = pa.table({"id": pa.array([], pa.int64())})
COLUMNS = columns_of(rows().schema, "id")
LIMITED = WriterRule(None, 0, 1 << 40)  # no merge is small enough for one task


class Shared:
    """A table of several files, and the lake in which merges are staged."""

    def __init__(self, sink: IcebergSink, folder: Path, name: str = "t", most: int = 1000) -> None:
        self.sink, self.location = sink, str(folder / "db" / name)
        self.lake, self.folder, self.seq = Storage(str(folder / "lake")), f"staged/{name}", 0
        for begin in range(0, 400, 100):
            self.by_task(
                Action("append" if begin else "create", commit(0), piece(range(begin, begin + 100), "old", most))
            )

    def by_task(self, action: Action) -> None:
        action = self._numbered(action)
        self.sink.task_writer().commit(self.sink.open(self.location), action)

    def stage(self, action: Action, rule: WriterRule = LIMITED) -> Choice:
        """Return who is to carry it out."""
        writer = self.sink.writer(rule, self.lake, self.folder)
        writer.commit(self.sink.open(self.location), self._numbered(action))
        assert writer.choice is not None
        return writer.choice

    def drive(self, run: Callable[..., Any] = here, *others: Shared) -> list[Exception | None]:
        folders = [self.folder, *(other.folder for other in others)]
        return list(self.sink.committer(None, self.lake, run).commit(folders, 2))

    def _numbered(self, action: Action) -> Action:
        self.seq += 1
        action.commit = commit(self.seq)
        action.columns = action.columns or COLUMNS
        return action

    def content(self) -> list[dict[str, Any]]:
        return self.sink.open(self.location).rows().sort_by("id").to_pylist()


def piece(keys: Sequence[int], value: str, most: int = 1000) -> pa.Table:
    """Return rows with so many values at most."""
    return rows(*((key, f"{value}{key % most}") for key in keys))


def merge(keys: Sequence[int], *gone: int, value: str = "new") -> Action:
    return Action("merge", commit(0), piece(keys, value), pa.table({"id": pa.array(gone, pa.int64())}), ["id"])


@pytest.fixture(params=KINDS)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Shared:
    return Shared(open_sink(options_of(request.param, tmp_path)), tmp_path)


def test_many_merges_leave_what_one_task_leaves(shared: Shared, tmp_path: Path) -> None:
    chance, one = random.Random(5), Shared(shared.sink, tmp_path, "one")
    for _ in range(MERGES):
        keys = chance.sample(range(430), 60)
        one.by_task(merge(keys[:40], *keys[40:]))
        assert shared.stage(merge(keys[:40], *keys[40:])).writer == "spark"
        assert shared.drive() == [None]
        assert shared.content() == one.content()
    mine, other = (table.sink.open(table.location) for table in (shared, one))
    assert (mine.version, mine.applied(APP)) == (other.version, other.applied(APP)) == (4 + MERGES, 4 + MERGES)
    facts = mine.facts(APP) or {}
    assert (facts.pop("writer")["name"], facts) == ("spark", {"app": APP, "seq": 4 + MERGES})
    assert mine.foreign_commit(4) is None
    said = mine.table.current_snapshot().summary.additional_properties
    assert int(said["total-records"]) - int(said["total-position-deletes"]) == len(shared.content())


def test_each_task_has_some_of_the_files_that_may_hold_a_key(shared: Shared) -> None:
    sent: list[Any] = []

    def run(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        sent.extend(items)
        return here(function, items)

    shared.stage(merge([5, 105, 305], 107, 999))
    assert shared.drive(run) == [None]
    assert [len(part.files) for part in sent] == [1, 1, 1]
    assert len({file.path for part in sent for file in part.files}) == 3
    assert len(shared.content()) == 399


def test_columns_may_change_in_a_merge_that_is_shared(shared: Shared, tmp_path: Path) -> None:
    one = Shared(shared.sink, tmp_path, "one")
    new = pa.schema({"w": pa.float64(), "key": pa.int64(), "text": pa.string()})
    columns = TargetSchema((3, 1, 2), new, (1,))
    for table, carry_out in ((one, one.by_task), (shared, shared.stage)):
        some = pa.table({"w": [0.5], "key": [101], "text": ["x"]}, new)
        gone = pa.table({"key": pa.array([250], pa.int64())})
        carry_out(Action("merge", commit(0), some, gone, ["key"], columns=columns))
        if table is shared:
            assert shared.drive() == [None]
    mine, other = (table.sink.open(table.location).rows().sort_by("key") for table in (shared, one))
    assert mine.equals(other)
    assert mine.filter(pa.compute.field("key") == 101).to_pylist() == [{"w": 0.5, "key": 101, "text": "x"}]


def test_a_merge_that_is_shared_keeps_to_the_partitions_of_the_rule(shared: Shared, tmp_path: Path) -> None:
    """Let the way change with each merge, so that parts let rows go from files of several ways."""
    chance, (one, shared) = random.Random(6), (Shared(shared.sink, tmp_path, name, most=7) for name in ("one", "two"))
    ways = (("truncate(2, v)",), ("bucket(3, id)", "v"), ("truncate(2, v)",), ("d", "b"), ())[:: 1 if ALL else 2]
    columns = rows().schema.append(pa.field("d", pa.decimal128(9, 2))).append(pa.field("b", pa.binary()))
    for way in ways:
        keys = chance.sample(range(430), 80)
        some = piece(keys[:50], chance.choice(("new", "old", "x")), most=7)  # each value is a partition
        amounts = pa.array([Decimal(key % 3) for key in keys[:50]], columns.field("d").type)
        marks = pa.array([b"\xff\0" * (key % 2) for key in keys[:50]])
        some = some.append_column("d", amounts).append_column("b", marks)
        target = replace(columns_of(columns, "id"), layout=TableLayout(partition_by=partition_rules(way)))
        gone = pa.table({"id": pa.array(keys[50:], pa.int64())})
        one.by_task(Action("merge", commit(0), some, gone, ["id"], columns=target))
        shared.stage(Action("merge", commit(0), some, gone, ["id"], columns=target))
        assert shared.drive() == [None]
        assert shared.content() == one.content()
        mine, other = (table.sink.open(table.location) for table in (shared, one))
        assert mine.table.spec() == other.table.spec()
        for file in mine.files():
            assert all((one.spec_id, one.partition) == (file.file.spec_id, file.file.partition) for one in file.deletes)
            stored = mine.columns_of(file, mine.fields)
            for ordinal, part in enumerate(spec_by_id(mine.table.metadata)[file.file.spec_id].fields):
                kind, name = mine.iceberg_schema.find_type(part.source_id), mine.fields.name_of(part.source_id)
                values = {part.transform.transform(kind)(value) for value in stored.column(str(name)).to_pylist()}
                assert values == {file.file.partition[ordinal]}


def test_others_that_commit_meanwhile_make_it_fail_with_nothing_visible(shared: Shared) -> None:
    def append() -> None:
        shared.sink.task_writer().commit(
            shared.sink.open(shared.location), Action("append", commit(90), piece([900], "other"), columns=COLUMNS)
        )

    def run(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        answers = here(function, items)
        append()
        return answers

    shared.stage(merge([1, 2], 3))
    append()  # before the driver looks
    (problem,) = shared.drive()
    assert isinstance(problem, UnavailableError)
    assert "sink.commit_conflict" in str(problem)
    shared.stage(merge([1, 2], 3))
    (problem,) = shared.drive(run)  # while the tasks are at work
    assert isinstance(problem, UnavailableError)
    assert [row["v"] for row in shared.content() if row["id"] in (1, 2, 3)] == ["old1", "old2", "old3"]
    shared.stage(merge([1, 2], 3))
    assert shared.drive() == [None]
    assert [row["v"] for row in shared.content() if row["id"] in (1, 2, 3)] == ["new1", "new2"]


def test_a_table_that_was_made_again_meanwhile_is_another_one(shared: Shared, tmp_path: Path) -> None:
    shared.stage(merge([1], 2))
    catalog = shared.sink.open(shared.location).catalog
    catalog.drop_table("db.t")
    again = Shared(shared.sink, tmp_path)
    (problem,) = again.drive()
    assert isinstance(problem, UnavailableError)
    assert again.sink.open(again.location).version == shared.sink.open(again.location).version == 4
    assert len(again.content()) == 400


def test_a_part_that_fails_fails_its_table_alone(shared: Shared, tmp_path: Path) -> None:
    other = Shared(shared.sink, tmp_path, "other")
    for table in (shared, other):
        table.stage(merge([1, 101], 3))
    (file,) = shared.sink.open(shared.location).files_with(pa.table({"id": pa.array([1], pa.int64())}))
    gone = file.path.removeprefix("file://")
    Path(gone).rename(f"{gone}.away")
    mine, theirs = shared.drive(here, other)
    assert isinstance(mine, SinkError)
    assert "sink.file_missing" in str(mine)
    assert theirs is None
    Path(f"{gone}.away").rename(gone)
    assert (len(shared.content()), len(other.content())) == (400, 399)


def test_a_merge_that_was_staged_and_never_driven_is_staged_again(shared: Shared) -> None:
    shared.stage(merge([1], 2, value="first"))
    shared.stage(merge([1], 2, value="second"))
    assert shared.drive() == [None]
    assert shared.content()[:2] == [{"id": 0, "v": "old0"}, {"id": 1, "v": "second1"}]
    (problem,) = shared.drive()  # once more: it stands on a version that is not the newest any more
    assert isinstance(problem, UnavailableError)
    assert len(shared.content()) == 399


@pytest.mark.parametrize(
    ("rule", "writer", "reason"),
    [
        (WriterRule(Choice("task", "stated"), 0, 1), "task", "stated"),
        (WriterRule(Choice("spark", "stated"), 1 << 40, 1), "spark", "stated"),
        (WriterRule(None, 1 << 40, 1), "task", "policy.spark_writer_bytes is 1.0 TiB"),
        (WriterRule(None, 0, 1, "the batch runs one task at a time"), "task", "but the batch runs one task at a time"),
        (WriterRule(None, 0, 1), "spark", "the merge touches 2 of 4 files with"),
    ],
)
def test_a_merge_is_shared_where_it_touches_more_than_the_limit(
    rule: WriterRule, writer: str, reason: str, tmp_path: Path
) -> None:
    shared = Shared(open_sink(options_of("iceberg", tmp_path)), tmp_path)
    choice = shared.stage(merge([1, 101]), rule)
    assert choice.writer == writer
    assert reason in choice.reason
    append = shared.stage(Action("append", commit(0), piece([800], "x")), rule)
    assert append.writer == "task"


@pytest.fixture
def proxy() -> Iterator[LosingProxy]:
    proxy = LosingProxy(shared_catalog())
    yield proxy
    proxy.stop()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["iceberg rest", "iceberg at once"])
def test_an_answer_of_the_catalog_that_is_lost_leaves_one_commit_or_none(
    kind: str, when: str, proxy: LosingProxy, tmp_path: Path
) -> None:
    """Commit a shared merge of one table and, where all go at once, an append of another one."""
    options = {**options_of(kind, tmp_path), "iceberg.uri": proxy.uri}
    shared, other = (Shared(open_sink(options), tmp_path, name) for name in ("t", "u"))
    shared.stage(merge([1], 2))
    other.stage(Action("append", commit(0), piece([800], "x")))
    proxy.lose(when, 503)
    mine, theirs = shared.drive(here, other)
    assert (mine is None) == (when == "after")
    counts = len(shared.content()), len(other.content())
    if kind == "iceberg at once":
        assert (theirs is None) == (when == "after")
        assert counts == ((399, 401) if when == "after" else (400, 400))
    else:
        assert counts == ((399, 401) if when == "after" else (400, 401))


def test_small_files_are_sent_in_portions(tmp_path: Path) -> None:
    shared = Shared(open_sink(options_of("iceberg", tmp_path)), tmp_path)
    files = shared.sink.open(shared.location).files()
    size = files[0].file.file_size_in_bytes
    portions = list(shared_merge._portions(files, 1.5 * size))
    assert [len(portion) for portion in portions] == [2, 2]
    assert [file.path for portion in portions for file in portion] == [file.path for file in files]
