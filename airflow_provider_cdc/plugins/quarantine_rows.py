# SPDX-License-Identifier: Apache-2.0
"""Read from a ledger where records and rows are that could not be carried; never what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import func, select

from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.plugins.batch_rows import of_result

Document = dict[str, Any]

_WINDOW = 100
"""So many batches are looked through for one answer."""
_RECORD_MEMBERS = ("topic", "partition", "offset", "database", "table", "column")

_batches = schema.batches.c


def quarantine(connection: Connection, pipeline: str, *, before: int | None) -> Document:
    """Return where records and rows are that could not be carried, newest batches first.

    Each answer looks through some batches; ``before`` continues below them.
    """
    last = before
    if last is None:
        newest = connection.execute(select(func.max(_batches.seq)).where(_batches.pipeline == pipeline)).scalar()
        last = (newest or 0) + 1
    first = last - _WINDOW
    query = select(
        _batches.seq, _batches.committed_at,
        of_result(_batches, "quarantined").as_integer().label("quarantined"),
        of_result(_batches, "quarantine").label("quarantine"),
    ).where(
        _batches.pipeline == pipeline, _batches.seq < last, _batches.seq >= first,
        of_result(_batches, "quarantined").as_integer() > 0,
    )  # fmt: skip
    selected = connection.execute(query.order_by(_batches.seq.desc()))
    return {
        "batches": [
            {
                "seq": row.seq,
                "committed_at": row.committed_at,
                "quarantined": row.quarantined,
                "records": [_quarantined(item) for item in row.quarantine or ()],
            }
            for row in selected
        ],
        "before": first if first > 1 else None,
    }


def _quarantined(item: Mapping[str, Any]) -> Document:
    """Return place and code of a record; its error text may quote it, and stays in the ledger."""
    shown = {name: item.get(name) for name in _RECORD_MEMBERS}
    shown = {name: printable(value) if isinstance(value, str) else value for name, value in shown.items()}
    return {**shown, "code": printable(str(item.get("error_code") or item.get("reason") or ""))}
