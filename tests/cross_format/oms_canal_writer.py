# SPDX-License-Identifier: Apache-2.0
"""Writes events as OMS's Canal method does."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.cross_format.events import Ddl, Event, Message, Row
from tests.cross_format.oms_values import changed, image, partition_of

_SQL_TYPES = {
    "bigint": -5,
    "int": 4,
    "decimal": 3,
    "float": 7,
    "double": 8,
    "varchar": 12,
    "datetime": 93,
    "blob": 2004,
}


class Writer:
    """Rows by hash of their key; schema changes to every partition, with empty text."""

    format = "oms-canal"
    options: Mapping[str, str] = {}
    creates = True

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the records of one event."""
        what = event.what
        if isinstance(what, Ddl):
            value = self._value(event, what.database, what.table, what.canal_type, {"isDdl": "true", "data": "null"})
            return [Message(partition, None, value) for partition in range(partitions)]
        row = what.after if what.after is not None else what.before
        assert row is not None
        types = {column.name: column.type.name for column in what.schema.columns}
        members = {
            "data": f"[{image(row, what.schema)}]",
            "old": self._old(what),
            "pkNames": json.dumps([column.name for column in what.schema.key_columns]),
            "mysqlType": json.dumps(types),
            "sqlType": json.dumps({name: _SQL_TYPES.get(kind, 1) for name, kind in types.items()}),
            "isDdl": "false",
        }
        value = self._value(event, what.database, what.table, what.op.upper(), members)
        return [Message(partition_of(row, what.schema, what.table, partitions), None, value)]

    @staticmethod
    def _old(what: Row) -> str:
        if what.before is None or what.after is None:
            return "null"
        return f"[{image(changed(what.after, what.before), what.schema)}]"

    @staticmethod
    def _value(event: Event, database: str, table: str, kind: str, members: dict[str, str]) -> bytes:
        reported = {
            "database": json.dumps(database),
            "table": json.dumps(table),
            "type": json.dumps(kind),
            "es": str(event.time_ms),
            "ts": str(event.sent_ms),
            "sql": '""',
            **members,
        }
        return ("{" + ",".join(f'"{name}":{value}' for name, value in reported.items()) + "}").encode()
