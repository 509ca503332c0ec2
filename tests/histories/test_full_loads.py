# SPDX-License-Identifier: Apache-2.0
"""A full load that was read while rows changed: what it has of the changes behind it contradicts nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from tests.cross_format.events import Ddl, Event, Row
from tests.cross_format.writers import writer_of
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

CREATE = "CREATE TABLE t (id INT NOT NULL PRIMARY KEY, v VARCHAR(9))"
SCHEMA = TableSchema((Column(1, "id", ColumnType("int"), False), Column(2, "v", ColumnType("varchar", 9))), (1,))
BEGIN = 1_760_000_000_000  # milliseconds
LOADED = BEGIN + 60_000
# at the beginning of the load 1, 2 and 3 have "a"; it reads 3 between two changes of it, and the others after theirs
LOAD = {1: "b", 3: "b", 4: "a", 5: "a"}
DURING = [
    *((1, "a", "b"), (4, None, "a"), (2, "a", None), (3, "a", "b"), (5, None, "x"), (5, "x", None), (5, None, "a")),
    *((3, "b", "c"), (6, None, "a")),
]
AFTER = [(1, "b", "d"), (2, None, "e"), (4, "a", None)]
TABLE = Counter({(1, "d"): 1, (2, "e"): 1, (3, "c"): 1, (5, "a"): 1, (6, "a"): 1})


def oms(name: str) -> Callable[[bytes], bytes]:
    """Return what makes a row of the full load of an insert."""
    if name == "oms-shareplex":
        return lambda value: value.replace(b'"scn": "', b'"scn": "", "was": "')
    return lambda value: value.replace(b'"recordType":"INSERT"', b'"recordType":"ROW"').replace(
        b'"op": "INSERT"', b'"op": "ROW"'
    )


class Source:
    """Writes the changes of one table, one a second.

    :param key: how the statement says that there is one.
    """

    def __init__(self, name: str, key: str = " PRIMARY KEY") -> None:
        self._writer, self._number, self.name = writer_of(name), 0, name
        self.statement = CREATE.replace(" PRIMARY KEY", key)
        self._schema = SCHEMA if key else replace(SCHEMA, key=())
        self.options = dict(self._writer.options)

    def create(self) -> list[Record]:
        return self._records(Ddl(self.statement, "shop", "t", self._schema, initial=True), BEGIN)

    def load(self) -> list[Record]:
        """Return the rows of the full load, which is written to Kafka after the changes meanwhile happened."""
        op = "init" if self.name.startswith("drs") else "insert"
        rows = [Row(op, "shop", "t", self._schema, None, {"id": key, "v": value}) for key, value in LOAD.items()]
        records = [record for row in rows for record in self._records(row, LOADED)]
        if op == "init":
            return records
        return [Record(r.topic, r.partition, r.time, r.key, oms(self.name)(r.value or b"")) for r in records]

    def changes(self, some: list[tuple[int, str | None, str | None]], begin: int) -> list[Record]:
        records = []
        for key, before, after in some:
            images = [None if value is None else {"id": key, "v": value} for value in (before, after)]
            op = "insert" if before is None else "delete" if after is None else "update"
            records += self._records(Row(op, "shop", "t", self._schema, *images), begin + 1_000 * self._number)
        return records

    def _records(self, what: Row | Ddl, time: int) -> list[Record]:
        self._number += 1
        event = Event(self._number, 1, 100 * self._number, time, max(time, LOADED) + self._number, self._number, what)
        return [Record("src.rows", m.partition, event.sent_ms, m.key, m.value) for m in self._writer.write(event, 1)]


FORMATS = [
    "oms-default",
    "oms-default-extended",
    "oms-dataworks",
    "oms-shareplex",
    "drs-json",
    "drs-json-c",
    "drs-avro",
]


@pytest.mark.sampled
@pytest.mark.parametrize("cuts", [(), (0,), (0, 3), (0, 9), (3,)], ids=str)
@pytest.mark.parametrize("name", FORMATS)
def test_what_a_full_load_has_already_contradicts_nothing(
    name: str, cuts: tuple[int, ...], log: Log, tmp_path: Path
) -> None:
    source = Source(name)
    tables = {"shop.t": {"create": CREATE}} if name.startswith("oms") else {}  # its load begins with rows
    script = Script(log, tmp_path, format=name, schema_topic=None, tables=tables, options=source.options)
    script.send(*(source.create() if not tables else []), *source.load())
    changes = [*source.changes(DURING, BEGIN), *source.changes(AFTER, LOADED + 120_000)]
    contradictions = []
    for start, end in zip((0, *cuts), (*cuts, len(changes)), strict=True):
        script.send(*changes[start:end])
        contradictions += script.sync().contradictions
    assert [state.reason for state in script.states.values() if state.state != "ok"] == []
    assert script.rows("shop", "t") == TABLE
    assert contradictions == []


@pytest.mark.parametrize("name", ["oms-default", "drs-json"])
def test_a_change_from_after_the_load_is_compared(name: str, log: Log, tmp_path: Path) -> None:
    source = Source(name)
    tables = {"shop.t": {"create": CREATE}} if name.startswith("oms") else {}
    script = Script(log, tmp_path, format=name, schema_topic=None, tables=tables)
    script.send(*(source.create() if not tables else []), *source.load())
    script.sync()
    script.send(*source.changes([(1, "lost", "c")], LOADED + 120_000))
    kinds = [item["kind"] for item in script.sync().contradictions]
    assert (kinds, [state.code for state in script.states.values()]) == (["row_differs"], ["apply.contradicted"])


@pytest.mark.parametrize("overlaps", [True, False])
@pytest.mark.parametrize("name", ["oms-default", "drs-json"])
def test_without_key_a_change_that_the_load_may_have_parks_the_table(
    name: str, overlaps: bool, log: Log, tmp_path: Path
) -> None:
    source = Source(name, key="")
    tables = {"shop.t": {"create": source.statement}} if name.startswith("oms") else {}
    script = Script(log, tmp_path, format=name, schema_topic=None, tables=tables)
    script.send(*(source.create() if not tables else []), *source.load())
    assert (script.sync().contradictions, script.states_of("shop", "t")) == ([], ["ok"])
    if not overlaps:
        script.send(*source.changes([(8, None, "a"), (1, "b", "c")], LOADED + 1_000))
        assert (script.sync().contradictions, script.states_of("shop", "t")) == ([], ["ok"])
        return
    script.send(*source.changes([(8, None, "a"), (1, "b", "c")], LOADED - 30_000))
    kinds = [item["kind"] for item in script.sync().contradictions]
    (state,) = script.states.values()
    assert (kinds, state.code) == (["load_overlap"] * 2, "apply.contradicted")
    assert "no key decides it" in state.reason and "give the table a key" in state.reason
    assert script.rows("shop", "t") == Counter(dict.fromkeys(LOAD.items(), 1))
