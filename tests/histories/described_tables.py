# SPDX-License-Identifier: Apache-2.0
"""Describe tables as snapshots do."""

from __future__ import annotations

import json

from tests.histories.debezium_records import row
from tests.histories.records import Record

COLUMNS = {"id": "int", "v": "int"}
BEGIN = 1_700_000_000_000


def described(pos: int, number: int, minute: int, table: str = "n") -> Record:
    """Return a snapshot row that carries its schema, as the converter with ``schemas.enable=true`` writes it."""
    plain = row("r", table, pos, {"id": number, "v": number}, mark="true", time=BEGIN + minute * 60_000)
    fields = [{"type": "int32", "optional": True, "field": name} for name in COLUMNS]
    sides = [{"type": "struct", "fields": fields, "optional": True, "field": side} for side in ("before", "after")]
    schema = {"type": "struct", "fields": sides, "optional": False, "name": f"src.shop.{table}.Envelope"}
    value = {"schema": schema, "payload": json.loads(plain.value or b"")}
    return Record(plain.topic, 0, plain.time, None, json.dumps(value).encode())
