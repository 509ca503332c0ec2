# SPDX-License-Identifier: Apache-2.0
"""Records without a value: harmless behind their delete, a sign of compaction where it is gone."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.quarantined import cut_off
from tests.histories.records import Record
from tests.histories.scripted import Script

CREATE = ddl("CREATE TABLE shop.t (id int NOT NULL PRIMARY KEY, v varchar(20))", 4)


def put(key: int, pos: int, op: str = "c") -> Record:
    image = {"id": key, "v": f"{key}"}
    return row(op, "t", pos, image if op != "d" else None, before=image if op == "d" else None, key=("id",), time=pos)


def gone(key: int, pos: int) -> list[Record]:
    """Return a delete with its tombstone."""
    delete = put(key, pos, "d")
    return [delete, tombstone(key)]


def tombstone(key: int) -> Record:
    return Record("src.shop.t", 0, 0, put(key, 1).key, None)


def synced(log: Log, lake: Path, records: list[Record], *cuts: int) -> Script:
    script = Script(log, lake)
    script.send(CREATE)
    for start, end in pairwise([0, *cuts, len(records)]):
        script.send(*records[start:end])
        script.sync()
    return script


CUTS = [(), (1,), (2,), (3,), (1, 2, 3), (1, 2, 3, 4, 5)]


@pytest.mark.parametrize("cuts", CUTS)
def test_behind_its_delete_it_says_nothing_new(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    records = [put(1, 10), *gone(1, 20), put(1, 30), put(2, 40), *gone(2, 50)]
    script = synced(log, lake, records, *cuts)
    assert script.states_of("shop", "t") == ["ok"]
    assert script.rows("shop", "t") == {(1, "1"): 1}


@pytest.mark.parametrize("cuts", CUTS[:4])
def test_behind_a_delete_that_cannot_be_read_it_needs_no_decision_of_its_own(
    log: Log, lake: Path, cuts: tuple[int, ...]
) -> None:
    delete, behind = gone(1, 20)
    script = synced(log, lake, [put(1, 10), cut_off(delete), behind, put(2, 30)], *cuts)
    assert [entry.record for entry in script.open_records()] == [("src.shop.t", 0, 1)]
    assert script.states_of("shop", "t") == ["parked"]


ALONE = {
    "delete_gone": [put(1, 10), put(2, 20), tombstone(1)],
    "all_gone": [tombstone(1), put(2, 20), put(3, 30)],
    "behind_another_delete": [put(1, 10), *gone(2, 20), tombstone(1)],
    "behind_its_insert": [put(2, 5), put(1, 10), tombstone(1)],
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("cuts", [(), (1,), (2,), (1, 2, 3)])
@pytest.mark.parametrize("name", ALONE)
def test_alone_it_shows_that_the_topic_is_compacted(log: Log, lake: Path, name: str, cuts: tuple[int, ...]) -> None:
    records = ALONE[name]
    script = synced(log, lake, records, *(cut for cut in cuts if cut < len(records)))
    (state,) = script.states.values()
    assert state.state == "parked", state
    assert "record.tombstone_alone" in str(state.reason) and "compacted" in str(state.reason)


def test_an_operator_may_let_the_table_go_on(log: Log, lake: Path) -> None:
    script = synced(log, lake, ALONE["delete_gone"], 2)
    (entry,) = [one for one in script.log.partitions["src.shop.t", 0] if one.value is None]
    assert entry.key
    script.policy["quarantine_limit"] = 1
    script.sync()
    assert script.states_of("shop", "t") == ["ok"]


def test_a_log_that_is_read_from_its_middle_begins_anywhere(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(CREATE, put(9, 5), *gone(1, 10), put(2, 20))
    script.ends["src.shop.t", 0] = 2  # older records are gone
    script.sync()
    assert script.states_of("shop", "t") == ["ok"]
    assert script.rows("shop", "t") == {(2, "2"): 1}


def test_a_key_as_struct_is_not_needed_where_ddl_states_it(log: Log, lake: Path) -> None:
    records = [put(1, 10), put(1, 20, "u")]
    struct = [Record(one.topic, 0, one.time, b"Struct{id=1}", one.value) for one in records]
    script = synced(log, lake, struct)
    assert script.rows("shop", "t") == {(1, "1"): 1}


@pytest.mark.parametrize("cuts", [(), (2,)])
def test_records_of_other_keys_may_stand_between_a_delete_and_its_tombstone(
    log: Log, lake: Path, cuts: tuple[int, ...]
) -> None:
    """Somebody put the partitions of a topic together."""
    delete, behind = gone(1, 20)
    script = synced(log, lake, [put(1, 10), put(3, 15), delete, put(2, 30), behind, put(1, 40)], *cuts)
    assert script.states_of("shop", "t") == ["ok"]
    assert script.rows("shop", "t") == {(1, "1"): 1, (2, "2"): 1, (3, "3"): 1}
