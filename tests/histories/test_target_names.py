# SPDX-License-Identifier: Apache-2.0
"""Tables whose names a catalog does not take, or takes for one: none is lost, none is merged with another."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import load_catalog

from airflow_provider_cdc.core.config.sinks.iceberg_options import catalog_properties
from airflow_provider_cdc.core.documents import Rebuild
from spark_jobs.sinks.iceberg.sink import open_sink
from tests.histories.debezium_records import ddl
from tests.histories.log import Log
from tests.histories.numbered_rows import COLUMNS, KEY, expected, insert
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.sinks.kinds import options_of


def script_of(kind: str, log: Log, root: Path, names: str | None = "safe") -> Script:
    options = {**options_of(kind, root), **({"names": names} if names else {})}
    return Script(log, root, sink_type="iceberg", sink_options=options)


@pytest.fixture
def script(log: Log, tmp_path: Path) -> Script:
    """Return a pipeline into a SQLite catalog with safe names."""
    return script_of("iceberg", log, tmp_path)


def create(table: str, pos: int) -> Record:
    text = f"CREATE TABLE `{table.replace('`', '``')}` (id INT PRIMARY KEY, v INT)"
    return ddl(text, pos, table=table, columns=COLUMNS, key=KEY)


def catalog(script: Script) -> Any:
    return load_catalog(**catalog_properties(script.sink_options or {}))


def stored(script: Script) -> dict[str, Counter[tuple[int, ...]]]:
    """Return the rows of each table of the catalog by its name there, without tables that have none."""
    sink, contents = open_sink(script.sink_options or {}), {}
    for *_, name in catalog(script).list_tables(sink.open(f"{script.root}/shop/t").identifier[:-1]):
        rows = sink.open(f"{script.root}/shop/{name}").rows()
        contents[name] = Counter(zip(*(column.to_pylist() for column in rows.columns), strict=True))
    return {name: rows for name, rows in contents.items() if rows}


def states(script: Script) -> dict[str, tuple[str, str]]:
    """Return state and code of each table of the source that was not dropped."""
    living = (state for state in script.states.values() if state.state != "dropped")
    return {state.table: (str(state.state), state.code) for state in living}


def test_odd_names_get_safe_ones(script: Script) -> None:
    tables = ["x y", "größe", "2024", "we`ird"]
    script.send(*(create(table, 100 + number) for number, table in enumerate(tables)))
    script.send(*(insert(table, number, 110 + number) for number, table in enumerate(tables)))
    assert script.sync().status == "done"
    assert stored(script) == {name: expected(n) for n, name in enumerate(["x_y", "gro__e", "t_2024", "we_ird"])}


COLLISION = [create("orders", 100), create("Orders", 110), insert("Orders", 1, 120), insert("orders", 2, 130)]


@pytest.mark.parametrize("cut", range(1, len(COLLISION) + 1))
def test_the_table_that_got_the_name_first_has_it_however_batches_are_cut(cut: int, script: Script) -> None:
    for records in (COLLISION[:cut], COLLISION[cut:]):
        script.send(*records)
        script.sync()
    assert states(script) == {"orders": ("ok", ""), "Orders": ("parked", "target.name_taken")}
    (parked,) = (state for state in script.states.values() if state.state == "parked")
    assert "shop.orders has it" in parked.reason
    assert "sink.names to exact" in parked.reason
    assert stored(script) == {"orders": expected(2)}


def test_exact_names_give_the_other_a_table_of_its_own(script: Script) -> None:
    script.send(*COLLISION)
    script.sync()
    script.sink_options = {**(script.sink_options or {}), "names": "exact"}
    script.send(insert("Orders", 3, 210))
    assert script.sync().status == "done"
    assert stored(script) == {"orders": expected(2), "Orders": expected(1, 3)}


@pytest.mark.parametrize("leaves", ["DROP TABLE orders", "RENAME TABLE orders TO others"])
def test_the_other_goes_on_with_all_its_rows_when_the_first_leaves(leaves: str, script: Script) -> None:
    script.send(*COLLISION)
    script.sync()
    moved = "TO" in leaves
    script.send(ddl(leaves, 200, table="others" if moved else "orders"), insert("Orders", 3, 210))
    assert script.sync().status == "done"
    assert stored(script) == {"orders": expected(1, 3), **({"others": expected(2)} if moved else {})}
    assert states(script)["Orders"] == ("ok", "")


def test_the_other_goes_on_without_rows_of_its_own_and_by_a_rebuild(script: Script) -> None:
    script.send(*COLLISION)
    script.sync()
    assert script.sync(rebuild=Rebuild(["shop.Orders"])).status == "parked"
    assert stored(script) == {"orders": expected(2)}
    script.tables = {"exclude": ["shop.orders"]}
    assert script.sync(rebuild=Rebuild(["shop.Orders"])).status == "done"
    assert stored(script) == {"orders": expected(1)}


AWAY_AND_BACK = [
    create("orders", 100),
    create("Orders", 110),
    insert("orders", 1, 120),
    ddl("RENAME TABLE orders TO x", 130, table="x"),
    ddl("RENAME TABLE x TO orders", 140, table="orders"),
    insert("Orders", 2, 150),
]


@pytest.mark.parametrize("cut", range(1, len(AWAY_AND_BACK) + 1))
def test_a_table_that_comes_back_to_a_name_comes_after_the_other(cut: int, script: Script) -> None:
    for records in (AWAY_AND_BACK[:cut], AWAY_AND_BACK[cut:]):
        script.send(*records)
        script.sync()
    assert states(script) == {"Orders": ("ok", ""), "orders": ("parked", "target.name_taken")}
    script.send(ddl("RENAME TABLE orders TO later", 200, table="later"))
    assert script.sync().status == "done"
    assert stored(script) == {"orders": expected(2), "later": expected(1)}


CASE_ONLY = [
    create("orders", 100),
    create("Orders", 110),
    ddl("RENAME TABLE orders TO ORDERS", 120, table="ORDERS"),
    insert("ORDERS", 1, 130),
]


@pytest.mark.parametrize("cut", range(1, len(CASE_ONLY) + 1))
def test_a_table_that_only_changes_its_case_keeps_its_turn(cut: int, script: Script) -> None:
    for records in (CASE_ONLY[:cut], CASE_ONLY[cut:]):
        script.send(*records)
        script.sync()
    assert states(script) == {"ORDERS": ("ok", ""), "Orders": ("parked", "target.name_taken")}
    assert stored(script) == {"orders": expected(1)}


def test_a_create_that_comes_late_takes_no_name_from_a_table_that_has_rows(script: Script) -> None:
    script.send(create("Orders", 110), insert("Orders", 1, 120))
    script.sync()
    script.send(create("orders", 100), insert("orders", 2, 130))
    script.sync()
    assert states(script) == {"Orders": ("ok", ""), "orders": ("parked", "target.name_taken")}
    assert stored(script) == {"orders": expected(1)}


def test_a_table_that_is_renamed_onto_a_taken_name_keeps_its_rows_where_they_are(script: Script) -> None:
    script.send(create("orders", 100), create("t", 110), insert("t", 1, 120), insert("orders", 2, 130))
    script.sync()
    script.send(ddl("RENAME TABLE t TO Orders", 200, table="Orders"), insert("Orders", 3, 210))
    script.sync()
    assert states(script)["Orders"] == ("parked", "target.name_taken")
    assert stored(script) == {"orders": expected(2), "t": expected(1)}
    script.send(ddl("RENAME TABLE Orders TO later", 300, table="later"))
    assert script.sync().status == "done"
    assert stored(script) == {"orders": expected(2), "later": expected(1, 3)}


def test_a_table_that_only_changes_its_case_stays(script: Script) -> None:
    script.send(create("orders", 100), insert("orders", 1, 110))
    script.sync()
    script.send(ddl("RENAME TABLE orders TO Orders", 200, table="Orders"), insert("Orders", 2, 210))
    assert script.sync().status == "done"
    assert stored(script) == {"orders": expected(1, 2)}


def test_a_parked_table_that_is_dropped_leaves_the_other_alone(script: Script) -> None:
    script.policy = {"on_drop_table": "apply"}
    script.send(*COLLISION)
    script.sync()
    script.send(ddl("DROP TABLE Orders", 200, table="Orders"))
    assert script.sync().status == "done"
    assert stored(script) == {"orders": expected(2)}


@pytest.mark.parametrize(("before", "after"), [("exact", "safe"), ("safe", "exact")])
def test_tables_stay_where_they_are_when_the_rule_changes(before: str, after: str, log: Log, tmp_path: Path) -> None:
    script = script_of("iceberg", log, tmp_path, before)
    script.send(create("A b", 100), insert("A b", 1, 110))
    script.sync()
    name = {"exact": "A b", "safe": "a_b"}
    script.sink_options = {**(script.sink_options or {}), "names": after}
    script.send(insert("A b", 2, 120), create("C d", 130), insert("C d", 3, 140))
    assert script.sync().status == "done"
    new = {"exact": "C d", "safe": "c_d"}
    assert stored(script) == {name[before]: expected(1, 2), new[after]: expected(3)}
    script.sync(rebuild=Rebuild(["shop.A b"]))
    assert stored(script) == {name[before]: expected(1, 2), new[after]: expected(3)}


def test_a_table_that_somebody_changed_gets_no_second_copy_by_another_rule(log: Log, tmp_path: Path) -> None:
    script = script_of("iceberg", log, tmp_path, "exact")
    script.send(create("A b", 100), insert("A b", 1, 110))
    script.sync()
    theirs = pa.table({"id": pa.array([7], pa.int32()), "v": pa.array([7], pa.int32())})
    catalog(script).load_table(("shop", "A b")).append(theirs)
    script.sink_options = {**(script.sink_options or {}), "names": "safe"}
    script.send(insert("A b", 2, 120))
    script.sync()
    assert states(script) == {"A b": ("parked", "sink.changed_by_other")}
    assert stored(script) == {"A b": expected(1, 7)}


@pytest.mark.parametrize("lost", [False, True])
def test_no_second_copy_is_made_where_the_table_is_not_known_yet(lost: bool, log: Log, tmp_path: Path) -> None:
    """The attempt that made the table died before the ledger had it, or the ledger is gone."""
    script = script_of("iceberg", log, tmp_path, "exact")
    script.send(create("A b", 100), insert("A b", 1, 110))
    states_before, ends, changes, seqs = dict(script.states), dict(script.ends), list(script.schema_changes), []
    script.sync()
    if lost:
        script.states = {}
        script.send(insert("A b", 2, 120))
    else:
        script.states, script.ends, script.schema_changes, script.seqs = states_before, ends, changes, seqs
    script.sink_options = {**(script.sink_options or {}), "names": "safe"}
    script.sync()
    assert stored(script) == {"A b": expected(1, 2) if lost else expected(1)}


def test_a_table_of_somebody_else_at_the_safe_name_stays(script: Script) -> None:
    theirs = pa.table({"id": pa.array([7], pa.int32()), "v": pa.array([7], pa.int32())})
    catalog(script).create_namespace("shop")
    catalog(script).create_table("shop.orders", theirs.schema).append(theirs)
    script.send(create("Orders", 100), insert("Orders", 1, 110), create("t", 120), insert("t", 2, 130))
    script.sync()
    assert states(script) == {"Orders": ("parked", "sink.not_ours"), "t": ("ok", "")}
    assert stored(script) == {"orders": expected(7), "t": expected(2)}


def test_a_name_that_the_server_refuses_parks_its_table_until_safe_names_are_chosen(log: Log, tmp_path: Path) -> None:
    script = script_of("iceberg rest", log, tmp_path, None)
    script.send(create("a/b", 100), insert("a/b", 1, 110), create("x y", 120), insert("x y", 2, 130))
    script.sync()
    assert states(script) == {"a/b": ("parked", "target.name_refused"), "x y": ("ok", "")}
    assert "sink.names to safe" in next(state.reason for state in script.states.values() if state.table == "a/b")
    assert stored(script) == {"x y": expected(2)}
    script.sink_options = {**(script.sink_options or {}), "names": "safe"}
    script.send(insert("x y", 3, 210))
    assert script.sync().status == "done"
    assert stored(script) == {"a_b": expected(1), "x y": expected(2, 3)}


def test_delta_tables_may_have_safe_names_too(log: Log, lake: Path) -> None:
    script = Script(log, lake, sink_options={"names": "safe"})
    script.send(create("X y", 100), insert("X y", 1, 110))
    assert script.sync().status == "done"
    assert script.rows("shop", "x_y") == expected(1)
    assert script.rows("shop", "X y") is None
