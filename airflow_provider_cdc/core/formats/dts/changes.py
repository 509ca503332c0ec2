# SPDX-License-Identifier: Apache-2.0
"""Convert entries of Tencent DTS to changes, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.common.change_builder import binlog_positions
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Records
from airflow_provider_cdc.core.formats.dts.columns import ColumnLists
from airflow_provider_cdc.core.formats.dts.entries import Entries, counted
from airflow_provider_cdc.core.formats.dts.images import Problem
from airflow_provider_cdc.core.formats.dts.notices import Notices
from airflow_provider_cdc.core.formats.dts.values import offsets_of
from airflow_provider_cdc.core.formats.generated.dts_pb2 import MessageType
from airflow_provider_cdc.core.model.change import Kind, Op

# what entries are, by the numbers of their message types
_KINDS: list[tuple[str, str | None]] = [
    (Kind.TRANSACTION, Op.BEGIN),
    (Kind.TRANSACTION, Op.COMMIT),
    (Kind.ROW, None),
    (Kind.SCHEMA, None),
    (Kind.TRANSACTION, Op.ROLLBACK),
    (Kind.PROGRESS, None),  # HEARTBEAT
    (Kind.PROGRESS, None),  # CHECKPOINT
    (Kind.IGNORED, None),
    (Kind.ERROR, None),
]
_IGNORED, _ERROR = len(_KINDS) - 2, len(_KINDS) - 1  # what a notice is
_ROW_OPS: list[str | None] = [Op.INSERT, Op.UPDATE, Op.DELETE]  # by the numbers of DMLType


class Changes:
    """The changes of some groups' entries, one after the other.

    :param items: list of ``Entry`` of each group.
    :param lists: takes the lists of columns.
    :param utc: whether TIMESTAMP texts are in UTC.
    """

    def __init__(self, items: pa.ListArray, lists: ColumnLists, *, utc: bool) -> None:
        self._entries = entries = Entries(items, lists)
        self._lists = lists
        before, after, refused, count = [pa.array([], pa.string())], [pa.array([], pa.string())], {}, 0
        for rows in entries.row_changes():
            images = rows.images(utc=utc)
            before.append(images[0])
            after.append(images[1])
            refused.update({count + row: problem for row, problem in rows.problems.items()})
            count += len(images[0])
        self._before, self._after = pa.concat_arrays(before), pa.concat_arrays(after)
        counts = entries.rows
        each = np.where(counts > 0, counts, 1)
        self._entry: Any = np.repeat(np.arange(len(entries)), each)
        self._rows = np.flatnonzero((counts > 0)[self._entry])  # the changes that are rows
        within = counted(each)
        self._number = _before(each, entries.group)[self._entry] + within
        self._row_in_event = (
            _before(np.where(_placed(entries), each, 0), entries.group, entries.sequence)[self._entry] + within
        )
        self._problems = {int(self._rows[row]): problem for row, problem in refused.items()}
        firsts = np.cumsum(each) - each
        self._problems.update({int(firsts[entry]): problem for entry, problem in entries.problems.items()})

    def sizes(self, groups: int) -> Any:
        """Return the number of changes of each of so many groups."""
        return np.bincount(self._entries.group[self._entry], minlength=groups)

    def problems(self) -> list[tuple[int, int, Problem, tuple[str | None, str | None]]]:
        """Return what could not be carried: group, number of the change in it, why, and database and table of a row."""
        group = self._entries.group[self._entry]
        return [
            (int(group[i]), int(self._number[i]), problem, self._table_of(int(self._entry[i])))
            for i, problem in sorted(self._problems.items())
        ]

    def _table_of(self, entry: int) -> tuple[str | None, str | None]:
        entries = self._entries
        if entries.type[entry] != MessageType.DML:  # a statement may be about other tables than the one it names
            return None, None
        database, table = entries.database[entry].as_py(), entries.table[entry].as_py()
        return (database, table) if database and table else (None, None)

    def batch(self, records: Records, record_of_group: Any, notices: Notices) -> pa.RecordBatch:
        """Return the changes without problems, and the notices among them where they belong.

        :param record_of_group: the record of each group, in ``records``.
        """
        there: Any = np.ones(len(self._entry), bool)
        there[list(self._problems)] = False
        valid = np.flatnonzero(there)
        noticed, numbers, is_error = notices.locations()
        record = np.r_[record_of_group[self._entries.group[self._entry[valid]]], noticed]
        number = np.r_[self._number[valid], numbers]
        change, notice = (
            np.r_[valid, np.full(len(noticed), -1)],
            np.r_[np.full(len(valid), -1), np.arange(len(noticed))],
        )
        code = np.r_[np.full(len(valid), -1), np.where(is_error, _ERROR, _IGNORED)]
        if len(noticed):
            order = np.lexsort((number, record))
            record, number, change, notice, code = (column[order] for column in (record, number, change, notice, code))
        at = pa.array(record)
        arrays = {
            "topic": pa.repeat(pa.scalar(records.topic), len(record)),
            "partition": pa.repeat(pa.scalar(records.partition, pa.int32()), len(record)),
            "offset": pa.array(records.offsets, pa.int64()).take(at),
            "index": pa.array(number, pa.int32()),
            "kafka_time": pa.array(records.timestamps, pa.int64()).take(at).cast(pa.timestamp("ms", "UTC")),
            **self._of_entries(change),
            **self._of_rows(change, code),
        }
        for name, column in notices.columns(notice).items():
            arrays[name] = pc.coalesce(arrays[name].cast(pa.string()), column) if name in arrays else column
            if name in ("database", "table"):
                arrays[name] = arrays[name].dictionary_encode()
        nothing = {field.name: pa.nulls(len(record), field.type) for field in CHANGE_SCHEMA if field.name not in arrays}
        return pa.RecordBatch.from_arrays(
            [{**nothing, **arrays}[name] for name in CHANGE_SCHEMA.names], schema=CHANGE_SCHEMA
        )

    def _of_entries(self, change: Any) -> dict[str, pa.Array]:
        """Return the columns that all changes of an entry have alike.

        :param change: numbers of changes, negative where there is none.
        """
        entry = pa.array(_with_none(self._entry)[change], mask=change < 0)
        entries = self._entries
        time = pa.array(entries.time * 1_000_000, mask=entries.time == 0)
        columns = {
            "database": entries.database.dictionary_encode(),
            "table": entries.table.dictionary_encode(),
            "source_time": time.cast(pa.timestamp("us", "UTC")),
            "transaction_id": entries.transaction(),
        }
        if entries.has_ddl:
            columns["statement"] = pa.array(entries.statement, pa.string())
            columns["default_database"] = pa.array(entries.default_database, pa.string())
        return {name: column.take(entry) for name, column in columns.items()}

    def _of_rows(self, change: Any, code: Any) -> dict[str, pa.Array]:
        """Return the columns in which rows differ from other changes.

        :param change: numbers of changes, negative where there is none; ``code`` says then what stands there.
        """
        entries = self._entries
        entry = _with_none(self._entry)[change]
        kind = np.where(change < 0, code, _with_none(entries.type)[entry])
        is_row = kind == MessageType.DML
        row: Any = np.full(len(self._entry) + 1, -1)
        row[self._rows] = np.arange(len(self._rows))
        image = np.where(is_row, row[change], -1)
        op = np.where(is_row, len(_KINDS) + _with_none(entries.op)[entry], kind)
        row_in_event = _with_none(self._row_in_event)[change]
        is_placed = is_row | (kind == MessageType.DDL)
        texts = pa.array(self._lists.texts, pa.string())
        lists = pa.array(_with_none(entries.list)[entry], pa.int32(), mask=~is_row)
        return {
            "kind": _words([kind for kind, _ in _KINDS], kind),
            "op": _words([op for _, op in _KINDS] + _ROW_OPS, op),
            "position": _positions(_with_none(entries.sequence)[entry], row_in_event, is_placed),
            "before": _spread(self._before, image),
            "after": _spread(self._after, image),
            "columns": pa.DictionaryArray.from_arrays(lists, texts),
        }


def _spread(texts: pa.Array, row_indices: Any) -> pa.Array:
    """Return the texts at some places, null where a place is negative."""
    there = row_indices >= 0
    if not np.array_equal(row_indices[there], np.arange(len(texts))):
        return texts.take(pa.array(row_indices, mask=~there))
    # all of them in their order: the texts stay where they are, with nulls between them
    offsets = offsets_of(texts)[np.append(0, np.cumsum(there))]
    there[there] = texts.is_valid().to_numpy(zero_copy_only=False)
    buffers = [pa.array(there).buffers()[1], pa.py_buffer(offsets), texts.buffers()[2]]
    return pa.Array.from_buffers(pa.string(), len(row_indices), buffers)


def _positions(sequence: Any, row_in_event: Any, is_placed: Any) -> pa.Array:
    file: Any = np.zeros(len(sequence), np.int64)
    positions = binlog_positions(file, np.where(is_placed, sequence, np.uint64(0)).astype(np.int64), row_in_event)
    return pc.if_else(pa.array(is_placed), positions, None)


def _with_none(column: Any) -> Any:
    """Return the column with something at the end, for -1 to take where there is none."""
    return np.append(column, column.dtype.type(0))


def _placed(entries: Entries) -> Any:
    """Return which entries have a place in the source's order: rows and DDL."""
    return (entries.type == MessageType.DML) | (entries.type == MessageType.DDL)


def _words(words: Sequence[str | None], codes: Any) -> pa.Array:
    """Return words by number."""
    distinct = list(dict.fromkeys(word for word in words if word is not None))
    numbers = np.array([-1 if word is None else distinct.index(word) for word in words], np.int32)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=numbers < 0), pa.array(distinct, pa.string()))


def _before(counts: Any, *marks: Any) -> Any:
    """Return for each entry the sum of the counts of those before it that stand together and bear the same marks."""
    total = np.cumsum(counts) - counts
    begins: Any = np.ones(len(counts), bool)
    if len(counts):
        begins[1:] = np.any([mark[1:] != mark[:-1] for mark in marks], axis=0)
    start = np.maximum.accumulate(np.where(begins, np.arange(len(counts)), 0))
    return total - total[start]
