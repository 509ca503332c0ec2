# SPDX-License-Identifier: Apache-2.0
"""Order schema changes as the source made them, each once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model import clock_position
from airflow_provider_cdc.core.model.clock_position import REPEAT_MS, is_clock_position, same_millisecond
from airflow_provider_cdc.core.timeline.read_ahead import without_read_ahead
from airflow_provider_cdc.core.timeline.timeline import SchemaChange


def sent_apart(one: SchemaChange, other: SchemaChange) -> bool:
    """Return whether one of two equal statements is the other, sent again long after it."""
    if one.stale or other.stale or clock_position.sent_apart(one.position, other.position):
        return True
    return one.sent is not None and other.sent is not None and abs(one.sent - other.sent) > REPEAT_MS


def order_of_sending(change: SchemaChange) -> tuple[str, int, str]:
    """Return a sort key for statements by the time of sending; a copy may have the position of another partition."""
    return same_millisecond(change.position), change.sent or 0, change.position


def in_source_order(changes: Iterable[SchemaChange], server: Server) -> Iterator[tuple[str, SchemaChange]]:
    """Return the changes in source order, each with the position where it begins to hold.

    Copies of statements and changes that were sent again are left out.

    :param changes: in any order, with repeats.
    """
    first = _first_sent(without_read_ahead(change for change in changes if change.copy_of is None))
    if server.lower_case_names:
        first = [_in_lower_case(change) for change in first]
    seen: set[tuple[Any, ...]] = set()
    for position, _, change in sorted(_with_positions(first), key=lambda item: item[:2]):
        if change.identity not in seen:
            seen.add(change.identity)
            yield position, change


def copies_of(changes: Iterable[SchemaChange]) -> dict[str, list[str]]:
    """Map the position of each statement to the positions of its copies."""
    copies: dict[str, set[str]] = {}
    for change in changes:
        if change.copy_of is not None:
            copies.setdefault(change.copy_of, set()).add(change.position)
    return {position: sorted(positions) for position, positions in copies.items()}


def _first_sent(changes: Iterable[SchemaChange]) -> list[SchemaChange]:
    """Remove statements that a tool sent again long after others of the same source time and text.

    If the first one arrives late, earlier batches took a later one for it.
    """
    first_sent: list[SchemaChange] = []
    sent: dict[tuple[Any, ...], list[SchemaChange]] = {}
    for change in sorted(changes, key=order_of_sending):
        if change.statement and is_clock_position(change.position):
            earlier = sent.setdefault((change.time, change.database, change.statement), [])
            if earlier and all(sent_apart(change, other) for other in earlier):
                continue
            earlier.append(change)
        first_sent.append(change)
    return first_sent


def _with_positions(changes: Iterable[SchemaChange]) -> list[tuple[str, int, SchemaChange]]:
    """Return (position where it begins to hold, order, change).

    A snapshot that only recovers structures has an older position than statements that were streamed before it, and
    its text includes their effect (recorded: snapshot.mode=recovery).
    """
    positioned, newest = [], ""
    for change in sorted(changes, key=lambda change: change.order):
        if change.statement:
            newest = max(newest, change.position)
        positioned.append((newest if change.describes else change.position, change.order, change))
    return positioned


def _in_lower_case(change: SchemaChange) -> SchemaChange:
    structure = tuple((database.lower(), table.lower(), schema) for database, table, schema in change.structure)
    return replace(change, database=change.database.lower(), structure=structure)
