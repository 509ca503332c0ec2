# SPDX-License-Identifier: Apache-2.0
"""Batches are numbered, immutable, and committed once with everything that came of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import BusyError, ConfigurationError
from airflow_provider_cdc.ledger import Batch, LakeBatch, Lease, Ledger, PastBatch, ProgressSample, TaskTry

from .leases import start

START = {"shop.orders": {0: 0, 1: 5, 10: 7}}
END = {"shop.orders": {0: 4, 1: 5, 10: 9}}
TEN = datetime(2026, 11, 21, 10, tzinfo=UTC)


@pytest.fixture
def lease(ledger: Ledger) -> Iterator[Lease]:
    with ledger.lease("shop", "test", 30) as held:
        yield held


def test_a_planned_batch_comes_back_as_it_was(ledger: Ledger, lease: Lease) -> None:
    batch = ledger.plan(lease, START, END, TEN)
    assert (batch.seq, batch.start, batch.end, batch.until, batch.committed) == (1, START, END, TEN, False)
    assert batch.records == 6
    assert ledger.planned("shop", TEN) == ledger.planned("shop", None) == ledger.last("shop") == batch
    assert ledger.batch("shop", 1) == batch
    assert ledger.planned("shop", TEN + timedelta(hours=1)) is None
    assert Batch.from_document(batch.document()) == batch


def test_until_is_one_instant_whatever_the_zone(ledger: Ledger, lease: Lease) -> None:
    batch = ledger.plan(lease, START, END, TEN.astimezone(timezone(timedelta(hours=8))))
    assert ledger.planned("shop", TEN) == batch
    with pytest.raises(ValueError, match="zone"):
        ledger.planned("shop", datetime(2026, 11, 21))


def test_numbers_grow_without_gaps_and_a_repeat_is_no_new_batch(ledger: Ledger, lease: Lease) -> None:
    for seq in (1, 2, 3):
        batch = ledger.plan(lease, START, END, None)
        assert ledger.plan(lease, START, END, None) == batch
        ledger.commit(lease, seq, {})
    assert [batch.seq for batch in ledger.batches("shop")] == [1, 2, 3]
    assert [batch.seq for batch in ledger.batches("shop", after=1, limit=1)] == [2]


def test_an_unfinished_batch_must_be_finished_first(ledger: Ledger, lease: Lease) -> None:
    ledger.plan(lease, START, END, TEN)
    with pytest.raises(BusyError) as refused:
        ledger.plan(lease, END, {"shop.orders": {0: 9, 1: 5, 10: 9}}, None)
    assert refused.value.code == "ledger.batch_open"
    assert ledger.last("shop").end == END  # type: ignore[union-attr]


def test_commit_records_result_tables_and_schema_changes_together(ledger: Ledger, lease: Lease) -> None:
    ledger.plan(lease, START, END, TEN)
    changes = [{"id": "2", "text": "ALTER"}, {"id": "1", "text": "CREATE 'ü'"}]
    done = ledger.commit(lease, 1, {"rows": 3}, {"shop.orders": {"columns": ["a"]}}, changes)
    assert done.committed and done.result == {"rows": 3} and done.committed_at is not None
    assert done.committed_at >= done.planned_at
    assert (done.start, done.end, done.until) == (START, END, TEN)
    assert ledger.planned("shop", None) is None
    assert ledger.planned("shop", TEN) == done
    assert ledger.tables("shop") == {"shop.orders": {"columns": ["a"]}}
    assert ledger.schema_changes("shop") == changes
    assert ledger.table_versions("shop", "shop.orders") == [(1, {"columns": ["a"]})]


def test_commit_again_changes_nothing(ledger: Ledger, lease: Lease) -> None:
    ledger.plan(lease, START, END, None)
    first = ledger.commit(lease, 1, {"rows": 3}, {"a.b": {"v": 1}}, [{"id": "x"}])
    assert ledger.commit(lease, 1, {"rows": 9}, {"a.b": {"v": 2}, "c.d": {}}, [{"id": "y"}]) == first
    assert ledger.tables("shop") == {"a.b": {"v": 1}}
    assert ledger.schema_changes("shop") == [{"id": "x"}]


def test_a_commit_that_fails_half_way_leaves_nothing(ledger: Ledger, lease: Lease) -> None:
    ledger.plan(lease, START, END, None)
    with pytest.raises(Exception, match="JSON serializable"):
        ledger.commit(lease, 1, {"rows": object()}, {"a.b": {"v": 1}}, [{"id": "x"}])
    assert ledger.tables("shop") == {} and ledger.schema_changes("shop") == []
    assert not ledger.last("shop").committed  # type: ignore[union-attr]
    ledger.commit(lease, 1, {"rows": 1}, {"a.b": {"v": 1}})
    assert ledger.tables("shop") == {"a.b": {"v": 1}}


def test_table_versions_have_each_state_and_the_end(ledger: Ledger, lease: Lease) -> None:
    for seq, document in ((1, {"v": 1}), (2, {"v": 2}), (3, None)):
        ledger.plan(lease, START, END, None)
        ledger.commit(lease, seq, {}, {"a.b": document, "other.t": {"seq": seq}})
    assert ledger.table_versions("shop", "a.b") == [(1, {"v": 1}), (2, {"v": 2}), (3, None)]
    assert ledger.tables("shop") == {"other.t": {"seq": 3}}


def test_of_a_schema_change_that_is_new_twice_the_last_document_counts(ledger: Ledger, lease: Lease) -> None:
    ledger.plan(lease, START, END, None)
    ledger.commit(lease, 1, {}, None, [{"id": "a", "state": "old"}, {"id": "b"}, {"id": "a", "state": "new"}])
    assert ledger.schema_changes("shop") == [{"id": "a", "state": "new"}, {"id": "b"}]


def test_schema_changes_keep_their_order_and_a_known_one_its_place(ledger: Ledger, lease: Lease) -> None:
    ledger.plan(lease, START, END, None)
    ledger.commit(lease, 1, {}, None, [{"id": "b"}, {"id": "a"}])
    ledger.plan(lease, START, END, None)
    ledger.commit(lease, 2, {}, None, [{"id": "c"}, {"id": "b", "state": "applied"}])
    assert ledger.schema_changes("shop") == [{"id": "b", "state": "applied"}, {"id": "a"}, {"id": "c"}]
    ledger.plan(lease, START, END, None)
    with pytest.raises(ValueError, match="'id'"):
        ledger.commit(lease, 3, {}, None, [{"position": "1"}])


def test_only_a_planned_batch_can_be_committed(ledger: Ledger, lease: Lease) -> None:
    with pytest.raises(ConfigurationError, match=r"batch 7 .* is not planned"):
        ledger.commit(lease, 7, {})


def test_an_abandoned_batch_keeps_its_number_and_nothing_follows_it(ledger: Ledger, lease: Lease) -> None:
    ledger.plan(lease, {}, START, None)
    ledger.commit(lease, 1, {})
    ledger.plan(lease, START, END, TEN)
    assert ledger.abandon(lease, 2).status == ledger.abandon(lease, 2).status == "abandoned"
    assert ledger.open("shop") is None and ledger.planned("shop", TEN) is None
    assert ledger.last("shop").seq == ledger.last("shop", "sync").seq == 1  # type: ignore[union-attr]
    assert ledger.last("shop", abandoned=True) == ledger.batch("shop", 2)
    with pytest.raises(ConfigurationError, match=r"batch 2 .* is not planned"):
        ledger.commit(lease, 2, {})
    assert ledger.plan(lease, START, END, TEN).seq == 3


def test_a_committed_batch_cannot_be_abandoned(ledger: Ledger, lease: Lease) -> None:
    ledger.plan(lease, START, END, TEN)
    ledger.commit(lease, 1, {})
    for seq in (1, 2):
        with pytest.raises(ConfigurationError, match=rf"batch {seq} .* is not planned"):
            ledger.abandon(lease, seq)
    assert ledger.last("shop").committed  # type: ignore[union-attr]


def test_a_batch_knows_the_ids_of_its_topics_and_what_was_lost(ledger: Ledger, lease: Lease) -> None:
    loss = {"topic": "shop.orders", "partition": 1, "start": 2, "end": 5}
    batch = ledger.plan(lease, START, END, TEN, topics={"shop.orders": "0aZ-_w"}, lost=[loss])
    assert (batch.topics, batch.lost) == ({"shop.orders": "0aZ-_w"}, [loss])
    assert ledger.open("shop") == batch == Batch.from_document(batch.document())


def test_two_ledgers_have_two_ids(ledger: Ledger, another: Callable[[], Ledger], tmp_path: Path) -> None:
    assert ledger.id == another().id != Ledger(f"sqlite:///{tmp_path / 'second.db'}").id


def test_a_request_is_covered_by_the_first_batch_that_reached_it(ledger: Ledger, lease: Lease) -> None:
    for seq in (1, 2, 3):
        ledger.plan(lease, START, END, TEN + timedelta(hours=seq))
        assert ledger.covering("shop", TEN + timedelta(hours=seq)) is None
        ledger.commit(lease, seq, {})
    batch = ledger.covering("shop", TEN + timedelta(minutes=90))
    assert batch is not None and batch.seq == 2
    assert ledger.covering("shop", TEN + timedelta(hours=4)) is None


def test_batches_of_another_kind_do_not_answer_for_the_log(ledger: Ledger, lease: Lease) -> None:
    sync = ledger.plan(lease, START, END, TEN)
    sync = ledger.commit(lease, sync.seq, {})
    other = ledger.plan(lease, {}, START, TEN + timedelta(hours=1), "rebuild")
    assert ledger.open("shop") == other
    other = ledger.commit(lease, other.seq, {})
    assert ledger.last("shop") == other and ledger.last("shop", "sync") == sync
    assert ledger.planned("shop", TEN + timedelta(hours=1)) is None
    assert ledger.planned("shop", TEN + timedelta(hours=1), "rebuild") == other
    assert ledger.covering("shop", TEN + timedelta(minutes=1)) is None


def test_pipelines_do_not_see_each_other(ledger: Ledger, lease: Lease) -> None:
    ledger.plan(lease, START, END, TEN)
    ledger.commit(lease, 1, {}, {"a.b": {}}, [{"id": "x"}])
    assert ledger.last("billing") is None and ledger.batches("billing") == []
    assert ledger.tables("billing") == {} and ledger.schema_changes("billing") == []
    assert ledger.planned("billing", TEN) is None and ledger.covering("billing", TEN) is None


def test_two_processes_that_plan_at_once_get_one_batch(url: str, ledger: Ledger) -> None:
    code = """
import sys, time
from airflow_provider_cdc.core.errors import BusyError
from airflow_provider_cdc.ledger import Ledger
ledger = Ledger(sys.argv[1])
ledger.last("shop")
print("ready", flush=True)
sys.stdin.readline()
for _ in range(400):
    try:
        with ledger.lease("shop", sys.argv[2], 30) as lease:
            batch = ledger.open("shop") or ledger.plan(lease, {}, {"t": {0: int(sys.argv[2])}}, None)
            print(batch.seq, batch.end["t"][0], flush=True)
        break
    except BusyError:
        time.sleep(0.05)
"""
    racing = [start(code, url, str(number)) for number in (1, 2, 3)]
    for process in racing:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
    for process in racing:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = {process.communicate(timeout=60)[0] for process in racing}
    assert len(answers) == 1
    assert len(ledger.batches("shop")) == 1


def test_a_second_user_sees_what_the_first_wrote(ledger: Ledger, lease: Lease, another: Callable[[], Ledger]) -> None:
    batch = ledger.plan(lease, START, END, TEN)
    assert another().last("shop") == batch


# ---- who worked on a batch, and what was seen of the progress


def test_a_batch_names_the_task_and_the_engine_that_worked_on_it_last(ledger: Ledger) -> None:
    first, second = TaskTry("shop", "r1", "sync"), TaskTry("shop", "r2", "sync", 3, 2)
    with ledger.lease("shop", first, 30) as lease:
        batch = ledger.plan(lease, START, END, None)
        assert (batch.task, batch.engine, batch.started_at) == (first, None, None)
        ledger.started(lease, batch.seq, "spark")
        started = ledger.last("shop")
        assert started is not None and started.started_at is not None and started.started_at >= started.planned_at
        assert (started.task, started.engine) == (first, "spark")
        assert Batch.from_document(started.document()) == started
    with ledger.lease("shop", second, 30) as lease:
        ledger.started(lease, batch.seq, "spark")
        again = ledger.last("shop")
        assert again is not None and again.task == second
    with ledger.lease("shop", "a command line", 30) as lease:
        ledger.started(lease, batch.seq, "inline")
        done = ledger.commit(lease, batch.seq, {})
        assert (done.task, done.engine) == (None, "inline")
        ledger.started(lease, batch.seq, "spark")
        assert ledger.last("shop") == done, "a committed batch does not change"


def test_progress_is_one_sample_a_moment_and_old_samples_go(ledger: Ledger) -> None:
    day = timedelta(days=1)
    full = ProgressSample(TEN + day, TEN, TEN - day, 86400.5, 7)
    samples = [ProgressSample(TEN), full, ProgressSample(TEN + 2 * day, lag_records=2**40)]
    for sample in (ProgressSample(TEN, lag_records=9), *samples):
        ledger.record_progress("shop", sample)
    ledger.record_progress("other", ProgressSample(TEN))
    assert ledger.progress("shop") == samples
    assert ledger.progress("shop", since=TEN + day) == samples[1:]
    assert ledger.progress("shop", limit=1) == samples[2:]
    last = ProgressSample(TEN + 3 * day)
    ledger.record_progress("shop", last, keep=2 * day)
    assert ledger.progress("shop") == [full, samples[2], last]
    assert ledger.progress("other") == [ProgressSample(TEN)]
    assert ledger.pipelines() == [], "looking at a pipeline does not create it"


def test_the_number_of_the_newest_announced_batch_only_grows(ledger: Ledger) -> None:
    assert ledger.announced("shop") == 0
    with ledger.lease("shop", "a", 30):
        for seq, newest in ((3, 3), (2, 3), (5, 5)):
            ledger.mark_announced("shop", seq)
            assert ledger.announced("shop") == newest


def test_numbers_of_batches_that_started_an_engine_are_known(ledger: Ledger, lease: Lease) -> None:
    for seq, (engine, result) in enumerate(
        [("spark", {"status": "done"}), (None, {"status": "empty"}), (None, {"status": "done"}), (None, {})], 1
    ):
        ledger.plan(lease, START, END, None)
        if engine is not None:
            ledger.started(lease, seq, engine)
        ledger.commit(lease, seq, result)
    ledger.plan(lease, START, END, None)
    ledger.started(lease, 5, "spark")
    assert ledger.applied("shop") == [1, 3, 4]
    assert ledger.applied("shop", before=4) == [1, 3]
    assert ledger.applied("another") == []
    ledger.abandon(lease, 5)
    assert ledger.applied("shop") == [1, 3, 4]


def commit(ledger: Ledger, lease: Lease, until: datetime | None, end: int, result: dict[str, object]) -> int:
    """Plan and commit the next batch; return its number."""
    start = 0 if (last := ledger.last("shop")) is None else last.end["t"][0]
    batch = ledger.plan(lease, {"t": {0: start}}, {"t": {0: end}}, until, lost=[{"start": end}] if end == 2 else ())
    return ledger.commit(lease, batch.seq, result).seq


def test_one_batch_stands_for_old_ones_with_their_start_losses_and_latest_time(ledger: Ledger, lease: Lease) -> None:
    for until, end in ((TEN, 1), (TEN + timedelta(hours=2), 2), (None, 3), (None, 4)):
        commit(ledger, lease, until, end, {"status": "done"})
    newest = ledger.batch("shop", 4)
    folded = LakeBatch(3, {"t": {"0": 0}}, {"t": {"0": 3}}, None, TEN, {}, result={"status": "done", "batches": 3})
    assert ledger.fold(lease, folded) == 2
    assert ledger.fold(lease, folded) == 0
    whole, last = ledger.batches("shop")
    assert (whole.seq, whole.start, whole.end, whole.records) == (3, {"t": {0: 0}}, {"t": {0: 3}}, 3)
    assert (whole.until, whole.lost, whole.result) == (TEN + timedelta(hours=2), [{"start": 2}], folded.result)
    assert last == newest
    assert ledger.reached("shop") == TEN + timedelta(hours=2)
    assert ledger.covering("shop", TEN) == whole
    assert ledger.applied("shop") == [3, 4]


def test_a_ledger_that_lacks_the_batch_of_old_ones_removes_none(ledger: Ledger, lease: Lease) -> None:
    commit(ledger, lease, None, 1, {"status": "done"})
    assert ledger.fold(lease, LakeBatch(3, {}, {}, None, TEN, {}, result={})) == 0
    assert ledger.applied("shop") == [1]


def test_old_batches_without_records_go_but_those_that_reached_furthest(ledger: Ledger, lease: Lease) -> None:
    empty, hour = {"status": "empty"}, timedelta(hours=1)
    for until, result in (
        (None, empty),
        (TEN, {"status": "done"}),
        (TEN + hour, empty),
        (TEN + 3 * hour, empty),
        (TEN + 2 * hour, empty),
        (None, empty),
    ):
        commit(ledger, lease, until, 1, result)
    now = datetime.now(UTC)
    assert ledger.forget_empty(lease, now - timedelta(days=1)) == 0
    assert ledger.forget_empty(lease, now + timedelta(days=1)) == 2
    assert [batch.seq for batch in ledger.batches("shop")] == [2, 4, 5, 6]
    assert ledger.reached("shop") == TEN + 3 * hour


def test_a_restored_ledger_takes_old_batches_over_as_one(ledger: Ledger, lease: Lease) -> None:
    for seq, tables in ((1, {"a": {"state": "1"}, "b": {"state": "1"}}), (2, {"a": {"state": "2"}})):
        ledger.plan(lease, {}, {"t": {0: seq}}, None)
        ledger.commit(lease, seq, {}, tables, [{"id": "x", "text": "first"}] if seq == 2 else ())
    past = [
        PastBatch(1, {"b": {"state": "1"}}, ()),
        PastBatch(2, {}, [{"id": "x", "text": "first"}]),
        PastBatch(3, {"a": {"state": "3"}}, [{"id": "y"}]),
    ]
    folded = LakeBatch(4, {"t": {"0": 0}}, {"t": {"0": 4}}, TEN, TEN, {}, result={}, past=past)
    later = LakeBatch(5, {}, {"t": {"0": 5}}, None, TEN, {}, result={}, tables={"a": {"state": "5"}})
    ledger.take_over(lease, 2, [folded, later])
    assert [(batch.seq, batch.committed) for batch in ledger.batches("shop")] == [(4, True), (5, True)]
    assert ledger.table_versions("shop", "a") == [(3, {"state": "3"}), (5, {"state": "5"})]
    assert ledger.table_versions("shop", "b") == [(1, {"state": "1"})]
    assert ledger.tables("shop") == {"a": {"state": "5"}, "b": {"state": "1"}}
    assert [change["id"] for change in ledger.schema_changes("shop")] == ["x", "y"]
