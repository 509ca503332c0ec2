"""What Canal's entries mean: rows, statements, marks, or nothing to apply (docs/wire/canal.md 4, 4.2, 10.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.canal.packets import Entries, Flags, Numbers
from airflow_provider_cdc.core.formats.canal.rows import Rows
from airflow_provider_cdc.core.formats.canal.statements import changes_tables
from airflow_provider_cdc.core.formats.generated import canal_entry_pb2 as wire
from airflow_provider_cdc.core.model.change import Kind, Op
from airflow_provider_cdc.core.model.position import binlog_file_number

KINDS, OPS = list(Kind), list(Op)
ROW, SCHEMA, PROGRESS, TRANSACTION, IGNORED, ERROR = map(KINDS.index, KINDS)
_ROW_OPS = {wire.INSERT: Op.INSERT, wire.UPDATE: Op.UPDATE, wire.DELETE: Op.DELETE}
ROW_EVENTS = frozenset(_ROW_OPS)
_DDL = (wire.CREATE, wire.ALTER, wire.ERASE, wire.TRUNCATE, wire.RENAME, wire.CINDEX, wire.DINDEX)
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
    "a prepared XA transaction was rolled back; its rows were sent before and cannot be told from others",
)
_NO_POSITION = (
    "record.without_position",
    "the record does not say where in the source's log it stands, as those of TiCDC's protocol canal do:"
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

    kinds: Numbers
    ops: Numbers
    files: Numbers
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
    for place in np.flatnonzero((result.kinds == ERROR) & ~_known(result)):
        result.errors[int(place)] = ("record.unknown_kind", _unknown(entries, int(place)))
    return result


def _marks(entries: Entries, result: Meanings) -> None:
    for kind, op in ((wire.TRANSACTIONBEGIN, Op.BEGIN), (wire.TRANSACTIONEND, Op.COMMIT)):
        result.kinds[entries.kind == kind] = TRANSACTION
        result.ops[entries.kind == kind] = OPS.index(op)
    heartbeats = (entries.kind == wire.HEARTBEAT) | (entries.event == wire.MHEARTBEAT)
    result.kinds[heartbeats] = np.where(entries.millis[heartbeats] > 0, PROGRESS, IGNORED)
    result.kinds[(entries.kind == wire.GTIDLOG) | (entries.event == wire.GTID)] = IGNORED


def _statements(entries: Entries, result: Meanings, chosen: Flags) -> None:
    """Say what the row changes without rows are."""
    if not chosen.any():
        return
    told = chosen & (pc.binary_length(entries.sql).to_numpy(zero_copy_only=False) > 0)
    # DDL may come with isDdl false (docs/wire/canal.md 11.1)
    ddl: Flags = told & (entries.is_ddl | np.isin(entries.event, _DDL))
    result.kinds[ddl] = SCHEMA
    queries = told & ~ddl & (entries.event == wire.QUERY)
    result.kinds[queries] = IGNORED
    for place in np.flatnonzero(queries).tolist():
        statement = entries.sql[place].as_py()
        database = entries.session[place].as_py() or entries.schemas[place].as_py()
        if not _ANNOTATION.match(statement) and changes_tables(statement, database):
            result.kinds[place] = SCHEMA
    commits = told & (entries.event == wire.XACOMMIT)
    result.kinds[commits] = TRANSACTION
    result.ops[commits] = OPS.index(Op.COMMIT)
    if commits.any():
        names = [text.removeprefix("XA COMMIT").strip() for text in entries.sql.filter(pa.array(commits)).to_pylist()]
        entries.transactions = pc.replace_with_mask(entries.transactions, pa.array(commits), pa.array(names))
    for events, problem in (((wire.XAROLLBACK,), _XA_ROLLBACK), (tuple(_ROW_OPS), _STATEMENT)):
        for place in np.flatnonzero(told & ~ddl & np.isin(entries.event, events)).tolist():
            result.errors[place] = problem


def _rows(entries: Entries, rows: Rows, result: Meanings, chosen: Flags) -> None:
    result.kinds[chosen] = ROW
    for event, op in _ROW_OPS.items():
        result.ops[chosen & (entries.event == event)] = OPS.index(op)
    owner = entries.of_rows()
    event = entries.event[owner]
    before = rows.before.is_valid().to_numpy(zero_copy_only=False)
    after = rows.after.is_valid().to_numpy(zero_copy_only=False)
    fits = before == np.isin(event, (wire.UPDATE, wire.DELETE))
    fits &= after == np.isin(event, (wire.INSERT, wire.UPDATE))
    wrong: Flags = np.zeros(len(chosen), bool)
    wrong[owner[~fits | rows.malformed]] = True
    wrong |= pc.equal(entries.schemas, "").to_numpy(zero_copy_only=False)
    wrong |= pc.equal(entries.tables, "").to_numpy(zero_copy_only=False)
    wrong |= entries.is_ddl | (result.ops < 0)
    _refuse(entries, chosen & wrong, ("record.malformed", "a row change without its table, or with unfit images"))
    for place in np.unique(owner[rows.partial_json & chosen[owner]]).tolist():
        result.kinds[place], result.ops[place] = ERROR, -1
        result.errors[place] = _PARTIAL_JSON


def _refuse(entries: Entries, chosen: Flags, problem: tuple[str, str]) -> None:
    for place in np.unique(entries.record[chosen]).tolist():
        entries.problems.setdefault(place, problem)


def _known(result: Meanings) -> Flags:
    known: Flags = np.zeros(len(result.kinds), bool)
    known[list(result.errors)] = True
    return known


def _unknown(entries: Entries, place: int) -> str:
    if entries.event[place] < 0:
        return f"an entry of type {entries.kind[place]}"
    return f"a row change of type {entries.event[place]} with neither rows nor a known statement"


def _file_numbers(files: pa.StringArray) -> Numbers:
    names = files.dictionary_encode()
    numbers = np.array([_file_number(name) for name in names.dictionary.to_pylist()], np.int64)
    chosen: Numbers = numbers[names.indices.to_numpy()]
    return chosen


def _file_number(name: str) -> int:
    try:
        return binlog_file_number(name)
    except ValueError:
        return -1
