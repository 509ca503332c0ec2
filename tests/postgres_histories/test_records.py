# SPDX-License-Identifier: Apache-2.0
"""The records of the model are of the shapes that recorded traffic has."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from tests.captures.in_memory import records
from tests.postgres_histories.generate import case_of
from tests.postgres_histories.steps import World

CAPTURES = (
    "public-postgres-15",
    "public-postgres-bare-15",
    "public-postgres-ddllog-15",
    "public-postgres-newlog-15",
)
SEEDS = range(60)
# only the captures without schemas have intervals as text
NOT_RECORDED = {"io.debezium.time.Interval"}
Parts = tuple[bytes | None, bytes | None, tuple[str, ...]]


@cache
def recorded() -> list[Parts]:
    """Return key, value and names of headers of all recorded messages."""
    return [
        (record.key, record.value, tuple(name for name, _ in record.headers))
        for name in CAPTURES
        for record in records(name)
    ]


@cache
def modelled() -> list[Parts]:
    """Return the same of messages that the model sends."""
    messages: list[Parts] = []
    for seed in SEEDS:
        case = case_of(seed)
        world = World(seed, case.style, logs_ddl=case.logs_ddl)
        world.run(case.statements, case.style.snapshot_after)
        for sent in world.connector.sent:
            record = sent.record
            messages.append((record.key, record.value, tuple(name for name, _ in record.headers)))
    return messages


def _parsed(texts: Iterable[bytes | None]) -> Iterator[dict[str, Any]]:
    return (json.loads(text) for text in texts if text is not None)


def _payload(message: dict[str, Any]) -> dict[str, Any]:
    return message.get("payload", message)


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__


def members(messages: Iterable[Parts]) -> set[tuple[str, str, str]]:
    """Return where a message has which member of which type; columns have no part in it."""
    results = set()
    for message in _parsed(value for _, value, _ in messages):
        payload = _payload(message)
        envelope = "row" if payload.get("op") else str(payload.get("status") or "other")
        results |= {(envelope, name, _kind(value)) for name, value in payload.items()}
        for part in ("source", "transaction"):
            results |= {(part, name, _kind(value)) for name, value in (payload.get(part) or {}).items()}
        for collection in payload.get("data_collections") or ():
            results |= {("collection", name, _kind(value)) for name, value in collection.items()}
    return results


def positions(messages: Iterable[Parts]) -> set[tuple[str, str]]:
    """Return marks of snapshots with the op, and with the form of the place of all rows."""
    results = set()
    for message in _parsed(value for _, value, _ in messages):
        payload = _payload(message)
        if "op" in payload and payload["op"] != "m":
            source = payload["source"]
            mark = source["snapshot"] or "false"
            read = mark if mark in ("false", "incremental") else "read"
            sequence = re.sub(r"\d+", "n", source["sequence"])
            results.add((mark, payload["op"]))
            results.add((read, f"{sequence} lsn {_kind(source['lsn'])} txId {_kind(source['txId'])}"))
    return results


def images(messages: Iterable[Parts]) -> set[tuple[str, str, str, str]]:
    """Return which of key, image before and after records of each op have."""
    results = set()
    for key, value, _ in messages:
        if value is not None and (payload := _payload(json.loads(value))).get("op") not in (None, "m"):
            results.add((payload["op"], _kind(key), _kind(payload["before"]), _kind(payload["after"])))
    return results


def headers(messages: Iterable[Parts]) -> set[tuple[str, ...]]:
    """Return the names of headers by the kind of message."""
    results = set()
    for _, value, names in messages:
        payload = {"op": "tombstone"} if value is None else _payload(json.loads(value))
        if payload.get("op") != "m":
            results.add((payload.get("op", "other"), *sorted(names)))
    return results


def schemas(messages: Iterable[Parts]) -> set[str]:
    """Return the schemas of columns, without names, numbers and labels, and those of the other members."""
    results = set()
    for message in _parsed(value for _, value, _ in messages):
        if "payload" not in message or "op" not in message["payload"] or message["payload"]["op"] == "m":
            continue
        for part in message["schema"]["fields"]:
            if part["field"] in ("before", "after"):
                results |= {_without_names(column) for column in part["fields"]}
            else:
                results.add(json.dumps(part, sort_keys=True))
    return results


def _without_names(column: dict[str, Any]) -> str:
    described = {name: value for name, value in column.items() if name not in ("field", "optional", "default")}
    text = re.sub(
        r'"(scale|length|connect\.decimal\.precision)": "\d+"', r'"\1": "n"', json.dumps(described, sort_keys=True)
    )
    return re.sub(r'"allowed": "[^"]*"', '"allowed": "…"', text)


def test_each_member_is_recorded() -> None:
    assert members(modelled()) - members(recorded()) == set()


def test_each_form_of_a_place_is_recorded() -> None:
    assert positions(modelled()) - positions(recorded()) == set()


def test_each_combination_of_key_and_images_is_recorded() -> None:
    assert images(modelled()) - images(recorded()) == set()


def test_the_headers_are_recorded() -> None:
    assert headers(modelled()) - headers(recorded()) == set()


def test_each_schema_of_a_column_and_of_the_envelope_is_recorded() -> None:
    unknown = schemas(modelled()) - schemas(recorded())
    assert {text for text in unknown if not any(name in text for name in NOT_RECORDED)} == set()
