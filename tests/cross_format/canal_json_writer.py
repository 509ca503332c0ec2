# SPDX-License-Identifier: Apache-2.0
"""A history as Canal's flat JSON, hashed by key over partitions (docs/wire/canal.md 4.4, 5.2, 5.3, 10.4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.cross_format.canal_values import ZONE, image_of, partition_of, sql_type
from tests.cross_format.events import Ddl, Event, Message, Row


class Writer:
    """Write one message for each event: rows to the partition of their key's hash, DDL to partition 0."""

    format = "canal-json"
    options: Mapping[str, str] = {"timezone": ZONE}
    creates = False

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the message of one event."""
        what = event.what
        if isinstance(what, Ddl):
            return [_message(event, 0, {"type": what.canal_type, "isDdl": True, "sql": what.statement})]
        data = image_of(what.before if what.after is None else what.after, what.schema)
        return [_message(event, partition_of(what, data, partitions), _row(what, data))]


def _message(event: Event, partition: int, members: dict[str, Any]) -> Message:
    empty = dict.fromkeys(("data", "mysqlType", "old", "pkNames", "sqlType"))
    named = {"database": event.what.database, "table": event.what.table, "es": event.time_ms, "ts": event.sent_ms}
    whole = {**empty, **named, "gtid": "", "id": event.transaction, "isDdl": False, "sql": "", **members}
    text = json.dumps(dict(sorted(whole.items())), ensure_ascii=False, separators=(",", ":"))
    return Message(partition, None, text.encode())


def _row(what: Row, data: dict[str, str | None]) -> dict[str, Any]:
    old = None
    if what.op == "update" and what.before is not None:
        before = image_of(what.before, what.schema)
        old = [{name: value for name, value in before.items() if value != data[name]}]
    return {
        "type": what.op.upper(),
        "data": [data],
        "old": old,
        "pkNames": [column.name for column in what.schema.key_columns] or None,
        "mysqlType": {column.name: str(column.type) for column in what.schema.columns},
        "sqlType": {column.name: sql_type(column.type, data[column.name]) for column in what.schema.columns},
    }
