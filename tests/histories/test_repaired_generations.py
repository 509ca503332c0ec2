# SPDX-License-Identifier: Apache-2.0
"""Records of a source's log that began again, which came damaged and were repaired: the log that each is of."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_provider_cdc.core.errors import DataError
from tests.histories.debezium_records import TOPIC, ddl, snapshot_ddl
from tests.histories.log import Log
from tests.histories.quarantined import cut_off, repair
from tests.histories.records import Record
from tests.histories.two_logs import BEGIN, at, create, pipeline, question


@pytest.mark.parametrize("old", [True, False], ids=["partition with old records", "partition without"])
def test_the_first_record_of_a_new_log_is_of_it_when_it_is_repaired(old: bool, log: Log, lake: Path) -> None:
    script = pipeline(log, lake, quarantine_limit=1)
    where, first = int(not old), at(3, 13, 1, "A", partition=int(not old))
    script.send(create(), at(7, 10, 1, "a"), at(7, 12, 3, "c"))
    script.sync()
    script.send(cut_off(first), at(3, 14, 3, "C"))
    begin = question(script)
    script.sync(new_generation=begin)
    assert script.rows("shop", "t") == {(1, "a"): 1, (3, "C"): 1}
    script.sync(decision=repair((f"{TOPIC}.shop.t", where, 2 if old else 0, first)))
    assert script.rows("shop", "t") == {(1, "A"): 1, (3, "C"): 1}


def test_the_last_record_of_a_log_stays_of_it_when_it_is_repaired(log: Log, lake: Path) -> None:
    script = pipeline(log, lake, quarantine_limit=1)
    last = at(7, 12, 1, "b")
    script.send(create(), at(7, 10, 1, "a"), at(7, 11, 2, "b"), cut_off(last), at(3, 14, 1, "C"))
    begin = question(script)
    script.sync(new_generation=begin)
    script.sync(decision=repair((f"{TOPIC}.shop.t", 0, 2, last)))
    assert script.rows("shop", "t") == {(1, "C"): 1, (2, "b"): 1}


def test_a_record_of_a_log_that_nothing_else_shows_stays_in_the_quarantine(log: Log, lake: Path) -> None:
    script = pipeline(log, lake, quarantine_limit=1)
    script.send(create(), at(7, 10, 1, "a"), at(7, 11, 2, "b"))
    script.sync()
    first = at(3, 13, 1, "A")
    script.send(cut_off(first))
    script.sync()
    decision = repair((f"{TOPIC}.shop.t", 0, 2, first))
    with pytest.raises(DataError) as caught:
        script.sync(decision=decision)
    assert (caught.value.code, caught.value.where["offset"]) == ("quarantine.generation_unclear", 2)
    assert script.rows("shop", "t") == {(1, "a"): 1, (2, "b"): 1}
    script.sync(dict(script.ends))  # the refused batch goes on without the decision
    script.send(at(3, 14, 2, "B"))
    script.sync(new_generation=question(script))
    script.sync(decision=decision)
    assert script.rows("shop", "t") == {(1, "A"): 1, (2, "B"): 1}


@pytest.mark.parametrize(
    ("last", "later", "between"),
    [
        (at(9, 12, 1, "x"), at(8, 13, 1, "N"), []),
        (at(9, 12, 1, "x"), at(8, 13, 1, "N"), [at(8, 12, 2, "b", partition=1)]),
        (at(12, 12, 1, "x"), at(8, 13, 2, "N", partition=1), []),
    ],
    ids=["same partition", "with a record between", "other partition, files below"],
)
@pytest.mark.parametrize("at_once", [True, False], ids=["one batch", "a batch each"])
def test_the_last_record_of_a_log_does_not_overrule_a_next_one_that_nothing_else_shows(
    at_once: bool, last: Record, later: Record, between: list[Record], log: Log, lake: Path
) -> None:
    script = pipeline(log, lake, quarantine_limit=1)
    script.send(create(), at(7, 10, 1, "a"), cut_off(last))
    if not at_once:
        script.sync()
    script.send(*between, later)
    script.sync()
    rows = script.rows("shop", "t")
    with pytest.raises(DataError) as caught:
        script.sync(decision=repair((f"{TOPIC}.shop.t", 0, 1, last)))
    assert caught.value.code == "quarantine.generation_unclear"
    script.sync(dict(script.ends))  # the refused batch goes on without the decision
    assert script.rows("shop", "t") == rows


@pytest.mark.parametrize("others", [[at(10, 14, 2, "b")], []], ids=["a record behind", "none behind"])
def test_two_records_repaired_at_once_of_which_the_second_is_of_the_next_log(
    others: list[Record], log: Log, lake: Path
) -> None:
    script = pipeline(log, lake, quarantine_limit=2)
    last, first = at(9, 12, 1, "x"), at(8, 13, 1, "N")
    script.send(create(), at(7, 10, 1, "a"))
    script.sync()
    script.send(cut_off(last), cut_off(first), *others)
    script.sync()
    with pytest.raises(DataError) as caught:
        script.sync(decision=repair((f"{TOPIC}.shop.t", 0, 1, last), (f"{TOPIC}.shop.t", 0, 2, first)))
    assert caught.value.code == "quarantine.generation_unclear"


def test_records_that_are_sent_again_behind_a_repaired_one_show_no_next_log(log: Log, lake: Path) -> None:
    script = pipeline(log, lake, quarantine_limit=1)
    earlier, repaired = at(7, 13, 2, "b"), at(9, 12, 1, "x")  # a replica commits out of order
    script.send(create(), at(7, 10, 1, "a"), earlier, cut_off(repaired), earlier, at(9, 14, 3, "c"))
    script.sync()
    script.sync(decision=repair((f"{TOPIC}.shop.t", 0, 2, repaired)))
    assert script.rows("shop", "t") == {(1, "x"): 1, (2, "b"): 1, (3, "c"): 1}


def test_clauses_of_a_statement_keep_their_order_when_the_first_is_repaired(log: Log, lake: Path) -> None:
    script = pipeline(log, lake, quarantine_limit=1)
    script.send(create(), create("u"), at(7, 10, 1, "a"))
    script.sync()
    texts = ["shop.t TO shop.tmp", "shop.u TO shop.t", "shop.tmp TO shop.u"]
    clauses = [ddl(f"RENAME TABLE {text}", 5_000, time=20_000, file="mysql-bin.000007") for text in texts]
    script.send(cut_off(clauses[0]), *clauses[1:])
    script.sync()
    script.sync(decision=repair((TOPIC, 0, 2, clauses[0])))
    assert script.rows("shop", "u") == {(1, "a"): 1}


def test_a_repaired_clause_takes_its_place_before_the_others_although_it_was_sent_again(log: Log, lake: Path) -> None:
    script = pipeline(log, lake, quarantine_limit=1)
    script.send(create(), create("u"), at(7, 10, 1, "a"), at(7, 11, 2, "b", table="u"))
    script.sync()
    texts = ["shop.t TO shop.tmp", "shop.u TO shop.t", "shop.tmp TO shop.u"]
    clauses = [ddl(f"RENAME TABLE {text}", 5_000, time=20_000, file="mysql-bin.000007") for text in texts]
    script.send(cut_off(clauses[0]), *clauses[1:], *clauses)
    script.sync()
    script.sync(decision=repair((TOPIC, 0, 2, clauses[0])))
    assert script.rows("shop", "u") == {(1, "a"): 1}
    assert script.rows("shop", "t") == {(2, "b"): 1}


def test_a_repaired_create_of_a_snapshot_stands_before_the_stream_although_it_was_sent_again(
    log: Log, lake: Path
) -> None:
    script = pipeline(log, lake, quarantine_limit=1)
    columns = {"id": "int", "v": "varchar"}
    described = snapshot_ddl(100, {"t": (columns, ("id",)), "u": (columns, ("id",))})
    number = len(described) - 1  # CREATE TABLE u
    clauses = [ddl(f"RENAME TABLE shop.{text}", 5_000, table="t") for text in ("t TO old", "u TO t")]
    script.send(*described[:-1], cut_off(described[-1]), *clauses, *described)
    script.sync()
    script.sync(decision=repair((TOPIC, 0, number, described[-1])))
    assert script.states_of("shop", "u") == ["dropped"]
    assert sorted(script.states_of("shop", "t")) == ["dropped", "ok"]  # the first was renamed from what nobody knew


def test_a_new_log_shows_where_only_repaired_records_were_read_before(log: Log, lake: Path) -> None:
    script = pipeline(log, lake, quarantine_limit=1)
    only = at(7, 10, 1, "a")
    script.send(create(), cut_off(only))
    script.sync()
    script.sync(decision=repair((f"{TOPIC}.shop.t", 0, 0, only)))
    script.send(at(3, 13, 1, "A"))
    begin = BEGIN.replace(":3", ":1")
    assert question(script) == begin
    script.sync(new_generation=begin)
    assert script.rows("shop", "t") == {(1, "A"): 1}
