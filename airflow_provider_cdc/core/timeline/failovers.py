# SPDX-License-Identifier: Apache-2.0
"""Recognise by the source's own rows that another server took over, and let tables wait that may have lost changes.

A standby that takes over may lack transactions that the log has, and may have some that the log will never have. No
position falls, and no row of a table shows it. But the server that rows of a heartbeat table name is another one, or
its log has another timeline, from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.model.relation import RelationChange, RelationEvent
from airflow_provider_cdc.core.timeline.asked_changes import ON_FAILOVER, Answer, AskedChange, AskedChanges
from airflow_provider_cdc.core.timeline.table_lives import TableLives
from airflow_provider_cdc.core.timeline.timeline import SchemaChange


class Failovers(TableLives):
    """The part of the timeline's builder that knows which server writes the log."""

    def __init__(self, server: Server, copies: dict[str, list[str]], asked: AskedChanges) -> None:
        super().__init__(server, copies, asked)
        self._writer: tuple[str, str] | None = None  # system identifier and timeline
        self._read_since: str | None = None  # position of a full snapshot since which the server has not shown itself

    def _take_server(self, change: SchemaChange, relation: RelationChange) -> None:
        """Take what a row of the heartbeat table shows; a row that was read does not show who it was read from."""
        if relation.read:
            self._read_since = change.position
            return
        server, was = (relation.system, relation.text), self._writer
        if was is not None and server != was:
            self._fail_over(change, was, server)
        self._writer, self._read_since = server, None

    def _fail_over(self, change: SchemaChange, was: tuple[str, str], now: tuple[str, str]) -> None:
        """Let each table wait with its rows of before, until somebody says that the new server has the same.

        Another system is another cluster. It has a connector's slot only where nothing is lost by that, so a snapshot
        since the old one showed itself is of the new one.
        """
        since = self._read_since if was[0] != now[0] else None
        at = change if since is None else replace(change, position=since)
        text = f"another server took over: system {now[0]}, timeline {now[1]}, before {was[0]}, {was[1]}"
        for name, table_id in list(self._open.items()):
            table = self.timeline.tables[table_id]
            if table.supposed or table.versions[0].position >= at.position:
                continue
            table.failovers.append(at.position)
            if self._asked.answer(at.position, name, ON_FAILOVER, text) == Answer.OPEN:
                item = AskedChange(at.position, *name, ON_FAILOVER, text)
                self._block(at, name, f"{ON_FAILOVER} is ask: {text}. {_CURE} {name} --change {item.id}`")


_CURE = (
    "It may have lacked changes when it did: take a full snapshot, or where nothing was lost "
    "`airflow-cdc approve PIPELINE.yaml"
)


def without_same_servers(known: Sequence[SchemaChange], read: Sequence[SchemaChange]) -> list[SchemaChange]:
    """Return schema changes without the beats that show what the beat before them shows.

    :param known: of batches before; they stay as they are.
    """
    new = {id(change) for change in read}
    same: set[int] = set()
    shown: RelationChange | None = None
    for change in sorted([*known, *read], key=lambda change: (change.position, change.order)):
        relation = change.relation
        if relation is None or relation.event != RelationEvent.SERVER:
            continue
        if relation == shown and not relation.read and id(change) in new:
            same.add(id(change))
        shown = relation
    return [change for change in read if id(change) not in same]
