# SPDX-License-Identifier: Apache-2.0
"""Name the members of a table's state that the page shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.printable import printable


def table_state(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the shown members of a table's state."""
    table = TableState.from_document(document)
    return {
        "database": printable(table.database),
        "table": printable(table.table),
        "state": str(table.state),
        "reason": printable(table.reason),
        "code": printable(table.code),
        "location": printable(document["location"]),
        "waiting_since": table.waiting_since,
        "applied_position": printable(table.applied_position),
        "version": table.version,
        "applied_seq": table.applied_seq,
        "source_time": table.source_time,
        "columns": len(table.laid or (table.schema or {}).get("columns") or ()),
        "mode": printable(table.mode),
        "notes": [printable(note) for note in table.notes],
        "proved": printable(table.proof.reach(table.applied_position)),
        "agreed_rows": table.proof.agreed_rows,
        "contradictions": {printable(kind): count for kind, count in table.proof.contradictions.items()},
    }
