# SPDX-License-Identifier: Apache-2.0
"""Place what a snapshot read of the source's own log of schema changes, and what is streamed behind it as well.

A snapshot on a slot that was there may read what happens behind its place. Its rows have that, too, and the rows that
are streamed until then do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_provider_cdc.core.model.relation import RelationChange, RelationEvent
from airflow_provider_cdc.core.timeline.timeline import SchemaChange

_READ_AHEAD = "a snapshot has read a change of this table that came behind it: its rows are of before and of after it"


def without_read_ahead(changes: Iterable[SchemaChange]) -> list[SchemaChange]:
    """Return each change that a snapshot read ahead at one place, and block the tables that are not known between both.

    It holds from the snapshot on. But a table that took the name of another one changes where that is streamed: the
    name has rows of the other one until then. Not known until the next snapshot are a table whose columns changed, and
    those of such a name that were there before and still are.
    """
    every = list(changes)
    streamed, ahead = _read_ahead(every)
    if not ahead:
        return every
    described: dict[tuple[str, int | None], RelationChange] = {}
    freed: dict[tuple[str, str], RelationChange] = {}  # by name: what took it from its table
    takers: set[tuple[str, int | None]] = set()
    blocks: list[SchemaChange] = []
    for one in sorted({one.relation for one in every if one.relation is not None}, key=lambda one: one.number):
        table, name = (one.system, one.oid), (one.database, one.table)
        was = described.get(table)
        if one.event == RelationEvent.DESCRIBED:
            described[table] = one
        if one not in ahead:
            continue
        altered = was is not None and (one.structure, one.by_index) != (was.structure, was.by_index)
        unknown = [one] if altered and table not in takers else []
        if one.event == RelationEvent.DROPPED:
            freed[name] = one
        elif name in freed:
            takers.add(table)
            unknown = [freed.pop(name), *([] if was is None else [one])]
        if was is not None and (was.database, was.table) != name:
            freed[was.database, was.table] = one
        blocks += [_block(streamed[some], some) for some in unknown if some.event == RelationEvent.DESCRIBED]
    behind = {one for one in ahead if one.event != RelationEvent.DESCRIBED or (one.system, one.oid) in takers}
    return [change for change in every if change.snapshot is None or change.relation not in behind] + blocks


def _read_ahead(every: list[SchemaChange]) -> tuple[dict[RelationChange, SchemaChange], set[RelationChange]]:
    """Return where each change was streamed first, and those that a snapshot read before that."""
    streamed: dict[RelationChange, SchemaChange] = {}
    read: dict[RelationChange, str] = {}
    logged = [(change, change.relation) for change in every if change.relation is not None]
    for change, relation in sorted(logged, key=lambda item: item[0].position, reverse=True):
        if change.snapshot is None:
            streamed[relation] = change
        else:
            read[relation] = change.position
    return streamed, {one for one, at in read.items() if one in streamed and at < streamed[one].position}


def _block(change: SchemaChange, one: RelationChange) -> SchemaChange:
    """Return a change at the same place that blocks the table."""
    lacking = replace(one, event=RelationEvent.LACKING, text=_READ_AHEAD)
    return replace(change, statement=_READ_AHEAD, relation=lacking)
