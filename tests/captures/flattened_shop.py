# SPDX-License-Identifier: Apache-2.0
"""The recorded shop whose rows ExtractNewRecordState flattened: its settings, and what the transform loses."""

from __future__ import annotations

from tests.histories.scripted import Script

FLAT = "public-shop-flat-my8"
OPTIONS = {
    "explicit_defaults_for_timestamp": "true",
    "decimal.handling.mode": "string",
    "delete.tombstone.handling.mode": "rewrite",
    "add.fields": "op,db,table,source.ts_ms,source.file,source.pos,source.row,source.gtid,source.snapshot,ts_ms",
    "add.headers": "op,source.pos",
}


# the tables that the transform leaves without what they need, with what says so: an UPDATE of a table without key, and
# an INSERT of a key that a TRUNCATE had removed
PARKED = {"page_views": "image_missing", "web_views": "image_missing", "returns_uk": "apply.key_unproven"}
LOST = frozenset(f"shop.{table}" for table in PARKED)


def reasons(script: Script) -> dict[str, str]:
    """Return the tables that are parked, with what says why."""
    parked = {state.table: state.reason for state in script.states.values() if state.state == "parked"}
    return {table: PARKED[table] for table, reason in parked.items() if PARKED[table] in str(reason)}
