# SPDX-License-Identifier: Apache-2.0
"""Writes events as OMS's SharePlex method does."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime

from tests.cross_format.events import Ddl, Event, Message, Row
from tests.cross_format.oms_values import changed, image, partition_of

_OPS = {"insert": "ins", "update": "upd", "delete": "del"}


class Writer:
    """Rows by hash of their key; of an update the changed columns next to the row before it; no schema changes."""

    format = "oms-shareplex"
    options: Mapping[str, str] = {}
    creates = True

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the records of one event."""
        what = event.what
        if isinstance(what, Ddl):
            return []
        row = what.after if what.after is not None else what.before
        assert row is not None
        key = [str(row[column.name]) for column in what.schema.key_columns]
        name = f"{what.database}.{what.table}"
        meta = {
            "op": _OPS[what.op],
            "time": _local_time(event.time_ms),
            "posttime": _local_time(event.sent_ms),
            "idx": "1/10",
            "size": 10,
            "seq": event.number,
            "table": name,
            "rowid": f"{name}-" + "\u0001".join(key),
            "trans": str(event.transaction),
            # of one process: the second, and a counter that is not padded
            "scn": f"{event.time_ms // 1000}{event.number % 100_000}",
        }
        value = f'{{"data":{self._data(what)},"meta":{json.dumps(meta)}'
        if what.before is not None and what.after is not None:
            value += f',"key":{image(what.before, what.schema)}'
        return [Message(partition_of(row, what.schema, what.table, partitions), None, (value + "}").encode())]

    @staticmethod
    def _data(what: Row) -> str:
        if what.before is not None and what.after is not None:
            return image(changed(what.before, what.after), what.schema)
        row = what.after if what.after is not None else what.before
        assert row is not None
        return image(row, what.schema)


def _local_time(millis: int) -> str:
    return datetime.fromtimestamp(millis // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%S")
