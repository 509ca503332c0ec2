# SPDX-License-Identifier: Apache-2.0
"""Decide which asset events a run sends: every committed change at least once, and never an older one after a newer.

Airflow sends the events of a task when it succeeds. A run that committed a batch and then died, or failed because a
table is parked, has sent none; the next run sends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from airflow_provider_cdc.batch.result import BatchResult, ran_engine, stored_result
from airflow_provider_cdc.ledger import Batch, Ledger, TaskTry
from airflow_provider_cdc.ledger.records import time_text

SHOWN_VERSIONS = 50
"""Tables whose versions, and whose contradictions, the event of the cut names: a database column holds the extra."""

MOST_BATCHES = 200
"""Batches that one run looks at; older ones, of a pipeline that long ran without outlets, get no events."""


@dataclass(frozen=True)
class AssetEvents:
    """The events that a run sends.

    :param through: number of the newest batch that they announce.
    :param cut: extra of the event of the whole pipeline.
    :param tables: extra of each changed table's event, by ``(database, table)``, oldest batch first.
    """

    through: int
    cut: dict[str, Any]
    tables: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)


def due_batches(batches: Sequence[Batch], announced: int, requested: int | None, me: TaskTry | None) -> list[Batch]:
    """Return the batches that a run has to announce.

    These are all that nobody has announced. The newest batch is announced again by a request that is answered with it,
    and by a later try of the task that worked on it: whether the events of the first time were sent is not known.

    :param batches: committed batches with records, ascending.
    :param announced: number of the newest batch that somebody has announced.
    :param requested: number of the batch that answers the request.
    :param me: the try that asks.
    """
    due = [batch for batch in batches if batch.seq > announced]
    newest = batches[-1] if batches else None
    if due or newest is None:
        return due
    again = newest.seq == requested or (me is not None and me.follows(newest.task))
    return [newest] if again else []


def asset_events(due: Sequence[Batch], announced: int) -> AssetEvents | None:
    """Return the events for batches; None where there is no news.

    :param due: from :func:`due_batches`.
    :param announced: number of the newest batch that somebody has announced.
    """
    tables: dict[tuple[str, str], dict[str, Any]] = {}
    cut: dict[str, Any] | None = None
    contradictions: dict[str, dict[str, int]] = {}
    for batch in due:
        result = stored_result(batch)
        if result is None:
            continue
        common = _common(batch, result, repeated=batch.seq <= announced)
        versions = {line.name: line.version for line in result.tables[:SHOWN_VERSIONS]}
        contradictions |= {line.name: line.contradictions for line in result.tables if line.contradictions}
        cut = {
            **common, "records": result.records, "versions": {**(cut or {}).get("versions", {}), **versions},
            "contradictions": dict(list(contradictions.items())[:SHOWN_VERSIONS]),
        }  # fmt: skip
        for line in result.tables:
            if line.action and line.version is not None:
                name = (line.database, line.table)
                tables.pop(name, None)  # so that the order is that of the batches
                tables[name] = {
                    **common, "table": line.name, "version": line.version, "state": line.state,
                    "rows": {"upserts": line.upserts, "deletes": line.deletes},
                    "contradictions": line.contradictions,
                    "proof": None if line.proof is None else line.proof.document(),
                }  # fmt: skip
    return None if cut is None else AssetEvents(due[-1].seq, cut, tables)


def events_to_send(ledger: Ledger, pipeline: str, requested: int | None, me: TaskTry | None) -> AssetEvents | None:
    """Return the events that a run sends now; None for none. Parameters are those of :func:`due_batches`."""
    announced = ledger.announced(pipeline)
    newest = ledger.last(pipeline)
    if newest is None:
        return None
    after = max(0, announced - 1, newest.seq - MOST_BATCHES)
    batches = [batch for batch in ledger.batches(pipeline, after=after) if ran_engine(batch)]
    return asset_events(due_batches(batches, announced, requested, me), announced)


def _common(batch: Batch, result: BatchResult, *, repeated: bool) -> dict[str, Any]:
    cut = result.cut or {}
    return {
        "pipeline": batch.pipeline,
        "seq": batch.seq,
        "until": time_text(batch.until),
        "source_time": cut.get("source_time"),
        "position": cut.get("position"),
        "consistent": bool(cut.get("consistent")),
        "repeated": repeated,
    }
