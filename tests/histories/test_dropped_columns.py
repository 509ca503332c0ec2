# SPDX-License-Identifier: Apache-2.0
"""A dropped or renamed column stays in the table with ``keep``, or the table waits for a decision with ``ask``."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from airflow_provider_cdc.core.documents import Rebuild
from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.timeline.asked_changes import Answer
from tests.histories import canal_rows as canal
from tests.histories.canal_columns import canal_row
from tests.histories.debezium_records import ddl, row, snapshot_ddl
from tests.histories.decisions import decide_twice, state_of
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.sample import amount

WIDE, NARROW = {"id": "int", "w": "int", "v": "int"}, {"id": "int", "v": "int"}
KEY = ("id",)
TEXT = "ALTER TABLE t DROP COLUMN w"
STATED = {"text": ddl(TEXT, 200, table="t"), "structure": ddl(TEXT, 200, table="t", columns=NARROW, key=KEY)}


def insert(pos: int, **values: int | None) -> Record:
    return row("c", "t", pos, values, key=KEY)


def update(pos: int, **values: int | None) -> Record:
    return row("u", "t", pos, values, key=KEY)


def delete(pos: int, **values: int | None) -> Record:
    return row("d", "t", pos, None, before=values, key=KEY)


@pytest.fixture
def script(log: Log, lake: Path) -> Script:
    """Return a table with two rows."""
    script = Script(log, lake)
    script.send(*snapshot_ddl(100, {"t": (WIDE, KEY)}), insert(110, id=1, w=1, v=1), insert(120, id=2, w=2, v=2))
    script.sync()
    return script


BEFORE = Counter({(1, 1, 1): 1, (2, 2, 2): 1})
# row 2 is written again without the column, row 3 comes before its drop, row 4 comes after it
AFTER = insert(190, id=3, w=3, v=3), update(210, id=2, v=20), update(220, id=3, v=30), insert(230, id=4, v=4)
STAYS = Counter({(1, 1, 1): 1, (2, 2, 20): 1, (3, 3, 30): 1, (4, None, 4): 1})
GOES = Counter({(1, 1): 1, (2, 20): 1, (3, 30): 1, (4, 4): 1})


def contents(script: Script) -> list[Counter[Any] | None]:
    """Return the content now, after a rewind to before the drop, and after a rebuild."""
    now = script.rows("shop", "t")
    script.send(ddl("ALTER TABLE t MODIFY v BIGINT", 105, table="t"))
    script.sync()
    rewound = script.rows("shop", "t")
    shutil.rmtree(script.root / "shop" / "t")
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert state_of(script, "t") == ("ok", "")
    return [now, rewound, script.rows("shop", "t")]


@pytest.mark.sampled
@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize("together", [True, False])
def test_a_column_that_is_kept_has_its_values(script: Script, stated: str, together: bool) -> None:
    script.policy = {"on_drop_column": "keep"}
    script.send(STATED[stated], AFTER[0])
    if not together:
        script.sync()
    script.send(*AFTER[1:])
    script.sync()
    script.policy = {}  # it stays so whatever the policy is later
    assert contents(script) == 3 * [STAYS]


@pytest.mark.sampled
@pytest.mark.parametrize("stated", STATED)
@pytest.mark.parametrize(("answer", "expected"), [(Answer.APPLY, GOES), (Answer.DENY, STAYS)])
def test_a_drop_of_a_column_waits_for_a_decision(
    script: Script, stated: str, answer: Answer, expected: Counter[Any]
) -> None:
    script.policy = {"on_drop_column": "ask"}
    script.send(STATED[stated], *AFTER)
    script.sync()
    assert state_of(script, "t") == ("parked", "apply.approval_required")
    assert script.rows("shop", "t") == BEFORE
    assert [item.policy for item in script.waiting("t")] == ["on_drop_column"]
    decide_twice(script, answer)
    assert contents(script) == 3 * [expected]


def test_a_column_that_was_kept_is_dropped_after_all(script: Script) -> None:
    script.policy = {"on_drop_column": "ask"}
    script.send(STATED["text"], *AFTER)
    script.sync()
    waiting = script.waiting("t")[0]
    script.decide("t", Answer.DENY)
    assert script.rows("shop", "t") == STAYS
    script.asked.append(waiting.document())
    script.decide("t", Answer.APPLY)
    assert contents(script) == 3 * [GOES]


def test_a_drop_of_a_column_is_refused_until_another_policy_is_stated(script: Script) -> None:
    script.policy = {"on_drop_column": "fail"}
    script.send(STATED["text"], *AFTER)
    for _ in range(2):
        with pytest.raises(DataError, match="DROP COLUMN of a table whose on_drop_column is fail") as raised:
            script.sync()
        assert raised.value.code == "apply.change_refused"
    script.policy = {"on_drop_column": "keep"}
    script.sync()
    assert contents(script) == 3 * [STAYS]


def test_a_new_column_of_the_name_replaces_the_one_that_was_kept(script: Script) -> None:
    script.policy = {"on_drop_column": "keep"}
    script.send(STATED["text"], *AFTER, ddl("ALTER TABLE t ADD COLUMN w INT DEFAULT 7 AFTER id", 300, table="t"))
    script.send(insert(310, id=5, w=5, v=5))
    script.sync()
    assert contents(script) == 3 * [Counter({(1, 7, 1): 1, (2, 7, 20): 1, (3, 7, 30): 1, (4, 7, 4): 1, (5, 5, 5): 1})]


def test_other_changes_of_the_table_go_on_around_a_column_that_is_kept(script: Script) -> None:
    script.policy = {"on_drop_column": "keep"}
    script.send(STATED["structure"], *AFTER)
    wider = {"id": "int", "v": "int", "x": "int"}
    script.send(ddl("ALTER TABLE t ADD COLUMN x INT", 300, table="t", columns=wider, key=KEY))
    script.send(update(310, id=1, v=10, x=1), delete(320, id=2, v=20, x=None), insert(330, id=2, v=21, x=2))
    script.sync()
    assert contents(script) == 3 * [
        Counter({(1, 1, 10, 1): 1, (2, None, 21, 2): 1, (3, 3, 30, None): 1, (4, None, 4, None): 1})
    ]


def test_a_snapshot_that_describes_the_table_without_the_column_changes_nothing(script: Script) -> None:
    script.policy = {"on_drop_column": "keep"}
    script.send(STATED["structure"], *AFTER)
    script.sync()
    script.send(*snapshot_ddl(400, {"t": (NARROW, KEY)}, rows=False), insert(410, id=5, v=5))
    script.sync()
    assert script.rows("shop", "t") == STAYS + Counter({(5, None, 5): 1})


@pytest.mark.parametrize(
    ("text", "reason"),
    [("ALTER TABLE t DROP COLUMN id", "is part of the key"), (f"{TEXT}, DROP PRIMARY KEY", "a table without a key")],
)
def test_a_column_that_cannot_stay_parks_the_table(script: Script, text: str, reason: str) -> None:
    script.policy = {"on_drop_column": "keep"}
    script.send(ddl(text, 200, table="t"))
    script.sync()
    (state,) = script.states.values()
    assert state.state == "parked"
    assert reason in state.reason
    assert script.rows("shop", "t") == BEFORE


@pytest.mark.parametrize("seed", range(amount(4, 6)))
def test_random_changes_around_the_drop_of_a_column(log: Log, lake: Path, seed: int) -> None:
    """Batches end anywhere, records come twice, and a plain table says what every row is."""
    rng = random.Random(seed)
    script = Script(log, lake, policy={"on_drop_column": "keep"})
    script.send(*snapshot_ddl(100, {"t": (WIDE, KEY)}))
    rows: dict[int, tuple[int | None, int]] = {}
    drop, sent = rng.randrange(5, 35), list[Record]()
    for number in range(40):
        pos = 200 + 10 * number
        if number == drop:
            script.send(ddl(TEXT, pos, table="t"))
        record = _random_change(rng, rows, pos + 1, has_column=number < drop)
        sent.append(record)
        script.send(record)
        if rng.random() < 0.1:
            script.send(*sent[-3:])
        if rng.random() < 0.2:
            script.sync()
    script.sync()
    assert script.rows("shop", "t") == Counter((i, w, v) for i, (w, v) in rows.items())
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert script.rows("shop", "t") == Counter((i, w, v) for i, (w, v) in rows.items())


def _random_change(
    rng: random.Random, rows: dict[int, tuple[int | None, int]], pos: int, *, has_column: bool
) -> Record:
    """Change a row of a table, and return the record of it."""
    number, value = rng.randrange(6), rng.randrange(1000)
    column = {"w": rng.randrange(1000)} if has_column else {}
    if number not in rows:
        rows[number] = column.get("w"), value
        return insert(pos, id=number, v=value, **column)
    if rng.random() < 0.3:
        was = rows.pop(number)
        return delete(pos, id=number, v=was[1], **({"w": was[0] or 0} if has_column else {}))
    rows[number] = (column["w"] if has_column else rows[number][0]), value
    return update(pos, id=number, v=value, **column)


@pytest.mark.parametrize("batches", [1, 2, 3])
def test_a_column_that_is_kept_where_a_clock_orders_rows(log: Log, lake: Path, batches: int) -> None:
    """Rows that are sent again do not count; an update that moves its key takes the value along."""
    log.partitions.clear()
    script = Script(log, lake, format="canal-json", schema_topic=None, policy={"on_drop_column": "keep"})
    created = canal.ddl(0, "CREATE TABLE shop.t (id INT PRIMARY KEY, w INT, v INT)")
    rows = [canal_row(10 * number, "INSERT", {"id": number, "w": number, "v": number}) for number in (1, 2, 3)]
    script.send(created, *rows)
    if batches > 1:
        script.sync()
    changed = canal_row(2010, "UPDATE", {"id": 2, "v": 20}, old={"v": 2})
    script.send(canal.ddl(2000, "ALTER TABLE shop.t DROP COLUMN w"), changed)
    if batches > 2:
        script.sync()
    script.send(
        canal_row(2020, "UPDATE", {"id": 5, "v": 3}, old={"id": 3}), canal_row(2030, "INSERT", {"id": 4, "v": 4})
    )
    script.send(changed, canal_row(2500, "UPDATE", {"id": 2, "v": 21}, old={"v": 20}))
    script.sync()
    assert [state.reason for state in script.states.values()] == [""]
    assert script.rows("shop", "t") == Counter({(1, 1, 1): 1, (2, 2, 21): 1, (5, 3, 3): 1, (4, None, 4): 1})


# ---- renamed columns

RENAMED = {"id": "int", "x": "int", "v": "int"}
RENAMES = {
    "rename": ddl("ALTER TABLE t RENAME COLUMN w TO x", 200, table="t"),
    "change": ddl("ALTER TABLE t CHANGE w x INT NOT NULL DEFAULT 7", 200, table="t"),
    "structure": ddl("ALTER TABLE t CHANGE w x INT", 200, table="t", columns=RENAMED, key=KEY),
}
WITH_X = insert(190, id=3, w=3, v=3), update(210, id=2, x=20, v=20), insert(230, id=4, x=4, v=4)
BOTH = Counter({(1, 1, None, 1): 1, (2, 2, 20, 20): 1, (3, 3, None, 3): 1, (4, None, 4, 4): 1})
TAKEN_OVER = Counter({(1, 1, 1): 1, (2, 20, 20): 1, (3, 3, 3): 1, (4, 4, 4): 1})


@pytest.mark.sampled
@pytest.mark.parametrize("clause", RENAMES)
@pytest.mark.parametrize("together", [True, False])
def test_the_old_column_stays_next_to_the_new_one(script: Script, clause: str, together: bool) -> None:
    script.policy = {"on_rename_column": "keep"}
    script.send(RENAMES[clause], WITH_X[0])
    if not together:
        script.sync()
    script.send(*WITH_X[1:])
    script.sync()
    assert columns(script) == ["id", "w", "x", "v"]
    script.policy = {}
    assert contents(script) == 3 * [BOTH]


@pytest.mark.sampled
@pytest.mark.parametrize("clause", RENAMES)
@pytest.mark.parametrize(("answer", "expected"), [(Answer.APPLY, TAKEN_OVER), (Answer.DENY, BOTH)])
def test_a_rename_of_a_column_waits_for_a_decision(
    script: Script, clause: str, answer: Answer, expected: Counter[Any]
) -> None:
    script.policy = {"on_rename_column": "ask"}
    script.send(RENAMES[clause], *WITH_X)
    script.sync()
    assert state_of(script, "t") == ("parked", "apply.approval_required")
    assert [item.policy for item in script.waiting("t")] == ["on_rename_column"]
    assert script.rows("shop", "t") == BEFORE
    decide_twice(script, answer)
    assert contents(script) == 3 * [expected]


def test_a_statement_that_two_policies_ask_about_waits_for_both(script: Script) -> None:
    script.policy = {"on_rename_column": "ask", "on_drop_column": "ask"}
    script.send(ddl("ALTER TABLE t DROP COLUMN v, RENAME COLUMN w TO x", 200, table="t"), insert(210, id=3, x=3))
    script.sync()
    assert [item.policy for item in script.waiting("t")] == ["on_drop_column", "on_rename_column"]
    script.decide("t", Answer.DENY)
    assert state_of(script, "t") == ("parked", "apply.approval_required")
    script.decide("t", Answer.APPLY)
    assert columns(script) == ["id", "x", "v"]
    assert contents(script) == 3 * [Counter({(1, 1, 1): 1, (2, 2, 2): 1, (3, 3, None): 1})]


def test_a_rename_of_a_column_is_refused_until_another_policy_is_stated(script: Script) -> None:
    script.policy = {"on_rename_column": "fail"}
    script.send(RENAMES["rename"], *WITH_X)
    with pytest.raises(DataError, match="RENAME COLUMN of a table whose on_rename_column is fail"):
        script.sync()
    script.policy = {}
    script.sync()
    assert contents(script) == 3 * [TAKEN_OVER]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ALTER TABLE t RENAME COLUMN id TO x", "is part of the key"),
        ("ALTER TABLE t CHANGE w v INT, CHANGE v w INT", "another column has its name now"),
    ],
)
def test_a_renamed_column_that_cannot_stay_parks_the_table(script: Script, text: str, reason: str) -> None:
    script.policy = {"on_rename_column": "keep"}
    script.send(ddl(text, 200, table="t"))
    script.sync()
    (state,) = script.states.values()
    assert state.state == "parked"
    assert reason in state.reason
    assert script.rows("shop", "t") == BEFORE


def columns(script: Script) -> list[str]:
    return DeltaTable(str(script.root / "shop" / "t")).to_pyarrow_table().column_names


# ---- columns that only rows show to be gone


def typed(record: Record) -> Record:
    """Return a row of table t with the types of its columns, as a converter with ``schemas.enable=true`` writes it."""
    payload = json.loads(record.value or b"")
    fields = [{"type": "int32", "optional": name != "id", "field": name} for name in payload["after"]]
    sides = [{"type": "struct", "fields": fields, "optional": True, "field": side} for side in ("before", "after")]
    schema = {"type": "struct", "fields": sides, "optional": False, "name": "src.shop.t.Envelope"}
    return replace(record, value=json.dumps({"schema": schema, "payload": payload}).encode())


@pytest.fixture
def untold(log: Log, lake: Path) -> Script:
    """Return a table with two rows, of which no statement says anything."""
    script = Script(log, lake, schema_topic=None)
    script.send(typed(insert(110, id=1, w=1, v=1)), typed(insert(120, id=2, w=2, v=2)))
    script.sync()
    return script


def demand_untold(script: Script, expected: Counter[Any]) -> None:
    """Demand a content that also a rebuild and a late row give."""
    assert script.rows("shop", "t") == expected
    script.send(typed(insert(115, id=9, w=9, v=9)))
    script.sync()
    late = (9, 9, 9) if len(next(iter(expected))) == 3 else (9, 9)
    assert script.rows("shop", "t") == expected + Counter([late])
    shutil.rmtree(script.root / "shop" / "t")
    script.sync(rebuild=Rebuild(["shop.t"]))
    assert script.rows("shop", "t") == expected + Counter([late])
    assert state_of(script, "t") == ("ok", "")


@pytest.mark.sampled
@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize(
    ("value", "answer", "expected"),
    [
        ("apply", None, GOES),
        ("keep", None, STAYS),
        ("ask", Answer.APPLY, GOES),
        ("ask", Answer.DENY, STAYS),
        ("fail", None, GOES),
    ],
)
def test_a_column_that_rows_do_not_have_any_more(
    untold: Script, value: str, answer: Answer | None, expected: Counter[Any], together: bool
) -> None:
    untold.policy = {"on_drop_column": value}
    news = [typed(record) for record in AFTER]
    untold.send(*news[:2])
    if not together and value != "fail":
        untold.sync()
    untold.send(*news[2:])
    if value == "fail":
        with pytest.raises(DataError, match="DROP COLUMN of a table whose on_drop_column is fail"):
            untold.sync()
        untold.policy = {"on_drop_column": "apply"}
    untold.sync()
    if answer is not None:
        assert state_of(untold, "t") == ("parked", "apply.approval_required")
        assert untold.rows("shop", "t") == BEFORE
        assert [(item.policy, item.statement) for item in untold.waiting("t")] == [("on_drop_column", "DROP COLUMN")]
        untold.decide("t", answer)
    demand_untold(untold, expected)
    assert untold.waiting("t") == []
