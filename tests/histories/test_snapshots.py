# SPDX-License-Identifier: Apache-2.0
"""Snapshots that a connector takes again: they describe the tables, and replace content only with their rows."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.histories.debezium_records import TOPIC, ddl, row, snapshot_ddl
from tests.histories.described_tables import BEGIN, COLUMNS, described
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

KEYED, KEYLESS = (COLUMNS, ("id",)), (COLUMNS, ())
BOTH = {"k": KEYED, "n": KEYLESS}
DDL_TOPIC, ROW_TOPICS = (TOPIC, 0), ("src.shop.k", "src.shop.n")


def rows(op: str, pos: int, *numbers: int, **more: Any) -> list[Record]:
    """Return rows of both tables: with key and without."""
    rows = [{"id": number, "v": number} for number in numbers]
    if op == "d":
        return [row(op, table, pos, None, before=image, key=BOTH[table][1], **more) for table in BOTH for image in rows]
    return [row(op, table, pos, image, key=BOTH[table][1], **more) for table in BOTH for image in rows]


def taken(pos: int, *numbers: int, minute: int, **more: Any) -> list[Record]:
    """Return a snapshot with rows."""
    time = BEGIN + minute * 60_000
    return [*snapshot_ddl(pos, BOTH, time=time), *rows("r", pos, *numbers, mark="true", time=time + 900, **more)]


def demand_both(script: Script, *numbers: int) -> None:
    expected = Counter((number, number) for number in numbers)
    assert (script.rows("shop", "k"), script.rows("shop", "n")) == (expected, expected)
    assert (script.states_of("shop", "k"), script.states_of("shop", "n")) == (["ok"], ["ok"])


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Both tables after a first snapshot (rows 1 and 2) and a streamed row 3."""
    script = Script(log, lake)
    script.send(*taken(100, 1, 2, minute=0), *rows("c", 110, 3, time=BEGIN + 60_000))
    script.sync()
    demand_both(script, 1, 2, 3)
    return script


@pytest.mark.parametrize("pos", [90, 105, 110, 200], ids=["older", "between", "same", "newer"])
def test_a_snapshot_without_rows_changes_nothing(script: Script, log: Log, pos: int) -> None:
    commits = log.commits
    script.send(*snapshot_ddl(pos, BOTH, time=BEGIN + 120_000, rows=False))
    script.sync()
    demand_both(script, 1, 2, 3)
    assert log.commits == commits
    script.send(*rows("c", 300, 4))
    script.sync()
    demand_both(script, 1, 2, 3, 4)


def test_a_new_snapshot_replaces_what_it_does_not_have(script: Script) -> None:
    script.send(*taken(200, 2, 5, minute=10), *rows("c", 210, 6, time=BEGIN + 720_000))
    script.sync()
    demand_both(script, 2, 5, 6)


def test_a_batch_may_end_between_a_snapshots_ddl_and_its_rows(script: Script) -> None:
    script.send(*taken(200, 2, 5, minute=10))
    script.held = {(topic, 0) for topic in ROW_TOPICS}
    script.sync()
    demand_both(script, 1, 2, 3)
    script.held = set()
    script.sync()
    demand_both(script, 2, 5)


def test_a_snapshots_rows_may_come_a_batch_before_its_ddl(script: Script) -> None:
    script.send(*taken(200, 2, 5, minute=10))
    script.held = {DDL_TOPIC}
    script.sync()
    script.held = set()
    script.sync()
    demand_both(script, 2, 5)


def test_streamed_rows_may_come_before_rows_of_the_snapshot_they_follow(script: Script) -> None:
    script.send(*taken(200, 2, 5, minute=10, partition=1), *rows("c", 210, 6), *rows("d", 220, 5))
    script.held = {(topic, 1) for topic in ROW_TOPICS}
    script.sync()
    script.held = set()
    script.sync()
    demand_both(script, 2, 6)


def test_a_snapshot_in_several_batches_begins_the_content_once(script: Script) -> None:
    script.send(*taken(200, 2, minute=10))
    script.sync()
    demand_both(script, 2)
    for number in (5, 6, 7):
        script.send(*rows("r", 200, number, mark="true", time=BEGIN + 660_000))
        result = script.sync()
        assert {line.action for line in result.tables} <= {"append", "merge"}
    demand_both(script, 2, 5, 6, 7)


def test_rows_from_before_a_snapshot_that_come_after_it_do_not_count(script: Script) -> None:
    script.send(*taken(200, 2, minute=10), *rows("c", 120, 9, partition=1))
    script.held = {(topic, 1) for topic in ROW_TOPICS}
    script.sync()
    script.held = set()
    script.sync()
    demand_both(script, 2)


def test_a_statement_of_a_snapshot_sent_twice_counts_once(script: Script, log: Log) -> None:
    again = [record for record in log.partitions[DDL_TOPIC] if b"DROP TABLE" in (record.value or b"")]
    commits = log.commits
    script.send(*again)
    script.sync()
    demand_both(script, 1, 2, 3)
    assert log.commits == commits


def test_a_table_that_a_new_snapshot_lacks_is_kept_and_noted(script: Script) -> None:
    time = BEGIN + 600_000
    script.send(*snapshot_ddl(200, {"k": KEYED}, time=time))
    script.send(row("r", "k", 200, {"id": 2, "v": 2}, key=("id",), mark="last", time=time + 900))
    script.sync()
    assert script.rows("shop", "k") == Counter({(2, 2): 1})
    assert script.rows("shop", "n") == Counter({(1, 1): 1, (2, 2): 1, (3, 3): 1})
    (state,) = (state for state in script.states.values() if state.table == "n")
    assert state.state == "ok"
    assert "lacks this table" in " ".join(state.notes)


def test_a_table_that_came_to_be_while_the_connector_was_down_begins_with_its_snapshot(script: Script) -> None:
    script.send(*snapshot_ddl(200, {**BOTH, "new": KEYED}, time=BEGIN + 600_000))
    script.send(row("r", "new", 200, {"id": 1, "v": 1}, key=("id",), mark="last", time=BEGIN + 601_000))
    script.sync()
    assert script.rows("shop", "new") == Counter({(1, 1): 1})


WIDER = {"id": "int", "v": "int", "w": "int"}


def test_a_structure_that_a_snapshot_shows_is_a_schema_version(script: Script) -> None:
    wider = {"k": (WIDER, ("id",)), "n": (WIDER, ())}
    script.send(*snapshot_ddl(200, wider, time=BEGIN + 600_000, rows=False))
    script.sync()
    assert script.rows("shop", "k") == Counter({(number, number, None): 1 for number in (1, 2, 3)})
    time = BEGIN + 1_200_000
    script.send(*snapshot_ddl(300, wider, time=time))
    new = {"id": 1, "v": 1, "w": 7}
    script.send(row("r", "k", 300, new, key=("id",), mark="true", time=time), row("r", "n", 300, new, time=time))
    script.sync()
    assert script.rows("shop", "k") == Counter({(1, 1, 7): 1})


def test_a_recovery_that_stands_before_a_streamed_alter_has_its_effect_already(script: Script) -> None:
    wider = {"k": (WIDER, ("id",)), "n": (WIDER, ())}
    for table, (columns, key) in wider.items():
        script.send(ddl(f"ALTER TABLE {table} ADD w INT", 150, table=table, columns=columns, key=key))
    script.send(*snapshot_ddl(120, wider, time=BEGIN + 600_000, rows=False))
    script.send(row("c", "k", 160, {"id": 4, "v": 4, "w": 4}, key=("id",)))
    script.sync()
    assert script.rows("shop", "k") == Counter({**{(n, n, None): 1 for n in (1, 2, 3)}, (4, 4, 4): 1})
    assert script.states_of("shop", "k") == ["ok"]


def test_a_table_that_needs_a_rebuild_is_well_again_with_a_snapshots_rows_and_only_then(script: Script) -> None:
    script.send(ddl("ALTER TABLE k DROP PARTITION p0", 150, table="k", columns=COLUMNS, key=("id",)))
    script.sync()
    assert script.states_of("shop", "k") == ["parked"]
    script.send(*snapshot_ddl(160, BOTH, time=BEGIN + 300_000, rows=False))
    script.sync()
    assert script.states_of("shop", "k") == ["parked"]
    script.send(*taken(200, 2, 5, minute=10))
    script.sync()
    demand_both(script, 2, 5)
    script.send(*rows("c", 210, 6))
    script.sync()
    demand_both(script, 2, 5, 6)


@pytest.mark.parametrize("ends", [(), (1,), (2,), (3,), (1, 3)], ids=str)
def test_a_snapshot_that_began_again_at_its_position_counts_alone(ends: tuple[int, ...], log: Log, lake: Path) -> None:
    """The connector dies in its first snapshot; nothing happens at the source before the next one."""
    script = Script(log, lake)
    statements = len(snapshot_ddl(100, BOTH))
    script.send(*taken(100, 1, 2, minute=0), *taken(100, 1, 2, 3, minute=5), *rows("c", 110, 4, time=BEGIN + 400_000))
    for end in ends:  # rows of the attempts, and the DDL of those that they are of
        script.sync({DDL_TOPIC: statements * (1 if end <= 2 else 2), **{(topic, 0): end for topic in ROW_TOPICS}})
    script.sync()
    demand_both(script, 1, 2, 3, 4)


def test_a_row_of_the_attempt_before_that_comes_late_does_not_count(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    late = rows("r", 100, 2, mark="true", time=BEGIN + 1_000, partition=1)
    script.send(*taken(100, 1, minute=0), *late, *taken(100, 1, 2, 3, minute=5))
    script.held = {(topic, 1) for topic in ROW_TOPICS}
    script.sync()
    script.held = set()
    script.sync()
    demand_both(script, 1, 2, 3)


def test_rows_of_ad_hoc_snapshots_are_passed_over_without_key(script: Script) -> None:
    # recorded: a blocking snapshot sends the table's old DDL again, at the position of the first snapshot
    script.send(*snapshot_ddl(100, BOTH, time=BEGIN + 600_000))
    script.send(*rows("r", 150, 1, 2, 3, mark="first", time=BEGIN + 601_000, server_id=7))
    script.send(*rows("r", 160, 1, mark="incremental", time=BEGIN + 602_000))
    result = script.sync()
    demand_both(script, 1, 2, 3)
    assert result.lossy == {"keyless_snapshot_row": 4}
    assert result.changes == {"incremental": 2, "snapshot": 6}


def test_a_table_altered_since_its_snapshot_keeps_its_columns_when_the_old_ddl_is_sent_again(script: Script) -> None:
    wider = (WIDER, ("id",))
    script.send(ddl("ALTER TABLE k ADD w INT", 120, table="k", columns=WIDER, key=("id",)))
    script.send(row("c", "k", 130, {"id": 4, "v": 4, "w": 4}, key=("id",)))
    script.sync()
    script.send(*snapshot_ddl(100, BOTH, time=BEGIN + 600_000))
    script.send(row("r", "k", 150, {"id": 4, "v": 4, "w": 4}, key=("id",), mark="last", server_id=7))
    script.sync()
    assert script.rows("shop", "k") == Counter({**{(n, n, None): 1 for n in (1, 2, 3)}, (4, 4, 4): 1})
    assert wider[0] == WIDER


def test_without_ddl_a_new_snapshot_replaces_a_table_without_key(log: Log, lake: Path) -> None:
    script = Script(log, lake, schema_topic=None)
    script.send(*(described(100, number, 0) for number in (1, 2)))
    script.sync()
    script.send(*(described(200, number, 10) for number in (2, 5)))
    script.sync()
    assert script.rows("shop", "n") == Counter({(2, 2): 1, (5, 5): 1})


def test_without_ddl_all_tables_of_a_snapshot_are_known(log: Log, lake: Path) -> None:
    script = Script(log, lake, schema_topic=None)
    script.send(described(100, 1, 0), described(100, 1, 0, table="m"))
    script.sync()
    assert script.rows("shop", "n") == script.rows("shop", "m") == Counter({(1, 1): 1})


def test_a_row_of_drss_full_phase_sent_twice_counts_once_without_key(log: Log, lake: Path) -> None:
    script = Script(log, lake, format="drs-json", schema_topic=None)
    create = {"type": "INIT_DDL", "id": 1, "es": 1, "database": "shop", "table": "n", "isDdl": True}
    create["sql"] = "CREATE TABLE n (id INT, v INT)"
    first, equal = full_row(2, 1), full_row(3, 1)  # two equal rows of the table, each with its own number
    script.send(drs(create), drs(first), drs(equal), drs(first))
    script.sync()
    assert script.rows("shop", "n") == Counter({(1, 1): 2})
    script.send(drs(equal))
    script.sync()
    assert script.rows("shop", "n") == Counter({(1, 1): 2})


def full_row(event: int, number: int) -> dict[str, Any]:
    types = {"id": "int", "v": "int"}
    data = [{"id": str(number), "v": str(number)}]
    return {
        "mysqlType": types,
        "data": data,
        "old": None,
        "pkNames": None,
        "id": event,
        "es": 1,
        "database": "shop",
        "table": "n",
        "type": "INIT",
    }


def drs(message: dict[str, Any]) -> Record:
    return Record("drs", 0, BEGIN, None, json.dumps(message).encode())


@pytest.mark.sampled(2)
@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
@pytest.mark.parametrize("minute", [5, 4, 0, -10], ids=["equal", "earlier", "much-earlier", "long-before"])
@pytest.mark.parametrize("first", [(1,), (1, 2), (1, 2, 3)], ids=str)
def test_a_snapshot_that_began_again_by_a_clock_that_is_behind_doubles_no_rows(
    first: tuple[int, ...], minute: int, apart: bool, log: Log, lake: Path
) -> None:
    script = Script(log, lake)
    script.send(*taken(100, *first, minute=5))
    if apart:
        script.sync()
    script.send(*taken(100, 1, 2, 3, minute=minute))
    script.sync()
    assert script.rows("shop", "k") == Counter((number, number) for number in (1, 2, 3))
    assert script.rows("shop", "n") == (Counter((number, number) for number in first) if apart else None)
    (state,) = (state for state in script.states.values() if state.table == "n")
    assert (state.state, state.code) == ("parked", "apply.snapshots_alike")


def test_rows_that_come_once_are_of_one_attempt_whatever_the_clocks_show(log: Log, lake: Path) -> None:
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, BOTH, time=BEGIN), *taken(100, 1, 2, minute=-5), *rows("c", 110, 3))
    script.sync()
    demand_both(script, 1, 2, 3)


def test_times_that_fall_within_a_partition_are_refused(log: Log, lake: Path) -> None:
    """The second attempt begins behind the begin of the first, but before its rows."""
    script = Script(log, lake)
    script.send(*taken(100, 1, minute=0), *rows("r", 100, 2, mark="true", time=BEGIN + 300_000))
    script.send(*taken(100, 1, 2, minute=2))
    script.sync()
    (state,) = (state for state in script.states.values() if state.table == "n")
    assert (state.state, state.code) == ("parked", "apply.snapshots_alike")
