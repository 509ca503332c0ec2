# SPDX-License-Identifier: Apache-2.0
"""Convert Canal's entries and rows to changes: one for each row, other entry, and record without entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.canal.entries import (
    ERROR,
    IGNORED,
    KINDS,
    OPS,
    ROW,
    ROW_EVENTS,
    SCHEMA,
    Meanings,
)
from airflow_provider_cdc.core.formats.canal.packets import Entries, entry_bytes
from airflow_provider_cdc.core.formats.canal.rows import Rows
from airflow_provider_cdc.core.formats.canal.statements import changes_one_table
from airflow_provider_cdc.core.formats.common.change_builder import RAW_LIMIT, binlog_positions

_KINDS = [kind.value for kind in KINDS]
_OPS = [op.value for op in OPS]


def changes_of(
    values: Sequence[bytes | None], entries: Entries, rows: Rows, meaning: Meanings, texts: Sequence[str]
) -> pa.Table:
    """Return the changes of some records: columns of ``CHANGE_SCHEMA`` and ``record``, the index of the record.

    :param texts: the distinct ``columns`` texts.
    """
    order = _Order(len(values), entries, meaning)
    ddl = order.kind == SCHEMA
    placed = order.is_row | ddl
    op, millis = order.numbers(meaning.ops), order.numbers(entries.millis)
    session = pc.if_else(pc.equal(entries.session, ""), entries.schemas, entries.session)
    position = [order.numbers(meaning.files), order.numbers(entries.offsets), order.numbers(_bases(entries, meaning))]
    position[2] = np.where(order.is_row, position[2] + order.nth, 0)
    tables = pc.if_else(pc.equal(entries.tables, ""), pa.scalar(None, pa.string()), entries.tables)
    names = {
        "database": order.of_entries(entries.schemas.dictionary_encode(), placed),
        "table": order.of_entries(tables.dictionary_encode(), placed),
    }
    errors = _errors(values, entries, meaning, order)
    for name in names if errors else ():
        names[name] = pc.coalesce(names[name].cast(pa.string()), errors.pop(name)).dictionary_encode()
    return pa.table(
        {
            "record": pa.array(order.record),
            "index": pa.array(order.number, pa.int32()),
            "kind": pa.DictionaryArray.from_arrays(pa.array(order.kind, pa.int32()), _KINDS),
            "op": pa.DictionaryArray.from_arrays(pa.array(op, pa.int32(), mask=order.lone | (op < 0)), _OPS),
            **names,
            "position": binlog_positions(*(pa.array(numbers, pa.int64(), mask=~placed) for numbers in position)),
            "source_time": pa.array(millis * 1000, mask=order.lone | (millis == 0)).cast(pa.timestamp("us", "UTC")),
            "transaction_id": order.of_entries(entries.transactions, ~order.lone),
            "before": order.of_rows(rows.before),
            "after": order.of_rows(rows.after),
            "columns": pa.DictionaryArray.from_arrays(
                order.of_rows(pa.array(rows.columns, pa.int32())), pa.array(texts, pa.string())
            ),
            "statement": order.of_entries(entries.sql, ddl),
            "default_database": order.of_entries(session, ddl),
            **errors,
        }
    )


class _Order:
    """The changes in order.

    :ivar record: index of the record; ``number`` counts the changes of each.
    :ivar lone: whether a change stands for a whole record and not for an entry.
    :ivar nth: counts the changes of an entry.
    """

    def __init__(self, records: int, entries: Entries, meaning: Meanings) -> None:
        refused: BoolArray = np.zeros(records, bool)
        refused[list(entries.problems)] = True
        units = np.where(meaning.kinds == ROW, entries.counts, 1)
        units[refused[entries.record]] = 0
        full: BoolArray = np.zeros(records, bool)
        full[entries.record[units > 0]] = True
        empty = np.flatnonzero(~full)
        self._count = len(entries.kind)
        owner = np.concatenate([entries.record, empty])
        units = np.concatenate([units, np.ones(len(empty), np.int64)])
        kinds = np.concatenate([meaning.kinds, np.where(refused[empty], ERROR, IGNORED)])
        order = np.argsort(owner, kind="stable")
        unit_of_change: IntArray = np.repeat(order, units[order])
        self.record: IntArray = owner[unit_of_change]
        self.number, self.nth = _counted(self.record), _counted(unit_of_change)
        self.kind: IntArray = kinds[unit_of_change]
        self.is_row: BoolArray = self.kind == ROW
        self.lone: BoolArray = unit_of_change >= self._count
        self.entry: IntArray = np.minimum(unit_of_change, self._count)
        self._rows: IntArray = self.numbers(np.cumsum(entries.counts) - entries.counts) + self.nth

    def numbers(self, values: IntArray) -> IntArray:
        """Return numbers of entries as numbers of changes, 0 for those without entry."""
        selected: IntArray = np.append(values, 0)[self.entry]
        return selected

    def of_entries(self, values: pa.Array, selected: BoolArray) -> pa.Array:
        """Return values of entries as values of changes, null where not chosen."""
        if pa.types.is_string(values.type) and not selected.any():
            return pa.nulls(len(selected), values.type)
        return values.take(pa.array(self.entry, mask=~selected))

    def of_rows(self, values: pa.Array) -> pa.Array:
        """Return values of rows as values of changes, null where a change is not a row."""
        if len(values) == len(self._rows) and self.is_row.all():
            return values
        return values.take(pa.array(self._rows, mask=~self.is_row))


def _counted(values: IntArray) -> IntArray:
    """Return how often each value stood before in its run of equal ones."""
    indices = np.arange(len(values))
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    counts: IntArray = indices - np.repeat(starts, np.diff(starts, append=len(values)))
    return counts


def _bases(entries: Entries, meaning: Meanings) -> IntArray:
    """Return the number of each entry's first row in its binlog event.

    With ``partitionHash`` each row is an entry of its own, all with the event's position: their count goes on
    (docs/wire/canal.md 5.1).
    """
    selected = np.flatnonzero(meaning.kinds == ROW)
    counts = entries.counts[selected]
    before = np.cumsum(counts) - counts
    marks = np.stack([entries.record[selected], meaning.files[selected], entries.offsets[selected]])
    starts = np.flatnonzero(np.any(np.diff(marks, prepend=-2), axis=0))
    bases: IntArray = np.zeros(len(entries.kind), np.int64)
    bases[selected] = before - np.repeat(before[starts], np.diff(starts, append=len(selected)))
    return bases


def _errors(values: Sequence[bytes | None], entries: Entries, meaning: Meanings, order: _Order) -> dict[str, pa.Array]:
    """Return the columns of error changes, with the table of each where that is known; none without errors."""
    indices = np.flatnonzero(order.kind == ERROR).tolist()
    if not indices:
        return {}
    kinds = dict.fromkeys(("error_code", "error", "database", "table"), pa.string()) | {"raw": pa.binary()}
    columns: dict[str, list[Any]] = {name: [None] * len(order.kind) for name in kinds}
    for index in indices:
        record, entry = int(order.record[index]), int(order.entry[index])
        if order.lone[index]:
            problem, raw = entries.problems[record], values[record] or b""
            about = np.flatnonzero(entries.record == record).tolist()
        else:
            number = entry - int(np.searchsorted(entries.record, record))
            problem, raw, about = meaning.errors[entry], entry_bytes(values[record] or b"", number), [entry]
        columns["error_code"][index], columns["error"][index] = problem
        columns["database"][index], columns["table"][index] = _only_table(entries, about)
        columns["raw"][index] = bytes(raw[:RAW_LIMIT])
    return {name: pa.array(columns[name], kind) for name, kind in kinds.items()}


def _only_table(entries: Entries, about: Sequence[int]) -> tuple[str | None, str | None]:
    """Return the one table whose rows these entries change, nothing where it may be several or a schema change."""
    tables = set()
    for entry in about:
        statement = "" if entries.counts[entry] else entries.sql[entry].as_py()
        if entries.event[entry] not in ROW_EVENTS or (statement and not changes_one_table(statement)):
            return None, None
        tables.add((entries.schemas[entry].as_py(), entries.tables[entry].as_py()))
    (database, table) = tables.pop() if len(tables) == 1 else ("", "")
    return (database, table) if database and table else (None, None)
