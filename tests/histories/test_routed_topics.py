# SPDX-License-Identifier: Apache-2.0
"""Topics that a transform chose: rows of several tables in one (ByLogicalTableRouter, RegexRouter), as JSON.

``source`` names the table of each row; the field that the router adds to keys is not a column. Records are formed as
those of a recorded web shop whose shards ``returns_eu``, ``_us`` and ``_uk`` were routed into one topic.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.errors import DataError
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

ROUTED = "src.shop.all_returns"
FLAT = {
    "delete.tombstone.handling.mode": "rewrite",
    "add.fields": "op,db,table,source.file,source.pos,source.row,source.snapshot",
}
COLUMNS = {"id": "int64", "amount": "int32", "extra": "int32"}
Image = dict[str, Any]


def enveloped(schema: Any, payload: Any) -> bytes:
    return json.dumps({"schema": schema, "payload": payload} if schema else payload).encode()


def described(image: Image, **more: Any) -> dict[str, Any]:
    fields = [{"field": name, "type": COLUMNS.get(name, "string"), "optional": name != "id"} for name in image]
    return {"type": "struct", "optional": True, "fields": fields, **more}


def row(op: str, shard: str, pos: int, image: Image | None, *, flat: bool, schemas: bool, field: str) -> Record:
    """Return a row's record; ``field`` is what the router adds to its key, which nothing else has."""
    source = {"db": "shop", "table": f"returns_{shard}", "file": "mysql-bin.000001", "pos": pos, "row": 0}
    source["snapshot"] = "true" if op == "r" else "false"
    key = None if image is None else {"id": image["id"], **({field: shard} if field else {})}
    if flat:
        assert image is not None
        added = {"__deleted": str(op == "d").lower(), "__op": op, "__db": "shop", "__table": source["table"]}
        added |= {f"__source_{name}": source[name] for name in ("file", "pos", "row", "snapshot")}
        value, schema = {**image, **added}, described({**image, **added})
    else:
        before, after = (image, None) if op == "d" else (None, image)
        value = {"before": before, "after": after, "op": op, "source": {"connector": "mysql", "name": "src", **source}}
        schema = {"type": "struct", "fields": [described(image or {}, field="after")]}
    named = None if key is None else enveloped(described(key) if schemas else None, key)
    return Record(ROUTED, pos % 2, pos, named, enveloped(schema if schemas else None, value))


CREATES = {
    f"shop.{table}": {"create": f"CREATE TABLE {table} (id bigint PRIMARY KEY, amount int)"}
    for table in ("returns_eu", "returns_uk")
}


@pytest.mark.parametrize("field", ["region_table", "__dbz__physicalTableIdentifier", ""])
@pytest.mark.parametrize("schemas", [False, True])
@pytest.mark.parametrize("flat", [False, True])
def test_rows_go_to_the_tables_that_they_name(flat: bool, schemas: bool, field: str, log: Log, lake: Path) -> None:
    def of(op: str, shard: str, pos: int, image: Image | None) -> Record:
        return row(op, shard, pos, image, flat=flat, schemas=schemas, field=field)

    tables = {} if schemas else CREATES
    script = Script(log, lake, schema_topic=None, options=FLAT if flat else {}, tables=tables)
    script.send(of("r", "eu", 10, {"id": 1, "amount": 5}), of("r", "uk", 10, {"id": 1, "amount": 6}))
    script.sync()
    script.send(of("c", "uk", 20, {"id": 2, "amount": 7}), of("u", "eu", 21, {"id": 1, "amount": 8}))
    script.send(of("c", "eu", 22, {"id": 2, "amount": 9}), of("d", "uk", 23, {"id": 1, "amount": 6}))
    script.sync()
    if not flat:  # a TRUNCATE of one shard
        script.send(of("t", "eu", 30, None), of("c", "eu", 31, {"id": 7, "amount": 1}))
        script.sync()
    assert {state.table: (state.state, state.reason) for state in script.states.values()} == {
        "returns_eu": ("ok", ""),
        "returns_uk": ("ok", ""),
    }
    eu = {(1, 8): 1, (2, 9): 1} if flat else {(7, 1): 1}
    assert (script.rows("shop", "returns_eu"), script.rows("shop", "returns_uk")) == (eu, {(2, 7): 1})


@pytest.mark.parametrize("flat", [False, True])
def test_shards_may_have_other_columns_at_one_time(flat: bool, log: Log, lake: Path) -> None:
    def of(op: str, shard: str, pos: int, image: Image) -> Record:
        return row(op, shard, pos, image, flat=flat, schemas=True, field="region_table")

    script = Script(log, lake, schema_topic=None, options=FLAT if flat else {})
    for pos in range(10, 20, 2):
        script.send(of("c", "eu", pos, {"id": pos, "amount": 5}))
        script.send(of("c", "uk", pos + 1, {"id": pos, "amount": 6, "extra": pos}))
        script.sync()
    assert script.rows("shop", "returns_eu") == {(pos, 5): 1 for pos in range(10, 20, 2)}
    assert script.rows("shop", "returns_uk") == {(pos, 6, pos): 1 for pos in range(10, 20, 2)}


@pytest.mark.parametrize("schema_topic", [None, "src"])
@pytest.mark.parametrize("first", [False, True])
def test_a_record_that_cannot_be_read_stops_the_tables_of_its_topic(
    first: bool, schema_topic: str | None, log: Log, lake: Path
) -> None:
    """Nothing shows which of them it is of: the topic's name is that of no table."""
    script = Script(log, lake, schema_topic=schema_topic, options=FLAT, tables=CREATES)
    damaged = Record(ROUTED, 0, 1, b'{"id":3,"f":"uk"}', b"{")
    image = {"id": 1, "amount": 5}
    rows = [row("c", shard, 20, image, flat=True, schemas=False, field="f") for shard in ("eu", "uk")]
    script.send(*([damaged, *rows] if first else [*rows, damaged]))
    with pytest.raises(DataError) as caught:
        script.sync()
    assert caught.value.code == "land.quarantine_exceeded"
