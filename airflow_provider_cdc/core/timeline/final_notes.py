# SPDX-License-Identifier: Apache-2.0
"""Note on the tables of a timeline what is known once all of its changes are applied."""

from __future__ import annotations

from airflow_provider_cdc.core.timeline.asked_changes import DENIABLE, Answer, AskedChanges
from airflow_provider_cdc.core.timeline.timeline import Timeline


def note_copies(timeline: Timeline) -> None:
    """Record for each table the copies of the statements that changed it."""
    for table in timeline.tables.values() if timeline.copies else ():
        positions = dict.fromkeys(position for position, _ in table.events())
        table.copies = {p: timeline.copies[p] for p in positions if p in timeline.copies}


def note_asked(timeline: Timeline, asked: AskedChanges) -> None:
    """Record for each table the changes that were left out: they wait for a decision, or were denied."""
    for item in asked.every():
        if item.policy not in DENIABLE:
            continue
        owner = timeline.owner(item.name, item.position)
        table = None if owner is None else timeline.tables[owner]
        if table is not None and item.answer == Answer.OPEN:
            table.asked.append(item.position)
        elif table is not None and item.answer == Answer.DENY:
            table.denied.append(item.position)
