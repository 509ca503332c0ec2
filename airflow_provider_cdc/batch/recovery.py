# SPDX-License-Identifier: Apache-2.0
"""Rebuild a ledger from the lake: a ledger that is lost, new or restored from a backup loses no records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from airflow_provider_cdc.batch.result import published, schema_change_id, table_states
from airflow_provider_cdc.core.documents import Result, TableState
from airflow_provider_cdc.ledger import LakeBatch, Lease, Ledger, PastBatch


def take_over(ledger: Ledger, lease: Lease, documents: Sequence[Mapping[str, Any]]) -> str:
    """Add the batches of the lake that the ledger does not know.

    :param documents: ``Result.lake_batches`` of an engine, ascending.
    :return: one line of progress.
    """
    known = ledger.applied(lease.pipeline)
    states = table_states(ledger, lease.pipeline)
    batches = []
    for document in documents:
        result = None if document["result"] is None else Result.from_document(document["result"])
        folded = document.get("folded")
        if folded is not None and result is not None:
            batches.append(folded_batch(lease.pipeline, document))
        else:
            batches.append(_batch(lease.pipeline, document["seq"], document["claim"], result, states))
        if result is not None:
            states.update({state.table_id: state for state in result.states})
    ledger.take_over(lease, max((seq for seq in known if seq < batches[0].seq), default=0), batches)
    unfinished = "" if batches[-1].result is not None else f"; batch {batches[-1].seq} is unfinished and comes first"
    return (
        f"the ledger did not know {len(batches)} batches of the lake ({batches[0].seq} to {batches[-1].seq}): "
        f"took them over{unfinished}"
    )


def folded_batch(pipeline: str, document: Mapping[str, Any]) -> LakeBatch:
    """Return the batch that stands for all batches up to it.

    :param document: the one of ``Result.lake_batches`` that has ``folded``.
    """
    result, folded = Result.from_document(document["result"]), document["folded"]
    batch = _batch(pipeline, document["seq"], document["claim"], result, {})
    tables: dict[int, dict[str, Mapping[str, Any] | None]] = {}
    for table_id, state in batch.tables.items():
        tables.setdefault(folded["states"][table_id], {})[table_id] = state
    changes: dict[int, list[Mapping[str, Any]]] = {}
    for seq, change in zip(folded["schema_changes"], batch.schema_changes, strict=True):
        changes.setdefault(seq, []).append(change)
    past = [PastBatch(seq, tables.get(seq, {}), changes.get(seq, [])) for seq in sorted({*tables, *changes})]
    stored = {**(batch.result or {}), "batches": folded["batches"]}
    return replace(batch, result=stored, tables={}, schema_changes=(), past=past)


def _batch(
    pipeline: str, seq: int, claim: Mapping[str, Any], result: Result | None, states: Mapping[str, TableState]
) -> LakeBatch:
    batch = LakeBatch(
        seq,
        claim["start"],
        claim["end"],
        datetime.fromisoformat(claim["until"]) if claim["until"] else None,
        datetime.fromisoformat(claim["planned_at"]),
        claim["topics"],
        datetime.fromisoformat(claim["cut_at"]) if claim.get("cut_at") else None,
    )
    if result is None:
        return batch
    return replace(
        batch,
        result=published(pipeline, result, states, sum(result.seconds.values())).document(),
        tables={state.table_id: state.document() for state in result.states},
        schema_changes=[{**change, "id": schema_change_id(change)} for change in result.new_schema_changes],
    )
