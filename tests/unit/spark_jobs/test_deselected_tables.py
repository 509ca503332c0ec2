# SPDX-License-Identifier: Apache-2.0
"""Examples of tables that a pipeline knows and no longer selects: by ``tables.exclude``, or by a RENAME."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from spark_jobs.driver.planning import Planning
from spark_jobs.driver.table_planning import ApplyPlanner
from spark_jobs.driver.table_states import still_parked
from spark_jobs.lake.manifest import Manifest
from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.sink import open_sink
from tests.unit.spark_jobs.batches import Batch, applied, history_of, job_of, parked, rows, statement

T = statement(100, "CREATE TABLE t (id INT PRIMARY KEY)")
STATE = applied([T], "t", seq=1, pos=190, version=3)


def after(state: TableState, read: Sequence[SchemaChange], tables: Mapping[str, Any]) -> list[TableState]:
    """Return the states of all tables after batch 2, which reads some statements and no rows.

    :param state: the state of ``t`` before it.
    :param tables: the configuration of batch 2.
    """
    job = job_of(seq=2, known=[T], states=[state], tables=tables, fingerprint="other")
    history = history_of([Batch([rows("t", 110, 190)], [state])])
    plan = ApplyPlanner(Planning(job, Manifest(seq=2), read, [], history, {}, Storage("none"), open_sink({}))).plan()
    assert plan.tasks == []
    return [*plan.settled, *still_parked(job, plan.settled)]


def test_a_parked_table_that_is_excluded_no_longer_parks_the_pipeline() -> None:
    """README.md names ``tables.exclude`` as the way out for a table that the target cannot have."""
    state = parked(STATE, "[sink.columns_refused] names that differ in case only", tried_with="first")
    assert [left.table for left in after(state, [], {"exclude": ["shop.t"]}) if left.state == "parked"] == []


def test_a_parked_table_that_left_the_selection_by_a_rename_no_longer_parks_the_pipeline() -> None:
    state = parked(STATE, "needs rebuild", tried_with="first")
    read = [statement(200, "RENAME TABLE t TO old_t")]
    assert [left.table for left in after(state, read, {"exclude": ["shop.old_*"]}) if left.state == "parked"] == []


def test_a_table_that_left_the_selection_by_a_rename_is_not_reported_as_up_to_date() -> None:
    """No table of the source has the name ``t`` any more, and its location still has the rows."""
    states = after(STATE, [statement(200, "RENAME TABLE t TO old_t")], {"exclude": ["shop.old_*"]})
    assert [left.table for left in states if left.state == "ok"] == []
