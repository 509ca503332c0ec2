# SPDX-License-Identifier: Apache-2.0
"""Settings and transforms at a Debezium connector: what rows look like then is read, or parks the table with a reason.

``docs/formats/debezium-json.md`` lists them, with those that no reader can see.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.histories.debezium_records import ddl, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

FLAT = {
    "delete.tombstone.handling.mode": "rewrite",
    "add.fields": "op,db,table,source.file,source.pos,source.row,source.snapshot",
}
ID = {"type": "int64", "field": "id", "optional": False}
DECIMAL = {
    "type": "bytes", "name": "org.apache.kafka.connect.data.Decimal", "version": 1, "field": "c", "optional": True,
    "parameters": {"scale": "2", "connect.decimal.precision": "10"},
}  # fmt: skip
Image = dict[str, Any] | None


def row(
    op: str, pos: int, before: Image, after: Image, *, key: Any = None, flat: bool = False, column: Any = None
) -> Record:
    """Return a row's record; ``column`` describes c in an embedded schema."""
    image = (before if after is None else after) or {}
    position = {"file": "mysql-bin.000001", "pos": pos, "row": 0, "snapshot": "false"}
    value: dict[str, Any] = {
        "before": before, "after": after, "op": op,
        "source": {"connector": "mysql", "name": "src", "ts_ms": pos * 1000, "db": "shop", "table": "t", **position},
    }  # fmt: skip
    if flat:
        added = {"__deleted": str(op == "d").lower(), "__op": op, "__db": "shop", "__table": "t"}
        value = {**image, **added, **{f"__source_{name}": cell for name, cell in position.items()}}
    if column is not None:
        after_schema = {"type": "struct", "optional": True, "field": "after", "fields": [ID, {**column, "field": "c"}]}
        value = {"schema": {"type": "struct", "fields": [after_schema]}, "payload": value}
    named = {"id": image["id"]} if key is None else key
    encoded = named if isinstance(named, bytes) else json.dumps(named).encode()
    return Record("src.shop.t", 0, pos, encoded, json.dumps(value).encode())


def table(log: Log, lake: Path, create: str, **more: Any) -> Script:
    script = Script(log, lake, schema_topic="src", **more)
    script.send(ddl(f"CREATE TABLE t ({create})", 4, table="t"))
    return script


def only(script: Script) -> tuple[str, str]:
    """Return state and reason of the only table."""
    (state,) = script.states.values()
    return state.state, state.reason


@pytest.mark.parametrize(
    ("kind", "value", "column", "expected"),
    [
        # value.converter.decimal.format=NUMERIC
        ("decimal(10,2)", 13.99, DECIMAL, Decimal("13.99")),
        ("decimal(10,2)", 13, DECIMAL, Decimal("13.00")),
        ("decimal(10,2)", 13.99, None, Decimal("13.99")),
        ("decimal(10,2)", 1399, None, Decimal("1399.00")),
        # converters=TinyIntOneToBooleanConverter
        ("tinyint(1)", True, {"type": "boolean"}, 1),
        ("tinyint(1)", False, None, 0),
        # SMT TimezoneConverter over TIMESTAMP
        ("timestamp", "2026-01-01T01:00:00+01:00", None, datetime(2026, 1, 1, tzinfo=UTC)),
        # a converter that writes texts
        ("int", "17", {"type": "string"}, 17),
        ("datetime", "2026-01-01 01:00:00", {"type": "string"}, datetime(2026, 1, 1, 1)),
    ],
)
def test_another_form_of_a_value_is_read(
    kind: str, value: Any, column: Any, expected: Any, log: Log, lake: Path
) -> None:
    script = table(log, lake, f"id bigint primary key, c {kind}")
    script.send(row("c", 10, None, {"id": 1, "c": value}, column=column))
    script.sync()
    assert only(script) == ("ok", "")
    assert script.rows("shop", "t") == {(1, expected): 1}


@pytest.mark.parametrize(
    ("kind", "value", "column", "said"),
    [
        # converters=MySqlDateTimeConverter
        ("timestamp", "2026-01-01 01:00:00", {"type": "string"}, "zone_unknown"),
        ("datetime", "2026-01-01 01:00:00", None, "number_invalid"),
        ("datetime", "2026-01-01T01:00:00Z", {"type": "string"}, "date_invalid"),
        # binary.handling.mode that is not stated
        ("blob", "00ff", {"type": "string"}, "format.option_contradicted"),
    ],
)
def test_a_value_that_may_mean_several_things_parks_the_table(
    kind: str, value: Any, column: Any, said: str, log: Log, lake: Path
) -> None:
    script = table(log, lake, f"id bigint primary key, c {kind}")
    script.send(row("c", 10, None, {"id": 1, "c": value}, column=column))
    script.sync()
    state, reason = only(script)
    assert state == "parked" and said in reason


def test_adjusted_names_of_columns_keep_the_table_waiting(log: Log, lake: Path) -> None:
    """``field.name.adjustment.mode`` changes them in rows, and not in statements."""
    script = table(log, lake, "id bigint primary key, `c-1` int")
    script.send(row("c", 10, None, {"id": 1, "c_1": 5}))
    script.sync()
    state, reason = only(script)
    assert state == "waiting" and "apply.schema_missing" in reason


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("cut", [False, True])
def test_a_moved_key_that_records_do_not_show_parks_the_table(flat: bool, cut: bool, log: Log, lake: Path) -> None:
    """With ``message.key.columns`` a row whose own key moved is an update: no delete and no insert."""
    script = table(log, lake, "id bigint primary key, c int", options=FLAT if flat else {})
    old, new, key = {"id": 1, "c": 7}, {"id": 2, "c": 7}, {"c": 7}
    script.send(row("c", 10, None, old, key=key, flat=flat), row("c", 11, None, {"id": 3, "c": 7}, key=key, flat=flat))
    if cut:
        script.sync()
    script.send(row("u", 20, old, new, key=key, flat=flat))
    script.sync()
    state, reason = only(script)
    assert state == "parked" and "apply.contradicted" in reason


@pytest.mark.parametrize("flat", [False, True])
def test_a_key_that_is_no_json_is_passed_over(flat: bool, log: Log, lake: Path) -> None:
    script = table(log, lake, "id bigint primary key, c int", options=FLAT if flat else {})
    script.send(row("c", 10, None, {"id": 1, "c": 7}, key=b"Struct{id=1}", flat=flat))
    script.send(row("u", 20, {"id": 1, "c": 7}, {"id": 1, "c": 8}, key=b"Struct{id=1}", flat=flat))
    script.sync()
    assert only(script) == ("ok", "")
    assert script.rows("shop", "t") == {(1, 8): 1}


def test_flattened_updates_of_a_table_without_key_park_it(log: Log, lake: Path) -> None:
    """The row before is lost, and with it which row it was."""
    script = table(log, lake, "id bigint, c int", options=FLAT)
    rows = [row("c", 10, None, {"id": 1, "c": 7}, flat=True), row("d", 11, {"id": 1, "c": 7}, None, flat=True)]
    script.send(*rows, row("c", 12, None, {"id": 2, "c": 7}, flat=True))
    script.sync()
    assert (only(script), script.rows("shop", "t")) == (("ok", ""), {(2, 7): 1})
    script.send(row("u", 20, None, {"id": 2, "c": 8}, flat=True))
    script.sync()
    state, reason = only(script)
    assert state == "parked" and "image_missing" in reason
    assert "ExtractNewRecordState" in reason and "primary key" in reason and "tables.exclude" in reason
    script.send(ddl("ALTER TABLE t ADD PRIMARY KEY (id)", 30, table="t"))
    script.send(*snapshot_ddl(40, {"t": ({"id": "bigint", "c": "int"}, ("id",))}))
    script.send(*(row("r", 40, None, {"id": number, "c": 8}, flat=True) for number in (2, 3)))
    script.send(row("u", 50, None, {"id": 3, "c": 9}, flat=True))
    script.sync()
    assert (only(script), script.rows("shop", "t")) == (("ok", ""), {(2, 8): 1, (3, 9): 1})


@pytest.mark.parametrize("cut", [False, True])
def test_a_flattened_insert_of_a_key_that_is_there_shows_the_truncate(cut: bool, log: Log, lake: Path) -> None:
    script = table(log, lake, "id bigint primary key, c int", options=FLAT)
    script.send(row("c", 10, None, {"id": 1, "c": 7}, flat=True))
    if cut:
        script.sync()
    script.send(row("c", 30, None, {"id": 1, "c": 8}, flat=True))
    script.sync()
    state, reason = only(script)
    assert state == "parked" and "apply.key_unproven" in reason and "TRUNCATE" in reason


@pytest.mark.parametrize("cut", [False, True])
def test_a_flattened_row_that_is_sent_again_shows_nothing(cut: bool, log: Log, lake: Path) -> None:
    script = table(log, lake, "id bigint primary key, c int", options=FLAT)
    again = [row("c", 10, None, {"id": 1, "c": 7}, flat=True), row("u", 20, None, {"id": 1, "c": 8}, flat=True)]
    script.send(*again)
    if cut:
        script.sync()
    script.send(
        *again, row("d", 30, {"id": 1, "c": 8}, None, flat=True), row("c", 40, None, {"id": 1, "c": 9}, flat=True)
    )
    script.sync()
    assert (only(script), script.rows("shop", "t")) == (("ok", ""), {(1, 9): 1})
