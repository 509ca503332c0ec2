# SPDX-License-Identifier: Apache-2.0
"""A row as ExtractNewRecordState flattens it, with the settings that say so."""

from __future__ import annotations

import json
from typing import Any

FIELDS = "op,db,table,source.file,source.pos,source.row,source.snapshot,source.ts_ms"
OPTIONS = {"delete.tombstone.handling.mode": "rewrite", "add.fields": FIELDS}
ADDED = {
    "__deleted": "false", "__op": "c", "__db": "shop", "__table": "t", "__source_file": "mysql-bin.000012",
    "__source_pos": 4711, "__source_row": 2, "__source_snapshot": None, "__source_ts_ms": 1_700_000_000_123,
}  # fmt: skip
POSITION = "0000.0000000012.00000000000000004711.0000000002"


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def flat(columns: dict[str, Any], **added: Any) -> dict[str, Any]:
    return {**columns, **ADDED, **{f"__{name}": value for name, value in added.items()}}
