# SPDX-License-Identifier: Apache-2.0
"""Changes that share a position: a snapshot's rows stand before what is streamed, and offsets order one partition.

Recorded with MariaDB 11.4, whose row events have no position of their own: Debezium gives all rows of a transaction the
place at which the transaction begins, and the first transaction after a snapshot that of the snapshot.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from tests.histories.debezium_records import TOPIC, ddl, row, snapshot_ddl
from tests.histories.log import Log
from tests.histories.records import Record
from tests.histories.scripted import Script
from tests.histories.ways import WAYS, resolved

pytestmark = pytest.mark.sampled

COLUMNS = {"id": "int", "v": "int"}
TABLES = {"k": (COLUMNS, ("id",)), "n": (COLUMNS, ())}
X = 100
FOUR = {"id": 4, "v": 4}


@pytest.fixture(params=WAYS)
def script(request: pytest.FixtureRequest, log: Log, lake: Path, monkeypatch: pytest.MonkeyPatch) -> Script:
    """Return a pipeline that resolves its tables in one of the ways that there are."""
    return Script(log, lake, policy=resolved(request.param, monkeypatch))


def snapshot(mark: str = "true", *, partition: int = 0, pos: int = X) -> list[Record]:
    """Return rows 1, 2 and 3 of both tables, as a snapshot reads them."""
    return [
        row("r", table, pos, {"id": number, "v": number}, key=key, mark=mark, partition=partition)
        for table, (_, key) in TABLES.items()
        for number in (1, 2, 3)
    ]


def changes(pos: int = X, *, partition: int = 0) -> list[Record]:
    """Return a transaction: row 1 is deleted, row 2 updated, row 4 added."""
    at = partial(row, pos=pos, partition=partition)
    return [
        record
        for table, (_, key) in TABLES.items()
        for record in (
            at("d", table, after=None, before={"id": 1, "v": 1}, key=key),
            at("u", table, after={"id": 2, "v": 20}, before={"id": 2, "v": 2}, key=key),
            at("c", table, after=FOUR, key=key),
        )
    ]


def demand_content(script: Script, *expected: tuple[int, int], tables: tuple[str, ...] = ("k", "n")) -> None:
    for table in tables:
        assert script.rows("shop", table) == Counter(expected), table
        assert script.states_of("shop", table) == ["ok"]


CHANGED = (2, 20), (3, 3), (4, 4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
@pytest.mark.parametrize("partition", [0, 1])
def test_the_first_changes_after_a_snapshot_count(script: Script, apart: bool, partition: int) -> None:
    script.send(*snapshot_ddl(X, TABLES), *snapshot())
    if apart:
        script.sync()
    script.send(*changes(partition=partition))
    script.sync()
    demand_content(script, *CHANGED)


@pytest.mark.parametrize("partition", [0, 2])
def test_they_count_where_rows_of_the_snapshot_are_read_after_them(script: Script, partition: int) -> None:
    script.send(*snapshot_ddl(X, TABLES), *snapshot(partition=1), *changes(partition=partition))
    script.held = {(f"{TOPIC}.shop.{table}", 1) for table in TABLES}
    script.sync()
    script.held = set()
    script.sync()
    demand_content(script, *CHANGED)


@pytest.mark.parametrize("partition", [0, 1])
def test_the_first_changes_after_a_chunk_of_an_incremental_snapshot_count(script: Script, partition: int) -> None:
    script.send(*snapshot_ddl(10, TABLES), *snapshot(pos=10))
    script.sync()
    script.send(*snapshot("incremental"), *changes(partition=partition))
    script.sync()
    demand_content(script, *CHANGED)


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
def test_the_first_changes_after_a_blocking_snapshot_count(script: Script, apart: bool) -> None:
    script.send(*snapshot_ddl(10, TABLES), *snapshot(pos=10), row("c", "k", 20, {"id": 9, "v": 9}, key=("id",)))
    script.sync()
    script.send(*snapshot())
    if apart:
        script.sync()
    script.send(*changes(partition=1))
    script.sync()
    demand_content(script, *CHANGED, (9, 9), tables=("k",))


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
def test_a_truncate_right_after_a_snapshot_empties_the_table(script: Script, apart: bool) -> None:
    script.send(*snapshot_ddl(X, TABLES), *snapshot())
    if apart:
        script.sync()
    script.send(*(row("t", table, X, None, partition=1) for table in TABLES))
    script.send(*(row("c", table, 200, FOUR, key=key) for table, (_, key) in TABLES.items()))
    script.sync()
    demand_content(script, (4, 4))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
@pytest.mark.parametrize("held", [False, True], ids=["rows-first", "statement-first"])
def test_rows_of_a_snapshot_have_the_columns_before_a_statement_at_its_position(
    script: Script, apart: bool, held: bool
) -> None:
    script.send(*snapshot_ddl(X, TABLES), *snapshot(partition=1))
    text = "ALTER TABLE {} ADD COLUMN w INT DEFAULT 7"
    wider = {**COLUMNS, "w": "int"}
    statements = [ddl(text.format(name), X, table=name, columns=wider, key=key) for name, (_, key) in TABLES.items()]
    if held:
        script.held = {(f"{TOPIC}.shop.{table}", 1) for table in TABLES}
        script.send(*statements)
    if apart:
        script.sync()
    script.held = set()
    script.send(*([] if held else statements))
    script.send(*(row("c", table, 200, {**FOUR, "w": 8}, key=key) for table, (_, key) in TABLES.items()))
    script.sync()
    for table in TABLES:
        assert script.rows("shop", table) == Counter([(1, 1, 7), (2, 2, 7), (3, 3, 7), (4, 4, 8)])


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
def test_the_rows_of_one_transaction_are_in_the_order_of_their_offsets(script: Script, apart: bool) -> None:
    """The transaction ends each key in another way: deleted after an update or an insert, or inserted again."""
    script.send(*snapshot_ddl(10, TABLES), *snapshot(pos=10))
    script.sync()
    at = partial(row, pos=X, key=("id",))
    script.send(
        at("u", "k", after={"id": 1, "v": 10}, before={"id": 1, "v": 1}),
        at("d", "k", after=None, before={"id": 2, "v": 2}),
        at("c", "k", after=FOUR),
    )
    if apart:
        script.sync()
    script.send(
        at("d", "k", after=None, before={"id": 1, "v": 10}),
        at("c", "k", after={"id": 2, "v": 20}),
        at("d", "k", after=None, before=FOUR),
    )
    script.sync()
    demand_content(script, (2, 20), (3, 3), tables=("k",))


def test_a_key_that_moves_to_another_partition_stays(script: Script) -> None:
    """``message.key.columns`` chooses the partition: delete and insert of one row have one position, on two of them."""
    script.send(*snapshot_ddl(10, TABLES), *snapshot(pos=10))
    script.sync()
    script.send(
        row("c", "k", X, {"id": 1, "v": 10}, key=("id",), partition=0),
        row("d", "k", X, None, before={"id": 1, "v": 1}, key=("id",), partition=1),
    )
    script.sync()
    demand_content(script, (1, 10), (2, 2), (3, 3), tables=("k",))


SAME = {"id": 5, "v": 5}


def numbered(op: str, number: int, *, partition: int = 0) -> Record:
    """Return a change of a transaction of MariaDB 11.4: its statements have one position, its changes numbers."""
    images = {"after": None, "before": SAME} if op == "d" else {"after": SAME}
    return row(op, "n", 200, **images, partition=partition, connector="mariadb", total_order=number)  # type: ignore[arg-type]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
@pytest.mark.parametrize("partition", [0, 1])
def test_equal_rows_of_two_statements_of_a_transaction_are_two(script: Script, apart: bool, partition: int) -> None:
    script.send(*snapshot_ddl(10, TABLES), *snapshot(pos=10), numbered("c", 1))
    if apart:
        script.sync()
    script.send(numbered("c", 2, partition=partition))
    script.sync()
    demand_content(script, (1, 1), (2, 2), (3, 3), (5, 5), (5, 5), tables=("n",))


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
def test_equal_rows_that_two_statements_of_a_transaction_remove_are_two(script: Script, apart: bool) -> None:
    three = [row("r", "n", 10, SAME, mark="true") for _ in range(3)]
    script.send(*snapshot_ddl(10, TABLES), *three, numbered("d", 1))
    if apart:
        script.sync()
    script.send(numbered("d", 2))
    script.sync()
    demand_content(script, (5, 5), tables=("n",))


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
def test_changes_of_a_transaction_that_are_sent_again_on_other_partitions_count_once(
    script: Script, apart: bool
) -> None:
    script.send(*snapshot_ddl(10, TABLES), *snapshot(pos=10), numbered("c", 1), numbered("c", 2, partition=1))
    if apart:
        script.sync()
    script.send(numbered("c", 1, partition=2), numbered("c", 2, partition=2))
    script.sync()
    demand_content(script, (1, 1), (2, 2), (3, 3), (5, 5), (5, 5), tables=("n",))


def built(op: str, milliseconds: int, *, partition: int = 0) -> Record:
    """Return such a change without a number: only when its record was built distinguishes it from an equal one."""
    images = {"after": None, "before": SAME} if op == "d" else {"after": SAME}
    more = {"connector": "mariadb", "partition": partition, "built": 1_800_000_000_000_000 + 1_000 * milliseconds}
    return row(op, "n", 200, **images, **more)  # type: ignore[arg-type]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "next-batch"])
@pytest.mark.parametrize("partition", [0, 1])
def test_without_numbers_equal_changes_that_were_built_in_one_go_all_count(
    script: Script, apart: bool, partition: int
) -> None:
    three = [row("r", "n", 10, SAME, mark="true") for _ in range(3)]
    first, second = ([built("d", start), built("d", start + 5), built("c", start + 9)] for start in (0, 90_000))
    script.send(*snapshot_ddl(10, TABLES), *three, *first[:1])
    if apart:
        script.sync()
    script.send(*first[1:])
    script.sync()
    demand_content(script, (5, 5), (5, 5), tables=("n",))
    script.send(*second, built("c", 90_011, partition=partition))  # sent again after a restart, and one more
    script.sync()
    demand_content(script, (5, 5), (5, 5), (5, 5), tables=("n",))
