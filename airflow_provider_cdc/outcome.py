"""What came of a batch, as small JSON data for people, XCom and the ledger."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from airflow_provider_cdc.core.ledger import Batch

_SHOWN = 20
_SHOWN_TEXT = 200


def published(
    pipeline: str, document: Mapping[str, Any], before: Mapping[str, Mapping[str, Any]], seconds: float
) -> dict[str, Any]:
    """Return a result document as it is told and kept.

    :param document: result document of an engine.
    :param before: table states before the batch, by table id.
    :param seconds: the whole request took so long.
    """
    names = ("seq", "status", "records", "changes", "schema_changes", "quarantined")
    told: dict[str, Any] = {"pipeline": pipeline, **{name: document[name] for name in names}}
    if document["status"] == "failed":
        error = {"error": document["error"], "transient": bool(document.get("transient"))}
        return {**told, "tables": [], "seconds": seconds, **error}
    after = {**before, **{state["table_id"]: state for state in document["states"]}}
    by_name = _by_name(document["states"])
    told["tables"] = [_line(line, by_name.get((line["database"], line["table"]))) for line in document["tables"]]
    told |= {"seconds": seconds, "phases": document["seconds"], "cut": _cut(after.values())}
    told["statements"] = [text[:_SHOWN_TEXT] for text in document["statements"][:_SHOWN]]
    told |= _unsettled(after.values())
    if told["status"] == "done" and told["waiting"]:
        told["status"] = "waiting"
    if document.get("new_generations"):
        told["new_generations"] = document["new_generations"]
    if document["lossy"]:
        told["lossy"] = document["lossy"]
    if document["quarantine"]:
        told["quarantine"] = document["quarantine"][:_SHOWN]
    return told


def _unsettled(states: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Return the tables that are parked and those that wait, each with its reason."""
    names = ("database", "table", "reason")
    found: dict[str, list[dict[str, Any]]] = {"parked": [], "waiting": []}
    for state in states:
        if state["state"] in found:
            found[state["state"]].append({name: state[name] for name in names})
    return found


def ran_engine(batch: Batch) -> bool:
    """Tell whether a batch left its part of the change log: one without records starts nothing."""
    return batch.committed and (batch.result or {}).get("status") != "empty"


def _by_name(states: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], Mapping[str, Any]]:
    """States by name; of tables that had it one after the other, the one that has it now."""
    found: dict[tuple[str, str], Mapping[str, Any]] = {}
    for state in sorted(states, key=lambda state: (state["state"] != "dropped", state["applied_position"])):
        found[state["database"], state["table"]] = state
    return found


def _cut(states: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Up to where the tables are; with a parked or waiting table among them they stand at no common position."""
    kept = [state for state in states if state["state"] != "dropped"]
    position = max((state["applied_position"] for state in kept), default="")
    times = [state["source_time"] for state in kept if state["source_time"] is not None]
    return {
        "consistent": all(state["state"] == "ok" for state in kept),
        "position": position or None,
        "source_time_us": max(times, default=None),
    }


def _line(line: Mapping[str, Any], state: Mapping[str, Any] | None) -> dict[str, Any]:
    kept = {name: line[name] for name in ("database", "table", "action", "upserts", "deletes") if name in line}
    if state is not None:
        kept |= {"state": state["state"], "version": state["version"]}
        if state["reason"]:
            kept["reason"] = state["reason"]
    return kept


def from_ledger(batch: Batch, states: Iterable[Mapping[str, Any]], seconds: float) -> dict[str, Any]:
    """Return what a committed batch's request is answered with.

    :param states: of the tables now: one that was parked then may be well again.
    :param seconds: this request took so long.
    """
    stored, unsettled = dict(batch.result or {}), _unsettled(states)
    now = "parked" if unsettled["parked"] else "waiting" if unsettled["waiting"] else ""
    if stored.get("status") == "empty":
        told = {**nothing(batch.pipeline, batch.seq), **loss_of(batch), "seconds": round(seconds, 3)}
        return {**told, "status": now, **unsettled} if now else told
    return {**stored, **unsettled, "status": now or "done", "repeated": True, "seconds": round(seconds, 3)}


def nothing(pipeline: str, seq: int | None) -> dict[str, Any]:
    """Return the answer to a request for which there is nothing to do."""
    numbers = {"records": 0, "changes": {}, "schema_changes": 0, "quarantined": 0}
    return {"pipeline": pipeline, "seq": seq, "status": "nothing_to_do", **numbers, "tables": [], "seconds": 0.0}


def loss_of(batch: Batch) -> dict[str, Any]:
    """Return the answer's member ``lost``: records that Kafka deleted unread, where there are any."""
    return {"lost": batch.lost} if batch.lost else {}


def schema_change_id(change: Mapping[str, Any]) -> str:
    """Return what makes a schema change the same one when it comes again."""
    what = change["statement"] or json.dumps(change["structure"], sort_keys=True)
    if change.get("snapshot") is not None:
        what = f"{change['snapshot']} {what}"  # the same snapshot may begin several times
    return f"{change['position']}:{hashlib.sha256(what.encode()).hexdigest()[:16]}"
