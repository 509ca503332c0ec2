# SPDX-License-Identifier: Apache-2.0
"""Losses that were silent once because of what this program did to stored tables, and to records it could not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from airflow_provider_cdc.core.apply.stored_layout import StoredLayouts
from airflow_provider_cdc.core.documents import Decision, DecisionAction, Rebuild
from spark_jobs.driver import left_out_rows, quarantine_entries
from spark_jobs.driver.apply_plan import ApplyPlan
from spark_jobs.driver.batch_history import History
from spark_jobs.driver.locations import Locations
from spark_jobs.sinks import ownership
from spark_jobs.sinks.delta import file_statistics
from spark_jobs.sinks.delta.table import DeltaLocation
from spark_jobs.tasks import empty_table
from tests.histories.debezium_records import ddl, row
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.histories.silent_case import (
    CREATE,
    KEY,
    RIGHT,
    Noticed,
    Rows,
    Silent,
    Truth,
    Unswitched,
    holds,
    insert,
    update,
)
from tests.locations import table_location


def _spelled_otherwise(script: Script) -> Iterator[Truth]:
    script.send(CREATE, insert(1, 110), insert(2, 120))
    yield holds((1, 1), (2, 2))
    script.root = Path(f"{script.root}/../{script.root.name}")
    script.send(insert(3, 200))
    yield holds((1, 1), (2, 2), (3, 3))
    script.send(insert(4, 300))
    yield holds((1, 1), (2, 2), (3, 3), (4, 4))


def _changed_after(script: Script) -> Iterator[Truth]:
    yield from _spelled_otherwise(script)
    script.send(update(1, 400))
    yield holds((1, 10), (2, 2), (3, 3), (4, 4))


def _as_texts(patch: pytest.MonkeyPatch) -> None:
    """Take the location of each table for one that it left, once the root is spelled in another way: in batch 2."""
    whole = Locations.collect_left

    def collect_left(self: Locations, plan: ApplyPlan) -> None:
        whole(self, plan)
        if self._p.job.seq == 2:
            plan.to_empty += [self._p.states[task.table_id] for task in plan.tasks]

    patch.setattr(Locations, "collect_left", collect_left)


def _foreign(script: Script) -> Iterator[Truth]:
    """Let a person have a table at the name of one that is renamed."""
    foreign = pa.table({"id": pa.array([7], pa.int32()), "v": pa.array([70], pa.int32())})
    write_deltalake(str(script.root / "shop" / "t"), foreign)
    script.send(CREATE, insert(1, 110))
    yield holds((7, 70))
    script.send(ddl("RENAME TABLE t TO u", 200, table="u"), insert(2, 210, "u"))
    yield {"shop.t": Counter({(7, 70): 1})}


def _anybodys(patch: pytest.MonkeyPatch) -> None:
    for module in (empty_table, ownership):
        patch.setattr(module, "owns", lambda owner, target: True)


def _other_policy(script: Script) -> Iterator[Truth]:
    def flag(op: str, number: int, value: int, pos: int) -> Record:
        before = {"id": number, "b": value} if op == "u" else None
        return row(op, "t", pos, {"id": number, "b": value}, before=before, key=KEY)

    script.send(
        ddl("CREATE TABLE t (id INT PRIMARY KEY, b TINYINT(1))", 100), flag("c", 1, 2, 110), flag("c", 2, 3, 120)
    )
    yield holds((1, 2), (2, 3))
    script.policy = {**script.policy, "tinyint1_as_boolean": True}
    script.send(flag("c", 3, 0, 200))
    yield holds((1, True), (2, True), (3, False))
    script.send(flag("u", 1, 2, 300))
    yield holds((1, True), (2, True), (3, False))


def _any_layout(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(StoredLayouts, "change", lambda self, timeline, was: None)
    patch.setattr(DeltaLocation, "demand_types", lambda self, schema: None)


def _unreadable(script: Script) -> Iterator[Truth]:
    broken = insert(1, 110)
    script.send(CREATE, replace(broken, value=(broken.value or b"")[:-9]))
    yield holds((1, 1))
    script.send(insert(2, 200))
    yield holds((1, 1), (2, 2))
    script.send(update(1, 300))
    yield holds((1, 10), (2, 2))


def _of_this_batch(patch: pytest.MonkeyPatch) -> None:
    """Let records that could not be read count in their batch alone."""
    patch.setattr(History, "unreadable", lambda self: [])


def _large(script: Script) -> Iterator[Truth]:
    """Store a key above 2^63 - 1."""
    create = ddl("CREATE TABLE t (id BIGINT UNSIGNED PRIMARY KEY, v INT)", 100)
    number = Decimal(2**63)
    wrapped = -(2**63)
    script.send(
        create, row("c", "t", 110, {"id": 1, "v": 1}, key=KEY), row("c", "t", 120, {"id": wrapped, "v": 2}, key=KEY)
    )
    yield holds((Decimal(1), 1), (number, 2))
    script.send(row("u", "t", 300, {"id": wrapped, "v": 20}, before={"id": wrapped, "v": 2}, key=KEY))
    yield holds((Decimal(1), 1), (number, 20))


def _through_a_double(patch: pytest.MonkeyPatch) -> None:
    """State bounds of decimals as delta-rs does."""
    whole = file_statistics._bounds

    def bounds(values: pa.ChunkedArray) -> tuple[Any, Any]:
        low, high = whole(values)
        if not pa.types.is_decimal(values.type):
            return low, high
        return tuple(Decimal(repr(min(float(bound), 2.0**63 - 1024))) for bound in (low, high))

    patch.setattr(file_statistics, "_bounds", bounds)


def _with_skipped_files(script: Script, name: str) -> Rows | None:
    """Return the rows that a reader finds which asks for each of them by its first column."""
    table = DeltaTable(table_location(str(script.root), *name.split(".")))
    rows: Rows = Counter()
    whole = script.rows(*name.split(".")) or Counter()
    first = table.schema().fields[0].name
    for value in {one[0] for one in whole}:
        mine = table.to_pyarrow_table(filters=[(first, "=", value)])
        rows += Counter(zip(*(column.to_pylist() for column in mine.columns), strict=True))
    return rows


def _long_decimal(script: Script) -> Iterator[Truth]:
    """Store a DECIMAL in a table without key that no double has."""
    value = Decimal("1234567890123456.82")
    script.send(ddl("CREATE TABLE t (d DECIMAL(18,2))", 100), row("c", "t", 110, {"d": str(value)}))
    yield holds((value,))
    script.send(row("d", "t", 300, None, before={"d": str(value)}))
    yield holds()


def _healed(script: Script) -> Iterator[Truth]:
    script.send(CREATE, row("c", "t", 110, {"id": 1, "v": 5}, key=KEY))
    script.send(
        row("c", "t", 210, {"id": 2, "v": "seven"}, key=KEY), row("c", "t", 220, {"id": 3, "v": "abc"}, key=KEY)
    )
    yield {}
    text = "ALTER TABLE t MODIFY v varchar(20)"
    script.send(ddl(text, 200, table="t", columns={"id": "int", "v": "varchar"}, key=KEY))
    yield holds((1, "5"), (2, "seven"), (3, "abc"))
    for entry in script.open_records():
        script.sync(decision=Decision(DecisionAction.DISCARD, [list(entry.record)], why="it is old"))
    script.sync(rebuild=Rebuild(["shop.t"]))
    yield holds((1, "5"), (2, "seven"), (3, "abc"))
    script.send(row("u", "t", 300, {"id": 2, "v": "8"}, before={"id": 2, "v": "seven"}, key=KEY))
    yield holds((1, "5"), (2, "8"), (3, "abc"))


def _for_ever(patch: pytest.MonkeyPatch) -> None:
    """Let rows wait in the quarantine that their table took in."""
    for module in (left_out_rows, quarantine_entries):
        patch.setattr(module, "still_left_out", lambda rows, result, unfit: list(rows))


def _other_format(script: Script) -> Iterator[Truth]:
    """Read the first batch as another format, which names the tables of the records that it cannot read."""
    script.format, right = "dtle-json", script.format
    script.send(insert(1, 110), insert(2, 120))
    yield {}
    script.format = right
    script.send(insert(3, 200))
    yield holds((1, 1), (2, 2), (3, 3))
    script.send(update(1, 300))
    yield holds((1, 10), (2, 2), (3, 3))


_STATED = {"schema_topic": None, "tables": {"shop.t": {"create": "CREATE TABLE t (id INT PRIMARY KEY, v INT)"}}}
_SKIPPED = "the rows are right: this program finds them, other readers skip the file"

CASES: tuple[Silent | Unswitched, ...] = (
    Silent(
        "H3",
        "rows that fit after a late statement, and are discarded in the quarantine: a rebuild left them out",
        _healed,
        _for_ever,
        RIGHT,
        Noticed.LATER,
        "one of the rows is changed; not parked, because somebody discarded records",
        "key_missing, counted",
        silent=3,
        pipeline={"policy": {"quarantine_limit": 3}},
    ),
    Silent(
        "A-C1",
        "`sink.root` spelled in another way: the table was emptied behind its commit",
        _changed_after,
        _as_texts,
        RIGHT,
        Noticed.LATER,
        "an older row is changed",
        "key_missing, parked",
    ),
    Silent(
        "A-C1",
        "`sink.root` spelled in another way, and no older row is changed",
        _spelled_otherwise,
        _as_texts,
        RIGHT,
        Noticed.VERIFY,
        "the change log has the rows, the table has not",
        "row_missing",
    ),
    Unswitched(
        "A-C2",
        "a lake that was copied to another root empties the original",
        "states name places below the root, so a copy reaches no other one even where its identity is not looked at; "
        "for the original it is what the case before is",
    ),
    Silent(
        "A-C3",
        "a table of somebody else at the name of one that is renamed: it was emptied",
        _foreign,
        _anybodys,
        "sink.not_ours",
        Noticed.NEVER,
        "no log has changes of the table",
    ),
    Silent(
        "A-C4",
        "`tinyint1_as_boolean` changed between batches: files of two types under one schema",
        _other_policy,
        _any_layout,
        RIGHT,
        Noticed.NEVER,
        "2 is true in the type of now: values are equal",
    ),
    Silent(
        "A-C5",
        "a new table whose first record cannot be read: it went on without the row",
        _unreadable,
        _of_this_batch,
        "land.quarantine_exceeded",
        Noticed.LATER,
        "the row is changed later",
        "key_missing, parked",
    ),
    Silent(
        "A-C5",
        "a first batch read with a wrong `source.format`: once corrected, its rows were missing",
        _other_format,
        _of_this_batch,
        "land.quarantine_exceeded",
        Noticed.LATER,
        "a row of the first batch is changed later",
        "key_missing, parked",
        pipeline=_STATED,
    ),
    Silent(
        "A-C6",
        "bounds of files as delta-rs states them: readers missed keys above 2^63 - 1",
        _large,
        _through_a_double,
        RIGHT,
        Noticed.NEVER,
        _SKIPPED,
        silent=1,
        read=_with_skipped_files,
    ),
    Silent(
        "A-C6",
        "bounds of files as delta-rs states them, without key: readers missed DECIMALs of 18 digits",
        _long_decimal,
        _through_a_double,
        RIGHT,
        Noticed.NEVER,
        _SKIPPED,
        silent=1,
        pipeline={"options": {"decimal.handling.mode": "string"}},
        read=_with_skipped_files,
    ),
)
