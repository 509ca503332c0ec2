# SPDX-License-Identifier: Apache-2.0
"""Examples of table planning: which tables a batch resolves, which ones stay, wait, park or are emptied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import DataError, SinkError, UnavailableError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from spark_jobs.driver.apply_plan import ApplyPlan
from spark_jobs.driver.planning import Planning
from spark_jobs.driver.table_planning import ApplyPlanner
from spark_jobs.lake.manifest import Manifest, RowGroup, Unreadable
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.sink import open_sink
from spark_jobs.tasks.table_task import ApplyTask
from tests.unit.spark_jobs.batches import (
    Batch,
    applied,
    history_of,
    job_of,
    parked,
    position,
    rows,
    statement,
    table_of,
    unreadable,
)

T = statement(100, "CREATE TABLE t (id INT PRIMARY KEY)")
U = statement(101, "CREATE TABLE u (id INT PRIMARY KEY)")


def planned(
    *groups: RowGroup,
    known: Sequence[SchemaChange] = (T, U),
    read: Sequence[SchemaChange] = (),
    states: Sequence[TableState] | None = None,
    policy: Mapping[str, Any] | None = None,
    tables: Mapping[str, Any] | None = None,
    undecoded: Sequence[Unreadable] = (),
    fingerprint: str = "",
    broken: Exception | None = None,
) -> ApplyPlan:
    """Plan batch 2 of a pipeline.

    :param groups: its row changes.
    :param known: statements of batch 1.
    :param read: statements of batch 2.
    :param states: states after batch 1; without them every table that has a name then holds the rows up to 190.
    :param undecoded: records of batch 2 that could not be decoded.
    :param broken: raised when something of batch 1 is read again.
    """
    before = [*all_applied(known)] if states is None else list(states)
    job = job_of(seq=2, known=known, states=before, policy=policy, tables=tables, fingerprint=fingerprint)
    history = history_of([Batch([rows("t", 110, 190), rows("u", 110, 190)], before)])
    if broken is not None:

        def manifest(seq: int) -> Manifest:
            raise broken

        history = replace(history, manifest=manifest)
    manifest_2 = Manifest(list(groups), list(undecoded), seq=2)
    return ApplyPlanner(Planning(job, manifest_2, read, [], history, {}, Storage("none"), open_sink({}))).plan()


def all_applied(known: Sequence[SchemaChange]) -> list[TableState]:
    """Return the states of ``t`` and ``u`` after batch 1: rows up to 190, version 3 and 7."""
    return [applied(known, name, seq=1, pos=190, version=v) for name, v in (("t", 3), ("u", 7))]


def names(tasks: Sequence[ApplyTask]) -> list[str]:
    return sorted(task.table for task in tasks)


def settled(plan: ApplyPlan) -> dict[str, tuple[str, str]]:
    """Return state and reason of the tables that change without a task."""
    return {state.table: (state.state, state.reason) for state in plan.settled}


def test_only_tables_with_changes_get_a_task() -> None:
    plan = planned(rows("t", 210, 220))
    assert names(plan.tasks) == ["t"]
    assert (plan.settled, plan.to_empty, plan.unowned) == ([], [], [])


def test_a_task_names_the_committed_version_and_the_location_of_the_table() -> None:
    (task,) = planned(rows("t", 210, 220)).tasks
    assert task.base is not None
    assert (task.location, task.expected, task.base.version, task.applied_seq) == ("shop/t", 3, 3, 1)
    assert (task.late_from, task.context, task.rewind_to) == (None, [], None)


def test_a_created_table_is_made_also_if_it_has_no_rows() -> None:
    (task,) = planned(read=[statement(200, "CREATE TABLE v (id INT PRIMARY KEY)")]).tasks
    assert (task.table, task.base, task.expected, task.spans) == ("v", None, None, [])


def test_an_altered_table_is_resolved_also_if_it_has_no_rows() -> None:
    (task,) = planned(read=[statement(200, "ALTER TABLE u ADD COLUMN w INT")]).tasks
    assert (task.table, task.rewind_to) == ("u", None)


def test_a_table_that_is_no_longer_selected_gets_no_task_and_is_not_reported_as_up_to_date() -> None:
    plan = planned(rows("t", 210, 220), rows("u", 210, 220), tables={"exclude": ["shop.u"]})
    assert names(plan.tasks) == ["t"]
    assert settled(plan)["u"] == ("dropped", "tables does not select shop.u")


def test_a_renamed_table_moves_with_the_rows_of_both_names_and_its_old_location_is_emptied() -> None:
    plan = planned(rows("t", 210, 220), rows("v", 310, 320), read=[statement(300, "RENAME TABLE t TO v")])
    (task,) = plan.tasks
    assert (task.table, task.location, task.expected) == ("v", "shop/v", None)
    assert [span.groups[0].file for span in task.spans] == ["t-210.parquet", "v-310.parquet"]
    assert [(state.location, state.version) for state in plan.to_empty] == [("shop/t", 3)]


def test_tables_that_exchange_their_names_exchange_their_locations_and_none_is_emptied() -> None:
    """As gh-ost and pt-online-schema-change do."""
    plan = planned(read=[statement(200, "RENAME TABLE t TO tmp, u TO t, tmp TO u")])
    actual = {task.table: (task.table_id, task.expected) for task in plan.tasks}
    ids = {name: table_of([T, U], name).table_id for name in "tu"}
    # each location is expected to have the version that the other table committed there
    assert actual == {"t": (ids["u"], 3), "u": (ids["t"], 7)}
    assert plan.to_empty == []


def test_a_dropped_table_keeps_its_content_unless_the_policy_says_otherwise() -> None:
    drop = [statement(200, "DROP TABLE t")]
    planned_again = planned(read=drop)
    assert settled(planned_again) == {"t": ("dropped", "DROP TABLE")}
    assert (names(planned_again.tasks), planned_again.to_empty) == ([], [])
    (emptied,) = planned(read=drop, policy={"on_drop_table": "apply"}).to_empty
    assert (emptied.location, emptied.version) == ("shop/t", 3)


def test_a_table_that_was_dropped_and_created_again_is_another_table_at_the_same_location() -> None:
    read = [statement(200, "DROP TABLE t"), statement(300, "CREATE TABLE t (id BIGINT PRIMARY KEY)")]
    plan = planned(rows("t", 310, 320), read=read, policy={"on_drop_table": "apply"})
    (task,) = plan.tasks
    assert task.table_id != table_of([T], "t").table_id
    assert (task.base, task.expected) == (None, 3)
    assert plan.to_empty == [], "the new table replaces what lies there"


def test_rows_of_a_table_that_nobody_created_wait_under_their_name() -> None:
    plan = planned(rows("t", 210, 220), rows("new", 205, 230))
    assert names(plan.tasks) == ["t"]
    ((name, first, alike, reason),) = [(u.name, u.first, u.alike, u.reason) for u in plan.unowned]
    assert (name, first, alike, reason) == (TableName("shop", "new"), position(205), "", None)


def test_rows_of_a_name_in_another_case_name_the_table_that_may_be_meant() -> None:
    (unowned,) = planned(rows("T", 210, 220)).unowned
    assert unowned.alike == "shop.t"


def test_a_statement_that_is_not_understood_parks_the_table_it_names_and_no_other() -> None:
    plan = planned(rows("t", 210, 220), rows("u", 210, 220), read=[statement(200, "ALTER TABLE t FROBNICATE w")])
    assert names(plan.tasks) == ["u"]
    ((state, reason),) = settled(plan).values()
    assert state == "parked" and reason.startswith("needs rebuild: ")


NUMBERED = statement(200, "ALTER TABLE t ADD COLUMN n INT NOT NULL AUTO_INCREMENT UNIQUE")


def test_a_change_of_stored_rows_that_the_log_does_not_show_parks_the_table() -> None:
    """The server numbers the rows in an order that it does not log."""
    plan = planned(rows("t", 210, 220), read=[NUMBERED])
    assert plan.tasks == []
    assert settled(plan)["t"][1].startswith("needs rebuild: AUTO_INCREMENT")


def test_a_later_truncate_makes_such_a_table_known_again() -> None:
    plan = planned(rows("t", 210, 220), read=[NUMBERED, statement(300, "TRUNCATE TABLE t")])
    assert names(plan.tasks) == ["t"]


def test_a_later_truncate_does_not_help_where_the_policy_ignores_it() -> None:
    read = [NUMBERED, statement(300, "TRUNCATE TABLE t")]
    plan = planned(rows("t", 210, 220), read=read, policy={"on_truncate": "ignore"})
    assert (plan.tasks, settled(plan)["t"][0]) == ([], "parked")


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("DROP TABLE t", "on_drop_table", "DROP TABLE of a table whose on_drop_table is fail"),
        ("DROP DATABASE shop", "on_drop_table", "DROP TABLE of a table whose on_drop_table is fail"),
        ("TRUNCATE TABLE t", "on_truncate", "TRUNCATE TABLE of a table whose on_truncate is fail"),
    ],
)
def test_a_statement_that_the_table_refuses_fails_the_batch(text: str, kind: str, message: str) -> None:
    read = [statement(200, text)]
    with pytest.raises(DataError, match=message) as raised:
        planned(rows("u", 210, 220), read=read, tables={"shop.t": {kind: "fail"}})
    assert (raised.value.code, raised.value.where["table"]) == ("apply.change_refused", "shop.t")
    planned(rows("u", 210, 220), read=read, policy={kind: "fail"}, tables={"shop.t": {kind: "apply"}, **OTHERS[kind]})


# DROP DATABASE drops u, too
OTHERS: dict[str, dict[str, Any]] = {"on_drop_table": {"shop.u": {"on_drop_table": "keep"}}, "on_truncate": {}}


def test_a_truncate_that_came_as_a_row_is_refused_once() -> None:
    with pytest.raises(DataError, match="TRUNCATE TABLE of a table whose on_truncate is fail"):
        planned(rows("t", 210, 220, truncates=[215]), policy={"on_truncate": "fail"})
    known = [T, U, statement(150, "TRUNCATE TABLE u"), statement(160, "DROP TABLE u")]
    states = [applied(known, "t", seq=1, pos=190, version=3)]
    refuse = {"on_truncate": "fail", "on_drop_table": "fail"}
    assert names(planned(rows("t", 210, 220), known=known, states=states, policy=refuse).tasks) == ["t"]


def test_a_refused_statement_of_a_table_that_is_not_selected_fails_nothing() -> None:
    read = [statement(200, "DROP TABLE t")]
    plan = planned(rows("u", 210, 220), read=read, policy={"on_drop_table": "fail"}, tables={"include": ["shop.u"]})
    assert names(plan.tasks) == ["u"]


def test_a_table_with_more_unreadable_records_than_its_limit_is_parked() -> None:
    groups, undecoded = [rows("t", 210, 220), rows("u", 210, 220)], [unreadable("t", 2)]
    plan = planned(*groups, undecoded=undecoded, tables={"shop.t": {"quarantine_limit": 1}})
    assert names(plan.tasks) == ["u"]
    state, reason = settled(plan)["t"]
    assert state == "parked" and "[land.quarantine_exceeded] 2 records" in reason
    within = planned(*groups, undecoded=undecoded, tables={"shop.t": {"quarantine_limit": 2}})
    assert names(within.tasks) == ["t", "u"]


def test_a_table_whose_only_records_are_unreadable_is_parked() -> None:
    """Without it the table would stay as it was and seem to be up to date."""
    plan = planned(undecoded=[unreadable("t", 1)])
    assert (plan.tasks, settled(plan)["t"][0]) == ([], "parked")


def test_a_parked_table_without_new_rows_is_tried_again_only_under_another_configuration() -> None:
    t, u = all_applied([T, U])
    states = [parked(t, tried_with="c1"), u]
    assert planned(states=states, fingerprint="c1").tasks == []
    assert names(planned(states=states, fingerprint="c2").tasks) == ["t"]


def test_a_parked_table_with_new_rows_is_tried_again() -> None:
    t, u = all_applied([T, U])
    plan = planned(rows("t", 210, 220), states=[parked(t, tried_with="c1"), u], fingerprint="c1")
    assert names(plan.tasks) == ["t"]


def test_a_table_whose_name_another_table_took_waits_for_the_missing_statement() -> None:
    """Two topics carry the statements, and the one that says where the first table went is late."""
    read = [statement(200, "RENAME TABLE u TO t")]
    plan = planned(rows("t", 210, 220), read=read)
    ids = {name: table_of([T, U], name).table_id for name in "tu"}
    assert [(task.table_id, task.table) for task in plan.tasks] == [(ids["u"], "t")]
    (state,) = plan.settled
    assert (state.table_id, state.version) == (ids["t"], 3)
    assert state.state == "waiting"


def test_an_unreadable_change_log_parks_only_the_table_that_needs_it() -> None:
    """``u`` missed batch 1 and has to read it again; ``t`` has it."""
    t, u = all_applied([T, U])
    missed = replace(u, applied_seq=0, applied_position="")
    error = SinkError("log.damaged", "a file of the change log cannot be read")
    plan = planned(rows("t", 210, 220), rows("u", 210, 220), states=[t, missed], broken=error)
    assert names(plan.tasks) == ["t"]
    assert [(state.table, state.state, state.code) for state in plan.settled] == [("u", "parked", "log.damaged")]


def test_a_store_that_does_not_answer_ends_the_batch_and_parks_nothing() -> None:
    """The batch runs again later."""
    t, u = all_applied([T, U])
    missed = replace(u, applied_seq=0, applied_position="")
    with pytest.raises(UnavailableError):
        planned(rows("u", 210, 220), states=[t, missed], broken=UnavailableError("log.unavailable", "no answer"))
