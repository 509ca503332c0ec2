# SPDX-License-Identifier: Apache-2.0
"""The next connector of Debezium is a module and its line in the registry: its rows are read in an order of its own."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_provider_cdc.core.formats.connect import registered_schemas
from airflow_provider_cdc.core.formats.connect.connectors import registry
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.detection import detect
from airflow_provider_cdc.core.formats.near_misses import near_miss
from airflow_provider_cdc.core.formats.registry import open_format
from tests.histories.connect_json import converted
from tests.histories.frames import framed, registry_of
from tests.histories.log import Log
from tests.histories.placed_by_lsn import LsnConnector
from tests.histories.records import Record
from tests.histories.scripted import Script

NAME = "lsnserver"
COLUMNS = [{"field": "id", "type": "int32", "optional": False}, {"field": "v", "type": "string", "optional": True}]
# commit_lsn, change_lsn, event_serial_no, op, row before, row after; in the order of the log
CHANGES: list[tuple[str, str, int, str, Any, Any]] = [
    ("00000027:00000758:0005", "00000027:00000758:0003", 2, "c", None, (1, "a")),
    ("00000027:00000758:0005", "00000027:00000758:0003", 3, "c", None, (2, "b")),
    ("00000027:00000758:0005", "00000027:00000758:0004", 1, "u", (1, "a"), (1, "c")),
    ("00000027:00000a00:0001", "00000027:00000758:0001", 1, "u", (2, "b"), (2, "d")),
    ("00000027:00000b00:0001", "00000027:00000b00:0001", 1, "d", (1, "c"), None),
    ("00000027:00000b00:0002", "00000027:00000b00:0002", 1, "c", None, (1, "e")),
]
FLAT = {
    "delete.tombstone.handling.mode": "rewrite",
    "add.fields": ",".join(member.rpartition(".")[2] for member in LsnConnector.place_members),
}


def sent(number: int, flat: bool) -> Record:
    """Return a change as the connector writes it with embedded schemas, or as ExtractNewRecordState rewrites it."""
    commit, change, serial, op, *cells = CHANGES[number]
    before, after = (None if row is None else {"id": row[0], "v": row[1]} for row in cells)
    named = {"connector": NAME, "name": "src", "ts_ms": 1_700_000_000_000, "snapshot": "false", "db": "shop"}
    lsns = {"schema": "dbo", "table": "t", "change_lsn": change, "commit_lsn": commit, "event_serial_no": serial}
    value: dict[str, Any] = {"before": before, "after": after, "source": {**named, **lsns}, "op": op, "ts_ms": 5}
    fields = [{"field": name, "type": "struct", "optional": True, "fields": COLUMNS} for name in ("before", "after")]
    image = after or before or {}
    if flat:
        members = {"op": op, **named, **lsns}
        added = {f"__{name}": members[name] for name in FLAT["add.fields"].split(",")}
        value = {**image, "__deleted": "true" if op == "d" else "false", **added}
        fields = [*COLUMNS, *({"field": name, "type": "int64" if name.endswith("no") else "string"} for name in added)]
        fields.insert(len(COLUMNS), {"field": "__deleted", "type": "string"})
    key = converted({"id": image["id"]}, _schema(COLUMNS[:1]))
    return Record("src.dbo.t", 0, 5, key, converted(value, _schema(fields)))


def _schema(fields: list[dict[str, Any]]) -> str:
    return json.dumps({"type": "struct", "fields": fields})


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the connector's line to those that are read."""
    monkeypatch.setitem(registry.CONNECTORS, NAME, LsnConnector)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("wire", "flat", "together"),
    [
        ("debezium-json", False, False),
        ("debezium-json", True, False),
        ("debezium-avro", False, False),
        ("debezium-avro", False, True),
        ("debezium-avro", True, False),
    ],
)
def test_its_rows_are_right_whatever_comes_first(
    wire: str, flat: bool, together: bool, log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if together:
        monkeypatch.setattr(registered_schemas, "_MANY", 1)
    script = Script(log, lake, wire, None, {"connector": NAME, **(FLAT if flat else {})}, registry=registry_of(wire))
    for number in (1, 4, 0, 5, 3, 2, 1, 0):
        record = sent(number, flat)
        script.send(framed(record) if wire == "debezium-avro" else record)
    script.sync()
    assert script.rows("dbo", "t") == {(1, "e"): 1, (2, "d"): 1}
    assert script.states_of("dbo", "t") == ["ok"]


@pytest.mark.usefixtures("registered")
def test_a_change_without_its_place_is_an_error_of_its_table() -> None:
    sent = records()
    (value,) = sent.values[:1]
    broken = replace(
        sent, offsets=[0], values=[(value or b"").replace(b'"event_serial_no":2', b'"event_serial_no":-2')]
    )
    (change,) = open_format("debezium-json", {"connector": NAME}).decode(broken).to_pylist()
    assert (change["kind"], change["database"], change["table"]) == ("error", "dbo", "t")


def records(flat: bool = False) -> Records:
    some = [sent(number, flat) for number in range(len(CHANGES))]
    count = len(some)
    return Records("t", 0, range(count), [5] * count, [one.key for one in some], [one.value for one in some])


def test_one_that_is_known_and_not_read_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.NOT_READ, NAME, "LSN Server")
    detected = detect([records()])
    assert detected.format is None
    assert detected.near_misses == (
        "a record of Debezium's connector for LSN Server (lsnserver), which no format reads",
    )


@pytest.mark.usefixtures("registered")
def test_what_is_said_of_connectors_knows_it() -> None:
    detected = detect([records()])
    assert detected.format == "debezium-json" and dict(detected.options) == {"connector": NAME}
    assert near_miss(None, records().values[0]) is None
    assert f"LSN Server: {', '.join(LsnConnector.place_members)}" in str(near_miss(None, records(True).values[0]))
    assert registry.databases().endswith(", LSN Server")
