# SPDX-License-Identifier: Apache-2.0
"""A location belongs to the table that has its name now: nothing of an older table empties it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from airflow_provider_cdc.core.documents import Maintenance
from airflow_provider_cdc.core.errors import SinkError
from spark_jobs.driver import apply_step
from spark_jobs.driver.maintenance import maintain
from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.run import inline
from tests.histories.scripted import Script

COLUMNS = {"id": "int", "v": "int"}
KEY = ("id",)
T = "src.shop.t"


def insert(number: int, pos: int, partition: int = 0) -> Record:
    return row("c", "t", pos, {"id": number, "v": number}, key=KEY, partition=partition)


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return a table with row 1, dropped and created again with row 2, under ``on_drop_table: apply``."""
    script = Script(log, lake, policy={"on_drop_table": "apply"})
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY)}), insert(1, 110))
    return script


def recreate() -> list[Record]:
    text = "CREATE TABLE t (id INT PRIMARY KEY, v INT)"
    return [ddl("DROP TABLE t", 200, table="t"), ddl(text, 210, table="t", columns=COLUMNS, key=KEY)]


def test_a_redelivered_row_of_a_dropped_table_leaves_the_new_one_alone(script: Script) -> None:
    script.sync()
    script.send(*recreate(), insert(2, 220))
    script.sync()
    script.send(insert(1, 110))
    script.sync()
    assert script.rows("shop", "t") == Counter({(2, 2): 1})
    assert sorted(script.states_of("shop", "t")) == ["dropped", "ok"]


def test_a_late_row_of_a_dropped_table_leaves_the_new_one_alone(script: Script) -> None:
    # no redelivery: the old table's last row lies on a partition that is read a batch later
    script.sync()
    script.send(*recreate(), insert(2, 220), insert(3, 190, partition=1))
    script.held = {(T, 1)}
    script.sync()
    script.held = set()
    script.sync()
    assert script.rows("shop", "t") == Counter({(2, 2): 1})


def test_a_new_table_without_rows_is_not_emptied_by_a_row_of_the_old_one(script: Script) -> None:
    script.sync()
    script.send(*recreate())
    script.sync()
    script.send(insert(1, 110))
    script.sync()
    script.send(insert(2, 220))
    script.sync()
    assert script.rows("shop", "t") == Counter({(2, 2): 1})


def test_a_dropped_table_is_emptied_once(script: Script, log: Log) -> None:
    script.sync()
    script.send(ddl("DROP TABLE t", 200, table="t"))
    script.sync()
    assert script.rows("shop", "t") == Counter()
    before = log.commits
    script.send(insert(1, 110))
    script.sync()
    assert log.commits == before
    assert script.rows("shop", "t") == Counter()
    assert script.states_of("shop", "t") == ["dropped"]


def test_a_table_renamed_onto_the_name_of_a_dropped_one_keeps_its_rows(script: Script) -> None:
    script.send(*snapshot_ddl(100, {"u": (COLUMNS, KEY)}), row("c", "u", 120, {"id": 5, "v": 5}, key=KEY))
    script.sync()
    renamed = ddl("RENAME TABLE u TO t", 210, table="t", columns=COLUMNS, key=KEY)
    script.send(ddl("DROP TABLE t", 200, table="t"), renamed)
    script.sync()
    script.send(insert(1, 110))
    script.sync()
    assert script.rows("shop", "t") == Counter({(5, 5): 1})


def test_a_name_whose_next_table_waits_is_emptied_once_that_table_has_another_name(script: Script) -> None:
    script.send(*snapshot_ddl(100, {"u": (COLUMNS, KEY)}), row("c", "u", 120, {"id": 5, "v": 5}, key=KEY))
    script.sync()
    script.send(ddl("RENAME TABLE t TO old, u TO t", 200, table="t", columns=COLUMNS, key=KEY))
    script.send(row("c", "t", 210, {"id": 6, "v": 6, "w": 6}, key=KEY))  # its ALTER is late: the table waits
    script.sync()
    assert script.rows("shop", "old") == Counter({(1, 1): 1})
    assert script.states_of("shop", "t") == ["waiting"]
    wide = {**COLUMNS, "w": "int"}
    script.send(ddl("ALTER TABLE t ADD COLUMN w INT", 205, table="t", columns=wide, key=KEY))
    script.send(ddl("RENAME TABLE t TO s", 220, table="s", columns=wide, key=KEY))
    script.sync()
    assert script.rows("shop", "s") == Counter({(5, 5, None): 1, (6, 6, 6): 1})
    assert script.rows("shop", "t") == Counter()


@pytest.mark.parametrize("policy", ["keep", "apply"])
def test_a_table_that_a_late_swap_brings_back_replaces_the_one_at_its_name(policy: str, log: Log, lake: Path) -> None:
    script = Script(log, lake, policy={"on_drop_table": policy})
    wide = {**COLUMNS, "w": "int"}
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "u": (wide, KEY)}), insert(1, 110))
    script.send(row("c", "u", 120, {"id": 5, "v": 5, "w": 5}, key=KEY))
    script.sync()
    swap = "RENAME TABLE t TO x, u TO t, x TO u"
    script.send(ddl(swap, 300, table="t"), ddl("DROP TABLE u", 400, table="u"))
    script.sync()
    assert script.rows("shop", "t") == Counter({(5, 5, 5): 1})
    script.send(ddl(swap, 200, table="t"))
    script.sync()
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    assert script.states_of("shop", "t") == ["ok"]


def test_a_table_that_a_late_rename_brings_back_to_its_emptied_location_has_its_rows_again(script: Script) -> None:
    script.sync()
    script.send(ddl("RENAME TABLE t TO u", 300, table="u"), ddl("DROP TABLE IF EXISTS u", 400, table="u"))
    script.sync()
    assert script.rows("shop", "t") == Counter()
    script.send(ddl("RENAME TABLE u TO t", 350, table="t"))
    script.sync()
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    assert script.states_of("shop", "t") == ["ok"]


@pytest.mark.parametrize("verify", ["off", "touched"])
def test_a_table_that_was_parked_while_another_had_its_name_finds_its_own_rows(
    verify: str, log: Log, lake: Path
) -> None:
    # under its second name a rule does not fit, so its rows stay where the other table is then
    rules = {"shop.away": {"columns": {"exclude": ["w"]}}}
    script = Script(log, lake, policy={"verify": verify}, tables=rules)
    script.send(*snapshot_ddl(100, {"t": (COLUMNS, KEY), "u": (COLUMNS, KEY)}), insert(1, 110), insert(2, 120))
    script.send(row("c", "u", 130, {"id": 7, "v": 7}, key=KEY))
    script.sync()
    script.send(ddl("RENAME TABLE t TO away, u TO t", 200))
    script.sync()
    assert script.states_of("shop", "away") == ["parked"]
    assert script.rows("shop", "t") == Counter({(7, 7): 1})
    script.send(ddl("RENAME TABLE t TO u, away TO t", 300), insert(3, 310))
    script.sync()
    assert (script.states_of("shop", "t"), script.states_of("shop", "u")) == (["ok"], ["ok"])
    assert script.rows("shop", "t") == Counter({(1, 1): 1, (2, 2): 1, (3, 3): 1})
    assert script.rows("shop", "u") == Counter({(7, 7): 1})


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Callable[[], AbstractContextManager[None]]:
    """Return what lets no location be emptied for a while."""

    def refuse(*_: object) -> None:
        raise SinkError("sink.refused", "half a file", where={}, hint="")

    @contextmanager
    def refusing() -> Iterator[None]:
        with monkeypatch.context() as patch:
            patch.setattr(apply_step, "empty_location", refuse)
            yield

    return refusing


Refusing = Callable[[], AbstractContextManager[None]]


@pytest.mark.parametrize("changed", [False, True])
def test_a_former_location_that_could_not_be_emptied_is_emptied_by_the_next_batch(
    changed: bool, script: Script, refusing: Refusing
) -> None:
    script.sync()
    script.send(ddl("RENAME TABLE t TO u", 200, table="u"))
    with refusing():
        script.sync()
        script.sync()
    assert script.states_of("shop", "u") == ["parked"]
    assert script.rows("shop", "t") == script.rows("shop", "u") == Counter({(1, 1): 1})
    if changed:
        script.send(row("c", "u", 300, {"id": 3, "v": 3}, key=KEY))
    script.sync()
    assert (script.states_of("shop", "u"), script.rows("shop", "t")) == (["ok"], Counter())
    assert script.rows("shop", "u") == Counter({(1, 1): 1} | ({(3, 3): 1} if changed else {}))


def test_the_location_of_a_dropped_table_that_could_not_be_emptied_is_emptied_by_the_next_batch(
    script: Script, refusing: Refusing
) -> None:
    script.sync()
    script.send(ddl("DROP TABLE t", 200, table="t"))
    with refusing():
        script.sync()
    assert script.rows("shop", "t") == Counter({(1, 1): 1})
    script.sync()
    assert (script.states_of("shop", "t"), script.rows("shop", "t")) == (["dropped"], Counter())


def test_a_location_that_could_not_be_emptied_is_left_to_a_new_table_of_its_name(
    script: Script, refusing: Refusing
) -> None:
    script.sync()
    script.send(ddl("RENAME TABLE t TO u", 200, table="u"))
    with refusing():
        script.sync()
    script.send(ddl("CREATE TABLE t (id INT PRIMARY KEY, v INT)", 210, table="t", columns=COLUMNS, key=KEY))
    script.send(insert(2, 220))
    script.sync()
    script.sync()
    assert (script.states_of("shop", "t"), script.states_of("shop", "u")) == (["ok"], ["ok"])
    assert script.rows("shop", "t") == Counter({(2, 2): 1})
    assert script.rows("shop", "u") == Counter({(1, 1): 1})


@pytest.mark.parametrize("order", [("t", "u"), ("u", "t")])
def test_tables_that_exchange_names_are_read_as_maintenance_left_them(
    log: Log, lake: Path, order: tuple[str, str]
) -> None:
    script = Script(log, lake)
    for pos, name in zip((100, 101), order, strict=True):
        script.send(*snapshot_ddl(pos, {name: (COLUMNS, KEY)}))
    for number in (1, 2):
        for table in order:
            script.send(row("c", table, 110 + number, {"id": number, "v": 7 if table == "u" else 5}, key=KEY))
        script.sync()
    assert all(not report.error for report in maintain(script._job({}), Maintenance(1 << 20, 0), {}, inline).maintained)
    one, other = order
    swap = f"RENAME TABLE {one} TO x, {other} TO {one}, x TO {other}"
    script.send(ddl(swap, 200, table=one), *(row("c", name, 210, {"id": 3, "v": 0}, key=KEY) for name in order))
    script.sync()
    assert {(state.state, state.reason) for state in script.states.values()} == {("ok", "")}
    for name, v in (("t", 7), ("u", 5)):
        assert script.rows("shop", name) == Counter({(1, v): 1, (2, v): 1, (3, 0): 1})
