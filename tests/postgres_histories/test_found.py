# SPDX-License-Identifier: Apache-2.0
"""The smallest histories of mistakes that random ones results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.histories.log import Log
from tests.histories.place import lake_folder
from tests.histories.tools import Style
from tests.postgres_histories.ddl_statements import (
    AddColumn,
    Create,
    CreateAs,
    Drop,
    DropColumn,
    Rename,
    SetIdentity,
)
from tests.postgres_histories.kinds import KINDS
from tests.postgres_histories.replay import PgCase, PgReplay
from tests.postgres_histories.row_statements import Delete, Insert, Truncate, Update
from tests.postgres_histories.server import Column, Statement
from tests.postgres_histories.steps import Blocking, Close, Commit, ForgetDdl, Open, Restart, Snapshot, Step

T, COPY, OTHER = ("app", "t"), ("app", "copy"), ("app", "other")
COLUMNS = (Column(1, "id", KINDS["integer"], notnull=True), Column(2, "v", KINDS["text"]))
MADE = Create(T, COLUMNS, (1,))
KEYLESS = Create(T, COLUMNS, ())


def problems(
    monkeypatch: pytest.MonkeyPatch,
    *steps: Step,
    snapshot_after: int,
    logs_ddl: bool,
    batches: int = 1,
    ends: Sequence[int] = (),
    cuts: tuple[dict[str, int], ...] = (),
    on_unseen: str = "ask",
    snapshot_dies: bool = False,
    transactions: bool = True,
    partitions: int = 1,
    partition: int = 0,
) -> list:
    """Replay a history and return what is wrong.

    :param ends: instead of ``batches``: up to where each batch reads one partition of the rows of T.
    :param cuts: the same of all partitions.
    """
    log = Log()
    log.install(monkeypatch)
    style = Style(
        partitions=partitions,
        snapshot_after=snapshot_after,
        snapshot_dies=snapshot_dies,
        transactions=transactions,
    )
    cuts = cuts or tuple({"pg.ctl.ddl_log/0": 3, f"pg.app.t/{partition}": end} for end in ends)
    case = PgCase(1, steps, style, batches=batches, ends=cuts, logs_ddl=logs_ddl, on_unseen=on_unseen)
    with lake_folder() as lake:
        replay = PgReplay(case, log, Path(lake))
        results = replay.run()
        assert results or not replay.parked, replay.parked
        return results


@pytest.mark.parametrize("kind", ["always", "lost"])
@pytest.mark.parametrize("batches", [1, 3])
def test_a_full_snapshot_settles_a_table_that_only_rows_showed(
    kind: str, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (Commit((MADE,)), Commit((Insert(T, ({"id": 1, "v": "a"},)),)), Snapshot(kind))
    assert problems(monkeypatch, *steps, snapshot_after=0, logs_ddl=False, batches=batches) == []


@pytest.mark.parametrize("batches", [1, 2])
def test_a_table_made_of_a_query_begins_with_its_rows_in_the_first_transaction_behind_a_snapshot(
    batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # no commit was seen before it: each of its changes has a first place of its own
    rows = tuple({"id": number, "v": str(number)} for number in range(3))
    steps = (Commit((MADE,)), Commit((Insert(T, rows),)), Commit((CreateAs(COPY, T),)))
    assert problems(monkeypatch, *steps, snapshot_after=2, logs_ddl=True, batches=batches) == []


@pytest.mark.parametrize("taken", [CreateAs(T, COPY), Rename(OTHER, T)])
def test_a_renamed_table_gives_back_rows_that_came_under_its_old_name_before_the_ddl_of_the_next(
    taken: Statement, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Insert(T, ({"id": 1, "v": "a"},)), Insert(OTHER, ({"id": 2, "v": "a"},))
    made = (Commit((MADE,)), Commit((Create(OTHER, COLUMNS, (1,)),)), Commit(rows))
    history = (*made, Commit((Rename(T, COPY),)), Commit((taken,)), Commit((Insert(T, ({"id": 7, "v": "b"},)),)))
    cuts = ({"pg.ctl.ddl_log/0": 5, "pg.app.t/0": 2},)
    assert problems(monkeypatch, *history, snapshot_after=2, logs_ddl=True, cuts=cuts) == []


@pytest.mark.parametrize("logs_ddl", [True, False])
@pytest.mark.parametrize("batches", [1, 4])
def test_a_full_snapshot_that_is_taken_again_at_its_place_counts_once(
    batches: int, logs_ddl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # rows of a table without key all look like others of it, and logged DDL is read a second time
    rows = tuple({"id": number // 2, "v": "a"} for number in range(6))
    steps = (Commit((KEYLESS,)), Commit((Insert(T, rows),)), Snapshot("always"), Commit((Insert(T, rows[:1]),)))
    settings = {"snapshot_after": 2, "logs_ddl": logs_ddl, "batches": batches}
    assert problems(monkeypatch, *steps, **settings, snapshot_dies=True, partitions=2) == []


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_equal_rows_of_one_copy_all_count_and_those_that_are_sent_again_do_not(
    batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alike = tuple({"id": number // 3, "v": "a"} for number in range(6))
    copies = [Commit((Insert(T, alike[:count], copy=True),)) for count in (2, 4, 6)]
    steps = (Commit((KEYLESS,)), *copies[:2], Restart(1), copies[2], Restart(3))
    settings = {"snapshot_after": 1, "logs_ddl": True, "batches": batches}
    assert problems(monkeypatch, *steps, **settings, transactions=False, partitions=2) == []


@pytest.mark.parametrize("logs_ddl", [True, False])
@pytest.mark.parametrize("ends", [(), range(4, 17)], ids=["one batch", "a batch each"])
@pytest.mark.parametrize("kind", ["blocking", "always"])
def test_changes_that_were_not_read_when_a_snapshot_was_taken_do_not_contradict_its_rows(
    kind: str, ends: Sequence[int], logs_ddl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = tuple({"id": number, "v": "a"} for number in range(4))
    unread = tuple(
        Commit((statement,), reads=False)
        for statement in (
            Update(T, (0,), {"v": "b"}),
            Insert(T, ({"id": 7, "v": "c"},)),
            Update(T, (0,), {"v": "d"}),
            Delete(T, (1,)),
            Delete(T, (3,)),
            Insert(T, ({"id": 1, "v": "e"},)),
        )
    )
    snapshot = (Blocking((T,), unread),) if kind == "blocking" else (*unread, Snapshot(kind))
    made = Commit((Create(T, COLUMNS, (1,), "f"),))
    read = Commit((Insert(T, ({"id": 9, "v": "a"},)),))
    steps = (made, Commit((Insert(T, rows),)), read, *snapshot, Commit((Update(T, (2,), {"v": "f"}),)))
    assert problems(monkeypatch, *steps, snapshot_after=2, logs_ddl=logs_ddl, ends=ends) == []


OTHERS = (COLUMNS[0], Column(2, "w", KINDS["bigint"]))


@pytest.mark.parametrize(
    ("recreated", "batches"),
    [
        ([(Drop(T), MADE)], 1),
        ([(Drop(T), MADE, Insert(T, ({"id": 5, "v": "c"},)))], 6),
        ([(Drop(T),), (Create(T, OTHERS, (1,)),), (Insert(T, ({"id": 5, "w": 1},)),)], 6),
        ([(Rename(T, COPY), Update(COPY, (0,), {"v": "c"}))], 1),
    ],
)
def test_a_table_that_was_made_again_before_a_snapshot_on_its_slot_has_no_rows_of_the_one_before(
    recreated: Sequence[tuple[Statement, ...]], batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the snapshot has read the DDL, which is streamed behind rows of the first table
    before = tuple(Commit((Insert(T, ({"id": number, "v": "a"},)),), reads=number < 2) for number in range(4))
    changes = tuple(Commit(statements, reads=False) for statements in recreated)
    history = (Commit((MADE,)), *before, *changes, Snapshot("always"))
    assert problems(monkeypatch, *history, snapshot_after=1, logs_ddl=True, batches=batches) == []


@pytest.mark.parametrize(
    ("altered", "batches"),
    [
        ((AddColumn(T, "x", KINDS["integer"], (5,)), Insert(T, ({"id": 5, "v": "c", "x": 1},))), 6),
        ((Rename(T, COPY), MADE, Insert(T, ({"id": 5, "v": "c"},))), 1),
        ((Rename(T, ("app", "away")), Rename(COPY, T), Rename(("app", "away"), COPY), Delete(T, (0,))), 6),
    ],
)
def test_a_table_that_changed_before_a_snapshot_on_its_slot_waits_for_the_next_one(
    altered: tuple[Statement, ...], batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = (Commit((Create(COPY, COLUMNS, (1,)),)), Commit((Insert(COPY, ROWS),)))
    before = tuple(Commit((Insert(T, ({"id": number, "v": "a"},)),), reads=number < 2) for number in range(4))
    history = (Commit((MADE,)), *(other if Rename(COPY, T) in altered else ()), *before)
    history = (*history, Commit(altered, reads=False), Snapshot("always"))
    again = (Commit((Insert(T, FRESH),)), Snapshot("always"))
    settings = {"snapshot_after": 1, "logs_ddl": True, "batches": batches}
    with pytest.raises(AssertionError, match="a snapshot has read a change"):
        problems(monkeypatch, *history, **settings)
    assert problems(monkeypatch, *history, *again, **settings) == []


@pytest.mark.parametrize("logs_ddl", [True, False])
@pytest.mark.parametrize("ends", [(), (3, 5), range(3, 8)], ids=["one batch", "three", "a batch each"])
def test_a_column_that_goes_and_comes_back_has_no_value_of_before(
    ends: Sequence[int], logs_ddl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = Commit((AddColumn(T, "x", KINDS["integer"]),))
    steps = (
        Commit((MADE,)),
        Commit((Insert(T, tuple({"id": number, "v": "a"} for number in range(3))),)),
        added,
        Commit((Update(T, (0, 1, 2), {"x": 5}),)),
        Commit((DropColumn(T, "x"),)),
        Commit((Update(T, (0,), {"v": "b"}),)),
        added,
        Commit((Update(T, (1,), {"v": "c"}),)),
    )
    settings = {"snapshot_after": 2, "logs_ddl": logs_ddl, "ends": ends, "on_unseen": "apply"}
    assert problems(monkeypatch, *steps, **settings, partitions=2 if not ends else 1) == []


@pytest.mark.parametrize("first", [0, 1])
def test_a_column_whose_first_row_is_read_late_is_there_from_that_row_on(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = (
        Commit((MADE,)),
        Commit((Insert(T, tuple({"id": number, "v": "a"} for number in range(8))),)),
        Commit((AddColumn(T, "x", KINDS["integer"]),)),
        *(Commit((Insert(T, ({"id": 10 + number, "v": "b", "x": number},)),)) for number in range(8)),
    )
    settings = {"snapshot_after": 2, "logs_ddl": False, "on_unseen": "apply", "partitions": 2}
    assert problems(monkeypatch, *steps, **settings, ends=(6,), partition=first) == []


@pytest.mark.parametrize("ends", [(), (1,), (1, 2)])
def test_a_truncate_of_a_table_that_nothing_else_shows_waits_for_nothing(
    ends: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = Commit((Create(COPY, COLUMNS, (1,)),))
    steps = (other, Commit((MADE,)), Commit((Truncate((T,)),)), Commit((Insert(T, ({"id": 1, "v": "a"},)),)))
    for history in (steps, steps[:3]):
        settings = {
            "snapshot_after": 2,
            "logs_ddl": False,
            "on_unseen": "apply",
            "ends": ends if history is steps else (),
        }
        assert problems(monkeypatch, *history, **settings) == []


MOVE = Commit((Update(T, (0,), {"id": 7}),))
UNREAD = replace(MOVE, reads=False)
AHEAD = Blocking((T,), (UNREAD,), moved=True)
INDEXED = (
    Commit((Create(T, (*COLUMNS, Column(3, "u", KINDS["integer"], notnull=True)), (1,), "i", 3),)),
    Commit((Insert(T, ({"id": 1, "v": "a", "u": 10}, {"id": 2, "v": "a", "u": 20})),)),
)


@pytest.mark.parametrize(
    ("move", "ends"),
    [(MOVE, ()), (MOVE, (2,)), (AHEAD, ()), (AHEAD, (2,))],
    ids=["the snapshot's batch", "a later one", "behind a blocking snapshot", "the same in a later batch"],
)
def test_a_key_that_moves_alone_under_an_index_contradicts_the_rows(
    move: Step, ends: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the update comes without the row before it, so the row stays under its old key, too
    with pytest.raises(AssertionError, match=r"apply\.contradicted"):
        problems(monkeypatch, *INDEXED, move, snapshot_after=2, logs_ddl=False, ends=ends)


@pytest.mark.parametrize(
    ("moves", "ends"),
    [((MOVE,), ()), ((AHEAD,), (2,)), ((AHEAD,), (4,)), ((UNREAD, Snapshot("always")), ()), ((), ())],
    ids=["a move", "behind a blocking snapshot", "behind one of an earlier batch", "behind a full one", "no move"],
)
def test_logged_ddl_shows_that_keys_may_move_alone(
    moves: Sequence[Step], ends: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AssertionError, match="REPLICA IDENTITY USING INDEX"):
        problems(monkeypatch, *INDEXED, *moves, snapshot_after=2, logs_ddl=True, ends=ends)


@pytest.mark.parametrize("batches", [1, 4])
def test_a_snapshot_behind_another_identity_makes_the_rows_known(batches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    identified = (*INDEXED, MOVE, Commit((SetIdentity(T, "d"),)))
    settings = {"snapshot_after": 2, "logs_ddl": True, "batches": batches}
    assert problems(monkeypatch, *identified, Snapshot("lost"), MOVE, **settings) == []
    with pytest.raises(AssertionError, match="REPLICA IDENTITY USING INDEX"):
        problems(monkeypatch, *identified, MOVE, **settings)


@pytest.mark.parametrize("batches", [1, 4])
def test_an_identity_that_a_snapshot_read_ahead_does_not_excuse_a_key_that_moved_before_it(
    batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread = tuple(
        Commit((one,), reads=False) for one in (Update(T, (0,), {"v": "b"}), *MOVE.statements, SetIdentity(T, "d"))
    )
    with pytest.raises(AssertionError, match="a snapshot has read a change of this table"):
        problems(monkeypatch, *INDEXED, *unread, Snapshot("always"), snapshot_after=2, logs_ddl=True, batches=batches)


@pytest.mark.parametrize("first", [0, 1])
def test_rows_deleted_before_a_full_snapshot_stay_away_when_their_deletes_are_read_late(
    first: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # the other partition is read up to the inserts that the connector sent again, and behind the snapshot only later
    rows = tuple({"id": number, "v": "a"} for number in range(8))
    later = tuple({"id": number, "v": "b"} for number in range(10, 18))
    deleted = Commit((Delete(T, tuple(range(7))),))
    history = (Commit((MADE,)), Commit((Insert(T, rows),)), Restart(1), deleted, Snapshot("always"))
    begin = {"pg.ctl.ddl_log/0": 3, "pg.app.t/0": 4, "pg.app.t/1": 4}
    settings = {"snapshot_after": 1, "logs_ddl": True, "partitions": 2}
    for until in (15, 17, 19):
        cuts = (begin, {**begin, f"pg.app.t/{first}": until})
        assert problems(monkeypatch, *history, Commit((Insert(T, later),)), **settings, cuts=cuts) == []


RESTORED = (
    Commit((MADE,)),
    ForgetDdl(),
    Commit((Insert(T, ({"id": 1, "v": "a"},)),), reads=False),
    Snapshot("restored"),
    Commit((Drop(T),)),
    Commit((Create(T, (COLUMNS[0], Column(2, "v", KINDS["bytea"])), (1,)),)),
)


def test_a_restored_server_shows_where_only_logged_ddl_is_of_the_log_before(monkeypatch: pytest.MonkeyPatch) -> None:
    assert problems(monkeypatch, *RESTORED, snapshot_after=1, logs_ddl=True) == []


def test_rows_of_a_restored_server_that_were_read_before_the_logged_ddl_are_of_no_clear_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(AssertionError, match=r"source\.generation_unclear"):
        problems(monkeypatch, *RESTORED, snapshot_after=1, logs_ddl=True, cuts=({"pg.app.t/0": 1},))


ROWS = tuple({"id": number, "v": "a"} for number in range(4))
FRESH, ALIKE = ({"id": 7, "v": "b"},), ({"id": 1, "v": "a"},)


# the snapshot lacks the first row because the second change took it away, which may be read in a later batch
CAME_AND_WENT = (Insert(T, FRESH), Delete(T, (5,)), Insert(T, ({"id": 8, "v": "c"},)))


@pytest.mark.parametrize("ends", [(), (2, 6), (12,)])
@pytest.mark.parametrize(
    "unread", [(Insert(T, FRESH),), (Delete(T, (1,)),), (Update(T, (0,), {"v": "b"}),), CAME_AND_WENT]
)
def test_a_table_without_key_that_changed_before_its_rows_were_read_is_not_ok(
    unread: tuple[Statement, ...], ends: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # the snapshot has the changes, which are streamed behind it
    made = (Commit((Create(T, COLUMNS, (), "f"),)), Commit((Insert(T, ROWS),)), Commit((Insert(T, ALIKE),)))
    changes = (Commit((one,), reads=False) for one in unread)
    history = (*made, *changes, Snapshot("always"), Commit((Insert(T, FRESH),)))
    with pytest.raises(AssertionError, match=r"no key decides it|row_not_found"):
        problems(monkeypatch, *history, snapshot_after=2, logs_ddl=False, ends=ends)


@pytest.mark.parametrize(
    ("first", "ends"),
    [
        ((Insert(T, FRESH),), ()),
        ((Insert(T, FRESH),), range(4, 13)),
        ((Delete(T, (3,)), Insert(T, (*ALIKE, *FRESH))), ()),  # the third change decides: a snapshot has all or none
    ],
)
def test_a_table_without_key_that_changes_while_its_rows_are_written_is_equal_where_these_lack_the_change(
    first: tuple[Statement, ...], ends: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    behind = (Update(T, (0,), {"v": "c"}), Delete(T, (1,)), Insert(T, ALIKE))
    history = (Commit((Create(T, COLUMNS, (), "f"),)), Commit((Insert(T, ROWS),)), Snapshot("lost", slow=True))
    changes = [Commit(first), *(Commit((one,)) for one in behind)]
    assert problems(monkeypatch, *history, *changes, snapshot_after=2, logs_ddl=False, ends=ends) == []


@pytest.mark.parametrize(("ends", "logs_ddl"), [((), True), ((9,), False), (range(4, 11), False)])
def test_a_transaction_that_is_open_across_the_place_of_a_snapshot_shows_as_another_log(
    ends: Sequence[int], logs_ddl: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_across = (Open(Update(T, (0,), {"v": "b"})), Snapshot("lost", across=True), Close())
    history = (Commit((MADE,)), Commit((Insert(T, ROWS),)), *open_across, Commit((Update(T, (0, 1), {"v": "c"}),)))
    assert problems(monkeypatch, *history, snapshot_after=2, logs_ddl=logs_ddl, ends=ends) == []


def test_a_table_is_not_ok_where_changes_of_such_a_transaction_are_on_another_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # no row of the snapshot is on the partition of the key 3, which shows no fall of places
    open_across = (Open(Insert(T, ({"id": 3, "v": "b"},))), Snapshot("lost", across=True), Close())
    history = (Commit((MADE,)), Commit((Insert(T, ROWS[:1]),)), *open_across, Commit((Update(T, (0,), {"v": "c"}),)))
    read_late, read_early = {"pg.ctl.ddl_log/0": 4, "pg.app.t/0": 3}, {"pg.ctl.ddl_log/0": 2, "pg.app.t/1": 1}
    for cuts in ((), (read_late,), (read_early,)):
        with pytest.raises(AssertionError, match=r"apply\.order_unknown"):
            problems(monkeypatch, *history, snapshot_after=2, logs_ddl=True, partitions=2, cuts=cuts)


@pytest.mark.parametrize("ends", [(), (4,), (2, 8)])
def test_a_row_that_changed_before_its_snapshot_was_taken_again_at_its_place_is_one_row(
    ends: Sequence[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # nothing but rows says that the key is the table's, and the second attempt is read in a later batch
    changes = (Update(T, (0,), {"v": "b"}), Delete(T, (1,)), Insert(T, ({"id": 1, "v": "c"},)))
    unread = tuple(Commit((one,), reads=False) for one in changes)
    history = (Commit((MADE,)), Commit((Insert(T, ROWS),)), *unread, Snapshot("always"))
    assert problems(monkeypatch, *history, snapshot_after=2, logs_ddl=False, ends=ends) == []
