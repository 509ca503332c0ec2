# SPDX-License-Identifier: Apache-2.0
"""Resolve the changes of a table without key: each adds one of several equal rows, or takes one away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.contradictions import GapWitness, Verification
from airflow_provider_cdc.core.apply.later_rows import typed_later
from airflow_provider_cdc.core.apply.merge_plan import MergeStep, OpenRemovals
from airflow_provider_cdc.core.apply.ordered_changes import Changes
from airflow_provider_cdc.core.apply.partial_images import StoredRows, laid_over
from airflow_provider_cdc.core.apply.row_copies import without_copies
from airflow_provider_cdc.core.apply.row_sets import group_numbers, having_keys, left_after_netting, row_digests
from airflow_provider_cdc.core.apply.row_typing import RowTyper
from airflow_provider_cdc.core.apply.sequence_gaps import TRANSACTION
from airflow_provider_cdc.core.apply.source_order import moments_of
from airflow_provider_cdc.core.apply.typed_rows import TypedRows
from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.values.fields import KEYLESS_SNAPSHOT_ROW


@dataclass(frozen=True, slots=True)
class KeylessRows:
    """The changes of one step of a table without key.

    :param row_indexes: of its rows.
    :param last: schema version of its end.
    :param clear: whether the rows stored before are gone.
    :param later: whether rows are typed when they are written.
    :param earlier: removals of earlier batches that have found no row, under the schema of ``last``.
    :param base_position: newest position that the stored rows went through.
    """

    typer: RowTyper
    row_indexes: IntArray
    last: int
    clear: bool
    later: bool
    earlier: OpenRemovals | None
    base_position: str


def of_rows_without_key(keyless: KeylessRows) -> MergeStep:
    """Return the step of a table without key."""
    typer, row_indexes, last, clear = keyless.typer, keyless.row_indexes, keyless.last, keyless.clear
    earlier, base_position = keyless.earlier, keyless.base_position
    row_indexes, _ = without_copies(typer.changes, row_indexes, typer.flags("applied"), typer.wire)
    added = typer.changes.are("snapshot", "insert", "update", rows=row_indexes)
    removed = typer.changes.are("delete", "update", rows=row_indexes)
    schema, none = typer.timeline.versions[last].schema, typer.mapper.nothing(last)
    if keyless.later and not removed.any() and earlier is None:
        rows = typed_later(typer, row_indexes[added], last, partial=False)
        as_typed = partial(_positions_as_typed, typer.changes, row_indexes[added])
        return MergeStep(last, schema, clear, none, none, as_typed, later=rows)
    adds = typer.typed(row_indexes[added], "after", last, partial=typer.wire.partial_images)
    removes = typer.typed(row_indexes[removed], "before", last)
    # binlog_row_image=MINIMAL writes the whole row before where there is no key, and of the row after what changed
    adds, removes = laid_over(typer, adds, removes).in_target(), removes.in_target()
    stay = left_of_multiset(typer, adds, removes, typer.mapper.forms(last), earlier, base_position)
    adds_left, removes_left, open_left = np.split(stay, np.cumsum([adds.rows.num_rows, removes.rows.num_rows]))
    added_rows, removed_rows = adds.row_indexes[adds_left], removes.row_indexes[removes_left]
    netted, positions = not stay.all(), typer.changes.rows.column("position")
    return MergeStep(
        last,
        schema,
        clear,
        adds.rows.filter(pa.array(adds_left)) if netted else adds.rows,
        removes.rows.filter(pa.array(removes_left)) if netted else removes.rows,
        lambda: positions.take(pa.array(added_rows)),
        netted=int((~removes_left).sum()),
        open_until=partial(_open_until, positions, removed_rows, base_position),
        open=None if earlier is None else earlier.take(np.flatnonzero(open_left)),
        settled=int((~open_left).sum()),
    )


def witness_of_gaps(keyless: KeylessRows, verification: Verification | None, stored: StoredRows) -> GapWitness | None:
    """Return what notes the gaps of a step, None where nothing is compared.

    :param stored: returns rows from before the step that have some values, maybe among others.
    """
    if verification is None:
        return None
    typer, lacks = keyless.typer, partial(_row_lacked, keyless, stored, verification.lacked)
    applied, base = typer.flags("applied"), keyless.base_position
    return GapWitness(typer, keyless.row_indexes, None, applied, base, verification, lacks=lacks)


def _row_lacked(keyless: KeylessRows, stored: StoredRows, known: str, changes: IntArray) -> str:
    """Return a row which shows that a snapshot was read before changes that happened while its rows were written.

    It sees transactions in the order of their commits, each whole: it has none of the changes where it lacks a row that
    the first transaction adds, and no later change takes that row away, also of those that are read in later batches.
    Columns that a tool writes in several forms do not count.

    :param known: what changes of earlier batches returned.
    :param changes: indexes of their rows, ascending.
    :return: as of ``Proof.lacked``; empty where the snapshot may have the changes.
    """
    typer, last, mapper = keyless.typer, keyless.last, keyless.typer.mapper
    snapshot = keyless.row_indexes[typer.changes.are("snapshot", rows=keyless.row_indexes)]
    adding = _of_first_transaction(typer.changes, changes)
    with typer.aside():
        added = typer.typed(adding[typer.changes.are("insert", "update", rows=adding)], "after", last).rows
        removed = typer.typed(changes[typer.changes.are("delete", "update", rows=changes)], "before", last).rows
        read = typer.typed(snapshot, "after", last).rows
    names = mapper.forms(last).without(added.select([c.name for c in mapper.columns(last) if c.id >= 0 and not c.mark]))
    version = typer.timeline.versions[last].position
    if not names:
        return ""
    if known.startswith(f"{version} "):
        taken = {f"{version} {digest.hex()}" for digest in row_digests(removed.select(names)).to_pylist()}
        return "" if known in taken else known
    there = [read, removed]
    if not keyless.clear:
        there.append(stored(added.select([n for n in names if not added.column(n).null_count] or names)))
    lacked = added.select(names).filter(
        pa.array(~having_keys(added, pa.concat_tables([rows.select(names) for rows in there]), names))
    )
    return "".join(f"{version} {digest.hex()}" for digest in row_digests(lacked.slice(0, 1)).to_pylist())


def _of_first_transaction(changes: Changes, some: IntArray) -> IntArray:
    """Return the changes of the transaction of the first of some; that one alone where no record names it."""
    if TRANSACTION not in changes.rows.column_names:
        return some[:1]
    transactions = changes.rows.column(TRANSACTION).take(pa.array(some))
    same = pc.fill_null(pc.equal(transactions, transactions[0]), False).to_numpy()
    first: IntArray = some[same | (some == some[0])]
    return first


def _open_until(positions: pa.ChunkedArray, removed_rows: IntArray, base_position: str) -> pa.Array:
    """Return of each removed row the newest position that a row which it removes can have."""
    own = positions.take(pa.array(removed_rows)).combine_chunks()
    return pc.if_else(pc.less(own, base_position), base_position, own)


def _positions_as_typed(changes: Changes, row_indexes: IntArray) -> pa.ChunkedArray:
    """Return the positions of rows in the order in which :func:`typed_later` types them."""
    order = np.concatenate([*changes.images["after"].portions(row_indexes)])
    return changes.rows.column("position").take(pa.array(order))


def left_of_multiset(
    typer: RowTyper,
    adds: TypedRows,
    removes: TypedRows,
    forms: ValueForms,
    earlier: OpenRemovals | None,
    base_position: str,
) -> BoolArray:
    """Return which rows added, rows removed, and removals of earlier batches are left.

    A removal takes an equal row that was added before it. Removals that come late take what was added until the newest
    position that the stored rows went through: a later removal may have taken theirs.
    """
    rows, count = [adds.rows, removes.rows, *([] if earlier is None else [earlier.rows])], adds.rows.num_rows
    row_indexes = np.concatenate([adds.row_indexes, removes.row_indexes])
    fills = np.arange(sum(some.num_rows for some in rows)) < count
    stay: BoolArray = np.ones(len(fills), dtype=bool)
    if not count or fills.all():
        return stay
    positions, of_changes = typer.changes.rows.column("position"), 2 * moments_of(typer.changes.rows, typer.wire)
    moments = np.r_[of_changes[row_indexes], np.zeros(len(fills) - len(row_indexes), dtype=np.int64)]
    late = bool(removes.rows.num_rows) and positions[int(removes.row_indexes[0])].as_py() < base_position
    if typer.wire.order == "exact" and (late or earlier is not None):
        ends, in_order = np.r_[-1, of_changes + 1], np.array(positions)
        removing = slice(count, len(row_indexes))
        moments[removing] = np.maximum(moments[removing], ends[np.searchsorted(in_order, base_position, "right")])
        if earlier is not None:
            moments[len(row_indexes) :] = ends[np.searchsorted(in_order, np.array(earlier.positions), "right")]
    stay = left_after_netting(group_numbers(pa.concat_tables(rows).columns), fills, moments)
    snapshot = typer.changes.are("snapshot", rows=row_indexes)
    some = np.flatnonzero(stay[: len(row_indexes)] & (snapshot | ~fills[: len(row_indexes)]))
    if forms and snapshot[some].any() and not snapshot[some].all():
        same = forms.in_one_form(pa.concat_tables(rows).take(pa.array(some)))
        stay[some] = left_after_netting(group_numbers(same.columns), fills[some], moments[some])
    return stay


def without_passed_over(typer: RowTyper, row_indexes: IntArray, snapshots: Sequence[str]) -> IntArray:
    """Leave out, and count, rows of snapshots of a table without key that do not state all of its rows.

    They are of snapshots that were asked for while changes were streamed. They look like rows that are already there.
    An incremental snapshot of such a table has one row for each chunk (recorded: Debezium 3.5).

    :param snapshots: positions of those that do: of the one that the content begins with, empty for the table's first
        schema, then of later ones.
    """
    if typer.wire.snapshot_rows != "shared":
        return row_indexes
    changes, begins = typer.changes, [snapshots[0] or typer.timeline.versions[0].position, *snapshots[1:]]
    positions = changes.rows.column("position").take(pa.array(row_indexes))
    elsewhere = pc.invert(pc.is_in(positions, pa.array(begins, pa.string()))).to_numpy()
    passed_over = changes.are("incremental", rows=row_indexes) | (changes.are("snapshot", rows=row_indexes) & elsewhere)
    if count := int(passed_over.sum()):
        typer.lossy[KEYLESS_SNAPSHOT_ROW] = typer.lossy.get(KEYLESS_SNAPSHOT_ROW, 0) + count
    content_rows: IntArray = row_indexes[~passed_over]
    return content_rows
