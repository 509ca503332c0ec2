# SPDX-License-Identifier: Apache-2.0
"""The batch of a row (``columns.metadata.batch``) is the one that read its change, however often it is applied."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import Rebuild, TableState
from airflow_provider_cdc.core.model.offsets import OffsetRange
from tests.histories.buckets import split_every_table
from tests.histories.cases import case_of, judge
from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.rebuilding import WithRebuilds
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.histories.shaped import ShapedReplay
from tests.histories.source import Picture
from tests.histories.together import resolve_all_together
from tests.histories.tools import TOOLS
from tests.sample import amount

CREATE = "CREATE TABLE shop.t (id int NOT NULL, name varchar(20), PRIMARY KEY (id))"
BATCH = {"columns": {"metadata": {"batch": "_batch", "position": "_pos"}}}


def put(pos: int, op: str = "c", before: dict[str, Any] | None = None, **image: Any) -> Record:
    return row(op, "t", pos, image, before=before, key=("id",), time=pos)


def statement(text: str, pos: int) -> Record:
    return ddl(text, pos, time=pos)


def synced(log: Log, lake: Path, batches: Sequence[Sequence[Record]], mode: str = "mirror") -> Script:
    script = Script(log, lake, tables={"shop.t": {**BATCH, "mode": mode}})
    for records in batches:
        script.send(*records)
        script.sync()
    return script


def stored(script: Script) -> list[dict[str, Any]]:
    assert script.states_of("shop", "t") == ["ok"], [state.reason for state in script.states.values()]
    rows = DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda one: (one["id"], str(one["_pos"])))


def batches_of(script: Script) -> list[tuple[int, int]]:
    return [(one["id"], one["_batch"]) for one in stored(script)]


FIRST = [statement(CREATE, 4), put(21, id=1, name="a"), put(31, id=2, name="b")]
SECOND = [put(41, id=3, name="c"), put(51, "u", {"id": 1, "name": "a"}, id=1, name="A")]


def test_each_row_says_which_batch_brought_it(log: Log, lake: Path) -> None:
    script = synced(log, lake, [FIRST, SECOND])
    assert batches_of(script) == [(1, 2), (2, 1), (3, 2)]


def test_it_stays_where_the_table_is_made_again(log: Log, lake: Path) -> None:
    script = synced(log, lake, [FIRST, SECOND])
    before = batches_of(script)
    renamed = {"columns": {**BATCH["columns"], "rename": {"name": "nick"}}, "on_rule_change": "apply"}
    script.tables = {"shop.t": renamed}
    script.sync()
    assert batches_of(script) == before
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert batches_of(script) == before
    script.send(statement("ALTER TABLE shop.t MODIFY name varchar(10)", 35), put(61, id=4, name="d"))
    script.sync()
    assert batches_of(script) == [*before, (4, 5)]


def test_a_change_that_waited_is_of_the_batch_that_read_it(log: Log, lake: Path) -> None:
    early = put(41, id=3, name="c", w=1)
    script = synced(log, lake, [FIRST])
    script.send(early)
    script.sync()
    assert script.states_of("shop", "t") == ["waiting"]
    script.send(statement("ALTER TABLE shop.t ADD w int", 35), put(51, id=4, name="d", w=1))
    script.sync()
    assert batches_of(script) == [(1, 1), (2, 1), (3, 2), (4, 3)]


def test_a_change_that_came_again_is_of_its_newest_copy_either_way(log: Log, lake: Path) -> None:
    script = synced(log, lake, [FIRST, SECOND, [SECOND[1], FIRST[2]], [put(61, id=4, name="d")]])
    before = batches_of(script)
    assert before[-3:] == [(2, 3), (3, 2), (4, 4)]
    assert (1, 3) in before
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert batches_of(script) == before


@pytest.mark.parametrize("cut", range(1, 6))
def test_it_follows_from_the_batches_alone(log: Log, lake: Path, cut: int) -> None:
    records = [*FIRST, *SECOND, put(61, id=9, name="x")]
    parts = [records[start:end] for start, end in pairwise([0, cut, len(records)])]
    script = synced(log, lake, parts)
    made_in = {record.value: number for number, some in enumerate(parts, 1) for record in some}
    newest = {1: SECOND[1], 2: FIRST[2], 3: SECOND[0], 9: records[-1]}
    assert batches_of(script) == [(key, made_in[record.value]) for key, record in newest.items()]


@pytest.mark.parametrize("mode", ["append", "soft_delete", "history"])
def test_tables_that_cannot_say_it_are_parked(log: Log, lake: Path, mode: str) -> None:
    script = synced(log, lake, [FIRST], mode)
    assert [state.code for state in script.states.values()] == ["shape.batch"]


class Rebuilding(ShapedReplay, WithRebuilds):
    """Makes tables again from the change log between batches; each row stays of the batch that it was of."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._asks = False  # a RENAME may give a table other rules
        self.compared, self.unlike = 0, list[str]()

    def _batch(self, number: int, chunks: list[OffsetRange], picture: Picture | None) -> list[str]:
        return WithRebuilds._batch(self, number, chunks, picture)

    def _damage(self, operator: random.Random, state: TableState) -> None:
        pass

    def _finish(self, seq: int, tables: Sequence[str]) -> None:
        before = {table_id: self._batches(table_id) for table_id in tables}
        super()._finish(seq, tables)
        for table_id, rows in before.items():
            now = self._batches(table_id)
            if rows is not None and self.states[table_id].applied_seq == seq:
                self.compared += 1
                self.unlike += [f"{self.states[table_id].table}: {rows} {now}"] * (rows != now)

    def _batches(self, table_id: str) -> list[tuple[str, ...]] | None:
        state = self.states[table_id]
        rows = self._rows((state.database, state.table)) if state.state == "ok" else None
        if rows is None or "_batch" not in rows.column_names:
            return None
        return sorted(tuple(map(str, one.values())) for one in rows.to_pylist())

    def _verdict(self, picture: Picture | None) -> list[str]:
        return [*super()._verdict(picture), *self.unlike]


@pytest.mark.every(2)
@pytest.mark.parametrize("way", [resolve_all_together, split_every_table])
@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if not tool.by_clock])
def test_each_row_stays_of_its_batch_in_random_histories(
    name: str, way: Callable[[pytest.MonkeyPatch], None], log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    way(monkeypatch)
    for seed in range(700, 700 + amount(1, 2)):
        verdict = judge(case_of(name, seed, sizes=(5, 8)), log, lake, kind=Rebuilding)
        assert not verdict.failure, verdict.failure
