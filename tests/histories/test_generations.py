# SPDX-License-Identifier: Apache-2.0
"""A source's log that began again: what an approval covers, and what comes of records of both logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import DataError
from tests.histories.debezium_records import TOPIC, ddl, row, snapshot_ddl
from tests.histories.log import Crash, CrashError, Log
from tests.histories.scripted import Script
from tests.histories.two_logs import BEGIN, SERVER, at, create, pipeline, question


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return a pipeline that read three records of a log, and has two of the next before it."""
    script = pipeline(log, lake)
    script.send(create(), at(7, 10, 1, "a"), at(7, 11, 2, "b"), at(7, 12, 3, "c"))
    script.sync()
    script.send(at(3, 13, 1, "A"), at(3, 14, 3, "C"))
    return script


OLD = {(1, "a"): 1, (2, "b"): 1, (3, "c"): 1}
NEW = {(1, "A"): 1, (2, "b"): 1, (3, "C"): 1}


def test_an_approval_is_for_the_record_that_was_shown(script: Script) -> None:
    assert question(script) == BEGIN
    assert question(script, approved=BEGIN.replace(":3", ":4")) == BEGIN
    assert script.rows("shop", "t") == OLD
    assert script.sync(new_generation=BEGIN).new_generations == [BEGIN]
    assert script.rows("shop", "t") == NEW


def test_a_log_that_begins_again_later_asks_again(script: Script) -> None:
    script.sync(new_generation=BEGIN)
    script.send(at(3, 15, 2, "B"))
    assert script.sync(new_generation=BEGIN).new_generations == []
    script.send(at(1, 16, 2, "BB"))
    later = question(script, approved=BEGIN)
    assert later == BEGIN.replace(":3", ":6")
    script.sync(new_generation=later)
    assert script.rows("shop", "t") == {(1, "A"): 1, (2, "BB"): 1, (3, "C"): 1}


@pytest.mark.parametrize("crash", [Crash("land"), Crash("commit"), Crash("commit", after=True), Crash("result")])
def test_an_approval_lasts_through_a_crash(crash: Crash, script: Script) -> None:
    question(script)
    script.log.arm(crash)
    with pytest.raises(CrashError):
        script.sync(new_generation=BEGIN)
    script.log.arm(None)
    assert script.sync().new_generations == [BEGIN]
    assert script.rows("shop", "t") == NEW


def test_old_records_that_are_sent_again_are_not_newer(script: Script) -> None:
    script.sync(new_generation=BEGIN)
    script.send(at(7, 10, 1, "a"), at(7, 12, 3, "c"), at(7, 12, 3, "c", partition=1))
    script.sync()
    assert script.rows("shop", "t") == NEW


def test_a_topic_made_again_goes_on_in_the_new_log(script: Script) -> None:
    script.sync(new_generation=BEGIN)
    where = (f"{TOPIC}.shop.t", 0)
    script.log.partitions[where], script.ends[where] = [at(3, 15, 1, "AA")], 0
    script.sync()
    assert (1, "AA") in (script.rows("shop", "t") or {})


def test_partitions_that_come_later_begin_where_their_own_records_show_it(script: Script) -> None:
    script.sync(new_generation=BEGIN)
    # the end of the old log, then the new one; and a partition that was silent before
    script.send(at(7, 9, 7, "x", partition=1), at(3, 15, 7, "y", partition=1), at(9, 16, 8, "z", partition=2))
    assert script.sync().new_generations == []
    assert {(7, "y"), (8, "z")} <= set(script.rows("shop", "t") or ())


def test_a_partition_that_shows_the_new_log_by_its_time_alone_leaves_old_records_alone(log: Log, lake: Path) -> None:
    script = pipeline(log, lake)
    script.send(create(), at(9, 7, 1, "a", partition=1))
    script.sync()
    script.send(at(9, 8, 1, "b"), at(11, 22, 1, "c"), at(10, 24, 1, "d"), at(12, 42, 1, "e"))
    script.send(at(9, 13, 2, "b", partition=1), at(10, 19, 2, "c", partition=1), at(12, 23, 2, "d", partition=1))
    script.send(at(11, 39, 3, "a", partition=2), at(10, 34, 4, "a", partition=3))
    first = question(script)
    assert script.sync(new_generation=first).new_generations == [first]
    assert script.rows("shop", "t") == {(1, "e"): 1, (2, "d"): 1, (3, "a"): 1, (4, "a"): 1}


def test_records_of_the_new_log_that_were_read_before_it_showed(log: Log, lake: Path) -> None:
    script = pipeline(log, lake)
    script.send(create(), at(7, 10, 1, "a"))
    script.sync()
    script.send(at(8, 13, 2, "b", partition=1))  # first of its partition, at a higher place
    script.sync()
    script.send(at(6, 12, 1, "A"))
    with pytest.raises(DataError) as caught:
        script.sync(new_generation=f"{TOPIC}.shop.t/0:1")
    assert caught.value.code == "source.generation_unclear"
    assert caught.value.where["read_before"] == f"{TOPIC}.shop.t/1"


@pytest.mark.parametrize("newest", [(7, "A"), (9, "B")], ids=["files below", "the new log has reached the next file"])
def test_records_of_the_old_log_that_come_after_those_of_the_new_one(
    newest: tuple[int, str], log: Log, lake: Path
) -> None:
    script = pipeline(log, lake)
    script.send(create(), at(7, 12, 1, "A"), at(newest[0], 13, 1, newest[1]))
    script.sync()
    script.send(at(10, 11, 1, "a", partition=1))  # a lower number, files behind
    with pytest.raises(DataError) as caught:
        script.sync()
    assert caught.value.code == "source.generation_unclear"
    assert caught.value.where == {"record": f"{TOPIC}.shop.t/1:0", "read_before": f"{TOPIC}.shop.t/0"}
    assert script.rows("shop", "t") == {(1, newest[1]): 1}


def test_a_create_of_the_old_log_that_comes_after_rows_of_the_new_one(log: Log, lake: Path) -> None:
    script = pipeline(log, lake)
    script.send(at(7, 12, 1, "A"), at(10, 13, 1, "B"))  # nothing shows that there was another log
    script.sync()
    script.send(create(file="mysql-bin.000010", gtid=f"{SERVER}:11"))
    with pytest.raises(DataError) as caught:
        script.sync()
    assert caught.value.code == "source.generation_unclear"


def test_what_a_batch_holds_of_the_old_log_stays_there(log: Log, lake: Path) -> None:
    """Partition 1 shows how far the old log went, partition 2 has the new one only."""
    script = pipeline(log, lake)
    script.send(create(), at(7, 1, 1, "a"))
    script.sync()
    script.send(at(8, 11, 1, "b"), at(10, 20, 1, "c", partition=1), at(8, 21, 2, "x", partition=2))
    begin = f"{TOPIC}.shop.t/2:0"
    assert question(script) == begin
    assert script.sync(new_generation=begin).new_generations == [begin]
    assert script.rows("shop", "t") == {(1, "c"): 1, (2, "x"): 1}


def test_a_schema_topic_made_again_comes_after_the_one_before(log: Log, lake: Path) -> None:
    columns = {"id": "int", "v": "varchar"}
    script = pipeline(log, lake)
    script.send(*snapshot_ddl(4, {"t": (columns, ("id",))}, time=500))
    script.send(row("r", "t", 4, {"id": 1, "v": "a"}, key=("id",), mark="last", time=600))
    script.sync()
    script.send(ddl("ALTER TABLE shop.t ADD COLUMN n int", 100, time=700))
    script.sync()
    # its statements have lower offsets than those of the snapshot
    script.log.partitions[TOPIC, 0], script.ends[TOPIC, 0] = [ddl("RENAME TABLE shop.t TO shop.u", 200, time=800)], 0
    script.send(row("c", "u", 300, {"id": 2, "v": "b", "n": 5}, key=("id",), time=900))
    script.sync()
    assert script.rows("shop", "u") == {(1, "a", None): 1, (2, "b", 5): 1}


@pytest.mark.parametrize("at_once", [True, False], ids=["one batch", "a batch each"])
def test_rows_far_below_a_snapshot_that_had_no_rows(at_once: bool, log: Log, lake: Path) -> None:
    script = pipeline(log, lake)
    columns = {"id": "int", "v": "varchar"}
    script.send(*snapshot_ddl(4, {"t": (columns, ("id",))}, time=500, rows=False, file="mysql-bin.000009"))
    if not at_once:
        script.sync()
    script.send(at(7, 1, 1, "a"))
    begin = BEGIN.replace(":3", ":0")
    assert question(script) == begin
    assert script.sync(new_generation=begin).new_generations == [begin]
    assert script.rows("shop", "t") == {(1, "a"): 1}


@pytest.mark.parametrize("time", [0, 1_500], ids=["no time", "later"])
def test_rows_sent_before_a_snapshot_show_no_new_log(time: int, log: Log, lake: Path) -> None:
    script = pipeline(log, lake)
    columns = {"id": "int", "v": "varchar"}
    script.send(create(), at(7, 1, 1, "a"))
    script.send(*snapshot_ddl(4, {"t": (columns, ("id",))}, time=time, file="mysql-bin.000009"))
    script.send(row("r", "t", 4, {"id": 1, "v": "b"}, key=("id",), mark="last", time=2_000, file="mysql-bin.000009"))
    script.sync()
    assert script.rows("shop", "t") == {(1, "b"): 1}


def test_a_partition_that_never_falls_goes_on_in_the_second_in_which_the_new_log_begins(log: Log, lake: Path) -> None:
    script = pipeline(log, lake)
    script.send(create(), at(7, 10, 1, "a"), at(7, 11, 2, "b", partition=1))
    script.sync()
    new: dict[str, Any] = {"time": 12_000, "file": "mysql-bin.000006"}
    script.send(row("c", "t", 100, {"id": 3, "v": "c"}, key=("id",), gtid=f"{SERVER}:12", **new))
    script.send(ddl("ALTER TABLE shop.t ADD COLUMN n int", 200, gtid=f"{SERVER}:13", **new))
    wide, new["file"] = {"id": 4, "v": "d", "n": 5}, "mysql-bin.000007"
    script.send(row("c", "t", 1_200, wide, key=("id",), gtid=f"{SERVER}:14", partition=1, **new))
    begin = BEGIN.replace(":3", ":1")
    assert question(script) == begin
    script.sync(new_generation=begin)
    assert script.rows("shop", "t") == {(1, "a", None): 1, (2, "b", None): 1, (3, "c", None): 1, (4, "d", 5): 1}


def test_records_of_the_new_log_sent_again_to_a_partition_that_begins_behind_them(log: Log, lake: Path) -> None:
    """All is in the pipeline's first batch: what other partitions show of the new log is not of the old one."""
    script = pipeline(log, lake)
    columns = {"id": "int", "v": "varchar"}
    text = "CREATE TABLE shop.t (id int NOT NULL, v varchar(20), PRIMARY KEY (id))"
    script.send(ddl(text, 4, time=500, columns=columns, key=("id",), file="mysql-bin.000009"))
    inserted = at(3, 13, 1, "a", partition=1)
    script.send(inserted, at(3, 14, 2, "b"), replace(inserted, partition=0))
    begin = BEGIN.replace(":3", ":0")
    assert question(script) == begin
    script.sync(new_generation=begin)
    assert script.rows("shop", "t") == {(1, "a"): 1, (2, "b"): 1}
    assert script.states_of("shop", "t") == ["ok"]
