# SPDX-License-Identifier: Apache-2.0
"""Read from a ledger whether all tables of a pipeline equal the source at one time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy.engine import Connection
from sqlalchemy.sql import func, select

from airflow_provider_cdc.core.model.status import TableStatus
from airflow_provider_cdc.core.printable import printable
from airflow_provider_cdc.ledger import schema
from airflow_provider_cdc.plugins.batch_rows import of_result
from airflow_provider_cdc.plugins.pipeline_rows import cut_of
from airflow_provider_cdc.sinks.pipeline_tables import reader_of

Document = dict[str, Any]

_SHOWN = 1_000
"""So many tables get a line that reads them at that time."""

_batches, _tables, _pipelines = schema.batches.c, schema.tables.c, schema.pipelines.c


def equality(connection: Connection, pipeline: str) -> Document:
    """Return the time at which all tables equal the source, and what speaks against it; nothing before the first batch.

    Tables that have stopped, changes that did not find what the log says, and records that were left out speak
    against it. Which of the latter were replayed since, the ledger does not know.
    """
    cut = cut_of(connection, pipeline)
    if cut is None:
        return {"equality": None}
    query = select(_tables.document).where(_tables.pipeline == pipeline, _tables.state != TableStatus.DROPPED)
    documents = list(connection.execute(query.order_by(_tables.table_id)).scalars())
    unsettled = sum(document["state"] != TableStatus.OK for document in documents)
    proofs = [document.get("proof") or {} for document in documents]
    contradictions = sum(sum((proof.get("contradictions") or {}).values()) for proof in proofs)
    count, last = _quarantined(connection, pipeline)
    lake = connection.execute(select(_pipelines.lake).where(_pipelines.name == pipeline)).scalar() or {}
    return {
        "equality": {
            "source_time": cut.get("source_time"),
            "position": None if cut.get("position") is None else printable(str(cut["position"])),
            "tables": len(documents),
            "unsettled": unsettled,
            "contradictions": contradictions,
            "quarantined": count,
            "quarantined_seq": last,
            "reads": [] if unsettled else _reads(documents[:_SHOWN], lake),
        }
    }


def _quarantined(connection: Connection, pipeline: str) -> tuple[int, int | None]:
    """Return how many records and rows batches could not carry, and the last of these batches."""
    quarantined = of_result(_batches, "quarantined").as_integer()
    query = select(func.sum(quarantined), func.max(_batches.seq)).where(_batches.pipeline == pipeline, quarantined > 0)
    count, last = connection.execute(query).one()
    return int(count or 0), last


def _reads(documents: Sequence[Document], lake: Mapping[str, Any]) -> list[str]:
    """Return lines that read tables as they were; none where the kind of the tables, or its library, is not known.

    A place that no terminal or file would show as it is is left out.
    """
    root, sink = lake.get("tables"), lake.get("sink") or {}
    tables, unnamed = [], []
    for document in documents:
        location = f"{root}/{document['location']}" if root else document["location"]
        if document["version"] is None or not document["location"] or printable(location) != location:
            unnamed.append(f"{document['database']}.{document['table']}")
        else:
            tables.append((location, document["version"]))
    try:
        reader = reader_of(sink["type"])
    except (ImportError, KeyError):
        return []
    left = [f"-- {printable(name)}: nothing can name its place".replace("\n", " ") for name in unnamed]
    return [*reader.read_at(tables, sink["naming"]), *left]
