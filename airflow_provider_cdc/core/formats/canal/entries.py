# SPDX-License-Identifier: Apache-2.0
"""Classify Canal's entries: rows, statements, marks, or nothing to apply (docs/wire/canal.md 4, 4.2, 10.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.arrays import BoolArray, IntArray
from airflow_provider_cdc.core.formats.canal.packets import Entries
from airflow_provider_cdc.core.formats.canal.rows import Rows
from airflow_provider_cdc.core.formats.canal.statements import changes_tables
from airflow_provider_cdc.core.formats.generated import canal_entry_pb2 as entry_pb2
from airflow_provider_cdc.core.model.change import Kind, Op
from airflow_provider_cdc.core.model.position import binlog_file_number

KINDS, OPS = list(Kind), list(Op)
ROW, SCHEMA, PROGRESS, TRANSACTION, IGNORED, ERROR = map(KINDS.index, KINDS)
_ROW_OPS = {entry_pb2.INSERT: Op.INSERT, entry_pb2.UPDATE: Op.UPDATE, entry_pb2.DELETE: Op.DELETE}
ROW_EVENTS = frozenset(_ROW_OPS)
_DDL = (
    entry_pb2.CREATE,
    entry_pb2.ALTER,
    entry_pb2.ERASE,
    entry_pb2.TRUNCATE,
    entry_pb2.RENAME,
    entry_pb2.CINDEX,
    entry_pb2.DINDEX,
)
# annotations of row changes begin so; all other statements are looked at one by one
_ANNOTATION = re.compile(r"\s*(?:INSERT|UPDATE|DELETE|REPLACE|SET)\b", re.IGNORECASE)

_STATEMENT = (
    "record.statement_format",
    "rows were changed by a statement, which cannot be applied: set binlog_format=ROW in the source",
)
_PARTIAL_JSON = (
    "record.partial_json",
    "a JSON column comes as a change to its former value; set binlog_row_value_options='' in the source",
)
_XA_ROLLBACK = (
    "record.xa_rollback",
    "a prepared XA transaction was rolled back; its rows were sent before and cannot be identified",
)
_NO_POSITION = (
    "record.without_position",
    "the record has no position in the source's log, like all records of TiCDC's protocol canal:"
    " let TiCDC write canal-json and read it with the format canal-json",
)


@dataclass(slots=True)
class Meanings:
    """One element an entry.

    :param kinds: place in :data:`KINDS`.
    :param ops: place in :data:`OPS`, -1 for none.
    :param files: number of the binlog file, -1 where the entry names none.
    :param errors: code and sentence of those of kind ``error``.
    """

    kinds: IntArray
    ops: IntArray
    files: IntArray
    errors: dict[int, tuple[str, str]] = field(default_factory=dict)


def meanings(entries: Entries, rows: Rows) -> Meanings:
    """Return what each entry is; adds to ``entries.problems`` what none can be."""
    count = len(entries.kind)
    result = Meanings(np.full(count, ERROR), np.full(count, -1), _file_numbers(entries.files))
    carrying = (entries.event >= 0) & (entries.counts > 0)
    _marks(entries, result)
    _statements(entries, result, (entries.event >= 0) & ~carrying)
    _rows(entries, rows, result, carrying)
    placed = np.isin(result.kinds, (ROW, SCHEMA))
    _refuse(entries, placed & ((result.files < 0) | (entries.offsets < 0)), _NO_POSITION)
    for index in np.flatnonzero((result.kinds == ERROR) & ~_known(result)):
        result.errors[int(index)] = ("record.unknown_kind", _unknown(entries, int(index)))
    return result


def _marks(entries: Entries, result: Meanings) -> None:
    for kind, op in ((entry_pb2.TRANSACTIONBEGIN, Op.BEGIN), (entry_pb2.TRANSACTIONEND, Op.COMMIT)):
        result.kinds[entries.kind == kind] = TRANSACTION
        result.ops[entries.kind == kind] = OPS.index(op)
    heartbeats = (entries.kind == entry_pb2.HEARTBEAT) | (entries.event == entry_pb2.MHEARTBEAT)
    result.kinds[heartbeats] = np.where(entries.millis[heartbeats] > 0, PROGRESS, IGNORED)
    result.kinds[(entries.kind == entry_pb2.GTIDLOG) | (entries.event == entry_pb2.GTID)] = IGNORED


def _statements(entries: Entries, result: Meanings, selected: BoolArray) -> None:
    """Classify row changes without rows."""
    if not selected.any():
        return
    stated = selected & (pc.binary_length(entries.sql).to_numpy(zero_copy_only=False) > 0)
    # DDL may come with isDdl false (docs/wire/canal.md 11.1)
    ddl: BoolArray = stated & (entries.is_ddl | np.isin(entries.event, _DDL))
    result.kinds[ddl] = SCHEMA
    queries = stated & ~ddl & (entries.event == entry_pb2.QUERY)
    result.kinds[queries] = IGNORED
    for index in np.flatnonzero(queries).tolist():
        statement = entries.sql[index].as_py()
        database = entries.session[index].as_py() or entries.schemas[index].as_py()
        if not _ANNOTATION.match(statement) and changes_tables(statement, database):
            result.kinds[index] = SCHEMA
    commits = stated & (entries.event == entry_pb2.XACOMMIT)
    result.kinds[commits] = TRANSACTION
    result.ops[commits] = OPS.index(Op.COMMIT)
    if commits.any():
        names = [text.removeprefix("XA COMMIT").strip() for text in entries.sql.filter(pa.array(commits)).to_pylist()]
        entries.transactions = pc.replace_with_mask(entries.transactions, pa.array(commits), pa.array(names))
    for refused, problem in (((entry_pb2.XAROLLBACK,), _XA_ROLLBACK), (tuple(_ROW_OPS), _STATEMENT)):
        for index in np.flatnonzero(stated & ~ddl & np.isin(entries.event, refused)).tolist():
            result.errors[index] = problem


def _rows(entries: Entries, rows: Rows, result: Meanings, selected: BoolArray) -> None:
    result.kinds[selected] = ROW
    for event_type, op in _ROW_OPS.items():
        result.ops[selected & (entries.event == event_type)] = OPS.index(op)
    owner = entries.of_rows()
    event = entries.event[owner]
    before = rows.before.is_valid().to_numpy(zero_copy_only=False)
    after = rows.after.is_valid().to_numpy(zero_copy_only=False)
    fits = before == np.isin(event, (entry_pb2.UPDATE, entry_pb2.DELETE))
    fits &= after == np.isin(event, (entry_pb2.INSERT, entry_pb2.UPDATE))
    wrong: BoolArray = np.zeros(len(selected), bool)
    wrong[owner[~fits | rows.malformed]] = True
    wrong |= pc.equal(entries.schemas, "").to_numpy(zero_copy_only=False)
    wrong |= pc.equal(entries.tables, "").to_numpy(zero_copy_only=False)
    wrong |= entries.is_ddl | (result.ops < 0)
    _refuse(entries, selected & wrong, ("record.malformed", "a row change without its table, or with unfit images"))
    for index in np.unique(owner[rows.partial_json & selected[owner]]).tolist():
        result.kinds[index], result.ops[index] = ERROR, -1
        result.errors[index] = _PARTIAL_JSON


def _refuse(entries: Entries, selected: BoolArray, problem: tuple[str, str]) -> None:
    for index in np.unique(entries.record[selected]).tolist():
        entries.problems.setdefault(index, problem)


def _known(result: Meanings) -> BoolArray:
    known: BoolArray = np.zeros(len(result.kinds), bool)
    known[list(result.errors)] = True
    return known


def _unknown(entries: Entries, index: int) -> str:
    if entries.event[index] < 0:
        return f"an entry of type {entries.kind[index]}"
    return f"a row change of type {entries.event[index]} with neither rows nor a known statement"


def _file_numbers(files: pa.StringArray) -> IntArray:
    names = files.dictionary_encode()
    numbers = np.array([_file_number(name) for name in names.dictionary.to_pylist()], np.int64)
    selected: IntArray = numbers[names.indices.to_numpy()]
    return selected


def _file_number(name: str) -> int:
    try:
        return binlog_file_number(name)
    except ValueError:
        return -1
