# SPDX-License-Identifier: Apache-2.0
"""List the schema changes that a batch would apply, before it runs; for tools with a topic of their own for them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.config import CdcPipeline
from airflow_provider_cdc.core.ddl.alter_actions import (
    AddPrimaryKey,
    ChangeColumn,
    ConvertCharset,
    DropColumn,
    DropPrimaryKey,
    ModifyColumn,
    PartitionRows,
)
from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.statement import AlterTable, DropDatabase, DropTable, Statement, TruncateTable
from airflow_provider_cdc.core.ddl.tokens import DdlError
from airflow_provider_cdc.core.model.relation import RelationChange, RelationEvent
from airflow_provider_cdc.core.timeline.timeline import SchemaChange

if TYPE_CHECKING:
    from airflow_provider_cdc.batch.source_log import SourceLog
    from airflow_provider_cdc.core.model.offsets import Offsets

MOST_RECORDS = 2_000
"""Records of the schema topic that are read at most: the newest; a snapshot writes some for each table."""

MOST_TEXT = 500
"""Characters of a statement that are shown."""


class DdlKind(StrEnum):
    """Say what a schema change does to a table.

    ``destructive`` removes rows, columns or the table; ``unknown`` is not understood, and parks its table; ``barrier``
    may change stored values or the key; ``mapping`` leaves the stored values as they are.
    """

    DESTRUCTIVE = "destructive"
    UNKNOWN = "unknown"
    BARRIER = "barrier"
    MAPPING = "mapping"


_DESTRUCTIVE = (DropTable, TruncateTable, DropDatabase)
_DESTRUCTIVE_ACTIONS = (DropColumn, PartitionRows)
_BARRIER_ACTIONS = (ChangeColumn, ModifyColumn, AddPrimaryKey, DropPrimaryKey, ConvertCharset)


def kind_of(text: str, dialect: str | None = None) -> DdlKind:
    """Return what the statements of a text do; of several, the gravest."""
    try:
        statements = parse(text, dialect)
    except DdlError:
        return DdlKind.UNKNOWN
    kinds = {_kind(statement) for statement in statements}
    return next((kind for kind in DdlKind if kind in kinds), DdlKind.MAPPING)


_DROPS_COLUMN = re.compile(r"\bDROP\s+(?!CONSTRAINT\b|DEFAULT\b|NOT\b|IDENTITY\b|EXPRESSION\b)", re.IGNORECASE)
_MAY_CONVERT = re.compile(r"\bTYPE\b|\bPRIMARY\s+KEY\b|\bDROP\s+CONSTRAINT\b|\bNOT\s+NULL\b", re.IGNORECASE)


def kind_of_relation(text: str, relation: RelationChange) -> DdlKind:
    """Return what a change of a source's own log does; its structure alone does not say what it was before."""
    match relation.event:
        case RelationEvent.FAILED:
            return DdlKind.UNKNOWN
        case RelationEvent.DROPPED:
            return DdlKind.DESTRUCTIVE
        case RelationEvent.DESCRIBED if not relation.created and _DROPS_COLUMN.search(text):
            return DdlKind.DESTRUCTIVE
        case RelationEvent.DESCRIBED if relation.created or not _MAY_CONVERT.search(text):
            return DdlKind.MAPPING
    return DdlKind.BARRIER


def kind_of_change(change: SchemaChange) -> DdlKind:
    """Return what a recorded schema change does."""
    if change.relation is not None:
        return kind_of_relation(change.statement, change.relation)
    return kind_of(change.statement, change.dialect)


def _kind(statement: Statement) -> DdlKind:
    if isinstance(statement, _DESTRUCTIVE):
        return DdlKind.DESTRUCTIVE
    actions = statement.actions if isinstance(statement, AlterTable) else ()
    if any(isinstance(action, _DESTRUCTIVE_ACTIONS) for action in actions):
        return DdlKind.DESTRUCTIVE
    return DdlKind.BARRIER if any(isinstance(action, _BARRIER_ACTIONS) for action in actions) else DdlKind.MAPPING


def coming_ddl(pipeline: CdcPipeline, log: SourceLog, start: Offsets, end: Offsets) -> list[dict[str, Any]] | None:
    """Return the statements in the schema topic's part of a range: ``table``, ``kind`` and ``text`` of each.

    Statements with which a snapshot describes its tables are left out. None where DDL comes among the rows: only a
    batch reads those.

    :param start: first offsets of the range.
    :param end: offsets after the last.
    """
    topic = pipeline.source.schema_topic
    if topic is None:
        return None
    windows = {
        (topic, partition): (max(start.get(topic, {}).get(partition, last), last - MOST_RECORDS), last)
        for partition, last in end.get(topic, {}).items()
    }
    return list(_statements(pipeline, log, windows))


def _statements(
    pipeline: CdcPipeline, log: SourceLog, windows: Mapping[tuple[str, int], tuple[int, int]]
) -> Iterator[dict[str, Any]]:
    from airflow_provider_cdc.core.formats.contract import IdentifiesTables, Records
    from airflow_provider_cdc.core.formats.registry import open_format

    fmt = open_format(pipeline.source.format, pipeline.source.options)
    windows = {tp: (first, last) for tp, (first, last) in windows.items() if last > first}
    for (topic, partition), records in sorted(log.read(windows, MOST_RECORDS).items()):
        part = Records(
            topic,
            partition,
            [record.offset for record in records],
            [record.timestamp_ms for record in records],
            [record.key for record in records],
            [record.value for record in records],
            [record.headers for record in records],
        )
        log.schemas.provide(fmt, part.values)
        log.schemas.provide(fmt, part.keys)
        for change in fmt.decode(part).to_pylist():
            text, of_snapshot = change["statement"], change["op"] == "snapshot"
            if not text or of_snapshot:
                continue
            relation = None
            if change["table_changes"] and isinstance(fmt, IdentifiesTables):
                relation = fmt.relation(change["table_changes"])
            names = [name for name in (change["database"], change["table"]) if name]
            yield {
                "table": ".".join(names) or None,
                "kind": kind_of(text, change["dialect"]) if relation is None else kind_of_relation(text, relation),
                "text": " ".join(text.split())[:MOST_TEXT],
            }
