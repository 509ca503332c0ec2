# SPDX-License-Identifier: Apache-2.0
"""Check which records show that the source's log began again, and which do not."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from spark_jobs.driver import landed_records
from spark_jobs.driver import new_begins as module
from spark_jobs.driver.approval import NewGenerationError
from spark_jobs.driver.landed_records import LandedRecords
from spark_jobs.lake import stretches
from spark_jobs.lake.begins import Begin
from spark_jobs.lake.stretches import greatest_gtids, record_documents
from tests.locations import binlog_position
from tests.sample import amount
from tests.unit.spark_jobs.servers_logs import A, At, B, Pipeline, log, untimed, without_gtid


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return Pipeline(tmp_path)


# ---- another log

FAILOVER = log(A, 21, 10, file=1, pos=40, time=1_015)


@pytest.mark.parametrize("in_one_batch", [True, False])
@pytest.mark.parametrize("change", [list, untimed, without_gtid], ids=["both", "gtid-only", "time-only"])
def test_a_failover_to_a_server_with_lower_files(change: Any, in_one_batch: bool, pipeline: Pipeline) -> None:
    old, new = change(log(A, 1, 20)), change(FAILOVER)
    seen = pipeline.batch({0: [*old, *new]}) if in_one_batch else pipeline.batch({0: old}) + pipeline.batch({0: new})
    assert [(one.partition_key, one.offset, one.position) for one in seen] == [
        ("t/0", 20, binlog_position(1, 40, generation=1))
    ]
    assert seen[0].known == binlog_position(7, 100 + 19 * 50)


def test_the_same_file_at_a_lower_place(pipeline: Pipeline) -> None:
    # both servers write mysql-bin.000007; in the failover's second
    assert not pipeline.batch({0: log(A, 1, 20)})
    assert [one.offset for one in pipeline.batch({0: log(A, 21, 5, pos=900, time=1_009)})] == [20]


def test_a_server_that_was_not_seen_before(pipeline: Pipeline) -> None:
    assert not pipeline.batch({0: log(A, 50, 20)})
    assert pipeline.batch({0: untimed(log(B, 1, 1, pos=90))})


def test_mariadb_counts_in_domains(pipeline: Pipeline) -> None:
    old = [At(7, 100 + i, f"0-101-{i}") for i in range(20)]
    assert not pipeline.batch({0: [*old, *old[:5]]})
    assert [one.offset for one in pipeline.batch({0: [At(1, 5, "0-202-20")]})] == [25]


def test_a_reset_begins_numbers_and_files_again(pipeline: Pipeline) -> None:
    assert not pipeline.batch({0: log(A, 500, 20)})
    assert [one.offset for one in pipeline.batch({0: log(A, 1, 20, file=1, time=2_000)})] == [20]


def test_a_reset_without_source_times_is_not_seen_where_gtids_begin_again(pipeline: Pipeline) -> None:
    """A documented limit (docs/formats/README.md, "A log that begins again"): it looks like old records."""
    assert not pipeline.batch({0: untimed(log(A, 500, 20))})
    assert not pipeline.batch({0: untimed(log(A, 1, 20, file=1))})


def test_repeated_records_and_then_another_log(pipeline: Pipeline) -> None:
    old = log(A, 1, 20)
    assert [one.offset for one in pipeline.batch({0: [*old, *old[5:], *FAILOVER]})] == [35]


def test_each_partition_names_its_first_record(pipeline: Pipeline) -> None:
    assert not pipeline.batch({0: log(A, 1, 20)[::2], 1: log(A, 1, 20)[1::2]})
    seen = pipeline.batch({0: FAILOVER[::2], 1: FAILOVER[1::2]})
    assert [(one.partition_key, one.offset) for one in seen] == [("t/0", 10), ("t/1", 10)]


def test_a_partition_without_earlier_records(pipeline: Pipeline) -> None:
    assert not pipeline.batch({0: log(A, 1, 20)})
    assert [(one.partition_key, one.offset) for one in pipeline.batch({1: FAILOVER})] == [("t/1", 0)]


@pytest.mark.parametrize("old_first", [True, False])
def test_partitions_that_each_hold_one_log_only(old_first: bool, pipeline: Pipeline) -> None:
    both = {0: log(A, 1, 20), 1: FAILOVER}
    seen = pipeline.batch(both if old_first else dict(reversed(both.items())))
    assert [(one.partition_key, one.offset) for one in seen] == [("t/1", 0)]


def test_a_partition_that_goes_on_to_a_third_log_begins_the_second_with_what_it_has_of_it(pipeline: Pipeline) -> None:
    # one file, as PostgreSQL's places: no partition shows that what the other has is of another log
    logs = log(A, 1, 20, pos=9_000), log(B, 1, 10, pos=5_000, time=1_015), log(B, 11, 10, time=1_025)
    old, second, third = map(without_gtid, logs)
    seen = pipeline.batch({0: [*old, *second, *third], 1: [*second[4:], *third]})
    assert [(one.partition_key, one.offset, one.generation) for one in seen] == [("t/0", 20, 1), ("t/1", 0, 1)]


def test_a_statement_of_the_schema_topic(pipeline: Pipeline) -> None:
    assert not pipeline.batch({0: [At(7, 10, f"{A}:3", 1_000, "schema", None)]})
    assert pipeline.batch({0: [At(1, 10, f"{A}:9", 1_005, "schema", None)]})


def test_more_falls_than_a_task_shows(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "_STRETCHES", 3)
    old = log(A, 1, 20)
    repeated = [record for i in range(2, 20) for record in old[i - 2 : i]]
    assert not pipeline.batch({0: [*old, *repeated]})
    assert [one.offset for one in pipeline.batch({0: [*repeated, *FAILOVER]})] == [56 + 36]


def test_the_error_names_place_and_way_out(pipeline: Pipeline) -> None:
    pipeline.batch({0: log(A, 1, 20)})
    seen = pipeline.batch({0: FAILOVER})
    error = NewGenerationError(seen)
    assert error.code == "source.new_generation"
    assert {"topic": "t", "partition": 0, "offset": 20, "gtid": f"{A}:21"}.items() <= error.where.items()
    assert "airflow-cdc approve PIPELINE.yaml --new-generation t/0:20" in error.hint


# ---- the same log


def test_repeated_records(pipeline: Pipeline) -> None:
    old = log(A, 1, 40)
    assert not pipeline.batch({0: [*old[:20], *old[3:30]]}, pieces=3)
    assert not pipeline.batch({0: [*old[:10], *old[25:]]})


def test_partitions_that_are_read_to_different_places(pipeline: Pipeline) -> None:
    early, late = log(A, 1, 20, file=3), log(A, 21, 20, file=9, time=1_010)
    assert not pipeline.batch({0: [*early[::2], *late[::2]]})
    assert not pipeline.batch({1: early[1::2]})
    assert not pipeline.batch({1: late[1::2]})


def test_statements_without_gtid_and_rows_without_time(pipeline: Pipeline) -> None:
    # as dtle has them: neither says how far the other partition is
    statements = [At(1 + i, 4, None, 1_000 + i, "schema", None) for i in range(9)]
    rows = [At(1 + i, 50, f"{A}:{i + 1}") for i in range(9)]
    assert not pipeline.batch({0: statements[:8], 1: rows[:1]})
    assert not pipeline.batch({1: rows[1:2]})
    assert not pipeline.batch({1: rows[2:9]})
    assert not pipeline.batch({2: rows[3:]})
    assert not pipeline.batch({0: statements[8:]})


def test_statements_that_come_late(pipeline: Pipeline) -> None:
    statements = [At(1 + i, 4, None, 1_000 + i, "schema", None) for i in range(9)]
    assert not pipeline.batch({0: statements[:1]})
    assert not pipeline.batch({1: [At(1 + i, 50, f"{A}:{i + 1}") for i in range(9)]})
    assert not pipeline.batch({0: statements[1:]})


def test_an_old_range_on_another_partition(pipeline: Pipeline) -> None:
    old = log(A, 1, 20)
    assert not pipeline.batch({0: old, 1: log(A, 21, 4, pos=2_000, time=1_020)})
    assert not pipeline.batch({1: old[4:12]})


def test_a_replica_that_commits_out_of_order(pipeline: Pipeline) -> None:
    numbers = [3, 1, 2, 6, 4, 5, 9, 7, 8, 10]
    # the transactions stand in two files, number 6 before 4
    old = [At(6 + i // 5, 100 + 50 * i, f"{A}:{n}", 1_000 + n) for i, n in enumerate(numbers)]
    assert not pipeline.batch({0: [*old, *old[2:]], 1: [old[3], old[5]]}, pieces=2)
    assert not pipeline.batch({0: old, 1: [old[1], old[9]]})


def test_servers_that_share_a_log(pipeline: Pipeline) -> None:
    both = [At(7, 100 + i, f"{(A, B)[i % 2]}:{i // 2 + 1}", 1_000 + i) for i in range(20)]
    assert not pipeline.batch({0: both})
    assert not pipeline.batch({0: [*both[7:], At(7, 500, f"{B}:300", 1_100)]})


def test_higher_files_of_another_server(pipeline: Pipeline) -> None:
    # they come after all before them, so nothing is lost
    assert not pipeline.batch({0: log(A, 1, 20)})
    assert not pipeline.batch({0: log(A, 21, 10, file=9, time=1_010)})


def test_snapshots_that_describe_older_places(pipeline: Pipeline) -> None:
    assert not pipeline.batch({0: log(A, 1, 20), 1: [At(7, 200, f"{A}:3", 1_001, "schema", None)]})
    assert not pipeline.batch({1: [At(7, 100, None, 5_000, "schema", "snapshot")]})


def test_a_full_load_stands_before_the_log(pipeline: Pipeline) -> None:
    assert not pipeline.batch({0: without_gtid(log(A, 1, 20))})
    assert not pipeline.batch({0: [At(0, 17, None, 9_000, "row", "snapshot")]})


def test_shards_whose_groups_overtake_each_other(pipeline: Pipeline) -> None:
    # numbers are global, but a group of several records of one shard ends behind a later one of another
    both = [At(0, 100 + i, f"{(A, B)[i % 2]}:{i // 2 + 1}", 1_000 + i // 3) for i in range(20)]
    assert not pipeline.batch({0: both})
    overtaken = [At(0, 200 + i, f"{(A, B)[i % 2]}:{i // 2 + 11}", 1_010 + i) for i in (1, 0, 3, 2, 5, 4)]
    assert not pipeline.batch({0: overtaken[:3]})
    assert not pipeline.batch({0: overtaken[3:]})


MANY_FILES = [At(1 + i // 10, 50 * i, None, 1_000 + i) for i in range(200)]


@pytest.mark.parametrize(
    "partitions",
    [
        {0: MANY_FILES[::2], 1: MANY_FILES[1::2]},
        {0: [r._replace(gtid=f"{A}:{n}") for n, r in enumerate(MANY_FILES)], 1: MANY_FILES[100:]},
        {0: [At(0, 17, None, 2_000, "row", "snapshot")] * 50 + MANY_FILES[::2], 1: MANY_FILES[1::2]},
        {0: MANY_FILES[::2], 1: [record._replace(kind="schema", op=None) for record in MANY_FILES[1::2]]},
    ],
    ids=["rows", "gtids", "after-a-snapshot", "statements"],
)
def test_stretches_of_many_files_are_not_read_record_by_record(
    partitions: dict[int, list[At]], pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Five million records became objects of 900 MB, although their columns show that none is of another log."""
    read = []
    monkeypatch.setattr(landed_records, "record_documents", lambda rows: read.append(rows) or rows.to_pylist())
    assert not pipeline.batch(partitions, pieces=2)
    assert not read


@pytest.mark.parametrize("pieces", [1, 6])
def test_records_behind_a_failover_are_not_read_one_by_one(
    pieces: int, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All of them stand below what their partition has shown: millions became objects at once."""
    read = []
    monkeypatch.setattr(landed_records, "record_documents", lambda rows: read.append(rows) or record_documents(rows))
    monkeypatch.setattr(landed_records, "_AT_ONCE", 10)
    old, new = log(A, 1, 100), log(A, 101, 500, file=1, pos=40, time=1_060)
    seen = pipeline.batch({0: [*old, *new], 1: [*old, *new]}, pieces)
    assert [(one.partition_key, one.offset) for one in seen] == [("t/0", 100), ("t/1", 100)]
    assert sum(rows.num_rows for rows in read) <= 2 * 110
    assert max(rows.num_rows for rows in read) == 10


@pytest.mark.parametrize("seed", range(5))
def test_records_are_read_by_partition_offsets_and_positions(seed: int, pipeline: Pipeline) -> None:
    chance = random.Random(seed)
    logs = {number: _random_log(chance, 60, first=1, file=3, time=1_000) for number in range(3)}
    logs[1][::7] = [record._replace(kind="schema", op=None) for record in logs[1][::7]]
    landed = pipeline.landed(logs, pieces=4)
    records = LandedRecords([landed], pipeline.storage)
    for _ in range(40):
        partition, (start, end) = chance.randrange(3), sorted(chance.sample(range(60), 2))
        low, below = sorted(binlog_position(*chance.choice(logs[partition])[:2]) for _ in range(2))
        read = list(records.between(f"t/{partition}", start, end, low, below))
        positions = [(n, binlog_position(*record[:2])) for n, record in enumerate(logs[partition])]
        expected = [(n, position) for n, position in positions if start <= n <= end and position <= below]
        # a row group that reaches into the span of positions is read as a whole
        assert [one for one in expected if one[1] >= low] == [
            one for one in ((record["offset"], record["position"]) for record in read) if one[1] >= low
        ]
        assert {(record["offset"], record["position"]) for record in read} <= set(expected)


def test_row_groups_of_neighbouring_stretches_are_read_once(
    pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of up to 200 stretches of a task may be in doubt, and they lie in the same few row groups."""
    landed = pipeline.landed({0: log(A, 1, 100), 1: log(A, 1, 100)}, pieces=2)
    read, real = [], landed_records.read_groups
    monkeypatch.setattr(landed_records, "read_groups", lambda *arguments: read.append(arguments[1]) or real(*arguments))
    records = LandedRecords([landed], pipeline.storage)
    for start in range(0, 100, 10):
        mine = records.between("t/0", start, start + 9, "", "~")
        assert [record["offset"] for record in mine] == list(range(start, start + 10))
    assert len(read) == len(landed.groups) == 4


@pytest.mark.parametrize("seed", range(amount(4, 8)))
def test_the_columns_of_a_stretch_never_hide_another_log(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    old = _random_log(chance, 200, first=1, file=chance.randint(4, 9), time=1_000)
    new = _random_log(chance, 60, first=201, file=1, time=1_300) if seed % 2 else []
    plain = [old.pop(chance.randrange(len(old)))._replace(kind="schema", op=None) for _ in range(10)]
    everything = [*sorted(old + plain), *new]
    if seed % 3:
        everything = [record._replace(gtid=None) for record in everything]
    cuts = sorted(chance.sample(range(len(everything)), 3))
    batches = [everything[start:end] for start, end in pairwise([0, *cuts, len(everything)])]

    def begins(folder: str) -> list[list[Begin]]:
        pipeline, draw, seen = Pipeline(tmp_path / folder), random.Random(seed), []
        for batch in batches:
            of = [draw.randrange(3) for _ in batch]
            parts = {number: [r for r, to in zip(batch, of, strict=True) if to == number] for number in range(3)}
            seen.append(pipeline.batch(parts, draw.randint(1, 3)))
        return seen

    by_columns = begins("columns")
    monkeypatch.setattr(module, "_with_candidates", lambda landed, storage, doubtful: doubtful)
    assert by_columns == begins("every-record")
    assert any(by_columns) == bool(new)


def test_texts_that_are_no_gtids() -> None:
    def actual(*texts: str | None) -> dict[str, tuple[int, str]]:
        positions = [f"p{number}" for number in range(len(texts))]
        return greatest_gtids(pa.array(texts), pa.array(positions), positions[-1])

    assert actual(None, "tx-9", f"{A}:4") == {}
    assert actual(None, f"{A}:4", f"{A}:12", None) == {A: (12, "p3")}
    assert actual(f"{A}:4", f"{B}:2", f"{A}:3", "tx-9") == {A: (4, "p2"), B: (2, "p1")}
    assert actual(f"{A}:4", f"{A}:99999999999999999999") == {A: (99999999999999999999, "p1")}


# ---- random logs


@pytest.mark.parametrize("seed", range(amount(8, 20)))
def test_random_logs_show_another_log_exactly_where_one_begins(seed: int, tmp_path: Path) -> None:
    chance, pipeline = random.Random(seed), Pipeline(tmp_path)
    gtids, clock = chance.choice([(True, True), (True, False), (False, True)])
    old = _random_log(chance, 300, first=1, file=chance.randint(3, 6), time=1_000)
    new = _random_log(chance, 100, first=301, file=1, time=old[-1].time + 1)  # type: ignore[operator]
    fails = seed % 2 == 1
    partitions: dict[int, list[At]] = {0: [], 1: [], 2: []}
    first_new: dict[str, int] = {}
    for source in (old, new) if fails else (old,):
        for index, record in enumerate(source):
            partition = record.pos % 3
            if source is new:
                first_new.setdefault(f"t/{partition}", len(partitions[partition]))
            partitions[partition].append(record)
            if chance.random() < 0.02:  # the tool starts again
                again = source[chance.randint(0, index) : index + 1]
                for one in again:
                    partitions[one.pos % 3].append(one)
    shown = {
        partition: [r._replace(gtid=r.gtid if gtids else None, time=r.time if clock else None) for r in records]
        for partition, records in partitions.items()
    }
    batches, done = chance.randint(1, 5), dict.fromkeys(shown, 0)
    for number in range(1, batches + 1):
        ends = {
            partition: len(records) if number == batches else chance.randint(done[partition], len(records))
            for partition, records in shown.items()
        }
        seen = pipeline.batch({p: shown[p][done[p] : end] for p, end in ends.items()}, chance.randint(1, 3))
        done = ends
        if any(first_new.get(f"t/{partition}", end) < end for partition, end in ends.items()):
            assert seen
            assert {one.partition_key: one.offset for one in seen}.items() <= first_new.items()
            return
        assert not seen
    assert not fails


def _random_log(chance: random.Random, count: int, *, first: int, file: int, time: int) -> list[At]:
    records, pos = [], chance.randint(4, 500)
    numbers = list(range(first, first + count))
    for i in range(0, count, 4):  # committed out of order, four at a time
        part = numbers[i : i + 4]
        chance.shuffle(part)
        numbers[i : i + 4] = part
    for number in numbers:
        pos += chance.randint(1, 100)
        if chance.random() < 0.01:
            file, pos = file + 1, 4
        time += chance.random() < 0.3
        records.append(At(file, pos, f"{A}:{number}", time))
    return records
