# SPDX-License-Identifier: Apache-2.0
"""Changes of one moment on several partitions, where records carry no position: images show the order."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from airflow_provider_cdc.core.apply.repeated_rows import SENT_COLUMNS, with_sending
from airflow_provider_cdc.core.apply.resolve import RESOLVE_COLUMNS, ordered, resolve
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.common.clock_positions import ClockPositions
from airflow_provider_cdc.core.formats.contract import Records
from airflow_provider_cdc.core.formats.registry import open_format
from airflow_provider_cdc.core.model.schema import TableName
from airflow_provider_cdc.core.timeline.builder import build_timeline
from airflow_provider_cdc.core.timeline.timeline import SchemaChange, TableTimeline
from airflow_provider_cdc.core.values.types import TypeOptions

CREATE = "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(9))"
NOW = 1_700_000_000_000


def message(kind: str, rows: list[tuple[int, str]], old: list[dict[str, str]] | None = None, ts: int = NOW) -> bytes:
    data = [{"id": str(key), "v": value} for key, value in rows]
    types = {"id": "int", "v": "varchar(9)"}
    envelope = {"id": 1, "database": "d", "table": "t", "pkNames": ["id"], "isDdl": False, "type": kind, "es": NOW}
    return json.dumps({**envelope, "ts": ts, "sql": "", "mysqlType": types, "data": data, "old": old}).encode()


def truncate(ts: int = NOW) -> bytes:
    said = {
        "id": 1,
        "database": "d",
        "table": "t",
        "isDdl": True,
        "type": "TRUNCATE",
        "es": NOW,
        "ts": ts,
        "data": None,
    }
    return json.dumps({**said, "sql": "TRUNCATE TABLE t"}).encode()


def decoded(*sent: tuple[int, bytes]) -> tuple[pa.Table, TableTimeline]:
    """Return the row changes of messages, each on the partition next to it, and the table's timeline."""
    wire = open_format("canal-json")
    by_partition: dict[int, list[bytes]] = defaultdict(list)
    for partition, value in sent:
        by_partition[partition].append(value)
    positions = ClockPositions()
    batches = []
    for partition, values in by_partition.items():
        count = len(values)
        records = Records("t", partition, list(range(count)), [NOW] * count, [None] * count, values, [None] * count)
        batches.append(positions.fill(wire.decode(records)))
    changes = pa.Table.from_batches(batches).unify_dictionaries()
    kinds = changes.column("kind").cast(pa.string())
    assert not pc.any(pc.equal(kinds, "error")).as_py()
    said: list[dict[str, Any]] = changes.filter(pc.equal(kinds, "schema")).to_pylist()
    ddl = [SchemaChange(s["position"], s["offset"], s["default_database"], s["statement"]) for s in said]
    timeline = build_timeline([SchemaChange("", 0, "d", CREATE), *ddl])
    owner = timeline.owner(TableName("d", "t"), "~")
    assert owner is not None
    rows = changes.filter(pc.equal(kinds, "row")).select([*RESOLVE_COLUMNS, *SENT_COLUMNS])
    return with_sending(rows), timeline.tables[owner]


def content(*sent: tuple[int, bytes]) -> list[tuple[int, str]]:
    """Return the rows that messages leave; each stands on the partition next to it."""
    rows, timeline = decoded(*sent)
    plan = resolve(ordered(rows), timeline, None, open_format("canal-json"), TypeOptions())
    assert not plan.failures
    return sorted((row["id"], row["v"]) for row in plan.steps[-1].upserts.to_pylist())


def test_a_statement_that_shifts_keys_leaves_every_row() -> None:
    """UPDATE t SET id = id + 1, its rows spread by their new key."""
    rows = [(0, message("INSERT", [(1, "a")])), (1, message("INSERT", [(2, "b")])), (2, message("INSERT", [(3, "c")]))]
    shift = [
        (0, message("UPDATE", [(4, "c")], [{"id": "3"}])),
        (1, message("UPDATE", [(3, "b")], [{"id": "2"}])),
        (2, message("UPDATE", [(2, "a")], [{"id": "1"}])),
    ]
    assert content(*rows, *shift) == [(2, "a"), (3, "b"), (4, "c")]
    assert content(*rows, *shift[::-1]) == [(2, "a"), (3, "b"), (4, "c")]


def test_a_row_that_came_and_moved_on_is_gone_from_its_first_key() -> None:
    came, moved = message("INSERT", [(1, "a")]), message("UPDATE", [(9, "a")], [{"id": "1"}])
    assert content((0, came), (1, moved)) == [(9, "a")]
    assert content((1, came), (0, moved)) == [(9, "a")]


def test_a_key_used_only_on_the_way_is_free_again() -> None:
    there = message("UPDATE", [(-1, "a")], [{"id": "1"}])
    back = message("UPDATE", [(2, "a")], [{"id": "-1"}])
    first = message("INSERT", [(1, "a")])
    for order in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)):
        assert content(*zip(order, (first, there, back), strict=True)) == [(2, "a")]


def test_updates_that_keep_their_key_show_by_the_columns_that_they_changed_which_came_last() -> None:
    first, second = message("UPDATE", [(1, "b")], [{"v": "a"}]), message("UPDATE", [(1, "c")], [{"v": "b"}])
    assert content((0, first), (1, second)) == [(1, "c")]
    assert content((1, first), (0, second)) == [(1, "c")]


def test_a_row_that_leaves_before_another_takes_its_key_does_not_wipe_it() -> None:
    old, leaves = message("INSERT", [(1, "old")], ts=NOW - 5), message("UPDATE", [(7, "old")], [{"id": "1"}])
    takes = message("INSERT", [(1, "new")])
    assert content((0, old), (1, leaves), (0, takes)) == [(1, "new"), (7, "old")]
    assert content((1, old), (0, takes), (2, leaves)) == [(1, "new"), (7, "old")]


def test_the_clock_decides_where_it_can() -> None:
    assert content((1, message("INSERT", [(1, "a")])), (0, message("DELETE", [(1, "a")], ts=NOW + 1))) == []


def test_a_truncate_next_to_rows_of_its_moment_is_refused() -> None:
    with pytest.raises(DataError) as caught:
        content((0, truncate()), (1, message("INSERT", [(1, "a")])))
    assert caught.value.code == "apply.order_unknown"


def test_a_truncate_between_rows_of_its_partition_is_in_order() -> None:
    before, after = message("INSERT", [(1, "a")]), message("INSERT", [(2, "b")])
    assert content((0, before), (0, truncate()), (0, after)) == [(2, "b")]


def test_a_truncate_of_another_moment_is_in_order() -> None:
    assert content(
        (1, message("INSERT", [(1, "a")])), (0, truncate(NOW + 1)), (2, message("INSERT", [(2, "b")], ts=NOW + 2))
    ) == [(2, "b")]


def test_a_key_that_ends_as_it_began_is_taken_if_it_was() -> None:
    """There and back in one millisecond: each move is on the partition of the key that it takes."""
    there, back = message("UPDATE", [(2, "a")], [{"id": "1"}]), message("UPDATE", [(1, "a")], [{"id": "2"}])
    before = message("INSERT", [(1, "a")], ts=NOW - 5)
    for order in ((0, 1, 2), (0, 2, 1), (2, 0, 1)):
        assert content(*zip(order, (before, there, back), strict=True)) == [(1, "a")]


def test_images_that_do_not_show_how_a_key_ends_are_refused() -> None:
    with pytest.raises(DataError) as caught:
        content((0, message("INSERT", [(1, "a")])), (1, message("INSERT", [(1, "b")])))
    assert caught.value.code == "apply.order_unknown"


def test_a_late_row_leaves_keys_alone_that_it_neither_takes_nor_leaves() -> None:
    """The end of a key whose row went there and back depends on the rows before, which nobody has any more."""
    there, back = message("UPDATE", [(2, "a")], [{"id": "1"}]), message("UPDATE", [(1, "a")], [{"id": "2"}])
    applied, timeline = decoded((1, there), (2, back))
    late, _ = decoded((0, message("INSERT", [(5, "x")])))
    schema, newest = timeline.versions[-1].schema, pc.max(applied.column("position")).as_py()
    wire = open_format("canal-json")
    plan = resolve(ordered(late, applied), timeline, schema, wire, TypeOptions(), base_position=newest)
    assert plan.steps[-1].upserts.to_pylist() == [{"id": 5, "v": "x"}]
    assert not plan.steps[-1].deletes.num_rows
