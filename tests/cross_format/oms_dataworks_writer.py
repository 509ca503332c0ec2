# SPDX-License-Identifier: Apache-2.0
"""Writes events as OMS's Dataworks method does (docs/wire/oceanbase-oms.md 5)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.cross_format.events import Ddl, Event, Image, Message, Row
from tests.cross_format.oms_default_extended_writer import type_name
from tests.cross_format.oms_values import image, partition_of


class Writer:
    """Rows by hash of their key, both images in full; a copy of each schema change on every partition; no scn."""

    format = "oms-dataworks"
    options: Mapping[str, str] = {}
    creates = False

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the records of one event."""
        what = event.what
        if isinstance(what, Ddl):
            value = _message(event, what.canal_type, "null", "null", [], [])
            return [Message(partition, None, value) for partition in range(partitions)]
        row = what.after if what.after is not None else what.before
        assert row is not None
        columns = [{"name": column.name, "type": type_name(column.type)} for column in what.schema.columns]
        key = [column.name for column in what.schema.key_columns]
        value = _message(event, what.op.upper(), _image(what.before, what), _image(what.after, what), columns, key)
        return [Message(partition_of(row, what.schema, what.table, partitions), None, value)]


def _image(row: Image | None, what: Row) -> str:
    return "null" if row is None else f'{{"data":{image(row, what.schema)}}}'


def _message(event: Event, op: str, before: str, after: str, columns: list[dict[str, str]], key: list[str]) -> bytes:
    what = event.what
    source = {
        "dbType": "ob_mysql",
        "dbVersion": None,
        "dbName": what.database,
        "schema": None,
        "table": what.table,
    }
    rest = {
        "op": op,
        "timestamp": {
            "eventTime": event.time_ms,
            "systemTime": event.sent_ms,
            "checkpointTime": event.time_ms // 1000,
        },
        "ddl": {"text": what.statement} if isinstance(what, Ddl) else None,
        "scn": "null",
    }
    schema = {"source": source, "column": columns, **({"pk": key} if key else {})}
    payload = f'{{"before":{before},"after":{after},{json.dumps(rest, ensure_ascii=False)[1:]}'
    return f'{{"version":"2.0","schema":{json.dumps(schema, ensure_ascii=False)},"payload":{payload}}}'.encode()
