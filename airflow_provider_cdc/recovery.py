"""Rebuild a ledger from the lake: a ledger that is lost, new or restored from a backup loses no records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from airflow_provider_cdc.core.ledger import LakeBatch, Lease, Ledger
from airflow_provider_cdc.outcome import published, ran_engine, schema_change_id


def take_over(ledger: Ledger, lease: Lease, documents: Sequence[Mapping[str, Any]]) -> str:
    """Give the ledger the batches of the lake that it does not know.

    :param documents: ``Result.lake_batches`` of an engine, ascending.
    :return: one line about it, for people.
    """
    known = [batch.seq for batch in ledger.batches(lease.pipeline) if ran_engine(batch)]
    states: dict[str, Mapping[str, Any]] = dict(ledger.tables(lease.pipeline))
    batches = []
    for document in documents:
        batch = _batch(lease.pipeline, document, states)
        batches.append(batch)
        states.update({table_id: state for table_id, state in batch.tables.items() if state is not None})
    ledger.take_over(lease, max((seq for seq in known if seq < batches[0].seq), default=0), batches)
    unfinished = "" if batches[-1].result is not None else f"; batch {batches[-1].seq} is unfinished and comes first"
    return (
        f"the ledger did not know {len(batches)} batches of the lake ({batches[0].seq} to {batches[-1].seq}): "
        f"took them over{unfinished}"
    )


def _batch(pipeline: str, document: Mapping[str, Any], states: Mapping[str, Mapping[str, Any]]) -> LakeBatch:
    claim, result = document["claim"], document["result"]
    batch = LakeBatch(
        document["seq"],
        claim["start"],
        claim["end"],
        datetime.fromisoformat(claim["until"]) if claim["until"] else None,
        datetime.fromisoformat(claim["planned_at"]),
        claim["topics"],
    )
    if result is None:
        return batch
    tables: dict[str, Mapping[str, Any] | None] = {state["table_id"]: state for state in result["states"]}
    tables.update(dict.fromkeys(result.get("removed", ())))
    return LakeBatch(
        batch.seq,
        batch.start,
        batch.end,
        batch.until,
        batch.planned_at,
        batch.topics,
        published(pipeline, result, states, sum(result["seconds"].values())),
        tables,
        [{**change, "id": schema_change_id(change)} for change in result["new_schema_changes"]],
    )
