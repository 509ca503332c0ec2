"""Canal's entries and rows to changes: one a row, one for each other entry, one for a record without entries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
from airflow_provider_cdc.core.formats.canal.packets import Entries, Flags, Numbers, entry_bytes
from airflow_provider_cdc.core.formats.canal.rows import Rows
from airflow_provider_cdc.core.formats.canal.statements import changes_one_table
from airflow_provider_cdc.core.formats.change_columns import RAW_LIMIT, binlog_positions

_KINDS = pa.array([kind.value for kind in KINDS])
_OPS = pa.array([op.value for op in OPS])


def changes_of(
    values: Sequence[bytes | None], entries: Entries, rows: Rows, meaning: Meanings, texts: Sequence[str]
) -> pa.Table:
    """Return the changes of some records: columns of ``CHANGE_SCHEMA`` and ``record``, the place of the record.

    :param texts: the distinct ``columns`` texts.
    """
    order = _Order(len(values), entries, meaning)
    ddl = order.kind == SCHEMA
    placed = order.is_row | ddl
    op, millis = order.numbers(meaning.ops), order.numbers(entries.millis)
    session = pc.if_else(pc.equal(entries.session, ""), entries.schemas, entries.session)
    place = [order.numbers(meaning.files), order.numbers(entries.offsets), order.numbers(_bases(entries, meaning))]
    place[2] = np.where(order.is_row, place[2] + order.nth, 0)
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
            "position": binlog_positions(*(pa.array(numbers, pa.int64(), mask=~placed) for numbers in place)),
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

    :ivar record: place of the record; ``number`` counts the changes of each.
    :ivar lone: whether a change stands for a whole record and not for an entry.
    :ivar nth: counts the changes of an entry.
    """

    def __init__(self, records: int, entries: Entries, meaning: Meanings) -> None:
        refused: Flags = np.zeros(records, bool)
        refused[list(entries.problems)] = True
        units = np.where(meaning.kinds == ROW, entries.counts, 1)
        units[refused[entries.record]] = 0
        full: Flags = np.zeros(records, bool)
        full[entries.record[units > 0]] = True
        empty = np.flatnonzero(~full)
        self._count = len(entries.kind)
        owner = np.concatenate([entries.record, empty])
        units = np.concatenate([units, np.ones(len(empty), np.int64)])
        kinds = np.concatenate([meaning.kinds, np.where(refused[empty], ERROR, IGNORED)])
        order = np.argsort(owner, kind="stable")
        places: Numbers = np.repeat(order, units[order])
        self.record: Numbers = owner[places]
        self.number, self.nth = _counted(self.record), _counted(places)
        self.kind: Numbers = kinds[places]
        self.is_row: Flags = self.kind == ROW
        self.lone: Flags = places >= self._count
        self.entry: Numbers = np.minimum(places, self._count)
        self._rows: Numbers = self.numbers(np.cumsum(entries.counts) - entries.counts) + self.nth

    def numbers(self, values: Numbers) -> Numbers:
        """Return numbers of entries as numbers of changes, 0 for those without entry."""
        chosen: Numbers = np.append(values, 0)[self.entry]
        return chosen

    def of_entries(self, values: pa.Array, chosen: Flags) -> pa.Array:
        """Return values of entries as values of changes, null where not chosen."""
        if pa.types.is_string(values.type) and not chosen.any():
            return pa.nulls(len(chosen), values.type)
        return values.take(pa.array(self.entry, mask=~chosen))

    def of_rows(self, values: pa.Array) -> pa.Array:
        """Return values of rows as values of changes, null where a change is no row."""
        if len(values) == len(self._rows) and self.is_row.all():
            return values
        return values.take(pa.array(self._rows, mask=~self.is_row))


def _counted(values: Numbers) -> Numbers:
    """Return how often each value stood before in its run of equal ones."""
    places = np.arange(len(values))
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    counts: Numbers = places - np.repeat(starts, np.diff(starts, append=len(values)))
    return counts


def _bases(entries: Entries, meaning: Meanings) -> Numbers:
    """Return the number of each entry's first row in its binlog event.

    With ``partitionHash`` each row is an entry of its own, all with the event's place: they are counted on
    (docs/wire/canal.md 5.1).
    """
    chosen = np.flatnonzero(meaning.kinds == ROW)
    counts = entries.counts[chosen]
    before = np.cumsum(counts) - counts
    marks = np.stack([entries.record[chosen], meaning.files[chosen], entries.offsets[chosen]])
    starts = np.flatnonzero(np.any(np.diff(marks, prepend=-2), axis=0))
    bases: Numbers = np.zeros(len(entries.kind), np.int64)
    bases[chosen] = before - np.repeat(before[starts], np.diff(starts, append=len(chosen)))
    return bases


def _errors(values: Sequence[bytes | None], entries: Entries, meaning: Meanings, order: _Order) -> dict[str, pa.Array]:
    """Return the columns of error changes, with the table that each is about if it tells one; none without errors."""
    places = np.flatnonzero(order.kind == ERROR).tolist()
    if not places:
        return {}
    kinds = dict.fromkeys(("error_code", "error", "database", "table"), pa.string()) | {"raw": pa.binary()}
    columns: dict[str, list[Any]] = {name: [None] * len(order.kind) for name in kinds}
    for place in places:
        record, entry = int(order.record[place]), int(order.entry[place])
        if order.lone[place]:
            problem, raw = entries.problems[record], values[record] or b""
            about = np.flatnonzero(entries.record == record).tolist()
        else:
            number = entry - int(np.searchsorted(entries.record, record))
            problem, raw, about = meaning.errors[entry], entry_bytes(values[record] or b"", number), [entry]
        columns["error_code"][place], columns["error"][place] = problem
        columns["database"][place], columns["table"][place] = _only_table(entries, about)
        columns["raw"][place] = bytes(raw[:RAW_LIMIT])
    return {name: pa.array(columns[name], kind) for name, kind in kinds.items()}


def _only_table(entries: Entries, about: Sequence[int]) -> tuple[str | None, str | None]:
    """Return the one table whose rows these entries change, nothing where it may be several or a schema change."""
    found = set()
    for entry in about:
        statement = "" if entries.counts[entry] else entries.sql[entry].as_py()
        if entries.event[entry] not in ROW_EVENTS or (statement and not changes_one_table(statement)):
            return None, None
        found.add((entries.schemas[entry].as_py(), entries.tables[entry].as_py()))
    (database, table) = found.pop() if len(found) == 1 else ("", "")
    return (database, table) if database and table else (None, None)
