# SPDX-License-Identifier: Apache-2.0
"""Record what a server does as Debezium would send it, without its log: each statement's effect is what it left.

Rows come as JSON without schema, with decimals as text, each statement a transaction of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from tests.histories.log import Log
from tests.histories.records import Record
from tests.postgres.database import Connection
from tests.services.postgres import sql

_TABLES = """
SELECT c.oid::bigint, n.nspname, c.relname,
  (SELECT array_agg(k.attname::text ORDER BY x.number) FROM pg_index i,
     unnest(i.indkey::int2[]) WITH ORDINALITY x(attnum, number), pg_attribute k
   WHERE i.indrelid = c.oid AND i.indisprimary AND k.attrelid = c.oid AND k.attnum = x.attnum)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname IN ('app', 'other')
"""
_LOG = "SELECT id, (to_jsonb(l) || jsonb_build_object('columns', l.columns::text, 'key', l.key::text))::text"
Rows = dict[str, dict[str, Any]]


@dataclass
class Recorder:
    """A connector that looks at all tables after each statement.

    :ivar stored: by oid: the name, and the rows by their row ids and contents.
    """

    database: Connection
    log: Log
    position: int = 0
    start: int = 0
    logged: int = 0
    stored: dict[int, tuple[tuple[str, str], list[str] | None, Rows]] = field(default_factory=dict)

    def run(self, statement: str) -> bool:
        """Carry out a statement and send what it did; return whether the server took it."""
        try:
            self.database.execute(sql(statement))
        except Exception:
            return False
        self.send(rows=statement.lstrip().split()[0] in ("INSERT", "UPDATE", "DELETE"))
        return True

    def send(self, *, rows: bool) -> None:
        """Send what changed: of DDL its entries, and the rows of tables that are new; else rows."""
        self.start = self.position = (self.position // 1000 + 1) * 1000
        before, self.stored = self.stored, self._look()
        fresh = {oid: one for oid, one in self.stored.items() if oid not in before and not rows}
        for name, key, content in fresh.values():
            for row in content.values():
                self._row(name, key, "c", None, row)
        entries = sql(f"{_LOG} FROM ctl.ddl_log l WHERE id > %s ORDER BY id")
        for number, text in self.database.execute(entries, [self.logged]):
            self.logged = number
            self._send("ctl.ddl_log", ("ctl", "ddl_log"), {"id": number}, "c", None, json.loads(text))
        for oid, (name, key, content) in self.stored.items() if rows else ():
            self._changes(name, key, before[oid][2], content)

    def _changes(self, name: tuple[str, str], key: list[str] | None, old: Rows, new: Rows) -> None:
        for identity in [one for one in old if one not in new]:
            self._row(name, key, "d", old[identity], None)
        for identity, row in new.items():
            if identity not in old:
                self._row(name, key, "c", None, row)
            elif row != old[identity]:
                self._row(name, key, "u", None, row)

    def _look(self) -> dict[int, tuple[tuple[str, str], list[str] | None, Rows]]:
        result = {}
        for oid, schema, table, key in self.database.execute(sql(_TABLES)).fetchall():
            cursor = self.database.execute(sql(f'SELECT * FROM "{schema}"."{table}" ORDER BY ctid'))
            names = [column.name for column in cursor.description or ()]
            content: Rows = {}
            for values in cursor.fetchall():
                row = dict(zip(names, map(_value, values), strict=True))
                # without a key an update is sent as the old row's end and a new row
                mark = json.dumps([row[name] for name in key] if key else [list(row.values()), 0])
                while mark in content:
                    mark = json.dumps([json.loads(mark)[0], json.loads(mark)[1] + 1])
                content[mark] = row
            result[oid] = (schema, table), key, content
        return result

    def _row(self, name: tuple[str, str], key: list[str] | None, op: str, before: Any, after: Any) -> None:
        image = before if after is None else after
        self._send(
            f"{name[0]}.{name[1]}", name, {part: image[part] for part in key} if key else None, op, before, after
        )

    def _send(self, topic: str, name: tuple[str, str], key: Any, op: str, before: Any, after: Any) -> None:
        self.position += 1
        source = {"connector": "postgresql", "name": "db", "schema": name[0], "table": name[1], "db": "shop"}
        source |= {
            "sequence": json.dumps([str(self.start), str(self.position)]),
            "ts_ms": self.position,
            "txId": self.start,
        }
        message = {"op": op, "source": source, "before": before, "after": after, "ts_ms": self.position}
        value, where = json.dumps(message).encode(), (f"db.{topic}", 0)
        record = Record(*where, self.position, None if key is None else json.dumps(key).encode(), value)
        self.log.partitions.setdefault(where, []).append(record)


def _value(value: Any) -> Any:
    """Return a value as the connector writes it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return value if value is None or isinstance(value, bool | int | str) else str(value)
