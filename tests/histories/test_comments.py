# SPDX-License-Identifier: Apache-2.0
"""Comments of tables and columns at the source: the stored table has those of the newest statement that it took."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.sinks.delta import reader
from tests.histories.debezium_records import ddl, row
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script

CREATE = (
    "CREATE TABLE shop.t (id int NOT NULL COMMENT 'number', name varchar(20) COMMENT 'it''s \"quoted\"; --',"
    " note varchar(20), PRIMARY KEY (id)) COMMENT='customers'"
)
CUTS = pytest.mark.parametrize("cuts", [(), (2,), (1, 2, 3, 4, 5, 6)])


def put(pos: int, op: str = "c", table: str = "t", **image: Any) -> Record:
    return row(op, table, pos, image, key=("id",), time=pos)


def statement(text: str, pos: int) -> Record:
    return ddl(text, pos, time=pos)


def said(script: Script, table: str = "t") -> tuple[str, dict[str, str]]:
    """Return what readers see of a table and its columns."""
    stored = reader().open(str(script.root / "shop" / table), {})
    return stored.comment(), {one.name: one.comment for one in stored.columns() if one.comment}


def synced(log: Log, lake: Path, records: list[Record], *cuts: int, **rule: Any) -> Script:
    script = Script(log, lake, tables={"shop.t": rule} if rule else {}, secrets={"mask": {"salt": "pepper"}})
    for start, end in pairwise([0, *cuts, len(records)]):
        script.send(*records[start:end])
        script.sync()
    return script


FIRST = [statement(CREATE, 4), put(21, id=1, name="Ann", note=None)]


@CUTS
def test_comments_are_those_of_the_newest_statement(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    records = [
        *FIRST,
        statement("ALTER TABLE shop.t ADD extra int COMMENT 'added', MODIFY note varchar(20) COMMENT 'Notiz'", 31),
        put(41, id=2, name="Bob", note=None, extra=1),
        statement("ALTER TABLE shop.t COMMENT 'clients', CHANGE name nick varchar(20), RENAME COLUMN note TO n", 51),
        put(61, id=3, nick="Cid", n=None, extra=1),
        statement("ALTER TABLE shop.t DROP extra, ADD extra int", 71),
        put(81, id=4, nick="Dan", n=None, extra=1),
    ]
    script = synced(log, lake, records, *cuts)
    assert script.states_of("shop", "t") == ["ok"]
    assert said(script) == ("clients", {"id": "number", "n": "Notiz"})


def test_a_changed_comment_makes_no_commit_and_comes_with_the_next(log: Log, lake: Path) -> None:
    script = synced(log, lake, FIRST)
    assert said(script) == ("customers", {"id": "number", "name": 'it\'s "quoted"; --'})
    location = str(lake / "shop" / "t")
    before = DeltaTable(location).version()
    script.send(statement("ALTER TABLE shop.t COMMENT '', MODIFY name varchar(20) COMMENT 'Name'", 31))
    script.sync()
    assert DeltaTable(location).version() == before
    assert said(script) == ("customers", {"id": "number", "name": 'it\'s "quoted"; --'})
    (state,) = script.states.values()
    mark = state.comments
    script.send(put(41, id=2, name="Bob", note=None))
    script.sync()
    assert said(script) == ("", {"id": "number", "name": "Name"})
    assert DeltaTable(location).version() == before + 1
    (state,) = script.states.values()
    assert state.comments not in ("", mark)  # so that a catalog gets it


def test_a_late_statement_takes_its_place(log: Log, lake: Path) -> None:
    newer = statement("ALTER TABLE shop.t MODIFY name varchar(20) COMMENT 'newer', COMMENT 'newer'", 51)
    older = statement("ALTER TABLE shop.t MODIFY name varchar(20) COMMENT 'older', COMMENT 'older'", 31)
    script = synced(log, lake, [*FIRST, newer, put(61, id=2, name="Bob", note=None)])
    script.send(older, put(71, id=3, name="Cid", note=None))
    script.sync()
    assert said(script) == ("newer", {"id": "number", "name": "newer"})
    assert len(DeltaTable(str(lake / "shop" / "t")).to_pyarrow_table()) == 3


@CUTS
def test_columns_have_theirs_under_the_names_of_rules(log: Log, lake: Path, cuts: tuple[int, ...]) -> None:
    rule = {"exclude": ["id_"], "rename": {"name": "full name"}, "mask": {"name": "hash"}, "add": {"x": "id + 1"}}
    more = [
        statement("ALTER TABLE shop.t ADD id_ int COMMENT 'left out'", 31),
        put(41, id=2, name="B", note=None, id_=1),
    ]
    script = synced(log, lake, [*FIRST, *more], *cuts[:3], columns={**rule, "metadata": {"op": "_op"}})
    assert script.states_of("shop", "t") == ["ok"]
    assert said(script) == ("customers", {"id": "number", "full name": 'it\'s "quoted"; --'})


def test_a_copy_that_takes_the_place_has_its_comments_and_none_of_another_table_stays(log: Log, lake: Path) -> None:
    script = synced(log, lake, FIRST)
    script.send(
        statement("CREATE TABLE shop._t_gho LIKE shop.t", 31),
        statement("ALTER TABLE shop._t_gho MODIFY name varchar(30), COMMENT 'copied'", 32),
        put(33, table="_t_gho", id=1, name="Ann", note=None),
        statement("RENAME TABLE shop.t TO shop._t_del, shop._t_gho TO shop.t", 41),
        put(51, id=2, name="Bob", note=None),
    )
    script.sync()
    assert said(script) == ("copied", {"id": "number"})
    script.send(statement("DROP TABLE shop.t", 61), statement("CREATE TABLE shop.t (id int PRIMARY KEY, name int)", 62))
    script.send(put(71, id=9, name=1))
    script.sync()
    assert said(script) == ("", {})


def test_a_long_comment_is_cut(log: Log, lake: Path) -> None:
    long = "x" * 5000
    script = synced(
        log, lake, [statement(f"CREATE TABLE shop.t (id int PRIMARY KEY COMMENT '{long}')", 4), put(21, id=1)]
    )
    assert said(script) == ("", {"id": long[:4096]})
