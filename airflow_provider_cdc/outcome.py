"""What came of a batch, as small JSON data for people, XCom and the ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_cdc.core.ledger import Batch

_SHOWN = 20


def published(pipeline: str, document: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    """Return a result document as it is told and kept.

    :param document: result document of an engine.
    :param seconds: the whole request took so long.
    """
    states = {(state["database"], state["table"]): state for state in document["states"]}
    told: dict[str, Any] = {
        "pipeline": pipeline,
        "seq": document["seq"],
        "status": document["status"],
        "records": document["records"],
        "changes": document["changes"],
        "schema_changes": document["schema_changes"],
        "quarantined": document["quarantined"],
        "tables": [_line(line, states.get((line["database"], line["table"]))) for line in document["tables"]],
        "seconds": seconds,
        "phases": document["seconds"],
        "statements": document["statements"][:_SHOWN],
        "lossy": document["lossy"],
    }
    told["parked"] = [
        {"database": state["database"], "table": state["table"], "reason": state["reason"]}
        for state in document["states"]
        if state["state"] == "parked"
    ]
    if document["quarantine"]:
        told["quarantine"] = document["quarantine"][:_SHOWN]
    if document.get("error"):
        told["error"] = document["error"]
    return told


def _line(line: Mapping[str, Any], state: Mapping[str, Any] | None) -> dict[str, Any]:
    kept = {name: line[name] for name in ("database", "table", "action", "upserts", "deletes") if name in line}
    if state is not None:
        kept |= {"state": state["state"], "version": state["version"]}
        if state["reason"]:
            kept["reason"] = state["reason"]
    return kept


def from_ledger(batch: Batch, seconds: float) -> dict[str, Any]:
    """Return what a committed batch's request is answered with.

    :param seconds: this request took so long.
    """
    stored = dict(batch.result or {})
    if stored.get("status") == "empty":
        return {**nothing(batch.pipeline, batch.seq), **_loss(stored), "seconds": round(seconds, 3)}
    return {**stored, "repeated": True, "seconds": round(seconds, 3)}


def nothing(pipeline: str, seq: int | None) -> dict[str, Any]:
    """Return the answer to a request for which there is nothing to do."""
    numbers = {"records": 0, "changes": {}, "schema_changes": 0, "quarantined": 0}
    return {"pipeline": pipeline, "seq": seq, "status": "nothing_to_do", **numbers, "tables": [], "seconds": 0.0}


def _loss(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {"lost": stored["lost"]} if stored.get("lost") else {}


def schema_change_id(change: Mapping[str, Any]) -> str:
    """Return what makes a schema change the same one when it comes again."""
    what = change["statement"] or json.dumps(change["structure"], sort_keys=True)
    return f"{change['position']}:{hashlib.sha256(what.encode()).hexdigest()[:16]}"
