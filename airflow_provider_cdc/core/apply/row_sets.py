# SPDX-License-Identifier: Apache-2.0
"""Compare rows for equality: group numbers, newest row of each key, multisets."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.apply.value_forms import ValueForms
from airflow_provider_cdc.core.arrays import BoolArray, IntArray

_OFFSETS_END = 1 << 31  # bytes: an array with 32-bit offsets cannot be longer
_BITS = {pa.float32(): pa.int32(), pa.float64(): pa.int64()}
_LARGE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}
_TABLE_RATIO = 2  # up to so many times as many numbers as rows are looked up in a table, which is faster than sorting
_NO_ROWS: IntArray = np.empty(0, dtype=np.int64)


def group_numbers(columns: Sequence[pa.Array | pa.ChunkedArray]) -> IntArray:
    """Return one number per row, equal exactly where all columns are equal (NULL equals NULL, -0.0 is not 0.0)."""
    if not columns:
        raise ValueError("rows without columns cannot be compared")
    numbers = _codes(columns[0])
    for column in columns[1:]:
        codes = _codes(column)
        # keep numbers small, so that combining never overflows
        numbers = _renumbered(numbers * (int(codes.max(initial=0)) + 1) + codes)
    return numbers


def _renumbered(numbers: IntArray) -> IntArray:
    """Return numbers without gaps, which are equal where these are."""
    if int(numbers.max(initial=0)) > _TABLE_RATIO * len(numbers):
        return np.unique(numbers, return_inverse=True)[1].astype(np.int64)
    used: BoolArray = np.zeros(int(numbers.max(initial=0)) + 1, dtype=bool)
    used[numbers] = True
    without_gaps: IntArray = (np.cumsum(used) - 1)[numbers]
    return without_gaps


def _codes(column: pa.Array | pa.ChunkedArray) -> IntArray:
    if len(column) == 0:
        return _NO_ROWS
    if isinstance(column, pa.ChunkedArray) and column.nbytes >= _OFFSETS_END and column.type in _LARGE:
        encoded = column.cast(_LARGE[column.type]).dictionary_encode()  # one dictionary for all chunks
        return np.concatenate([_filled(chunk) for chunk in encoded.chunks])
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_floating(array.type):
        array = array.view(_BITS[array.type])
    elif pa.types.is_nested(array.type):
        array = pa.array([None if value is None else repr(value) for value in array.to_pylist()], pa.string())
    return _filled(array.dictionary_encode())


def _filled(encoded: pa.DictionaryArray) -> IntArray:
    filled = pc.fill_null(encoded.indices.cast(pa.int64()), len(encoded.dictionary))
    codes: IntArray = filled.to_numpy(zero_copy_only=False)
    return codes


def row_digests(rows: pa.Table) -> pa.Array:
    """Return a digest of each row, the same in every process; two are equal where :func:`group_numbers` are.

    Rows of tables without key are compared across tasks: a digest has 16 bytes, and 128 bits rule out that different
    rows share one. Each takes 2 µs.
    """
    texts = []
    for column in rows.columns:
        text = _texts(column)
        # with its length before it, no text can be taken for the end of one column and the begin of the next
        length = pc.binary_length(text).cast(pa.string()).cast(pa.binary())
        texts.append(pc.fill_null(pc.binary_join_element_wise(length, text, b":"), b"-"))
    joined = pc.binary_join_element_wise(*texts, b"").to_pylist()
    return pa.array([hashlib.blake2b(row, digest_size=16).digest() for row in joined], pa.binary())


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each value as bytes, of different values different ones."""
    kind = column.type
    if pa.types.is_floating(kind):
        column = pa.chunked_array([chunk.view(_BITS[kind]) for chunk in column.chunks], _BITS[kind])
    elif pa.types.is_timestamp(kind):
        column = column.cast(pa.int64())
    elif pa.types.is_nested(kind):
        texts = [None if value is None else repr(value) for value in column.to_pylist()]
        column = pa.chunked_array([texts], pa.string())
    return column if pa.types.is_binary(column.type) else column.cast(pa.string()).cast(pa.binary())


def newest(groups: IntArray) -> IntArray:
    """Return the index of each group's last row, ascending."""
    if not len(groups):
        return _NO_ROWS
    # of several values assigned to one index numpy keeps the last
    last: IntArray = np.full(int(groups.max()) + 1, -1, dtype=np.int64)
    last[groups] = np.arange(len(groups))
    newest_rows: IntArray = np.sort(last[last >= 0])
    return newest_rows


def without_keys(content: pa.Table, keys: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the rows of ``content`` whose key columns ``names`` equal no row of ``keys``."""
    if not content.num_rows or not keys.num_rows:
        return content
    return content.filter(pa.array(~having_keys(content, keys, names)))


def numbers_among(rows: pa.Table, keys: pa.Table) -> IntArray:
    """Return of each row the number of its key among different keys, -1 where it is none of them.

    :param rows: have the columns of ``keys``, whose types count, maybe among others.
    """
    both = [
        pa.chunked_array([*keys.column(name).chunks, *rows.column(name).chunks], keys.schema.field(name).type)
        for name in keys.column_names
    ]
    groups = group_numbers(both)
    number_of: IntArray = np.full(int(groups.max(initial=0)) + 1, -1)
    number_of[groups[: keys.num_rows]] = np.arange(keys.num_rows)
    numbers: IntArray = number_of[groups[keys.num_rows :]]
    return numbers


def having_keys(content: pa.Table, keys: pa.Table, names: Sequence[str]) -> BoolArray:
    """Return of each row of ``content`` whether its key columns ``names`` equal some row of ``keys``."""
    if not content.num_rows or not keys.num_rows:
        none: BoolArray = np.zeros(content.num_rows, dtype=bool)
        return none
    having: BoolArray = np.ones(content.num_rows, dtype=bool)
    for name in names:  # to look for the values of the keys is several times as fast as to number those of all rows
        stored, asked_for = _comparable(content.column(name)), _comparable(keys.column(name))
        having &= pc.is_in(stored, value_set=asked_for).to_numpy()
    if len(names) == 1 or not having.any():
        return having
    candidates = content.select(names).filter(pa.array(having))
    joined = [
        pa.chunked_array([*candidates.column(n).chunks, *keys.column(n).chunks], keys.schema.field(n).type)
        for n in names
    ]
    groups = group_numbers(joined)
    is_asked_for: BoolArray = np.zeros(int(groups.max()) + 1, dtype=bool)
    is_asked_for[groups[candidates.num_rows :]] = True
    having[having] = is_asked_for[groups[: candidates.num_rows]]
    return having


def each_known(rows: pa.Table, keys: pa.Table) -> BoolArray:
    """Return of each row whether its key columns each have a value that some key has there."""
    known: pa.ChunkedArray | None = None
    for name in keys.column_names:
        same = pc.is_in(rows.column(name), keys.column(name).combine_chunks())
        known = same if known is None else pc.and_(known, same)
    assert known is not None  # keys have columns
    mask: BoolArray = known.to_numpy()
    return mask


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values that are equal where :func:`group_numbers` are."""
    kind = column.type
    if pa.types.is_floating(kind):
        return pa.chunked_array([chunk.view(_BITS[kind]) for chunk in column.chunks], _BITS[kind])
    if pa.types.is_nested(kind):
        return pa.chunked_array([[None if value is None else repr(value) for value in column.to_pylist()]], pa.string())
    return column


def multiset_difference(content: pa.Table, removes: pa.Table, forms: ValueForms) -> tuple[pa.Table, pa.Table]:
    """Return the rows left of ``content``, and the removals that found no row; of equal rows one goes for each."""
    if not removes.num_rows:
        return content, removes
    goes, taken = matched(content, removes)
    content, removes = content.filter(pa.array(~goes)), removes.filter(pa.array(~taken))
    if not removes.num_rows or not forms:
        return content, removes
    goes, taken = matched_by_value(content, removes, forms)
    return content.filter(pa.array(~goes)), removes.filter(pa.array(~taken))


def matched(content: pa.Table, removes: pa.Table) -> tuple[BoolArray, BoolArray]:
    """Return which rows of ``content`` go, and which of ``removes`` takes one: of equal rows one goes for each."""
    groups = group_numbers(pa.concat_tables([content, removes]).columns)
    present, removing = groups[: content.num_rows], groups[content.num_rows :]
    count = int(groups.max(initial=0)) + 1
    # the n-th removal of a group takes the group's n-th row
    goes: BoolArray = numbers_in_groups(present) < np.bincount(removing, minlength=count)[present]
    taken: BoolArray = numbers_in_groups(removing) < np.bincount(present, minlength=count)[removing]
    return goes, taken


def matched_by_value(content: pa.Table, removes: pa.Table, forms: ValueForms) -> tuple[BoolArray, BoolArray]:
    """Return what :func:`matched` does of rows that differ at most in the forms of their values."""
    plain = forms.without(content)
    alike = having_keys(content, removes.select(plain), plain) if plain else np.ones(content.num_rows, dtype=bool)
    candidates = np.flatnonzero(alike)
    few = content.take(pa.array(candidates))
    goes: BoolArray = np.zeros(content.num_rows, dtype=bool)
    goes[candidates], taken = matched(forms.in_one_form(few), forms.in_one_form(removes))
    return goes, taken


def of_both_kinds(groups: IntArray, fills: BoolArray) -> BoolArray:
    """Return which events are of a group that has rows added and rows removed."""
    count = int(groups.max(initial=0)) + 1
    added, removed = (np.bincount(groups[some], minlength=count) > 0 for some in (fills, ~fills))
    flags: BoolArray = (added & removed)[groups]
    return flags


def left_after_netting(groups: IntArray, fills: BoolArray, moments: IntArray) -> BoolArray:
    """Return which events are left where a removal takes the newest equal row that was added before it, or with it.

    The removals left need a row that was there before all of them: one that is added later is another one. Of equal
    rows those added first are left, so that one may be what an earlier batch removed before it was read.

    :param groups: number of each event's row, the same for equal rows.
    :param fills: whether the event adds the row; otherwise it removes one.
    :param moments: numbers that rise with the events' order.
    """
    left: BoolArray = np.ones(len(groups), dtype=bool)
    some = np.flatnonzero(of_both_kinds(groups, fills))
    if not len(some):
        return left
    groups, fills = groups[some], fills[some]
    order = np.lexsort((~fills, moments[some], groups))
    ordered, adds = groups[order], fills[order]
    begins = np.r_[True, ordered[1:] != ordered[:-1]]
    steps = np.where(adds, 1, -1)
    balance = np.cumsum(steps)
    balance -= np.repeat((balance - steps)[begins], np.diff(np.r_[np.flatnonzero(begins), len(ordered)]))
    apart = (np.cumsum(begins) - 1) * (2 * len(ordered) + 2)  # so that no group reaches into another's minimum
    from_here = np.minimum.accumulate((balance + apart)[::-1])[::-1] - apart
    up_to_here = np.minimum.accumulate(np.minimum(balance - steps, 0) - apart) + apart
    left[some[order]] = np.where(adds, from_here >= balance, balance < up_to_here)
    return left


def numbers_in_groups(groups: IntArray) -> IntArray:
    """Return for each row how many rows of its group stand before it."""
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(ordered) else _NO_ROWS
    lengths = np.diff(np.r_[starts, len(ordered)])
    numbers: IntArray = np.empty(len(groups), dtype=np.int64)
    numbers[order] = np.arange(len(ordered)) - np.repeat(starts, lengths)
    return numbers
