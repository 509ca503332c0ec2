# SPDX-License-Identifier: Apache-2.0
"""A heartbeat names another server: tables wait, unless their content began again on that server."""

from __future__ import annotations

from airflow_provider_cdc.core.model.relation import RelationChange, RelationEvent
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableName, TableSchema
from airflow_provider_cdc.core.timeline.asked_changes import ON_FAILOVER, Answer, AskedChanges
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.change_kinds import TakenChanges
from airflow_provider_cdc.core.timeline.failovers import without_same_servers
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline

ONE, STANDBY, RESTORED = ("77", "00000001"), ("77", "00000002"), ("88", "00000001")


def at(lsn: int) -> str:
    return f"0000.{lsn:020d}.{lsn:020d}.0000000000"


def table(lsn: int, name: str = "t") -> SchemaChange:
    """Return a table that a snapshot reads."""
    schema = TableSchema((Column(1, "id", ColumnType("int")),), (1,))
    return SchemaChange(at(lsn), lsn, "app", "", (("app", name, schema),), rows="read")


def beat(lsn: int, server: tuple[str, str], *, read: bool = False) -> SchemaChange:
    system, timeline = server
    relation = RelationChange(RelationEvent.SERVER, 0, system, None, "ctl", "beat", text=timeline, read=read)
    return SchemaChange(at(lsn), lsn, "ctl", f"-- {server}", relation=relation)


def built(*changes: SchemaChange, policy: str = "ask") -> tuple[dict[str, TableTimeline], AskedChanges]:
    asked = AskedChanges(value_of=lambda name, key: policy if key == ON_FAILOVER else "apply")
    timeline = build_timeline(changes, asked=asked)
    return {one.last_name.table: one for one in timeline.tables.values()}, asked


def blocks(*changes: SchemaChange) -> list[str]:
    """Return where the table ``t`` became unknown."""
    return [block.position for block in built(*changes)[0]["t"].blocked]


def test_another_timeline_leaves_each_table_of_before_unknown() -> None:
    tables, asked = built(table(10), beat(20, ONE), table(25, "u"), beat(30, STANDBY), table(40, "later"))
    assert {name: [block.position for block in one.blocked] for name, one in tables.items()} == {
        "t": [at(30)],
        "u": [at(30)],
        "later": [],
    }
    assert [(item.table, item.policy, item.answer) for item in asked.every()] == [
        ("t", ON_FAILOVER, Answer.OPEN),
        ("u", ON_FAILOVER, Answer.OPEN),
    ]
    assert "timeline 00000002" in str(tables["t"].blocked[0]) and "approve" in str(tables["t"].blocked[0])


def test_one_server_and_a_first_one_say_nothing() -> None:
    assert blocks(table(10), beat(20, ONE), beat(30, ONE)) == []
    assert blocks(table(10), beat(20, ONE, read=True), beat(30, STANDBY)) == []


def test_each_failover_counts() -> None:
    assert blocks(table(10), beat(20, ONE), beat(30, STANDBY), beat(40, ("77", "00000003"))) == [at(30), at(40)]


def test_a_snapshot_before_another_cluster_shows_itself_is_of_that_one() -> None:
    changes = table(10), beat(20, ONE), beat(30, ONE, read=True), beat(40, RESTORED)
    assert blocks(*changes) == [at(30)]
    (block,) = built(*changes)[0]["t"].blocked
    assert built(*changes)[0]["t"].unknown_since(snapshot=at(30)) is None
    assert built(*changes)[0]["t"].unknown_since(snapshot=at(10)) == block


def test_a_table_that_this_snapshot_made_known_is_not_in_doubt() -> None:
    assert blocks(beat(20, ONE), table(30), beat(30, ONE, read=True), beat(40, RESTORED)) == []


def test_a_snapshot_that_a_standby_may_have_followed_proves_nothing() -> None:
    assert blocks(table(10), beat(20, ONE), beat(30, ONE, read=True), beat(40, STANDBY)) == [at(40)]


def test_a_snapshot_that_the_old_server_followed_is_of_that_one() -> None:
    assert blocks(table(10), beat(20, ONE), beat(30, ONE, read=True), beat(35, ONE), beat(40, RESTORED)) == [at(40)]


def test_what_a_policy_took_is_not_asked_about_later() -> None:
    changes = table(10), beat(20, ONE), beat(30, STANDBY)
    tables, asked = built(*changes, policy="apply")
    assert (tables["t"].blocked, asked.every()) == ([], [])
    taken = TakenChanges(build_timeline(changes))
    assert taken.has(at(30), TableName("app", "t"), ON_FAILOVER)


def test_beats_that_say_what_was_said_are_left_out() -> None:
    known = [beat(20, ONE), beat(40, STANDBY)]
    read = [beat(25, ONE), beat(30, ONE, read=True), beat(31, ONE, read=True), beat(32, ONE), beat(45, STANDBY)]
    left = without_same_servers(known, [*read, table(50)])
    assert [change.order for change in left] == [30, 31, 32, 50]


def test_it_is_known_again_from_a_document() -> None:
    change = beat(20, ONE, read=True)
    assert SchemaChange.from_document(change.document()) == change
