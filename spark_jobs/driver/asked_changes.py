# SPDX-License-Identifier: Apache-2.0
"""Ask about schema changes whose policy is ``ask``, and take what was decided about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from airflow_provider_cdc.core.documents import JobDocument
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.core.timeline.asked_changes import (
    DENIABLE,
    ON_CREATE_TABLE,
    ON_MISSING_CREATE,
    ON_TRUNCATE,
    Answer,
    AskedChange,
    AskedChanges,
)
from airflow_provider_cdc.core.timeline.change_kinds import TakenChanges
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline, Timeline
from spark_jobs.driver.batch_history import History
from spark_jobs.lake.manifest import RowGroup

_SHOWN_TEXT = 200  # characters of a statement


def asked_changes(
    job: JobDocument,
    groups: Mapping[TableName, Sequence[RowGroup]],
    fresh: Sequence[SchemaChange],
    approvals: Sequence[Mapping[str, Any]],
    history: History,
    was: Timeline,
) -> AskedChanges:
    """Return the changes that were asked about, with the decisions of this batch and the TRUNCATEs that its rows show.

    What statements of the batch do is added when they are put onto the timeline.

    :param groups: what the batch holds, by table.
    :param fresh: schema changes that are new in the batch.
    :param approvals: decisions of operators in this batch.
    :param was: schema changes of earlier batches; the tables that the pipeline begins with are not asked about.
    """

    def value(name: TableName, policy: str) -> str:
        if not job.tables.selects(name) or (policy == ON_CREATE_TABLE and not was.tables):
            return ""
        return str(getattr(job.tables.policy(name, job.policy), policy))

    new = {change.position for change in fresh}
    asked = AskedChanges(history.asked(), value, new, TakenChanges(was).has, job.created_at)
    for document in approvals:
        asked.decide(AskedChange.from_document(document))
    asked.settle()
    for name, position in _new_clears(groups, history):
        asked.ask(AskedChange(position, *name, ON_TRUNCATE, "TRUNCATE TABLE"))
    return asked


def _new_clears(groups: Mapping[TableName, Sequence[RowGroup]], history: History) -> Iterator[tuple[TableName, str]]:
    """Yield table and position of the TRUNCATEs that rows of a batch show, without those that came before."""
    for name, mine in groups.items():
        for position in sorted({position for group in mine for position in group.clears}):
            earlier = (group for seq in history.since(position) for group in history.manifest(seq).groups)
            if not any(TableName(g.database, g.table) == name and position in g.clears for g in earlier):
                yield name, position


def approval_required(timeline: TableTimeline, asked: AskedChanges) -> DataError:
    """Return why a table is parked: the oldest of its changes that wait for a decision."""
    names = {name for _, name in timeline.names}
    position = min(timeline.asked)
    item = next(
        one for one in asked.every() if one.position == position and one.name in names and one.answer == Answer.OPEN
    )
    command = f"airflow-cdc approve PIPELINE.yaml {item.name} --change {item.id}"
    deny = ", with --deny it is left out" if item.policy in DENIABLE else ""
    if item.policy == ON_MISSING_CREATE:
        deny = " as its rows describe it; or state tables.<database.table>.create"
    value = "park" if item.policy == ON_MISSING_CREATE else "ask"
    return DataError(
        "apply.approval_required",
        f"{item.policy} is {value}: {printable(' '.join(item.statement.split()))[:_SHOWN_TEXT]}",
        where={"table": str(item.name), "position": position},
        hint=f"`{command}` carries it out{deny}",
    )
