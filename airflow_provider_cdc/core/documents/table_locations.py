# SPDX-License-Identifier: Apache-2.0
"""State which table has a location: a renamed table may still name one that another table has taken over."""

from __future__ import annotations

from collections.abc import Iterable

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.model.status import TableStatus


def precedence(state: TableState) -> tuple[bool, bool, str, int]:
    """Return a key to compare tables of one name or location by: the greatest has it now."""
    alive = state.state != TableStatus.DROPPED
    return alive, state.state == TableStatus.OK, state.applied_position, state.applied_seq


def owners_of_locations(states: Iterable[TableState]) -> dict[str, str]:
    """Map each location, as states name it, to the id of the table that has it now; a dropped table has none."""
    living = (state for state in states if state.state != TableStatus.DROPPED)
    return {state.location: state.table_id for state in sorted(living, key=precedence)}
