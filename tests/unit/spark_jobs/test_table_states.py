# SPDX-License-Identifier: Apache-2.0
"""Examples of table states: what is known of a table after a batch, and when it is tried again."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from airflow_provider_cdc.core.documents import JobDocument, TableState
from airflow_provider_cdc.core.errors import SinkError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.model.status import ApplyStatus, TableStatus
from spark_jobs.driver.apply_plan import ApplyPlan, Unowned, is_waiting_name, unowned_id
from spark_jobs.driver.schema_changes import due
from spark_jobs.driver.table_states import state_after, still_parked, unowned
from spark_jobs.driver.unsettled import may_go_on, set_aside, waiting
from spark_jobs.tasks.table_task import ApplyReport, ApplyTask
from tests.unit.spark_jobs.batches import applied, job_of, parked, position, statement

KNOWN = [statement(100, "CREATE TABLE t (id INT PRIMARY KEY)")]
BEFORE = applied(KNOWN, "t", seq=1, pos=150, version=4)


def task(rewind_to: str | None = None) -> ApplyTask:
    return ApplyTask(BEFORE.table_id, "shop", "t", BEFORE.location, {}, BEFORE, 4, [], rewind_to=rewind_to)


def after(job: JobDocument, status: str, old: TableState | None = BEFORE, **report: Any) -> TableState:
    """Return the state after batch 2, of which the table's task reports a status."""
    return state_after(job, task(), ApplyReport(BEFORE.table_id, ApplyStatus(status), **report), old)


def test_a_committed_table_has_the_state_that_its_task_reports_with_the_new_version() -> None:
    reported = replace(BEFORE, applied_seq=2, applied_position=position(250), version=None)
    state = after(job_of(seq=2), "committed", state=reported, version=5)
    assert state == replace(reported, version=5)


def test_a_table_that_needed_no_commit_keeps_its_version() -> None:
    state = after(job_of(seq=2), "unchanged", state=replace(BEFORE, applied_seq=2, version=None))
    assert (state.version, state.applied_seq) == (4, 2)


def test_a_waiting_table_keeps_what_it_has_applied() -> None:
    """So the next batch begins where this table stopped, not where the other tables are."""
    state = after(job_of(seq=2), "waiting", reason="a column is missing")
    assert (state.state, state.reason) == ("waiting", "a column is missing")
    assert (state.version, state.applied_seq, state.applied_position) == (4, 1, position(150))


def test_a_table_waits_no_longer_than_the_grace_time_counted_from_the_first_batch_that_waited() -> None:
    first, at_the_end, later = (
        job_of(seq=seq, policy={"ddl_grace_seconds": 60}, created_at=f"2026-01-01T{time}+00:00")
        for seq, time in ((2, "12:00:00"), (3, "12:01:00"), (4, "12:01:01"))
    )
    state = waiting(first, BEFORE, "a column is missing")
    assert state.state == "waiting"
    state = waiting(at_the_end, state, "a column is missing")
    assert (state.state, state.waiting_since) == ("waiting", first.created_at)
    state = waiting(later, state, "a column is missing")
    assert (state.state, state.reason) == ("parked", "a column is missing")


def test_a_parked_table_records_the_error_and_the_configuration_it_was_tried_with() -> None:
    error = SinkError("apply.quarantine_exceeded", "2 rows do not fit")
    job = job_of(seq=2, fingerprint="c1")
    state = after(job, "parked", reason="2 rows do not fit", error=error, version=4)
    assert (state.state, state.code, state.tried_with, state.seen_version) == (
        "parked",
        "apply.quarantine_exceeded",
        "c1",
        4,
    )
    assert (state.version, state.applied_position) == (4, position(150)), "what it holds did not change"


def test_a_new_table_that_parks_has_no_version() -> None:
    state = after(job_of(), "parked", old=None, reason="no", error=SinkError("sink.not_ours", "no"), version=3)
    assert state.version is None
    assert state.seen_version == 3, "of the table that somebody else made there"


def test_a_table_that_could_not_go_back_has_to_do_so_in_the_next_batch() -> None:
    """Its rows do not know a late ALTER yet. Without this note nothing would apply it any more."""
    reported = ApplyReport(BEFORE.table_id, ApplyStatus.WAITING, reason="a column is missing")
    state = state_after(job_of(seq=2), task(rewind_to=position(120)), reported, BEFORE)
    assert state.rewind_to == position(120)


def test_a_parked_table_is_tried_again_only_with_another_configuration() -> None:
    state = set_aside(job_of(fingerprint="c1"), BEFORE, "2 rows do not fit", "apply.quarantine_exceeded")
    assert not may_go_on(job_of(fingerprint="c1"), state)
    assert may_go_on(job_of(fingerprint="c2"), state)


@pytest.mark.parametrize("code", ["sink.unreadable", "log.damaged", "apply.memory", "apply.fault"])
def test_a_parked_table_is_tried_again_where_the_cause_is_outside_of_the_source_log(code: str) -> None:
    """The operator restores a file or gives more memory, and changes nothing in the pipeline."""
    job = job_of(fingerprint="c1")
    assert may_go_on(job, set_aside(job, BEFORE, "reason", code))


def test_a_waiting_table_is_tried_again_in_each_batch() -> None:
    assert may_go_on(job_of(), waiting(job_of(), BEFORE, "a column is missing"))


@pytest.mark.parametrize("state", ["ok", "dropped"])
def test_a_table_without_trouble_needs_no_further_try(state: str) -> None:
    assert not may_go_on(job_of(fingerprint="c2"), replace(BEFORE, state=state))


def test_a_name_without_a_table_waits_and_says_how_to_state_its_structure() -> None:
    (state,) = unowned(job_of(), ApplyPlan(unowned=[Unowned(TableName("shop", "new"), position(200), "")]))
    assert is_waiting_name(state)
    assert (state.state, state.table, state.rewind_to) == ("waiting", "new", position(200))
    assert "tables.<name>.create" in state.reason


def test_a_name_that_differs_from_a_table_in_case_only_names_the_server_setting() -> None:
    (state,) = unowned(job_of(), ApplyPlan(unowned=[Unowned(TableName("shop", "T"), position(200), "shop.t")]))
    assert "shop.t" in state.reason and "lower_case_table_names" in state.reason


def test_a_name_that_waits_again_counts_from_its_first_batch() -> None:
    plan = ApplyPlan(unowned=[Unowned(TableName("shop", "new"), position(200), "")])
    first = job_of(policy={"ddl_grace_seconds": 60})
    (state,) = unowned(first, plan)
    later = job_of(seq=2, states=[state], policy={"ddl_grace_seconds": 60}, created_at="2026-01-01T12:01:01+00:00")
    (again,) = unowned(later, plan)
    assert again.table_id == state.table_id
    assert (again.state, again.waiting_since) == ("parked", first.created_at)


def test_a_name_whose_records_cannot_be_decoded_is_parked_at_once() -> None:
    plan = ApplyPlan(unowned=[Unowned(TableName("shop", "new"), position(200), "", "1 record could not be decoded")])
    (state,) = unowned(job_of(fingerprint="c1"), plan)
    assert (state.state, state.reason, state.tried_with) == ("parked", "1 record could not be decoded", "c1")


def test_different_names_have_different_ids_also_where_their_texts_are_equal() -> None:
    names = [TableName("a.b", "c"), TableName("a", "b.c"), TableName("a.b", "C")]
    assert str(names[0]) == str(names[1])
    assert len({unowned_id(name) for name in names}) == 3


def test_tables_that_a_batch_did_not_touch_keep_their_state() -> None:
    other = parked(replace(BEFORE, table_id="other", table="u"))
    job = job_of(seq=2, states=[BEFORE, other])
    assert still_parked(job, [replace(BEFORE, applied_seq=2)]) == [other]


def test_the_grace_time_does_not_run_while_the_request_has_more_batches() -> None:
    part = replace(job_of(seq=2), cut_at="2026-01-01T06:00:00+00:00")
    long_ago = replace(BEFORE, waiting_since="2025-12-01T00:00:00+00:00")
    state = waiting(part, long_ago, "no column b")
    assert (state.state, state.reason, state.waiting_since) == (TableStatus.WAITING, "no column b", None)
    assert waiting(job_of(seq=3), state, "no column b").waiting_since == job_of(seq=3).created_at
    assert waiting(job_of(seq=3), long_ago, "no column b").state == TableStatus.PARKED


def test_of_a_cut_request_the_time_of_the_cut_decides_which_schema_changes_are_due() -> None:
    job = replace(job_of(seq=2), until="2026-01-01T00:02:00+00:00")
    times = {name: datetime.fromisoformat(f"2026-01-01T00:{name}:00+00:00").timestamp() * 1e6 for name in ("00", "01")}
    documents = [{**statement(int(name), "DROP TABLE t").document(), "time": int(time)} for name, time in times.items()]
    assert [len(changes) for changes in due(job, documents)] == [2, 0]
    assert [len(changes) for changes in due(replace(job, cut_at="2026-01-01T00:00:30+00:00"), documents)] == [1, 1]
    assert [len(changes) for changes in due(replace(job, until=None), documents)] == [2, 0]
