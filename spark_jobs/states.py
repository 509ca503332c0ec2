"""What is known of each table after a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from airflow_provider_cdc.core.ddl.timeline import TableTimeline
from airflow_provider_cdc.core.documents import JobDocument, TableState
from spark_jobs.between import Work
from spark_jobs.tasks.table_task import ApplyTask


def state_after(job: JobDocument, task: ApplyTask, report: dict[str, Any]) -> TableState:
    """Return the table's state after its task."""
    old = next((state for state in job.states if state.table_id == task.table_id), None)
    base = old or TableState(task.table_id, task.database, task.table, task.location)
    if report["status"] == "waiting":
        return _waiting(
            job, replace(base, database=task.database, table=task.table, rewind_to=task.rewind_to), report["reason"]
        )
    if report["status"] == "parked":
        parked = replace(base, state="parked", reason=report["reason"], rewind_to=task.rewind_to)
        return replace(parked, database=task.database, table=task.table)
    groups = [group for span in task.spans for group in span.groups]
    start = task.base.applied_position if task.base else ""
    times = [group.max_source_time for group in groups if group.max_source_time is not None]
    ends = [min(group.max_position, span.end or group.max_position) for span in task.spans for group in span.groups]
    epochs = task.timeline["epochs"]
    # the content is settled up to the newest schema change too, even where no row followed it
    settled = [epochs[-1][0], *task.timeline["clears"], *(position for position, _ in task.timeline["names"])]
    reached = max([start, *ends, *settled])
    return TableState(
        task.table_id,
        task.database,
        task.table,
        task.location,
        report["version"] if report["version"] is not None else base.version,
        job.seq,
        reached,
        max([*times, *([task.base.source_time] if task.base and task.base.source_time else [])], default=None),
        epochs[-1][1],
        "ok",
        debts_seq=(job.seq if report["status"] != "unchanged" else base.debts_seq) if report["owes"] else None,
        timeline_mark=TableTimeline.from_document(task.timeline).mark(reached),
        notes=task.timeline["notes"],
    )


def _waiting(job: JobDocument, state: TableState, reason: str) -> TableState:
    """Let a table wait for a schema change; after the grace time the policy parks it."""
    since = state.waiting_since or job.created_at
    waited = (datetime.fromisoformat(job.created_at) - datetime.fromisoformat(since)).total_seconds()
    expired = waited > job.policy.get("ddl_grace_seconds", 300)
    return replace(state, state="parked" if expired else "waiting", reason=reason, waiting_since=since)


def unowned(job: JobDocument, work: Work) -> list[TableState]:
    """Tell of rows whose table nobody has created yet: they wait in the change log."""
    states = []
    for item in work.unowned:
        table_id = f"?{item['database']}.{item['table']}"
        old = next((state for state in job.states if state.table_id == table_id), None)
        state = old or TableState(table_id, item["database"], item["table"], "")
        reason = "rows arrived but no CREATE TABLE: state tables.<name>.create or check source.schema_topic"
        states.append(_waiting(job, state, reason))
    return states


def still_parked(job: JobDocument, states: Sequence[TableState]) -> list[TableState]:
    touched = {state.table_id for state in states}
    return [state for state in job.states if state.table_id not in touched]
