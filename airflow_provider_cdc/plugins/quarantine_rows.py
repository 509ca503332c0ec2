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
    """Return records and rows that could not be carried, by reason and table, the newest first.

    Each answer looks through some batches; ``before`` continues below them. Of a batch the ledger has the places of the
    first of them: ``unnamed`` counts the others.
    """
    last = before
    if last is None:
        newest = connection.execute(select(func.max(_batches.seq)).where(_batches.pipeline == pipeline)).scalar()
        last = (newest or 0) + 1
    first = last - _WINDOW
    quarantined = of_result(_batches, "quarantined").as_integer()
    query = select(
        _batches.seq, _batches.committed_at, quarantined.label("quarantined"),
        of_result(_batches, "quarantine").label("quarantine"),
    ).where(
        _batches.pipeline == pipeline, _batches.seq < last, _batches.seq >= first, quarantined > 0
    )  # fmt: skip
    groups: dict[tuple[str, ...], Document] = {}
    unnamed = 0
    for row in connection.execute(query.order_by(_batches.seq.desc())):
        items = row.quarantine or ()
        unnamed += max(row.quarantined - len(items), 0)
        for item in items:
            shown = _quarantined(item)
            key = (shown["code"], str(shown["database"]), str(shown["table"]), str(shown["column"]))
            group = groups.setdefault(key, {**shown, "count": 0, "newest_seq": row.seq, "at": row.committed_at})
            # Batches come newest first, and their records oldest first: the last one that is not later is the first.
            earlier = row.seq < group.get("seq", row.seq + 1)
            group |= {"count": group["count"] + 1, **({**_record(shown), "seq": row.seq} if earlier else {})}
    return {"groups": list(groups.values()), "unnamed": unnamed, "before": first if first > 1 else None}


def _record(shown: Mapping[str, Any]) -> Document:
    return {name: shown[name] for name in ("topic", "partition", "offset")}


def _quarantined(item: Mapping[str, Any]) -> Document:
    """Return place and code of a record; its error text may quote it, and stays in the ledger."""
    shown = {name: item.get(name) for name in _RECORD_MEMBERS}
    shown = {name: printable(value) if isinstance(value, str) else value for name, value in shown.items()}
    return {**shown, "code": printable(str(item.get("error_code") or item.get("reason") or ""))}
