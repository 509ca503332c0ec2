# SPDX-License-Identifier: Apache-2.0
"""Examples of base states: the state of a table that a batch's changes go onto, and the changes that it needs.

The rule: rows that a table holds are right only if they went through every schema change and TRUNCATE below their
newest position. If one arrives late, the table goes back to the newest state before it and is resolved again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from airflow_provider_cdc.core.apply.stored_layout import StoredLayouts
from airflow_provider_cdc.core.config import RunPolicy, TableRules
from airflow_provider_cdc.core.documents import TableState
from airflow_provider_cdc.core.timeline.timeline import SchemaChange
from spark_jobs.driver.applied_rows import AppliedRows
from spark_jobs.driver.base_states import BaseStates, Start
from spark_jobs.driver.full_snapshots import FullSnapshots
from spark_jobs.driver.late_schema_changes import LateSchemaChanges
from spark_jobs.driver.table_groups import TableGroups, groups_by_name
from spark_jobs.lake.manifest import Manifest, RowGroup
from spark_jobs.tasks.table_task import Span
from tests.unit.spark_jobs.batches import (
    Batch,
    applied,
    history_of,
    position,
    rows,
    snapshot,
    statement,
    table_of,
    timelines,
)

CREATE = statement(100, "CREATE TABLE t (id INT PRIMARY KEY, v VARCHAR(20) NOT NULL)")
ADD = "ALTER TABLE t ADD COLUMN w INT"
NEW_KEY = "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (v)"

LAYOUTS = StoredLayouts(TableRules(), RunPolicy(), "debezium-json", {})
SNAPSHOTS = FullSnapshots(announced=True, full=False, keeps=lambda name: False)


class Planned:
    """Resolve one table in a batch from its base.

    :ivar start: what the planning decided.
    :ivar late: from where on rows come late, and the applied changes to compare them with.
    """

    def __init__(
        self,
        state: TableState | None,
        groups: Sequence[RowGroup],
        *,
        known: Sequence[SchemaChange] = (CREATE,),
        read: Sequence[SchemaChange] = (),
        earlier: Sequence[Batch] = (),
        table: str = "t",
    ) -> None:
        """Plan a batch.

        :param state: the table's state before it.
        :param groups: its row changes.
        :param known: statements of earlier batches.
        :param read: statements of this one.
        """
        was, now = timelines(known, read)
        seq = len(earlier) + 1
        history = history_of(earlier)
        by_table = TableGroups(now, groups_by_name(Manifest(list(groups), seq=seq)), history)
        late, applied = LateSchemaChanges(was, now, by_table, history), AppliedRows(by_table, history)
        starts = BaseStates(seq, by_table, late, applied, history, SNAPSHOTS, LAYOUTS)
        timeline = now.tables[table_of([*known, *read], table).table_id]
        spans = by_table.spans(timeline)
        self.changed_at = late.first_difference(timeline.table_id, state)
        self.start: Start = starts.start(timeline, state, spans, self.changed_at)
        self.late = applied.context(timeline, self.start.base, self.start.spans)

    @property
    def read(self) -> list[str]:
        """Return the files that the table is resolved from."""
        return files(self.start.spans)


def files(spans: Sequence[Span]) -> list[str]:
    return sorted(group.file for span in spans for group in span.groups)


def test_a_table_that_is_new_starts_from_nothing() -> None:
    new = rows("t", 110, 120)
    plan = Planned(None, [new], known=[], read=[CREATE])
    assert plan.start == Start(None, None, [Span([new], position(100), None)], ("", 0))


def test_a_table_starts_from_its_committed_state_and_reads_only_this_batch() -> None:
    old, new = rows("t", 110, 120), rows("t", 210, 220)
    state = applied([CREATE], "t", seq=1, pos=120)
    plan = Planned(state, [new], earlier=[Batch([old], [state])])
    assert (plan.start.base, plan.start.back_to, plan.read) == (state, None, [new.file])


def test_rows_that_arrived_before_their_create_table_are_read_from_the_change_log() -> None:
    early, new = rows("t", 110, 120), rows("t", 210, 220)
    plan = Planned(None, [new], known=[], read=[CREATE], earlier=[Batch([early])])
    assert (plan.start.base, plan.read) == (None, [early.file, new.file])


def test_a_table_that_was_parked_reads_the_batches_that_it_missed() -> None:
    held, missed, new = rows("t", 110, 120), rows("t", 210, 220), rows("t", 310, 320)
    state = applied([CREATE], "t", seq=1, pos=120)
    plan = Planned(state, [new], earlier=[Batch([held], [state]), Batch([missed])])
    assert (plan.start.base, plan.read) == (state, [missed.file, new.file])


def test_newer_rows_need_no_comparison_with_applied_ones() -> None:
    state = applied([CREATE], "t", seq=1, pos=120)
    plan = Planned(state, [rows("t", 130, 140)], earlier=[Batch([rows("t", 110, 120)], [state])])
    assert plan.late == (None, [])


def test_rows_that_arrive_late_are_compared_with_the_applied_changes_since_them() -> None:
    """A retry of the producer, a replayed range: row 115 may be older than what the table holds of its key."""
    first, second = rows("t", 101, 110), rows("t", 111, 190)
    states = [applied([CREATE], "t", seq=1, pos=110), applied([CREATE], "t", seq=2, pos=190)]
    plan = Planned(states[1], [rows("t", 115, 115)], earlier=[Batch([first], states[:1]), Batch([second], states[1:])])
    late_from, context = plan.late
    assert plan.start.base == states[1], "the table does not go back for them"
    assert (late_from, files(context)) == (position(115), [second.file])


def two_batches(known: Sequence[SchemaChange] = (CREATE,)) -> tuple[list[Batch], list[TableState]]:
    """Return two committed batches with rows up to 140 and 190."""
    states = [applied(known, "t", seq=1, pos=140), applied(known, "t", seq=2, pos=190, version=1)]
    return [Batch([rows("t", 110, 140)], states[:1]), Batch([rows("t", 141, 190)], states[1:])], states


def of_snapshot(file: str, last: int = 100, changes_from: int | None = None) -> RowGroup:
    """Return rows of the snapshot at 100, and behind them changes up to ``last``."""
    group = rows("t", 100, last, snapshots=[(100, 5000)], changes_from=changes_from)
    return replace(group, file=file)


@pytest.mark.parametrize(
    ("held", "fresh", "compared"),
    [
        (of_snapshot("held"), of_snapshot("fresh"), False),
        (of_snapshot("held"), of_snapshot("fresh", 130, 110), False),
        # an insert or a delete that has the position of the snapshot
        (of_snapshot("held"), of_snapshot("fresh", 130, 100), True),
        (of_snapshot("held", 100, 100), of_snapshot("fresh"), True),
        # another partition is further on: its changes count more than the row of the snapshot
        (of_snapshot("held", 130, 110), of_snapshot("fresh"), True),
        # the snapshot has the key's newest row
        (of_snapshot("held"), rows("t", 90, 130), True),
        # what an operator replays is also held
        (of_snapshot("held"), of_snapshot("held"), True),
    ],
    ids=["rows", "changes behind", "change in fresh", "change in held", "further on", "older", "replayed"],
)
def test_rows_of_one_snapshot_need_no_comparison_with_each_other(
    held: RowGroup, fresh: RowGroup, compared: bool
) -> None:
    """A snapshot of a large table comes in many batches, all of them at one position."""
    state = applied([CREATE], "t", seq=1, pos=int(held.max_position))
    plan = Planned(state, [fresh], earlier=[Batch([held], [state])])
    assert (plan.start.base, plan.read) == (state, [fresh.file])
    assert files(plan.late[1]) == (["held"] if compared else [])


def test_an_alter_that_arrives_late_takes_the_table_back_to_the_state_before_it() -> None:
    earlier, states = two_batches()
    plan = Planned(states[1], [rows("t", 210, 220)], read=[statement(150, ADD)], earlier=earlier)
    assert plan.start.back_to == position(150)
    assert plan.start.base == states[0]
    assert plan.read == ["t-141.parquet", "t-210.parquet"]


def test_a_table_without_a_state_before_a_late_alter_is_resolved_from_nothing() -> None:
    earlier, states = two_batches()
    plan = Planned(states[1], [rows("t", 210, 220)], read=[statement(120, ADD)], earlier=earlier)
    assert (plan.start.back_to, plan.start.base) == (position(120), None)
    assert plan.read == ["t-110.parquet", "t-141.parquet", "t-210.parquet"]


def test_a_rebuilt_table_goes_back_to_no_state_before_the_rebuild() -> None:
    """Its location may have been made again, with versions that begin at 0: those of older states are others."""
    earlier, _ = two_batches()
    rebuilt = replace(applied([CREATE], "t", seq=3, pos=190, version=0), rebuilt_seq=3)
    plan = Planned(rebuilt, [rows("t", 210, 220)], read=[statement(150, ADD)], earlier=[*earlier, Batch([], [rebuilt])])
    assert (plan.start.back_to, plan.start.base) == (position(150), None)
    assert plan.read == ["t-110.parquet", "t-141.parquet", "t-210.parquet"]


def test_an_alter_behind_all_applied_rows_is_not_late() -> None:
    earlier, states = two_batches()
    plan = Planned(states[1], [rows("t", 210, 220)], read=[statement(200, ADD)], earlier=earlier)
    assert (plan.changed_at, plan.start.back_to, plan.start.base) == (None, None, states[1])


def test_a_late_alter_of_another_table_concerns_only_that_one() -> None:
    earlier, states = two_batches()
    other = statement(50, "CREATE TABLE u (id INT)")
    read = [statement(150, "ALTER TABLE u ADD COLUMN w INT")]
    plan = Planned(states[1], [], known=[other, CREATE], read=read, earlier=earlier)
    assert (plan.changed_at, plan.start.base) == (None, states[1])


def test_a_truncate_among_the_rows_that_arrives_late_takes_the_table_back() -> None:
    earlier, states = two_batches()
    plan = Planned(states[1], [rows("t", 150, 150, truncates=[150])], earlier=earlier)
    assert (plan.start.back_to, plan.start.base) == (position(150), states[0])


def test_a_row_from_before_an_applied_change_of_the_key_takes_the_table_back() -> None:
    """Its key was the old one: it has to be resolved with the rows of that time, before the key changed."""
    known = [CREATE, statement(150, NEW_KEY)]
    earlier, states = two_batches(known)
    plan = Planned(states[1], [rows("t", 145, 145)], known=known, earlier=earlier)
    assert (plan.start.back_to, plan.start.base) == (position(150), states[0])
    assert plan.read == ["t-141.parquet", "t-145.parquet"]


def test_a_row_from_before_an_added_column_does_not_take_the_table_back() -> None:
    """An added column changes no stored value: the row is mapped to the newest columns instead."""
    known = [CREATE, statement(150, ADD)]
    earlier, states = two_batches(known)
    plan = Planned(states[1], [rows("t", 145, 145)], known=known, earlier=earlier)
    assert (plan.start.back_to, plan.start.base) == (None, states[1])


def test_a_table_remembers_that_it_has_to_go_back_while_it_waits() -> None:
    """The late ALTER came in a batch that could not be applied; this batch does not read it again."""
    known = [CREATE, statement(150, ADD)]
    earlier, states = two_batches()
    waits = replace(states[1], state="waiting", rewind_to=position(150))
    plan = Planned(waits, [rows("t", 210, 220)], known=known, earlier=earlier)
    assert (plan.start.back_to, plan.start.base) == (position(150), states[0])


def test_a_state_that_does_not_know_an_earlier_late_alter_is_not_a_base() -> None:
    """Both states hold nothing from 170 on but were made before the ALTER at 105 was known."""
    known = [CREATE, statement(105, ADD)]
    earlier, states = two_batches()
    earlier[1] = Batch([rows("t", 141, 160)], [replace(states[1], applied_position=position(160))])
    resolved_again = applied(known, "t", seq=3, pos=190, version=2)
    earlier.append(Batch([rows("t", 161, 190)], [resolved_again]))
    read = [statement(170, "ALTER TABLE t ADD COLUMN x INT")]
    plan = Planned(resolved_again, [], known=known, read=read, earlier=earlier)
    assert (plan.start.back_to, plan.start.base) == (position(170), None)
    assert plan.read == ["t-110.parquet", "t-141.parquet", "t-161.parquet"]


@pytest.mark.parametrize(("table", "span"), [("new", (position(300), None)), ("old", (position(100), position(300)))])
def test_rows_of_a_name_that_was_created_again_belong_to_the_table_of_their_position(
    table: str, span: tuple[str, str | None]
) -> None:
    drop, again = statement(300, "DROP TABLE t"), statement(300, "CREATE TABLE t (id INT PRIMARY KEY)")
    statements = [CREATE, drop, replace(again, order=301)]
    _, now = timelines([CREATE], statements[1:])
    group = rows("t", 250, 350)
    groups = TableGroups(now, groups_by_name(Manifest([group], seq=1)), history_of([]))
    ids = {"old": table_of([CREATE], "t").table_id, "new": table_of(statements, "t").table_id}
    assert groups.spans(now.tables[ids[table]]) == [Span([group], *span)]


def test_rows_under_an_earlier_name_of_a_table_are_its_rows() -> None:
    rename = statement(300, "RENAME TABLE t TO u")
    before, after = rows("t", 250, 299), rows("u", 301, 350)
    plan = Planned(None, [before, after], known=[], read=[CREATE, rename], table="u")
    assert plan.read == [before.file, after.file]


def snapshot_at(pos: int, sent: int) -> list[SchemaChange]:
    """Return what Debezium writes when it begins a snapshot: DROP and CREATE of each table."""
    drop, create = "DROP TABLE IF EXISTS t", CREATE.statement
    return [snapshot(pos, drop, sent=sent), replace(snapshot(pos, create, sent=sent), order=pos + 1)]


def test_a_new_snapshot_with_rows_of_the_table_replaces_its_content() -> None:
    earlier, states = two_batches()
    before, later = rows("t", 291, 299), rows("t", 301, 310)
    group = rows("t", 300, 300, snapshots=[(300, 5000)])
    plan = Planned(states[1], [before, group, later], read=snapshot_at(300, sent=4000), earlier=earlier)
    assert (plan.start.base, plan.start.snapshot) == (None, (position(300), 0))
    assert plan.read == [group.file, later.file], "what was before the snapshot is not read"


def test_a_snapshot_that_only_describes_tables_leaves_their_content() -> None:
    """As snapshot.mode=recovery does: statements, but no rows."""
    earlier, states = two_batches()
    later = rows("t", 301, 310)
    plan = Planned(states[1], [later], read=snapshot_at(300, sent=4000), earlier=earlier)
    assert (plan.start.base, plan.start.snapshot, plan.read) == (states[1], ("", 0), [later.file])
