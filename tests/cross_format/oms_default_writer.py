# SPDX-License-Identifier: Apache-2.0
"""Writes events as OMS's Default method does (docs/wire/oceanbase-oms.md 2, 8)."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.cross_format.events import Ddl, Event, Image, Message, Row
from tests.cross_format.oms_values import image, partition_of


class Writer:
    """Rows by hash of their key, both images in full; a copy of each schema change on every partition."""

    format = "oms-default"
    options: Mapping[str, str] = {}
    creates = False

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the records of one event."""
        what = event.what
        if isinstance(what, Ddl):
            statement = json.dumps({"ddl": what.statement}, ensure_ascii=False)
            value = _message(event, "DDL", "null", statement, {"ddlType": f"{what.verb} TABLE"})
            return [Message(partition, b"ddl", value) for partition in range(partitions)]
        row = what.after if what.after is not None else what.before
        assert row is not None
        names = [column.name for column in what.schema.key_columns]
        key = {
            "record_primary_key": "\x01".join(names) or None,
            "record_primary_value": "\x01".join(str(row[name]) for name in names),
        }
        images = (self._image(what.before, what), self._image(what.after, what))
        value = _message(event, what.op.upper(), *images, key)
        partition = partition_of(row, what.schema, what.table, partitions)
        return [Message(partition, json.dumps(key["record_primary_value"]).encode(), value)]

    def _image(self, row: Image | None, what: Row) -> str:
        return "null" if row is None else image(row, what.schema)


def _message(event: Event, kind: str, before: str, after: str, more: Mapping[str, str | None]) -> bytes:
    meta = {
        "checkpoint": str(event.sent_ms // 1000),
        **more,
        "source_identity": "subtopic",
        "dbType": "OB_MYSQL",
        # of one process: the second, and a counter that is not padded
        "storeDataSequence": int(f"{event.time_ms // 1000}{event.number % 100_000}"),
        "table_name": event.what.table,
        "db": f"tenant.{event.what.database}",
        "timestamp": str(event.time_ms // 1000),
        "uniqueId": str(event.transaction),
    }
    spelled = f'"allMetaData":{json.dumps(meta, ensure_ascii=False)},"prevStruct":{before}'
    return f'{{{spelled},"recordType":"{kind}","postStruct":{after}}}'.encode()
