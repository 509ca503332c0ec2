# SPDX-License-Identifier: Apache-2.0
"""Foreign keys between tables: whose deletes a table has to be compared with, and what follows for tables below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.errors import CASCADED, CASCADED_ABOVE
from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.timeline.timeline import Reference, TableTimeline, Timeline
from spark_jobs.tasks.table_task import Span


def parents(timeline: Timeline, reference: Reference) -> list[TableTimeline]:
    """Return the tables that a foreign key referred to, under whatever name."""
    owners = dict.fromkeys(owner for name in reference.parents for _, owner in timeline.spans(name))
    return [timeline.tables[owner] for owner in owners if owner is not None]


def removing(spans: Sequence[Span], reference: Reference) -> list[Span]:
    """Return the row groups in which deletes or updates may have taken away what a foreign key refers to."""
    result = []
    for span in spans:
        groups = [
            group
            for group in span.groups
            if group.removals
            and group.max_position >= reference.position
            and (reference.until is None or group.min_position < reference.until)
        ]
        if groups:
            result.append(replace(span, groups=groups))
    return result


def waits_above(state: TableState | None) -> bool:
    """Return whether a table is parked because a foreign key changed rows of a table that it refers to."""
    return state is not None and state.state == TableStatus.PARKED and state.code == CASCADED_ABOVE


def rows_changed(state: TableState | None) -> bool:
    """Return whether a table is parked because a foreign key changed its rows, or those of a table above it."""
    return state is not None and state.state == TableStatus.PARKED and state.code in (CASCADED, CASCADED_ABOVE)


def with_tables_below(
    timeline: Timeline, before: Iterable[TableState], states: Sequence[TableState], concerned: Iterable[str]
) -> list[TableState]:
    """Return the states after a batch, in which tables below one that a foreign key changed are parked too.

    Which of their rows went nothing says: rows of the table above went without row events.

    :param before: the states before the batch.
    :param concerned: ids of the tables whose policy parks them.
    """
    newest = {state.table_id: state for state in (*before, *states)}
    waiting = set(concerned)
    changed: dict[str, TableState] = {}
    while parked := next(_below(timeline, newest, waiting), None):
        newest[parked.table_id] = changed[parked.table_id] = parked
    touched = {state.table_id for state in states}
    return [*(newest[state.table_id] for state in states), *(s for i, s in changed.items() if i not in touched)]


def _below(timeline: Timeline, newest: dict[str, TableState], concerned: set[str]) -> Iterator[TableState]:
    for table_id in concerned:
        state, table = newest.get(table_id), timeline.tables.get(table_id)
        if (
            state is None
            or table is None
            or state.version is None
            or state.state not in (TableStatus.OK, TableStatus.WAITING)
        ):
            continue
        for reference in table.references:
            for parent in parents(timeline, reference) if reference.until is None else ():
                if parent.table_id != table_id and rows_changed(newest.get(parent.table_id)):
                    reason = f"needs rebuild: [{CASCADED_ABOVE}] a foreign key changed rows of {parent.last_name}, "
                    reason += "which this table refers to"
                    yield replace(state, state=TableStatus.PARKED, reason=reason, code=CASCADED_ABOVE)
