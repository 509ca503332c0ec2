# SPDX-License-Identifier: Apache-2.0
"""Rules that name tables in the target: each table has the place of its rule's name, and other rules move it."""

from __future__ import annotations

import hashlib
from collections import Counter
from pathlib import Path

import pytest

from airflow_provider_cdc.core.config import TargetRule
from airflow_provider_cdc.core.documents import Rebuild
from tests.histories.debezium_records import ddl, row
from tests.histories.log import Crash, CrashError, Log
from tests.histories.numbered_rows import COLUMNS, KEY, expected, insert
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.locations import table_location
from tests.sinks.kinds import options_of, sink_of, type_of

pytestmark = pytest.mark.every(2)
RAW = (TargetRule(r"shop\.(?P<t>.+)", "raw.{t|lower}"),)
OTHER = (TargetRule(r"shop\.(?P<t>.+)", "other.{t}_{table|digest}"),)
ONE = (TargetRule(r"shop\.orders_v\d+", "shop.orders"),)
Rows = Counter[tuple[int, ...]]


@pytest.fixture(params=["delta", "iceberg"])
def script(request: pytest.FixtureRequest, log: Log, tmp_path: Path) -> Script:
    """Return a pipeline whose tables are all named by one rule."""
    root = tmp_path / "lake"
    options = options_of(request.param, root)
    return Script(log, root, sink_type=type_of(request.param), sink_options=options, target=RAW)


def create(table: str, pos: int) -> Record:
    text = f"CREATE TABLE `{table}` (id INT PRIMARY KEY, v INT)"
    return ddl(text, pos, table=table, columns=COLUMNS, key=KEY)


def at(script: Script, database: str, table: str) -> Rows | None:
    """Return the rows of the table that has a name in the target, None where none has it."""
    stored = sink_of(script.sink_type, script.root).open(table_location(str(script.root), database, table))
    if not stored.exists:
        return None
    return Counter(zip(*(column.to_pylist() for column in stored.rows().columns), strict=True))


def states(script: Script) -> dict[str, tuple[str, str]]:
    """Return state and code of each table of the source that was not dropped."""
    living = (state for state in script.states.values() if state.state != "dropped")
    return {state.table: (str(state.state), state.code) for state in living}


def digest_name(table: str) -> str:
    """Return the digest that OTHER puts behind a name."""
    return hashlib.blake2b(table.encode(), digest_size=4).hexdigest()


def test_a_table_is_where_its_rule_puts_it(script: Script) -> None:
    script.send(create("Orders", 100), insert("Orders", 1, 110))
    assert script.sync().status == "done"
    script.send(insert("Orders", 2, 120))
    assert script.sync().status == "done"
    assert at(script, "raw", "orders") == expected(1, 2)
    assert at(script, "shop", "Orders") is None
    (state,) = script.states.values()
    assert (state.database, state.table, state.location) == ("shop", "Orders", "raw/orders")


def test_a_rename_moves_the_table_where_the_rule_gives_another_name(script: Script) -> None:
    script.send(create("a", 100), insert("a", 1, 110))
    script.sync()
    script.send(ddl("RENAME TABLE a TO b", 200, table="b"), insert("b", 2, 210))
    assert script.sync().status == "done"
    assert (at(script, "raw", "a"), at(script, "raw", "b")) == (Counter(), expected(1, 2))


def test_a_rename_moves_nothing_where_the_rule_gives_the_same_name(script: Script, log: Log) -> None:
    script.target = ONE
    script.send(create("orders_v1", 100), insert("orders_v1", 1, 110))
    script.sync()
    (before,) = script.states.values()
    script.send(ddl("RENAME TABLE orders_v1 TO orders_v2", 200, table="orders_v2"), insert("orders_v2", 2, 210))
    result = script.sync()
    assert (result.status, [line.action for line in result.tables]) == ("done", ["merge"])
    assert at(script, "shop", "orders") == expected(1, 2)
    (after,) = script.states.values()
    assert (after.table, after.location) == ("orders_v2", before.location)


COLLISION = [
    create("orders_v1", 100),
    create("orders_v2", 110),
    insert("orders_v2", 1, 120),
    insert("orders_v1", 2, 130),
]


@pytest.mark.sampled
@pytest.mark.parametrize("cut", range(1, len(COLLISION) + 1))
def test_of_two_tables_with_one_name_the_later_is_parked_however_batches_are_cut(cut: int, script: Script) -> None:
    script.target = ONE
    for records in (COLLISION[:cut], COLLISION[cut:]):
        script.send(*records)
        script.sync()
    assert states(script) == {"orders_v1": ("ok", ""), "orders_v2": ("parked", "target.name_taken")}
    (parked,) = (state for state in script.states.values() if state.state == "parked")
    assert "shop.orders_v1 has it" in parked.reason
    assert "let target name one of the two otherwise" in parked.reason
    assert at(script, "shop", "orders") == expected(2)


def test_a_table_without_a_rule_has_its_name_before_one_that_a_rule_gives_it_to(script: Script) -> None:
    script.target = ONE
    script.send(create("orders", 100), insert("orders", 1, 110), create("orders_v1", 120), insert("orders_v1", 2, 130))
    script.sync()
    assert states(script) == {"orders": ("ok", ""), "orders_v1": ("parked", "target.name_taken")}
    assert at(script, "shop", "orders") == expected(1)


def test_names_that_differ_in_case_only_are_one_where_the_rule_makes_them_so(script: Script) -> None:
    script.send(create("orders", 100), create("Orders", 110), insert("Orders", 1, 120), insert("orders", 2, 130))
    script.sync()
    assert states(script) == {"orders": ("ok", ""), "Orders": ("parked", "target.name_taken")}
    assert at(script, "raw", "orders") == expected(2)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("policy", ["keep", "apply"])
@pytest.mark.parametrize("leaves", ["DROP TABLE orders_v1", "RENAME TABLE orders_v1 TO others"])
def test_the_other_takes_the_name_when_the_first_leaves(leaves: str, policy: str, script: Script) -> None:
    script.target, script.policy = ONE, {"on_drop_table": policy}
    script.send(*COLLISION)
    script.sync()
    moved = "TO" in leaves
    script.send(ddl(leaves, 200, table="others" if moved else "orders_v1"), insert("orders_v2", 3, 210))
    assert script.sync().status == "done"
    assert at(script, "shop", "orders") == expected(1, 3)
    assert at(script, "shop", "others") == (expected(2) if moved else None)


@pytest.mark.sampled
@pytest.mark.parametrize(("before", "after"), [((), RAW), (RAW, ()), (RAW, OTHER), (OTHER, RAW)])
@pytest.mark.parametrize("rows", [True, False])
def test_other_rules_move_the_tables(
    before: tuple[TargetRule, ...], after: tuple[TargetRule, ...], rows: bool, script: Script
) -> None:
    names = {(): ("shop", "t"), RAW: ("raw", "t"), OTHER: ("other", f"t_{digest_name('t')}")}
    script.target = before
    script.send(create("t", 100), insert("t", 1, 110), create("u", 120), insert("u", 5, 130))
    script.sync()
    assert at(script, *names[before]) == expected(1)
    assert at(script, *names[after]) is None
    script.target = after
    script.send(*([insert("t", 2, 210)] if rows else [insert("u", 6, 210)]))
    result = script.sync()
    assert result.status == "done"
    assert {line.reason.split("/")[0] for line in result.tables} == {f"moved from {names[before][0]}"}
    assert at(script, *names[after]) == (expected(1, 2) if rows else expected(1))
    assert at(script, *names[before]) == Counter()
    script.target = before
    script.send(insert("t", 3, 310))
    assert script.sync().status == "done"
    assert at(script, *names[before]) == (expected(1, 2, 3) if rows else expected(1, 3))
    assert at(script, *names[after]) == Counter()


def test_other_rules_move_a_table_without_anything_new_of_it(script: Script) -> None:
    script.send(create("t", 100), insert("t", 1, 110))
    script.sync()
    script.target = ()
    assert script.sync().status == "done"
    assert (at(script, "raw", "t"), at(script, "shop", "t")) == (Counter(), expected(1))
    commits = script.log.commits
    assert script.sync().status == "done"
    assert script.log.commits == commits


SWAP = (TargetRule(r"shop\.a", "shop.b"), TargetRule(r"shop\.b", "shop.a"))


def test_rules_may_exchange_the_names_of_tables(script: Script) -> None:
    script.target = ()
    script.send(create("a", 100), insert("a", 1, 110), create("b", 120), insert("b", 2, 130))
    script.sync()
    script.target = SWAP
    script.send(insert("a", 3, 210))
    assert script.sync().status == "done"
    assert (at(script, "shop", "a"), at(script, "shop", "b")) == (expected(2), expected(1, 3))


def test_other_rules_that_give_a_taken_name_leave_the_table_where_it_is(script: Script) -> None:
    script.target = ()
    script.send(create("orders_v1", 100), insert("orders_v1", 1, 110), create("orders", 120), insert("orders", 2, 130))
    script.sync()
    script.target = ONE
    script.send(insert("orders_v1", 3, 210), insert("orders", 4, 220))
    script.sync()
    assert states(script) == {"orders_v1": ("parked", "target.name_taken"), "orders": ("ok", "")}
    assert (at(script, "shop", "orders_v1"), at(script, "shop", "orders")) == (expected(1), expected(2, 4))
    script.target = ()
    assert script.sync().status == "done"
    assert (at(script, "shop", "orders_v1"), at(script, "shop", "orders")) == (expected(1, 3), expected(2, 4))


def test_a_table_of_somebody_else_at_the_new_name_stays(script: Script) -> None:
    theirs = Script(
        script.log,
        script.root,
        name="theirs",
        sink_type=script.sink_type,
        sink_options=script.sink_options,
        target=(TargetRule(".*", "raw.t"),),
    )
    script.send(create("t", 100), insert("t", 1, 110))
    theirs.sync()
    script.target = ()
    script.sync()
    script.target = RAW
    script.send(insert("t", 2, 120))
    script.sync()
    assert states(script) == {"t": ("parked", "sink.not_ours")}
    assert (at(script, "raw", "t"), at(script, "shop", "t")) == (expected(1), expected(1))


@pytest.mark.sampled
@pytest.mark.parametrize("policy", ["keep", "apply"])
def test_a_table_that_is_dropped_stays_where_it_was_under_other_rules(policy: str, script: Script) -> None:
    script.policy = {"on_drop_table": policy}
    script.send(create("t", 100), insert("t", 1, 110), create("u", 120), insert("u", 5, 130))
    script.sync()
    script.target = OTHER
    script.send(ddl("DROP TABLE t", 200, table="t"), insert("u", 6, 210))
    assert script.sync().status == "done"
    script.send(insert("u", 7, 220))
    assert script.sync().status == "done"
    assert at(script, "raw", "t") == (expected(1) if policy == "keep" else Counter())
    assert at(script, "other", f"t_{digest_name('t')}") is None


def test_a_table_that_is_selected_again_is_made_where_the_rules_of_now_put_it(script: Script) -> None:
    script.send(create("t", 100), insert("t", 1, 110), create("u", 120), insert("u", 5, 130))
    script.sync()
    script.tables, script.target = {"exclude": ["shop.t"]}, ()
    script.send(insert("t", 2, 210), insert("u", 6, 220))
    assert script.sync().status == "done"
    assert (at(script, "raw", "t"), at(script, "shop", "u")) == (expected(1), expected(5, 6))
    script.tables = {}
    assert script.sync().status == "done"
    assert (at(script, "raw", "t"), at(script, "shop", "t")) == (Counter(), expected(1, 2))


def test_a_waiting_table_moves_when_it_goes_on(script: Script) -> None:
    script.send(create("t", 100), insert("t", 1, 110))
    script.sync()
    script.send(row("c", "t", 210, {"id": 2, "v": 2, "w": 2}, key=KEY))  # its ALTER is late
    script.target = ()
    script.sync()
    assert states(script)["t"][0] == "waiting"
    assert (at(script, "raw", "t"), at(script, "shop", "t")) == (expected(1), None)
    wide = {**COLUMNS, "w": "int"}
    script.send(ddl("ALTER TABLE t ADD COLUMN w INT", 205, table="t", columns=wide, key=KEY))
    assert script.sync().status == "done"
    assert (at(script, "raw", "t"), at(script, "shop", "t")) == (Counter(), Counter({(1, 1, None): 1, (2, 2, 2): 1}))


def test_a_rebuild_under_other_rules_moves_the_table(script: Script) -> None:
    script.send(create("t", 100), insert("t", 1, 110))
    script.sync()
    script.target = ()
    assert script.sync(rebuild=Rebuild(["shop.t"])).status == "done"
    assert (at(script, "raw", "t"), at(script, "shop", "t")) == (Counter(), expected(1))


def test_a_late_change_takes_a_moved_table_back_to_its_former_place(script: Script) -> None:
    script.send(create("t", 100), insert("t", 1, 110))
    script.sync()
    script.target = OTHER
    script.send(row("c", "t", 300, {"id": 3, "v": 3}, key=KEY))
    script.sync()
    script.send(ddl("TRUNCATE TABLE t", 200, table="t"))
    assert script.sync().status == "done"
    assert at(script, "other", f"t_{digest_name('t')}") == expected(3)


def test_a_rule_that_leaves_no_name_parks_its_table(script: Script) -> None:
    script.target = (TargetRule(r"shop\.(?P<t>\d*)x?", "raw.{t}"),)
    script.send(create("x", 100), insert("x", 1, 110), create("7", 120), insert("7", 2, 130))
    script.sync()
    assert states(script) == {"x": ("parked", "target.name_refused"), "7": ("ok", "")}
    script.target = RAW
    script.send(insert("7", 3, 210))
    assert script.sync().status == "done"
    assert at(script, "raw", "x") == expected(1)


def test_safe_names_are_made_of_the_names_that_rules_give(script: Script) -> None:
    script.sink_options = {**(script.sink_options or {}), "names": "safe"}
    script.target = (TargetRule(r"shop\.(?P<t>.+)", "Raw Zone.{t|upper}"),)
    script.send(create("x y", 100), insert("x y", 1, 110), create("X_Y", 120), insert("X_Y", 2, 130))
    script.sync()
    assert states(script) == {"x y": ("ok", ""), "X_Y": ("parked", "target.name_taken")}
    assert at(script, "raw_zone", "x_y") == expected(1)
    script.sink_options = {**script.sink_options, "names": "exact"}  # tables that are there stay
    script.send(insert("x y", 3, 210))
    assert script.sync().status == "done"
    assert (at(script, "raw_zone", "x_y"), at(script, "Raw Zone", "X_Y")) == (expected(1, 3), expected(2))


HOSTILE = ["../../x", "..", "a/b", "a.b", "a'b\"c", "n" * 300, "größe", "{t}", "%2e", "a\x1bb", "_cdc"]


def test_hostile_names_get_names_of_their_own_below_the_root(script: Script) -> None:
    script.target = (TargetRule(r"shop\.(?P<t>.+)", "raw.{t}"),)
    script.send(*(create(table, 100 + number) for number, table in enumerate(HOSTILE)))
    script.send(*(insert(table, number, 200 + number) for number, table in enumerate(HOSTILE)))
    assert script.sync().status == "done"
    for number, table in enumerate(HOSTILE):
        assert at(script, "raw", table) == expected(number), table
    assert {state.location.split("/")[0] for state in script.states.values()} == {"raw"}
    assert not (script.root.parent / "x").exists()


def test_a_place_at_which_an_attempt_died_may_be_taken_later(log: Log, lake: Path) -> None:
    script = Script(log, lake, target=RAW)
    script.send(create("t", 100), insert("t", 1, 110))
    died = Crash("commit")  # its files are there, and no table
    attempts(script, (died, RAW), (None, OTHER))
    script.target = RAW
    assert script.sync().status == "done"
    assert at(script, "raw", "t") == expected(1)


# ---- attempts that die


def attempts(script: Script, *crashes: tuple[Crash | None, tuple[TargetRule, ...]]) -> None:
    """Carry out a batch in attempts, each with its rules."""
    minutes, ends = script.minutes, dict(script.ends)
    for crash, rules in crashes:
        script.minutes, script.ends = minutes, dict(ends)
        script.target = rules
        script.log.arm(crash)
        try:
            script.sync()
        except CrashError:
            assert crash is not None
        else:
            assert crash is None
    script.log.arm(None)


CHOICES = [(RAW, OTHER), ((), RAW), (RAW, ())]


@pytest.mark.sampled
@pytest.mark.parametrize(("one", "two"), CHOICES)
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("known", [True, False])
def test_no_second_copy_is_left_where_attempts_had_other_rules(
    one: tuple[TargetRule, ...], two: tuple[TargetRule, ...], number: int, known: bool, script: Script
) -> None:
    script.target = ()
    script.send(*(create(table, 100 + i) for i, table in enumerate("tu")))
    script.send(*(insert(table, 1, 110 + i) for i, table in enumerate("tu")))
    if known:
        script.sync()
        script.send(*(insert(table, 2, 210 + i) for i, table in enumerate("tu")))
    died = Crash("commit", number, True) if number < 3 else Crash("result")
    attempts(script, (died, one), (Crash("commit", 1, True) if number == 1 else None, two))
    if number == 1:
        attempts(script, (None, one))
    script.send(insert("t", 3, 310))
    script.target = two
    assert script.sync().status == "done"
    names = {(): ("shop", ""), RAW: ("raw", ""), OTHER: ("other", "digest")}
    contents = {
        "t": expected(1, 3) if not known else expected(1, 2, 3),
        "u": expected(1) if not known else expected(1, 2),
    }
    for rules, (namespace, form) in names.items():
        for table, rows in contents.items():
            name = f"{table}_{digest_name(table)}" if form else table
            assert at(script, namespace, name) in ([rows] if rules == two else [None, Counter()]), (namespace, name)
