# SPDX-License-Identifier: Apache-2.0
"""Show what happened to each table: its schema changes with what was done about them, and its states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from airflow_provider_cdc.batch.approvals import asked_changes
from airflow_provider_cdc.batch.coming_ddl import kind_of_change
from airflow_provider_cdc.batch.result import table_states
from airflow_provider_cdc.core.config import CdcPipeline, RunPolicy
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.asked_changes import (
    DENIABLE,
    ON_ADD_COLUMN,
    ON_CONVERT_COLUMN,
    ON_CREATE_TABLE,
    ON_DROP_COLUMN,
    ON_DROP_TABLE,
    ON_FAILOVER,
    ON_KEY_CHANGE,
    ON_MISSING_CREATE,
    ON_RENAME_COLUMN,
    ON_RENAME_TABLE,
    ON_RULE_CHANGE,
    ON_TRUNCATE,
    ON_UNSEEN_DDL,
    ON_WIDEN_COLUMN,
    Answer,
    AskedChange,
    AskedChanges,
)
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.left_out_columns import without_left_out
from airflow_provider_cdc.core.timeline.stated import stated_changes
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, SchemaVersion, TableTimeline
from airflow_provider_cdc.ledger import Batch, Ledger
from airflow_provider_cdc.ledger.records import time_text

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOW = "~"  # behind every position: of what no statement of the source's did
_EVENTS = {
    ON_ADD_COLUMN: "add column",
    ON_CONVERT_COLUMN: "convert column",
    ON_CREATE_TABLE: "create",
    ON_DROP_COLUMN: "drop column",
    ON_DROP_TABLE: "drop",
    ON_FAILOVER: "failover",
    ON_KEY_CHANGE: "key change",
    ON_MISSING_CREATE: "missing create",
    ON_RENAME_COLUMN: "rename column",
    ON_RENAME_TABLE: "rename",
    ON_RULE_CHANGE: "rules",
    ON_TRUNCATE: "truncate",
    ON_UNSEEN_DDL: "unseen DDL",
    ON_WIDEN_COLUMN: "widen column",
}


def table_history(pipeline: CdcPipeline, ledger: Ledger) -> list[dict[str, Any]]:
    """Return the history of every table that the pipeline ever had, also of dropped ones, by name.

    ``versions`` are the schema versions, each with the statement that made it and its kind; ``events`` what else
    happened to the table. Both have ``position``, ``time``, ``statement`` and ``policy``: what was done about it, or
    ``ask``; then ``detail`` says what was decided, by whom and when. ``states`` have ``state``, ``reason``, ``since``,
    the batch and who ran it.
    """
    changes = [
        *stated_changes(pipeline.tables),
        *(SchemaChange.from_document(_without_id(document)) for document in ledger.schema_changes(pipeline.name)),
    ]
    at = {change.position: change for change in reversed(changes) if change.copy_of is None}
    batches = {batch.seq: batch for batch in ledger.batches(pipeline.name)}
    asked = asked_changes(list(batches.values()))
    timeline = build_timeline(changes, Server.of(pipeline.source.options), AskedChanges(asked))
    timeline = without_left_out(timeline, pipeline.tables)
    states = table_states(ledger, pipeline.name)
    emptied = {i for i, state in states.items() if state.version is None}
    tables = []
    for table_id, table in timeline.tables.items():
        name = table.last_name
        if table.supposed and table_id not in states:
            continue
        if pipeline.tables.selects(name):
            mine = [item for item in asked if timeline.owner(item.name, item.position or _NOW) == table_id]
            mine += [item for item in asked if (item.position, item.name) in _left_names(table)]
            policy = pipeline.tables.policy(name, pipeline.policy)
            document = _structure(table, at, policy, mine, emptied=table_id in emptied)
            tables.append({**document, "states": _past_states(ledger, pipeline.name, table_id, batches)})
    known = {table_id for table_id, table in timeline.tables.items() if pipeline.tables.selects(table.last_name)}
    for table_id, present in ledger.tables(pipeline.name).items():
        if table_id not in known:
            origin = {"database": present["database"], "table": present["table"], "versions": [], "events": []}
            tables.append({**origin, "states": _past_states(ledger, pipeline.name, table_id, batches)})
    return sorted(tables, key=lambda table: (table["database"], table["table"]))


def _without_id(document: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in document.items() if name != "id"}


def _left_names(table: TableTimeline) -> set[tuple[str, TableName]]:
    """Return the positions at which a table lost a name, by a RENAME or its DROP, each with that name."""
    return {(position, old) for (_, old), (position, _) in pairwise(table.names) if old is not None}


def _structure(
    table: TableTimeline,
    at: Mapping[str, SchemaChange],
    policy: RunPolicy,
    asked: Sequence[AskedChange],
    *,
    emptied: bool,
) -> dict[str, Any]:
    """Return the schema versions and other events of one table.

    :param at: schema changes by position.
    :param asked: changes of the table that its policy asked about.
    :param emptied: its location holds nothing of it.
    """
    events: list[tuple[str, str, str, str | None]] = [
        ("truncate", position, "apply", None)
        for position in table.clears
        if not any(item.position == position for item in asked)
    ]
    rules = [item for item in asked if item.policy == ON_RULE_CHANGE]
    asked = [item for item in asked if item.policy != ON_RULE_CHANGE]
    events += [(_EVENTS[item.policy], item.position, _asked_by(item), _decided(item)) for item in asked]
    events += [
        ("drop", position, _taken(policy.on_drop_table, "apply" if emptied else "keep"), None)
        if name is None
        else ("rename", position, "apply", str(name))
        for position, name in table.names[1:]
        if not any(
            (one.position, one.policy) == (position, ON_DROP_TABLE if name is None else ON_RENAME_TABLE)
            for one in asked
        )
    ]
    events += [("unknown", block.position, "park", block.reason) for block in table.blocked]
    name: TableName = table.last_name
    return {
        "database": name.database,
        "table": name.table,
        "versions": [_version(version, at, asked) for version in table.versions],
        "events": [
            {"event": event, **_origin(position, at), "policy": answer, "detail": detail}
            for event, position, answer, detail in sorted(events, key=lambda item: item[1])
        ]
        + [_changed_rules(item) for item in sorted(rules, key=lambda item: item.at or _NOW)],
    }


def _changed_rules(item: AskedChange) -> dict[str, Any]:
    """Return the event of rules of the pipeline that were others."""
    origin = {"position": None, "time": item.at or None, "statement": item.statement}
    return {"event": _EVENTS[item.policy], **origin, "policy": _asked_by(item), "detail": _decided(item)}


def _version(version: SchemaVersion, at: Mapping[str, SchemaChange], asked: Sequence[AskedChange]) -> dict[str, Any]:
    """Return one schema version of a table; parameters are those of :func:`_structure`."""
    columns = [
        {"name": c.name, "type": str(c.type), "nullable": c.nullable, "key": c.id in version.schema.key}
        for c in version.schema.columns
    ]
    change = at.get(version.position)
    kind = None if change is None or not change.statement else str(kind_of_change(change))
    by = [_asked_by(one) for one in asked if one.position == version.position and one.policy not in DENIABLE]
    return {**_origin(version.position, at), "kind": kind, "policy": by[0] if by else "apply", "columns": columns}


def _taken(policy: str, otherwise: str) -> str:
    """Return what was done about a change that a batch took without asking: with ``fail`` another value was stated."""
    return otherwise if policy in ("fail", "ask") else policy


def _asked_by(item: AskedChange) -> str:
    """Return the value of the policy that decided about a change, ``ask`` or ``park`` where a person did or has to."""
    waits = "park" if item.policy == ON_MISSING_CREATE else "ask"
    return item.by.rpartition(": ")[2] if item.by.startswith("policy ") else waits


def _decided(item: AskedChange) -> str:
    """Return what was decided about a change, by whom and when."""
    if item.answer == Answer.OPEN:
        return "waits for a decision"
    if item.answer == Answer.WITHDRAWN:
        return f"taken back, as of {item.at}"
    return f"{'approved' if item.answer == Answer.APPLY else 'denied'} by {item.by} at {item.at}"


def _origin(position: str, at: Mapping[str, SchemaChange]) -> dict[str, Any]:
    change = at.get(position)
    time = None if change is None or change.time is None else (_EPOCH + timedelta(microseconds=change.time)).isoformat()
    return {"position": position or None, "time": time, "statement": (change.statement or None) if change else None}


def _past_states(ledger: Ledger, pipeline: str, table_id: str, batches: Mapping[int, Batch]) -> list[dict[str, Any]]:
    """Return the states that a table had, each once with the batch that it began with."""
    past: list[dict[str, Any]] = []
    for seq, document in ledger.table_versions(pipeline, table_id):
        status, reason = ("removed", "") if document is None else (document["state"], document["reason"])
        if past and (past[-1]["state"], past[-1]["reason"]) == (status, reason):
            continue
        batch = batches.get(seq)
        by = None if batch is None or batch.task is None else str(batch.task)
        since = None if batch is None else time_text(batch.committed_at)
        past.append({"state": status, "reason": reason, "since": since, "batch": seq, "by": by})
    return past
