# SPDX-License-Identifier: Apache-2.0
"""One holder per pipeline; who lost the lease writes nothing."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from airflow_provider_cdc.core.errors import BusyError, Transient
from airflow_provider_cdc.ledger import Lease, Ledger, TaskTry
from airflow_provider_cdc.ledger.records import time_text
from tests.unit.ledger.leases import start

HOLD = """
import sys, time
from airflow_provider_cdc.ledger import Ledger
lease = Ledger(sys.argv[1]).lease("shop", "process", float(sys.argv[2]))
print("held", flush=True)
time.sleep(60)
"""


def stand_still(lease: Lease) -> None:
    """Let the holder stop renewing, as a process that is suspended does."""
    lease._stop.set()
    lease._thread.join()


def test_the_second_one_learns_who_holds_the_pipeline_since_when_and_until_when(
    ledger: Ledger, another: Callable[[], Ledger]
) -> None:
    with ledger.lease("shop", "dag shop_cdc, run 7", 30) as lease, pytest.raises(BusyError) as refused:
        another().lease("shop", "somebody", 30)
    assert isinstance(refused.value, Transient)
    assert refused.value.code == "ledger.busy"
    assert "dag shop_cdc, run 7" in str(refused.value)
    assert refused.value.where["since"] == lease.since.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    assert refused.value.where["until"] > refused.value.where["since"]


def test_it_is_free_again_at_once_after_release(ledger: Ledger, another: Callable[[], Ledger]) -> None:
    with ledger.lease("shop", "a", 30) as first:
        pass
    assert ledger.holder("shop") is None
    with another().lease("shop", "b", 30) as second:
        assert second.token > first.token


def test_pipelines_do_not_block_each_other(ledger: Ledger) -> None:
    with ledger.lease("shop", "a", 30), ledger.lease("billing", "a", 30):
        assert ledger.pipelines() == ["billing", "shop"]


def test_a_living_holder_keeps_it_beyond_its_seconds(ledger: Ledger, another: Callable[[], Ledger]) -> None:
    with ledger.lease("shop", "a", 4) as lease:
        time.sleep(5)
        lease.check()
        with pytest.raises(BusyError):
            another().lease("shop", "b", 4)


def test_a_killed_holder_loses_it_within_its_seconds(url: str, ledger: Ledger) -> None:
    holder = start(HOLD, url, "3")
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(BusyError):
        ledger.lease("shop", "heir", 3)
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.communicate()
    killed = time.monotonic()
    while True:
        try:
            lease = ledger.lease("shop", "heir", 3)
            break
        except BusyError:
            assert time.monotonic() - killed < 60
            time.sleep(0.1)
    lease.release()


def test_one_of_many_processes_gets_it(url: str, ledger: Ledger) -> None:
    code = """
import sys
from airflow_provider_cdc.core.errors import BusyError
from airflow_provider_cdc.ledger import Ledger
ledger = Ledger(sys.argv[1])
sys.stdin.readline()
try:
    lease = ledger.lease("shop", "p", 30)
    print("got", flush=True)
    sys.stdin.readline()
except BusyError:
    print("busy", flush=True)
"""
    # The tables do not exist yet: all of them also create the database at once.
    racing = [start(code, url) for _ in range(6)]
    for process in racing:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = sorted(process.stdout.readline().strip() for process in racing if process.stdout)
    for process in racing:
        process.communicate(timeout=60)  # closes its input, for which the holder waits
    assert answers == ["busy"] * 5 + ["got"]


def test_one_of_many_threads_gets_it_in_a_database_that_is_not_there_yet(url: str) -> None:
    together = threading.Barrier(8)
    leases: list[Lease] = []
    others: list[BaseException] = []

    def take() -> None:
        together.wait()
        try:
            leases.append(Ledger(url).lease("shop", "t", 30))
        except BaseException as error:
            others.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [getattr(error, "code", error) for error in others] == ["ledger.busy"] * 7
    leases[0].release()


def test_who_was_taken_over_notices_and_can_write_nothing(ledger: Ledger, another: Callable[[], Ledger]) -> None:
    slow = ledger.lease("shop", "slow", 0.5)
    stand_still(slow)
    time.sleep(0.8)
    with pytest.raises(BusyError, match="could not be renewed"):
        slow.check()
    with another().lease("shop", "fast", 30) as fast:
        batch = another().plan(fast, {"t": {0: 0}}, {"t": {0: 5}}, None)
        # As if its clock had stood still too: only the token protects now.
        slow._good_until = time.monotonic() + 100
        with pytest.raises(BusyError, match="somebody else took it over"):
            ledger.plan(slow, {"t": {0: 0}}, {"t": {0: 9}}, None)
        with pytest.raises(BusyError, match="somebody else took it over"):
            ledger.commit(slow, batch.seq, {})
        assert ledger.renew_lease("shop", slow.token, 30) is None
        ledger.release_lease("shop", slow.token)
        fast.check()
        assert ledger.holder("shop") is not None
    assert ledger.last("shop") == batch


def test_after_release_nothing_can_be_written(ledger: Ledger) -> None:
    with ledger.lease("shop", "a", 30) as lease:
        pass
    with pytest.raises(BusyError) as lost:
        ledger.plan(lease, {}, {}, None)
    assert lost.value.code == "ledger.lease_lost"
    lease._lost = ""  # as if the holder had not noticed
    with pytest.raises(BusyError, match="given back"):
        ledger.plan(lease, {}, {}, None)


def test_releasing_twice_is_harmless(ledger: Ledger, another: Callable[[], Ledger]) -> None:
    lease = ledger.lease("shop", "a", 30)
    lease.release()
    with another().lease("shop", "b", 30) as other:
        lease.release()
        other.check()
        with pytest.raises(BusyError):
            ledger.lease("shop", "c", 30)


def test_the_works_own_error_is_not_hidden_by_a_failing_release(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise BusyError("x", "release failed")

    monkeypatch.setattr(ledger, "release_lease", broken)
    with pytest.raises(ZeroDivisionError), ledger.lease("shop", "a", 30):
        raise ZeroDivisionError


def test_no_thread_stays_behind(ledger: Ledger) -> None:
    before = threading.active_count()
    for _ in range(3):
        with ledger.lease("shop", "a", 30):
            assert threading.active_count() == before + 1
    assert threading.active_count() == before


def test_the_fingerprint_of_the_last_batch_with_an_engine_is_remembered(ledger: Ledger) -> None:
    assert ledger.fingerprint("shop") is None
    with ledger.lease("shop", "a", 30) as lease:
        assert ledger.fingerprint("shop") is None
        for fingerprint, known in (("abc", "abc"), ("", "abc"), ("def", "def")):
            batch = ledger.plan(lease, {}, {}, None)
            ledger.commit(lease, batch.seq, {}, fingerprint=fingerprint)
            assert ledger.fingerprint("shop") == known


def test_a_dead_holder_loses_it_within_its_seconds_although_the_clock_was_set_back(url: str, ledger: Ledger) -> None:
    """A day, which is the same as a lease that was taken tomorrow."""
    dead = ledger.lease("shop", "dead", 0.5)
    stand_still(dead)
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    times = {"since": time_text(tomorrow), "until": time_text(tomorrow + timedelta(seconds=0.5))}
    with ledger._database.writing() as connection:
        connection.execute(text("UPDATE cdc_pipelines SET lease_since = :since, lease_until = :until"), times)
    with pytest.raises(BusyError):
        ledger.lease("shop", "me", 0.5)
    time.sleep(0.6)
    with ledger.lease("shop", "me", 0.5) as lease:
        assert lease.token == dead.token + 1


FIRST = TaskTry("shop_cdc", "manual__7", "sync", 2, 1)


def test_a_later_try_of_a_task_takes_over_the_lease_of_its_dead_one_at_once(
    ledger: Ledger, another: Callable[[], Ledger]
) -> None:
    dead = ledger.lease("shop", FIRST, 60)
    batch = ledger.plan(dead, {"t": {0: 0}}, {"t": {0: 5}}, None)
    with another().lease("shop", replace(FIRST, try_number=3), 60) as heir:
        assert heir.token == dead.token + 1
        assert another().plan(heir, batch.start, batch.end, None) == batch
        with pytest.raises(BusyError, match="somebody else took it over"):
            ledger.commit(dead, batch.seq, {})
        dead.release()
        heir.check()
        assert ledger.holder("shop") is not None, "a release by the dead one frees nothing"


@pytest.mark.parametrize(
    "other",
    [
        FIRST,
        "airflow-cdc of somebody",
        *(replace(FIRST, try_number=2, **change) for change in (
            {"dag_id": "other"}, {"run_id": "other"}, {"task_id": "other"}, {"map_index": 1}
        )),
    ],
    ids=str,
)  # fmt: skip
def test_nobody_else_takes_over_a_tasks_lease(ledger: Ledger, other: TaskTry | str) -> None:
    with ledger.lease("shop", FIRST, 30), pytest.raises(BusyError, match=r"task sync \[2\] of DAG shop_cdc.*try 1"):
        ledger.lease("shop", other, 30)


def test_an_earlier_try_takes_nothing_from_a_later_one(ledger: Ledger) -> None:
    with ledger.lease("shop", replace(FIRST, try_number=2), 30), pytest.raises(BusyError):
        ledger.lease("shop", FIRST, 30)


def test_after_a_command_line_no_task_is_named_any_more(ledger: Ledger) -> None:
    with ledger.lease("shop", FIRST, 30):
        pass
    with ledger.lease("shop", "somebody", 30), pytest.raises(BusyError, match="somebody"):
        ledger.lease("shop", replace(FIRST, try_number=2), 30)
