# SPDX-License-Identifier: Apache-2.0
"""Tables that only rows describe: the record's key is the table's until an INSERT of a key that is there denies it."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

pytestmark = pytest.mark.sampled(2)

COLUMNS = [
    {"type": "int32", "optional": False, "field": "id"},
    {"type": "int32", "optional": False, "field": "cust"},
    {"type": "string", "optional": True, "field": "v"},
]
CREATE = "CREATE TABLE t (id int NOT NULL PRIMARY KEY, cust int NOT NULL, v text)"


def row(
    op: str, pos: int, image: tuple[int, int, str] | None, *, key: str = "cust", partition: int = 0, file: int = 1
) -> Record:
    """Return a record whose key is one column of the image; an ``op`` of ``r`` is a snapshot's."""
    columns = [column for column in COLUMNS if column["field"] == key]
    data = None if image is None else dict(zip(("id", "cust", "v"), image, strict=True))
    source: dict[str, Any] = {"connector": "mysql", "name": "src", "ts_ms": pos * 1000, "db": "shop", "table": "t"}
    source |= {"file": f"mysql-bin.{file:06d}", "pos": pos, "row": 0, "snapshot": "true" if op == "r" else "false"}
    after = {"type": "struct", "optional": True, "field": "after", "fields": COLUMNS}
    before, now = (data, None) if op == "d" else (None, data)
    payload = {"before": before, "after": now, "source": source, "op": op}
    value = {"schema": {"type": "struct", "fields": [after]}, "payload": payload}
    named = None if data is None else {"schema": {"type": "struct", "fields": columns}, "payload": {key: data[key]}}
    encoded = None if named is None else json.dumps(named).encode()
    return Record("src.shop.t", partition, pos, encoded, json.dumps(value).encode())


TWO_ROWS = [row("c", 20, (1, 7, "a")), row("c", 30, (2, 7, "b"))]


def synced(log: Log, lake: Path, records: list[Record], cuts: list[int], **more: Any) -> Script:
    """Return a pipeline without schema topic that read records of one partition in batches that end at these counts."""
    script = Script(log, lake, schema_topic=None, **more)
    for start, end in pairwise([0, *cuts, len(records)]):
        if start < end:
            script.send(*records[start:end])
            script.sync()
    return script


def is_parked(script: Script) -> bool:
    (state,) = script.states.values()
    reason = str(state.reason)
    return state.state == "parked" and "apply.key_unproven" in reason and "message.key.columns" in reason


CONTRADICTED = {
    "insert": TWO_ROWS,
    "insert_after_snapshot": [row("r", 10, (1, 7, "a")), row("c", 30, (2, 7, "b"))],
    "snapshot": [row("r", 10, (1, 7, "a")), row("r", 10, (2, 7, "b"))],
    "insert_after_update": [row("c", 20, (1, 7, "a")), row("u", 25, (1, 7, "A")), row("c", 30, (2, 7, "b"))],
    "lost_truncate": [row("c", 20, (1, 7, "a"), key="id"), row("c", 30, (1, 8, "b"), key="id")],
}


@pytest.mark.parametrize("cut", [(), (1,), (1, 2)])
@pytest.mark.parametrize("name", CONTRADICTED)
def test_a_key_that_two_rows_have_is_not_the_tables(log: Log, lake: Path, name: str, cut: tuple[int, ...]) -> None:
    script = synced(log, lake, CONTRADICTED[name], list(cut))
    assert is_parked(script)
    assert (script.rows("shop", "t") or {}).keys() <= {(1, 7, "a"), (1, 7, "A")}


@pytest.mark.parametrize("policy", [{"bucket_rows": 1}, {"apply_bytes": 1}])
@pytest.mark.parametrize("cut", [(), (1,)])
@pytest.mark.parametrize("name", CONTRADICTED)
def test_in_buckets_and_in_pieces(
    log: Log, lake: Path, name: str, cut: tuple[int, ...], policy: dict[str, Any]
) -> None:
    assert is_parked(synced(log, lake, CONTRADICTED[name], list(cut), policy=policy))


@pytest.mark.parametrize("cut", [(), (1,)])
def test_a_stated_key_frees_the_table(log: Log, lake: Path, cut: tuple[int, ...]) -> None:
    script = synced(log, lake, TWO_ROWS, list(cut))
    assert is_parked(script)
    script.tables = {"shop.t": {"create": CREATE}}
    script.sync()
    assert script.rows("shop", "t") == {(1, 7, "a"): 1, (2, 7, "b"): 1}
    assert script.states_of("shop", "t")[-1] == "ok"


A, B, C = (1, 7, "a"), (1, 7, "b"), (1, 8, "c")
AGREES: dict[str, tuple[list[Record], set[tuple[int, int, str]]]] = {
    "deleted_between": ([row("c", 20, A), row("d", 25, A), row("c", 30, B)], {B}),
    "sent_again": ([row("c", 20, A), row("u", 25, B), row("c", 20, A), row("u", 25, B)], {B}),
    "snapshot_again": ([row("r", 10, A), row("u", 25, B), row("r", 40, C, key="id")], {B, C}),
    "snapshot_began_again": ([row("r", 10, A), row("r", 10, A), row("u", 20, B)], {B}),
    "snapshot_overlaps": ([row("r", 10, A), row("c", 20, A), row("u", 30, B)], {B}),
    "truncated_between": ([row("c", 20, A), row("t", 25, None), row("c", 30, B)], {B}),
    "updated": ([row("c", 20, A), row("u", 30, B), row("u", 40, A)], {A}),
}


@pytest.mark.parametrize("cut", [(), (1,), (2,), (1, 2, 3)])
@pytest.mark.parametrize("policy", [{}, {"bucket_rows": 1}, {"apply_bytes": 1}])
@pytest.mark.parametrize("name", [name for name in AGREES if name != "snapshot_again"])
def test_what_contradicts_nothing(
    log: Log, lake: Path, name: str, cut: tuple[int, ...], policy: dict[str, Any]
) -> None:
    records, right = AGREES[name]
    script = synced(log, lake, records, [end for end in cut if end <= len(records)], policy=policy)
    assert script.states_of("shop", "t") == ["ok"], script.states
    assert script.rows("shop", "t") == dict.fromkeys(right, 1)


def test_a_snapshot_again_may_have_other_rows(log: Log, lake: Path) -> None:
    records = [row("r", 10, A), row("u", 25, B), row("r", 40, A), row("c", 50, C, key="cust")]
    script = synced(log, lake, records, [2])
    assert script.states_of("shop", "t") == ["ok"]
    assert script.rows("shop", "t") == {A: 1, C: 1}


def test_a_key_that_ddl_states_needs_no_proof(log: Log, lake: Path) -> None:
    script = Script(log, lake, schema_topic=None, tables={"shop.t": {"create": CREATE}})
    script.send(*TWO_ROWS)
    script.sync()
    assert script.rows("shop", "t") == {(1, 7, "a"): 1, (2, 7, "b"): 1}
