# SPDX-License-Identifier: Apache-2.0
"""Losses that were silent once because values, or the order of changes, were read otherwise than they were written."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_provider_cdc.core.apply import key_buckets, ordered_changes
from airflow_provider_cdc.core.apply.insert_defaults import InsertDefaults
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.ddl.type_text import parse_type
from airflow_provider_cdc.core.formats.connect import columns, debezium_columns, debezium_table_changes
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.timeline import described_tables, table_accounts
from airflow_provider_cdc.core.values.alter import text_to_integer
from spark_jobs.driver import planning, table_groups
from spark_jobs.tasks import table_changes
from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.scripted import Script
from tests.histories.silent_case import (
    COLUMNS,
    KEY,
    RIGHT,
    Noticed,
    Silent,
    Truth,
    Unswitched,
    holds,
    insert,
    of_public_case,
)
from tests.histories.silent_records import following, settings_of


def _text_without_zone(script: Script) -> Iterator[Truth]:
    create, first = of_public_case("text-converter-timestamp")
    script.send(create, first)
    day = datetime(2026, 1, 5, 18)
    right = datetime(2026, 1, 5, 10, tzinfo=UTC)
    yield holds((1, day, right))
    script.send(following(first, "u", {"dt": "2026-01-05 19:00:00"}, 400))
    yield holds((1, datetime(2026, 1, 5, 19), right))


def _of_utc(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(debezium_columns, "_instant", lambda name, modes: Encoded(name, Encoding.ZONED_TEXT, zone="+00:00"))


def _left_out(script: Script) -> Iterator[Truth]:
    records = of_public_case("canal-field-filter-protobuf")
    script.send(*records[:2])
    yield holds((1, "123-45-6789", None, "a"), table="shop.orders")
    script.send(*records[2:])
    yield holds((1, "123-45-6789", None, "b"), table="shop.orders")


def _invented(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(InsertDefaults, "_is_left_out", lambda self, column, row_index: False)


def _json_of_snapshot(script: Script) -> Iterator[Truth]:
    records = of_public_case("keyless-json-from-snapshot")
    script.send(*records[:3])
    yield holds((1, '{"k": 2, "l": [1, 2]}', 1.5), (2, None, 1.5))
    script.send(records[3])
    yield holds((2, None, 1.5))


def _one_form(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ValueForms, "of", lambda schema, columns: ValueForms({}))


def _unsigned(script: Script) -> Iterator[Truth]:
    (first,) = of_public_case("bigint-unsigned-inferred")
    value = Decimal("18446744073709551615")
    script.send(first)
    yield holds((1, value))
    script.send(following(first, "u", {}, 400))
    yield holds((1, value))


def _without_source_types(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(columns, "_PROPAGATED", {})


def _hex(script: Script) -> Iterator[Truth]:
    create, first = of_public_case("binary-hex-unstated")
    script.send(create, first)
    yield holds((1, b"\xde\xad\xbe\xef"))
    script.send(following(first, "u", {}, 400))
    yield holds((1, b"\xde\xad\xbe\xef"))


def _any_binary_text(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(debezium_columns, "_stated_binary_text", lambda name, modes: Encoding.BASE64)


def _added(kind: str, value: Any, server: str = "mysql") -> Any:
    """Return the story of a NOT NULL column that is added to a table with a row."""

    def story(script: Script) -> Iterator[Truth]:
        script.send(ddl("CREATE TABLE t (id INT PRIMARY KEY)", 100), row("c", "t", 110, {"id": 1}, key=KEY))
        yield holds((1,))
        script.send(ddl(f"ALTER TABLE t ADD COLUMN j {kind} NOT NULL", 200, connector=server))
        yield holds((1, value))
        script.send(row("d", "t", 300, None, before={"id": 1, "j": value}, key=KEY))
        yield holds()

    return story


def _empty_texts(patch: pytest.MonkeyPatch) -> None:
    whole = ColumnType.implicit_default
    empty = ("json", "inet4", "inet6")
    patch.setattr(
        ColumnType, "implicit_default", lambda self, server=None: "" if self.name in empty else whole(self, server)
    )


def _swapped(script: Script) -> Iterator[Truth]:
    """Send the recorded batches, of which the second has the statement and an update behind it, and another update."""
    records = of_public_case("column-swap-debezium-recovered")
    case = {record.topic: [r for r in records if r.topic == record.topic] for record in records}
    statements, rows = case["heldout_ddl_my8"], case["heldout_ddl_my8.s.swap_rename"]
    first, *read = [(number, number, 100 + number, f"z{number}") for number in range(1, 7)]
    script.send(statements[0], *rows[:6])
    yield holds(first, *read, table="s.swap_rename")
    script.send(*statements[1:], *rows[6:])
    read = [first, (2, 2, 102, "q"), *read[1:], (9, 901, 900, None)]
    yield holds(*read, table="s.swap_rename")
    before = {"id": 1, "b": 1, "a": 101, "z": "z1"}
    script.send(following(rows[6], "u", {"z": "r"}, 30_000, before=before))
    yield holds((1, 1, 101, "r"), *read[1:], table="s.swap_rename")


def _as_the_tool_says(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(table_accounts, "as_stated", lambda stated, account, *, undecided_timestamps: account)
    patch.setattr(described_tables, "unexplained_loss", lambda known, described: None)


def _char_binary(script: Script) -> Iterator[Truth]:
    columns = {"id": "int", "v": "varchar"}
    script.send(ddl("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", 100, table="t", columns=columns, key=KEY))
    script.send(row("c", "t", 110, {"id": 1, "v": "abc"}, key=KEY))
    yield holds((1, "abc"))
    change = ddl("ALTER TABLE t MODIFY v CHAR(8) BINARY", 200, table="t", columns=columns, key=KEY)
    value = json.loads(change.value or b"")
    value["tableChanges"][0]["table"]["columns"][1] |= {"typeName": "CHAR BINARY", "length": 8}
    script.send(replace(change, value=json.dumps(value).encode()))
    yield holds((1, "abc"))
    script.send(row("d", "t", 300, None, before={"id": 1, "v": "abc"}, key=KEY))
    yield holds()


def _without_length(patch: pytest.MonkeyPatch) -> None:
    _as_the_tool_says(patch)
    whole = debezium_table_changes._column_type
    patch.setattr(
        debezium_table_changes,
        "_column_type",
        lambda item: parse_type(item["typeName"], None) if " " in item["typeName"] else whole(item),
    )


def _exponent(script: Script) -> Iterator[Truth]:
    script.send(ddl("CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20))", 100, connector="mariadb"))
    script.send(row("c", "t", 110, {"id": 1, "v": "1e5"}, key=KEY, connector="mariadb"))
    yield holds((1, "1e5"))
    script.send(ddl("ALTER TABLE t MODIFY v SMALLINT", 200, connector="mariadb"))
    yield holds((1, 1))
    script.send(row("d", "t", 300, None, before={"id": 1, "v": 1}, key=KEY, connector="mariadb"))
    yield holds()


def _read_alike(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(text_to_integer._SERVERS, "mariadb", text_to_integer._mysql)


def _typed_truncate(script: Script) -> Iterator[Truth]:
    records = of_public_case("truncate-as-typed-lower-case")
    script.send(*records[:3])
    yield holds((1,), (2,), table="shop.kept")
    script.send(*records[3:])
    yield holds((3,), table="shop.kept")
    script.send(following(records[4], "c", {"Id": 1}, 20_000))
    yield holds((1,), (3,), table="shop.kept")


def _as_typed(patch: pytest.MonkeyPatch) -> None:
    whole = planning.groups_by_name
    for module in (planning, table_groups):
        patch.setattr(module, "groups_by_name", lambda manifest, *, lower_case=False: whole(manifest))


def _first_change(script: Script) -> Iterator[Truth]:
    """Delete a row at the position of the snapshot that read it; the numbers of MariaDB's changes are not sent."""
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}))
    script.send(*(row("r", "t", 100, {"id": n, "v": n}, key=KEY, mark="true") for n in (1, 2)))
    script.send(row("d", "t", 100, None, before={"id": 1, "v": 1}, key=KEY))
    yield holds((2, 2))
    script.send(insert(1, 200))
    yield holds((1, 1), (2, 2))


def _deletes_first(patch: pytest.MonkeyPatch) -> None:
    """Order changes of one position by what they do, and no row of a snapshot before what is streamed."""

    def order(rows: pa.Table, *after: str) -> IntArray:
        fills = pc.not_equal(rows.column("op").cast(pa.string()), "delete").cast(pa.int8())
        columns = {"position": rows.column("position"), "stays": fills}
        columns |= {name: rows.column(name) for name in ("partition", "offset", "index", *after)}
        keys = [(name, "ascending") for name in columns]
        sorted_: IntArray = pc.sort_indices(pa.table(columns), sort_keys=keys).to_numpy().astype("int64")
        return sorted_

    for module in (ordered_changes, key_buckets):
        patch.setattr(module, "source_order", order)


def _taken_twice(script: Script) -> Iterator[Truth]:
    columns = {"id": "int", "v": "int"}
    for time in (1_000_000, 500_000):
        script.send(*snapshot_ddl(100, {"t": (columns, ())}, time=time))
        script.send(row("r", "t", 100, {"id": 1, "v": 1}, mark="true", time=time))
    yield holds((1, 1))
    script.send(row("d", "t", 300, None, before={"id": 1, "v": 1}))
    yield holds()


def _every_attempt(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(table_changes, "demand_one_attempt", lambda rows, table, *, applied_position: None)


_WITHOUT_SCHEMA_TOPIC = {"schema_topic": None}
_READ_ALIKE = "the row before a change is read in the same wrong way"
_CHANGED = "an older row is changed, and was not before what is stored"

CASES: tuple[Silent | Unswitched, ...] = (
    Silent(
        "K4",
        "a TIMESTAMP as text without zone: it was taken for UTC",
        _text_without_zone,
        _of_utc,
        "apply.quarantine_exceeded",
        Noticed.NEVER,
        _READ_ALIKE,
        silent=1,
    ),
    Silent(
        "K5",
        "Canal, a NOT NULL column that it leaves out of rows: it got a value that nobody wrote",
        _left_out,
        _invented,
        "waiting",
        Noticed.NEVER,
        "no image of a row has the column",
        silent=1,
        pipeline=settings_of("canal-protobuf"),
    ),
    Silent(
        "K6",
        "without key, JSON that snapshot and stream write in two ways: a deleted row stayed",
        _json_of_snapshot,
        _one_form,
        RIGHT,
        Noticed.SAME,
        "the row that is deleted is not there, as it is written",
        "row_missing, parked",
        silent=0,
    ),
    Silent(
        "K7",
        "without CREATE TABLE, BIGINT UNSIGNED above 2^63 - 1: it became negative",
        _unsigned,
        _without_source_types,
        RIGHT,
        Noticed.NEVER,
        _READ_ALIKE,
        silent=1,
        pipeline=_WITHOUT_SCHEMA_TOPIC,
    ),
    Silent(
        "K7",
        "BINARY as hexadecimal text: it was read as base64",
        _hex,
        _any_binary_text,
        "format.option_contradicted",
        Noticed.NEVER,
        _READ_ALIKE,
        silent=1,
    ),
    Unswitched(
        "K7",
        "values without embedded schema under a wrong option of the connector's modes",
        "nothing refuses them: the option says what they are",
    ),
    Silent(
        "K11",
        "ADD COLUMN of JSON NOT NULL: older rows got an empty text",
        _added("JSON", "null"),
        _empty_texts,
        RIGHT,
        Noticed.LATER,
        _CHANGED,
        "row_differs, parked",
    ),
    Silent(
        "K11",
        "ADD COLUMN of INET6 NOT NULL: older rows got an empty text",
        _added("INET6", "::", "mariadb"),
        _empty_texts,
        RIGHT,
        Noticed.LATER,
        _CHANGED,
        "row_differs, parked",
    ),
    Silent(
        "H1",
        "two columns swap their names, Debezium's `tableChanges` lose one: older rows got NULL in it",
        _swapped,
        _as_the_tool_says,
        RIGHT,
        Noticed.SAME,
        _CHANGED,
        "row_differs, parked",
        pipeline={"schema_topic": "heldout_ddl_my8"},
    ),
    Silent(
        "H2",
        "a TRUNCATE with the table's name in another case: the rows stayed",
        _typed_truncate,
        _as_typed,
        RIGHT,
        Noticed.LATER,
        "the key is inserted again",
        "key_there, parked",
        pipeline={"schema_topic": "heldout_lower_my8", "options": {"lower_case_table_names": "1"}},
    ),
    Silent(
        "H4",
        "MODIFY to CHAR(8) BINARY: texts were cut to one character",
        _char_binary,
        _without_length,
        RIGHT,
        Noticed.LATER,
        _CHANGED,
        "row_differs, parked",
    ),
    Silent(
        "H5",
        "MODIFY to SMALLINT on MariaDB: the text 1e5 became 32767",
        _exponent,
        _read_alike,
        RIGHT,
        Noticed.LATER,
        _CHANGED,
        "row_differs, parked",
        pipeline={"options": {"server": "mariadb"}},
    ),
    Unswitched(
        "H9",
        "an added NOT NULL geometry: the tool sends NULL where the source has an empty value",
        "the tool loses it: the page of the format says so, and geometries of added columns are not compared",
    ),
    Silent(
        "H14",
        "a delete at the position of the snapshot that read the row: the row stayed",
        _first_change,
        _deletes_first,
        RIGHT,
        Noticed.LATER,
        "the key is inserted again",
        "key_there, parked",
        silent=1,
    ),
    Silent(
        "H15",
        "without key, a snapshot that began again by a clock that is behind: rows were doubled",
        _taken_twice,
        _every_attempt,
        "apply.snapshots_alike",
        Noticed.NEVER,
        "each delete finds one of the equal rows",
        silent=1,
    ),
)
