# SPDX-License-Identifier: Apache-2.0
"""Read the rows of the table into which the connector's heartbeat writes which PostgreSQL server it is connected to."""

from __future__ import annotations

import msgspec

from airflow_provider_cdc.core.formats.connect.connectors.contract import LoggedChange, schema_and_name
from airflow_provider_cdc.core.model.relation import RelationChange, RelationEvent

HEARTBEAT_TABLE = "heartbeat_table"
HEARTBEAT_TABLE_MEANING = (
    "SCHEMA.NAME of the table that heartbeat.action.query writes system identifier and timeline into (default ctl.beat)"
)

_DEFAULT = "ctl.beat"
_MARK = '{"beat":'
_LONGEST = 100  # characters of an identifier: longer ones are of another table


class _Row(msgspec.Struct, gc=False):
    """One row; the identifier may be a number, which another query than ours need not turn into a text."""

    system_identifier: str | int
    timeline: str | int


class _Beat(msgspec.Struct, gc=False):
    """Hold what a schema change of a beat has in its text."""

    beat: tuple[str, str, int]  # system identifier, timeline, where a snapshot read it, else 0


_read = msgspec.json.Decoder(_Row).decode
_parse = msgspec.json.Decoder(_Beat).decode


class BeatTable:
    """The table that heartbeats are written into: each row that the stream has shows which server wrote it.

    :param table: its name as a pipeline states it, None for the default: then a table of that name may be another one.
    :raises ConfigurationError: it is not a schema and a name.
    """

    has_rows = True

    def __init__(self, table: str | None = None) -> None:
        self.name, self._stated = schema_and_name(HEARTBEAT_TABLE, table or _DEFAULT), table is not None

    def change(self, op: str, position: tuple[int, int, int], after: bytes | None) -> LoggedChange | None:
        """Return the server that a row shows, None where it shows none.

        A row that a snapshot reads was written before it: it stands before all rows of the snapshot.

        :raises ValueError: a row of the stated table names no server.
        """
        if after is None or op not in ("insert", "update", "snapshot"):
            return None
        try:
            row = _read(after)
        except msgspec.MsgspecError:
            if self._stated:
                text = f"a row of source.options.{HEARTBEAT_TABLE} without system_identifier and timeline"
                raise ValueError(text) from None
            return None
        system, timeline = str(row.system_identifier), str(row.timeline)
        if max(len(system), len(timeline)) > _LONGEST:
            return None
        read = op == "snapshot"
        text = msgspec.json.encode(_Beat((system, timeline, position[0] if read else 0))).decode()
        if read:
            position = position[0], max(0, position[1] - 1), 0
        return LoggedChange(position, f"-- server {system}, timeline {timeline}", *self.name, text, read)

    def relation(self, text: str) -> RelationChange | None:
        """Read what :meth:`change` gave; None where another table's row gave it."""
        if not text.startswith(_MARK):
            return None
        system, timeline, lsn = _parse(text).beat
        return RelationChange(RelationEvent.SERVER, 0, system, None, *self.name, text=timeline, read=lsn > 0)
