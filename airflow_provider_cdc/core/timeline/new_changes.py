# SPDX-License-Identifier: Apache-2.0
"""Deduplicate a batch's schema changes against those already known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.ddl.statement import TruncateTable
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.clock_position import PARTITION
from airflow_provider_cdc.core.model.schema import TableName, TableSchema
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.change_order import order_of_sending, sent_apart
from airflow_provider_cdc.core.timeline.failovers import without_same_servers
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, Timeline
from airflow_provider_cdc.core.timeline.unordered import REASON, TWICE


def new_changes(
    known: Sequence[SchemaChange],
    read: Iterable[SchemaChange],
    observed: Sequence[SchemaChange],
    *,
    exact: bool,
    server: Server | None = None,
) -> list[SchemaChange]:
    """Return the changes that are neither known nor repeats of one another.

    :param read: schema changes of the batch's records.
    :param observed: structures that rows show, by position.
    :param server: settings of the source's server.
    :param exact: whether a change's position identifies it.
    """
    ordered = without_same_servers(known, sorted(read, key=lambda change: (change.position, change.order)))
    fresh = _by_position(known, ordered) if exact else _by_clock(known, ordered, server)
    return [*fresh, *_new_structures([*known, *fresh], observed, server)]


def _by_position(known: Sequence[SchemaChange], read: Sequence[SchemaChange]) -> list[SchemaChange]:
    """Return the changes that are not known; of duplicates the first by log order counts.

    A repaired one comes late and may be the first: it is new where its place among others differs from the copy's.
    """
    orders: dict[Any, int] = {}
    for change in known:
        orders[change.identity] = min(change.order, orders.get(change.identity, change.order))
    fresh = []
    for change in read:
        copy = orders.get(change.identity)
        if copy is None or (change.order < copy and _stands_elsewhere(change, copy, [*known, *read])):
            orders[change.identity] = change.order
            fresh.append(change)
    return fresh


def _stands_elsewhere(change: SchemaChange, copy: int, every: Iterable[SchemaChange]) -> bool:
    """Return whether statements that ``order`` puts behind a change stand before its copy.

    :param copy: order of the copy.
    """
    between = (other for other in every if other.statement and change.order < other.order < copy)
    return any(
        other.position == change.position or (change.snapshot is not None and other.position > change.position)
        for other in between
        if other.identity != change.identity
    )


@dataclass
class _Run:
    """Hold a statement that the source executed once, and the partitions that carry it."""

    first: SchemaChange
    partitions: set[str]


def _by_clock(known: Sequence[SchemaChange], read: Sequence[SchemaChange], server: Server | None) -> list[SchemaChange]:
    """Return the changes that are not known, including copies on other partitions.

    A statement of the same source time, database and text is

    * a copy on a partition that has none, if the tool sent it soon after the other;
    * else sent again, if the tool built it before or sent it long after the other: the source does not execute a
      statement twice in one second in which the tool pauses;
    * else sent again, if its partition has a later statement before it: the source's time falls in no partition;
    * else sent again or executed twice. A TRUNCATE empties its table once more, which is right in both cases; another
      statement is dropped if it has no effect, and marked if it has one.
    """
    runs: dict[Any, list[_Run]] = {}
    for change in known:
        _note(runs, change)
    seen = {change.identity for change in known if not change.statement}
    fresh: list[SchemaChange] = []
    repeated: list[SchemaChange] = []
    for change in read:
        if not change.statement:
            if change.identity not in seen:
                seen.add(change.identity)
                fresh.append(change)
            continue
        earlier = runs.get(_mark(change), [])
        near = [run for run in earlier if not sent_apart(change, run.first)]
        original = next((run for run in near if change.position[PARTITION] not in run.partitions), None)
        if original is not None:
            change = replace(change, copy_of=original.first.position)
        elif near:
            if _passed([*known, *fresh], change):
                continue
            if not _truncates(change):
                repeated.append(change)
                continue
        elif any(order_of_sending(run.first) < order_of_sending(change) for run in earlier):
            continue
        fresh.append(change)
        _note(runs, change)
    for change in repeated:
        if _has_effect([*known, *fresh], change, server):
            fresh.append(replace(change, twice=True))
    return fresh


def _passed(known: Sequence[SchemaChange], change: SchemaChange) -> bool:
    """Return whether the partition of a change had a statement of a later source time before it."""
    if change.time is None:
        return False
    mine = [one for one in known if one.statement and one.position[PARTITION] == change.position[PARTITION]]
    return any(one.time is not None and one.time > change.time and one.position < change.position for one in mine)


def _note(runs: dict[Any, list[_Run]], change: SchemaChange) -> None:
    if not change.statement:
        return
    equal_runs = runs.setdefault(_mark(change), [])
    run = next((run for run in equal_runs if run.first.position == change.copy_of), None)
    if run is None:
        run = _Run(change, set())
        equal_runs.append(run)
    run.partitions.add(change.position[PARTITION])


def _mark(change: SchemaChange) -> Any:
    return change.time, change.database, change.statement


def _has_effect(known: Sequence[SchemaChange], change: SchemaChange, server: Server | None) -> bool:
    """Return whether a statement would change tables again; one that would fail was not executed again.

    A statement before it on its own partition was applied at the position of its first copy, which may seem later.
    """
    partition = change.position[PARTITION]
    before_it = [other for other in known if other.position <= change.position]
    originals = {other.copy_of for other in before_it if other.position[PARTITION] == partition}
    newest = max([change.position, *filter(None, originals)])
    earlier = [other for other in known if other.position <= newest]
    if newest > change.position:
        change = replace(change, position=f"{newest}.{change.position}")
    before, after = (build_timeline(changes, server) for changes in (earlier, [*earlier, change]))
    return before != after and _failures(before) == _failures(after)


def _failures(timeline: Timeline) -> int:
    """Return the number of statements that block tables, except for doubts about their order."""
    blocks = (block for table in timeline.tables.values() for block in table.blocked)
    return sum(block.reason not in (REASON, TWICE) for block in blocks)


def _truncates(change: SchemaChange) -> bool:
    try:
        return all(isinstance(item, TruncateTable) for item in parse(change.statement, change.dialect))
    except DataError:
        return False


def _new_structures(
    known: Sequence[SchemaChange], observed: Sequence[SchemaChange], server: Server | None
) -> list[SchemaChange]:
    """Return the observed structures of unknown tables, and those that differ; most batches only repeat known ones.

    A structure is compared with the one that is known at its position: rows that come late may show that it was there
    earlier, and one that goes may come back.
    One that a full snapshot repeats is new behind one that only streamed rows showed: the snapshot settles that, but
    for a table without key, whose rows may come twice.
    """
    if not observed:
        return []
    timeline = build_timeline(known, server)
    shown: dict[TableName, list[tuple[str, TableSchema | None, str]]] = {}
    for change in sorted(known, key=lambda change: (change.position, change.order)):
        if not change.statement:
            for d, t, schema in change.structure:
                shown.setdefault(TableName(d, t), []).append((change.position, schema, change.rows))
    fresh: list[SchemaChange] = []
    discovered: set[TableName] = set()
    for change in observed:
        ((database, table, schema),) = change.structure
        name = TableName(database, table)
        # also for a known table: late rows may be older than the change that made it known
        if name in timeline.doubtful or timeline.sent_again(name, change.position, change.time):
            continue
        unknown = _lacks_columns(timeline, name, change.position) and name not in discovered
        structures = shown.setdefault(name, [])
        behind = bisect_right(structures, change.position, key=itemgetter(0))
        _, newest, rows = structures[behind - 1] if behind else ("", None, "")
        settles = change.rows == "read" and rows == "streamed" and schema is not None and bool(schema.key)
        if unknown or (not change.fallback and (newest != schema or settles)):
            discovered.add(name)
            structures.insert(behind, (change.position, schema, change.rows))
            fresh.append(change)
    return fresh


def _lacks_columns(timeline: Timeline, name: TableName, position: str) -> bool:
    """Return whether no table has a name at a position, or one whose columns no statement shows."""
    owner = timeline.owner(name, position)
    return owner is None or not timeline.tables[owner].schema.columns
