# SPDX-License-Identifier: Apache-2.0
"""Random histories with records that cannot be carried: once operators settled them the tables are equal."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.core.documents import Decision, DecisionAction, JobDocument, Rebuild
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.offsets import OffsetRange
from spark_jobs.lake.layout import expired_file
from tests.histories.cases import case_of
from tests.histories.ddl_statements import Create, Rename
from tests.histories.debezium_records import TOPIC, row, snapshot_ddl
from tests.histories.log import Crash, CrashError, Log
from tests.histories.plain_tables import INT, KEYED, A, B, T, U, rows
from tests.histories.quarantined import WithQuarantine, cut_off, record_line, unfit
from tests.histories.records import Record
from tests.histories.row_statements import Insert, Update
from tests.histories.run import Case, described
from tests.histories.scripted import Script
from tests.histories.source import Column, Structure
from tests.histories.tools import TOOLS, Style
from tests.sample import amount

SEEDS = range(800, 807)
LEAST = amount(2, 4)  # more where those show nothing of what is asked for
# by the clock only a log of one partition without repeats has broken records: few seeds make such a one
RARE = {name for name, tool in TOOLS.items() if tool.by_clock}


@pytest.mark.every(2)
@pytest.mark.parametrize("name", TOOLS)
def test_tables_are_equal_once_everything_is_settled(name: str, log: Log, lake: Path) -> None:
    settled = 0
    for number, seed in enumerate(SEEDS):
        if number >= LEAST and (settled or name in RARE):
            break
        case = case_of(name, seed, sizes=(5, 8))
        case = replace(case, recreated=0.0)
        history = WithQuarantine(case, log, lake)
        problems = history.run()
        assert not problems, described(history.case, history.story, problems)
        settled += history.settled
    assert settled > 0 or name in RARE


def _prepared(log: Log, lake: Path, format_name: str) -> tuple[WithQuarantine, JobDocument]:
    """Return a history of one batch, whose rows are to be damaged, and its job."""
    case = Case(0, (Create(T, KEYED), rows(1, 2, 3, 4)), Style(partitions=1), format=format_name)
    history = WithQuarantine(replace(case, batches=1), log, lake)
    history._limit = 10
    history._cut(1, 1)
    return history, history._job(1, history._chunks())


def test_rows_that_an_attempt_left_out_wait_although_it_died_behind_its_commit(log: Log, lake: Path) -> None:
    history, job = _prepared(log, lake, "debezium-json")
    (where,) = [where for where in log.partitions if where[0].endswith(".shop.t")]
    log.partitions[where][1] = unfit(log.partitions[where][1])
    log.arm(Crash("commit", after=True))
    with pytest.raises(CrashError):
        history._sync(job)
    log.arm(None)
    result = history._sync(job)
    assert ([line.status for line in result.tables], result.quarantined) == (["repeated"], 1)
    assert [(row["database"], row["table"], row["offset"]) for row in result.quarantine] == [("shop", "t", 1)]
    assert [entry.record for entry in history._waiting(job)] == [(*where, 1)]


def test_a_row_for_which_its_table_is_parked_is_counted_and_names_the_table(log: Log, lake: Path) -> None:
    history, _ = _prepared(log, lake, "debezium-json")
    (where,) = [where for where in log.partitions if where[0].endswith(".shop.t")]
    log.partitions[where][1] = unfit(log.partitions[where][1])
    history._limit = 0
    result = history._sync(history._job(1, history._chunks()))
    assert [line.status for line in result.tables] == ["parked"]
    assert [(row["database"], row["table"], row["offset"]) for row in result.quarantine] == [("shop", "t", 1)]
    assert result.quarantined == 1


def test_repaired_records_with_others_between_them_are_replayed_together(log: Log, lake: Path) -> None:
    history, job = _prepared(log, lake, "dts-protobuf")
    (where,) = log.partitions
    originals = list(log.partitions[where])
    damaged = [len(originals) - 1, len(originals) - 3]
    for offset in damaged:
        log.partitions[where][offset] = cut_off(originals[offset])
    result = history._sync(job)
    history._take_over(1, result.document())
    waiting = {entry.record: entry for entry in history._waiting(job)}
    lines = [record_line((*where, offset), originals[offset]) for offset in damaged]
    lines += [record_line(name, originals[name[2]]) for name in waiting if name[2] not in damaged]
    decision = Decision(DecisionAction.REPLAY, [list(name) for name in waiting], lines)
    result = history._sync(replace(history._job(2, []), order=decision))
    history._take_over(2, result.document())
    picture = history._sent[-1].picture
    assert picture is not None
    assert history._differences(picture) == []
    assert history._waiting(history._job(3, [])) == []


def test_rows_of_a_record_behind_lost_ones_stay_when_it_is_discarded(log: Log, lake: Path) -> None:
    history, job = _prepared(log, lake, "dts-protobuf")
    (where,) = log.partitions
    damaged = len(log.partitions[where]) - 3
    original = log.partitions[where][damaged]
    log.partitions[where][damaged] = cut_off(original)
    history._take_over(1, history._sync(job).document())
    (lost,) = [entry for entry in history._waiting(history._job(2, [])) if entry.code == "record.lost"]
    discard = Decision(DecisionAction.DISCARD, [list(lost.record)])
    history._take_over(2, history._sync(replace(history._job(2, []), order=discard)).document())
    repaired = Decision(DecisionAction.REPLAY, [[*where, damaged]], [record_line((*where, damaged), original)])
    history._take_over(3, history._sync(replace(history._job(3, []), order=repaired)).document())
    # what counts of the change log shows where the table is built from it again
    rebuilt = history._sync(replace(history._job(4, []), order=Rebuild(["shop.t"])))
    history._take_over(4, rebuilt.document())
    picture = history._sent[-1].picture
    assert picture is not None
    assert history._differences(picture) == []
    assert history._waiting(history._job(5, [])) == []


def test_rows_that_stop_a_rebuild_wait_for_a_decision(log: Log, lake: Path) -> None:
    history, job = _prepared(log, lake, "debezium-json")
    (where,) = [where for where in log.partitions if where[0].endswith(".shop.t")]
    log.partitions[where][1] = unfit(log.partitions[where][1])
    ends = {(chunk.topic, chunk.partition): chunk.end for chunk in job.chunks}
    first = [OffsetRange(*part, 0, 1 if part == where else end) for part, end in ends.items()]
    history._limit = 0
    history._take_over(1, history._sync(history._job(1, first)).document())
    shutil.rmtree(lake / "shop" / "t")
    history._take_over(2, history._sync(history._job(2, [OffsetRange(*where, 1, ends[where])])).document())
    assert history._waiting(history._job(3, [])) == []  # nobody looked at the rows: the table is gone
    result = history._sync(replace(history._job(3, []), order=Rebuild(["shop.t"])))
    history._take_over(3, result.document())
    assert [line.status for line in result.tables] == ["parked"]
    assert [entry.record for entry in history._waiting(history._job(4, []))] == [(*where, 1)]
    settled = replace(history._job(4, []), order=Decision(DecisionAction.DISCARD, [[*where, 1]]))
    history._take_over(4, history._sync(settled).document())
    rebuilt = history._sync(replace(history._job(5, []), order=Rebuild(["shop.t"])))
    assert [(line.status, line.upserts) for line in rebuilt.tables] == [("committed", 3)]


def test_a_row_that_does_not_fit_after_its_replay_either_waits_again(log: Log, lake: Path) -> None:
    history, job = _prepared(log, lake, "debezium-json")
    history._limit = 0
    (where,) = [where for where in log.partitions if where[0].endswith(".shop.t")]
    original = log.partitions[where][1]
    log.partitions[where][1] = unfit(original)
    history._take_over(1, history._sync(history._job(1, job.chunks)).document())
    for seq, record in ((2, unfit(original)), (3, unfit(original)), (4, original)):
        assert [entry.record for entry in history._waiting(history._job(seq, []))] == [(*where, 1)]
        decision = Decision(DecisionAction.REPLAY, [[*where, 1]], [record_line((*where, 1), record)])
        history._take_over(seq, history._sync(replace(history._job(seq, []), order=decision)).document())
    picture = history._sent[-1].picture
    assert picture is not None
    assert history._differences(picture) == []
    assert history._waiting(history._job(5, [])) == []


def test_a_row_of_a_table_that_was_renamed_since_is_replayed_in_its_place(log: Log, lake: Path) -> None:
    statements = (Create(T, KEYED), rows(1, 2, 3, 4), Rename(((T, U),)))
    history = WithQuarantine(Case(0, statements, Style(partitions=1), batches=1, format="canal-json"), log, lake)
    history._limit = 10
    history._cut(1, 1)
    job = history._job(1, history._chunks())
    (where,) = log.partitions
    offset, original = next((i, record) for i, record in enumerate(log.partitions[where]) if unfit(record) != record)
    log.partitions[where][offset] = unfit(original)
    history._take_over(1, history._sync(job).document())
    (entry,) = history._waiting(history._job(2, []))
    assert (entry.table, entry.record) == (U[1], (*where, offset))
    decision = Decision(DecisionAction.REPLAY, [[*where, offset]], [record_line((*where, offset), original)])
    expired = lake / expired_file("histories", 1)
    expired.write_text('{"all": true}')
    with pytest.raises(DataError) as caught:
        history._sync(replace(history._job(2, []), order=decision))
    assert (caught.value.code, caught.value.where["offset"]) == ("retention.log_expired", offset)
    expired.unlink()
    history._take_over(2, history._sync(replace(history._job(2, []), order=decision)).document())
    picture = history._sent[-1].picture
    assert picture is not None
    assert history._differences(picture) == []


def test_an_update_of_some_columns_that_is_repaired_brings_back_the_one_before_it_in_its_batch(
    log: Log, lake: Path
) -> None:
    """No row was made of either: the newest change of the key in the batch did not fit."""
    table = Structure((A, B, Column("c", INT)), ("a",))
    updates = [Update(T, (0,), {name: 2}) for name in ("b", "c")]
    statements = (Create(T, table), Insert(T, ({"a": 1, "b": 1, "c": 1},)), *updates)
    case = Case(0, statements, Style(partitions=1, minimal=True), ends=({".rows/0": 2},), format="drs-json-c")
    history = WithQuarantine(case, log, lake)
    history._limit = 10
    (where,) = log.partitions
    original = log.partitions[where][3]
    log.partitions[where][3] = unfit(original)
    for seq in (1, 2):
        history._cut(seq, 2)
        history._take_over(seq, history._sync(history._job(seq, history._chunks())).document())
    assert [entry.record for entry in history._waiting(history._job(3, []))] == [(*where, 3)]
    repaired = Decision(DecisionAction.REPLAY, [[*where, 3]], [record_line((*where, 3), original)])
    history._take_over(3, history._sync(replace(history._job(3, []), order=repaired)).document())
    picture = history._sent[-1].picture
    assert picture is not None
    assert history._differences(picture) == []
    assert history._waiting(history._job(4, [])) == []


def test_a_repaired_row_of_a_table_without_key_counts_once_when_an_earlier_batch_is_gone_back_to(
    log: Log, lake: Path
) -> None:
    """The version before the second repaired record holds what was landed of the first, which counts no more."""
    script = Script(log, lake, schema_topic=TOPIC, policy={"quarantine_limit": 1})
    change, last = update(4, 1, 2), insert(6, 9)
    script.send(*snapshot_ddl(100, {"t": ({"v": "int"}, ())}), insert(1, 1), insert(2, 1), insert(3, 1))
    script.sync()
    script.send(unfit(change), update(5, 1, 3))
    script.sync()
    script.send(cut_off(last), insert(7, 10))
    script.sync()
    for number, record in ((3, change), (5, last)):
        name = (f"{TOPIC}.shop.t", 0, number)
        script.sync(decision=Decision(DecisionAction.REPLAY, [list(name)], [record_line(name, record)]))
    assert script.rows("shop", "t") == {(1,): 1, (2,): 1, (3,): 1, (9,): 1, (10,): 1}


def insert(number: int, value: int) -> Record:
    return row("c", "t", 100 + 10 * number, {"v": value}, time=1_000 * number)


def update(number: int, old: int, new: int) -> Record:
    return row("u", "t", 100 + 10 * number, {"v": new}, before={"v": old}, time=1_000 * number)
