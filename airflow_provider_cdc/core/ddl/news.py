"""Which of a batch's schema changes say something that was not known before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.ddl.fold import build_timeline
from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.ddl.statement import TruncateTable
from airflow_provider_cdc.core.ddl.timeline import SchemaChange, Timeline
from airflow_provider_cdc.core.ddl.unordered import REASON, TWICE
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.clock_position import PARTITION
from airflow_provider_cdc.core.model.schema import TableName


def new_changes(
    known: Sequence[SchemaChange],
    read: Iterable[SchemaChange],
    observed: Iterable[SchemaChange],
    *,
    exact: bool,
    server: Server | None = None,
) -> list[SchemaChange]:
    """Return the changes that are neither known nor repeats of one another.

    :param read: what records of the log said.
    :param observed: structures that rows show, by position.
    :param server: settings of the source's server.
    :param exact: whether a change's position tells it from others. Without, a copy is one of the same source time,
        database and text; but not of a TRUNCATE, which two rows of one second may stand between. On one partition it
        may as well be a statement that was carried out twice: if that would make a difference, it is marked.
    """
    identity = _exact_identity if exact else _inexact_identity
    seen: dict[Any, list[str]] = {}
    for change in known:
        seen.setdefault(identity(change), []).append(change.position)
    fresh: list[SchemaChange] = []
    again: list[SchemaChange] = []
    # of copies the first in the log counts, not the one that a task happened to report first
    for change in sorted(read, key=lambda change: (change.position, change.order)):
        mark = identity(change)
        if mark is None or mark not in seen:
            fresh.append(change)
        elif not exact and _again_on_one_partition(change.position, seen[mark]):
            again.append(change)
        seen.setdefault(mark, []).append(change.position)
    for change in again:
        if _would_matter([*known, *fresh], change, server):
            fresh.append(replace(change, twice=True))
    return [*fresh, *_told_by_rows([*known, *fresh], observed, server)]


def _exact_identity(change: SchemaChange) -> Any:
    return change.identity


def _inexact_identity(change: SchemaChange) -> Any:
    if not change.statement:
        return _exact_identity(change)
    return None if _truncates(change) else (change.time, change.database, change.statement)


def _again_on_one_partition(position: str, earlier: Sequence[str]) -> bool:
    """Return whether a statement came before on its partition; a tool may write one to every partition."""
    return position not in earlier and any(other[PARTITION] == position[PARTITION] for other in earlier)


def _would_matter(known: Sequence[SchemaChange], change: SchemaChange, server: Server | None) -> bool:
    """Return whether a statement would change tables again; one that could not be carried out again was not."""
    earlier = [other for other in known if other.position <= change.position]
    before, after = (build_timeline(changes, server) for changes in (earlier, [*earlier, change]))
    return before != after and _failures(before) == _failures(after)


def _failures(timeline: Timeline) -> int:
    """Return how many statements tables are unknown for, but for doubts about their order."""
    blocks = (block for table in timeline.tables.values() for block in table.blocked)
    return sum(block.reason not in (REASON, TWICE) for block in blocks)


def _truncates(change: SchemaChange) -> bool:
    try:
        return all(isinstance(item, TruncateTable) for item in parse(change.statement, change.dialect))
    except DataError:
        return False


def _told_by_rows(
    known: Sequence[SchemaChange], observed: Iterable[SchemaChange], server: Server | None
) -> list[SchemaChange]:
    """Keep a structure where its table was unknown or had another one; most batches only see it again."""
    timeline = build_timeline(known, server)
    latest: dict[TableName, Any] = {}
    for change in known:
        if not change.statement:
            latest.update({TableName(d, t): schema for d, t, schema in change.structure})
    kept: list[SchemaChange] = []
    discovered: set[TableName] = set()
    for change in observed:
        ((database, table, schema),) = change.structure
        name = TableName(database, table)
        # also of a known table: rows that come late may be older than what it was known from
        if name in timeline.doubtful:
            continue
        unknown = timeline.owner(name, change.position) is None and name not in discovered
        if unknown or (not change.fallback and latest.get(name) != schema):
            discovered.add(name)
            latest[name] = schema
            kept.append(change)
    return kept
