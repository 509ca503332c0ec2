# SPDX-License-Identifier: Apache-2.0
"""Decode Canal's flat JSON (``flatMessage=true``), as Canal, TiCDC and others write it (docs/wire/canal.md 5, 9.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats.canal import columns as canal_columns
from airflow_provider_cdc.core.formats.canal.evidence import of_canal
from airflow_provider_cdc.core.formats.canal.images import Former, Table, read_images
from airflow_provider_cdc.core.formats.canal.statements import changes_one_table, changes_tables, session_database
from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.described_tables import DescribedTables
from airflow_provider_cdc.core.formats.common.epoch_times import EpochMillis
from airflow_provider_cdc.core.formats.common.interning import Interner
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord, decode_each
from airflow_provider_cdc.core.formats.common.timezone_option import timezone_of
from airflow_provider_cdc.core.formats.contract import Progress, Records

# INIT are the rows of a full load
_ROW_OPS: Mapping[str | None, str] = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete", "INIT": "snapshot"}
_DDL = frozenset({"CREATE", "ALTER", "ERASE", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"})
_PROTOBUF = (b"\x18\x07", b"\x10\x01\x18\x07")  # how a Packet begins (docs/wire/canal.md 5.1)
# How Canal's messages begin, for it sorts their members by name, and columns as the table has them; TiCDC's begin in
# another way and name types in no order at all (docs/wire/canal.md 9.1)
_CANAL = b'{"data":['
_BATCHES = 1 << 63  # one more than the highest number of a batch


class _Extension(msgspec.Struct, gc=False):
    """TiCDC's ``_tidb``; large rows may be left out of the message."""

    onlyHandleKey: bool = False
    claimCheckLocation: str = ""


class _Message(msgspec.Struct, gc=False):
    """Any record; in Canal's order, in which members are found fastest."""

    data: list[msgspec.Raw] | None = None
    database: str | None = None
    es: EpochMillis | None = None
    id: Any = None
    isDdl: bool | None = None
    mysqlType: msgspec.Raw = msgspec.Raw()
    old: list[msgspec.Raw] | None = None
    pkNames: msgspec.Raw = msgspec.Raw()
    sql: str | None = None
    sqlType: msgspec.Raw = msgspec.Raw()
    table: str | None = None
    ts: EpochMillis | None = None
    type: str | None = None
    extension: _Extension | None = msgspec.field(default=None, name="_tidb")


class _Time(msgspec.Struct, gc=False):
    type: str | None = None
    es: EpochMillis | None = None


class _Old(msgspec.Struct, gc=False):
    old: list[dict[str, msgspec.Raw] | None] | None = None


class _TableOnly(msgspec.Struct, gc=False):
    """Members that name the table of a message, whatever else in it cannot be read."""

    database: str | None = None
    table: str | None = None
    type: str | None = None
    isDdl: bool | None = None
    sql: str | None = None
    data: msgspec.Raw = msgspec.Raw()


_WITHOUT_ROWS = tuple(map(msgspec.Raw, (b"", b"null", b"[]")))
_read_table = msgspec.json.Decoder(_TableOnly)
_read = msgspec.json.Decoder(_Message).decode
_time = msgspec.json.Decoder(_Time)
_old = msgspec.json.Decoder(_Old)


class WireFormat(canal_columns.CanalFormat):
    """``canal-json``: rows and DDL in the data topics, without positions."""

    name = "canal-json"
    summary = "Canal flat JSON (MySQL, MariaDB), also as written by TiCDC"
    evidence = staticmethod(of_canal)
    order = "clock"
    carries = frozenset({"rows", "ddl", "progress", "types"})
    updates_move_keys = True
    updates_name_changes = True
    ddl_among_rows = True
    splits_partitions = False
    partial_images = False  # an image that lacks unchanged columns looks like one older than a column
    inserts_lack_defaults = False
    chosen_keys = False
    row_numbers = "record"
    snapshot_rows = "unnumbered"
    options: Mapping[str, str] = {
        "timezone": "time zone of Canal's JVM, in which it writes TIMESTAMP: a name or an offset (default UTC)"
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._zone = timezone_of(options)
        self._texts = Interner[str]()
        self._tables = DescribedTables(Table.described)

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in order; bytes that are not a message become ``error`` changes."""
        return decode_each(records, self._texts.values, self._record, "a Canal message", _table_of)

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the changes of one record."""
        try:
            message = _read(value)
        except msgspec.DecodeError:
            if value.startswith(_PROTOBUF):
                raise ValueError("this is Canal's protobuf form (canal.mq.flatMessage=false)") from None
            raise
        if type(message.id) is int and 0 < message.id < _BATCHES:  # TiCDC writes 0
            out.tool_batches[index] = message.id
        op = _ROW_OPS.get(message.type)
        if message.old is not None and op != "update":
            _old.decode(value)  # it does not count, but a message with anything else in it is none
        if op is None:
            _other(out, index, message)
            return
        images, ordered = message.data, value.startswith(_CANAL)
        if not images or message.isDdl or not message.database or not message.table or message.extension:
            images = _checked_images(message, op)
        formers: Sequence[Former | None] | None = _former_values(message) if op == "update" else None
        if len(images) == 1:  # as in nearly all records
            former = None if formers is None else formers[0]
            out.changes.append(self._change(index, 0, message, op, images[0], former, ordered))
            return
        rows = enumerate(zip(images, formers or [None] * len(images), strict=True))
        out.changes += [self._change(index, number, message, op, *row, ordered) for number, row in rows]

    def _change(
        self,
        index: int,
        number: int,
        message: _Message,
        op: str,
        image: msgspec.Raw,
        former: Former | None,
        ordered: bool,
    ) -> tuple[Any, ...]:
        """Return the fields of a :class:`Change`.

        :param ordered: whether the message names its columns in the table's order.
        """
        table = self._tables.find(message.mysqlType, message.pkNames)
        if table.json:
            table = table.with_sql_types(message.sqlType)
        images, columns = table.full_images(image, former, op) if ordered else None, table.full_columns.get(op)
        if images is None:
            images, names = read_images(image, former, op, table)
            columns = self._columns(table, names, op)
        elif columns is None:
            columns = table.full_columns[op] = self._columns(table, table.names, op)
        before, after = images
        time, database, name = None if message.es is None else message.es * 1000, message.database, message.table
        return (
            index,
            number,
            "row",
            op,
            database,
            name,
            None,
            None,
            None,
            time,
            message.ts,
            None,
            before,
            after,
            columns,
        )

    def _columns(self, table: Table, names: tuple[str, ...], op: str) -> int:
        """Return the number of the ``columns`` text for an image with these members."""
        only_key = op == "delete" and table.key is not None and set(names) == set(table.key)
        number = table.numbers.get((names, only_key))
        if number is None:
            details = canal_columns.details_of(names, table.types, table.sql_types)
            text = canal_columns.columns_text(details, table.key, complete=not only_key)
            number = table.numbers[names, only_key] = self._texts.id_of(text)
        return number

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of any record; only TiCDC's watermarks say that nothing older follows anywhere."""
        if value is None:
            return None
        try:
            message = _time.decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return Progress(message.es, message.type == "TIDB_WATERMARK") if message.es else None


def _table_of(value: bytes) -> tuple[str | None, str | None]:
    """Return the table of a row change."""
    message = _read_table.decode(value)
    by_statement = bool(message.sql) and message.data in _WITHOUT_ROWS
    if message.type not in _ROW_OPS or message.isDdl or (by_statement and not changes_one_table(message.sql or "")):
        raise ValueError("no row change")
    return message.database, message.table


def _checked_images(message: _Message, op: str) -> list[msgspec.Raw]:
    """Return a record's images; refuse one that does not say which rows changed and how."""
    if not message.data:
        if message.sql:
            text = "rows were changed by a statement, which cannot be applied: set binlog_format=ROW in the source"
            raise UnsupportedRecord("record.statement_format", text)
        raise ValueError("a row change without rows")
    if message.isDdl or not message.database or not message.table:
        raise ValueError("rows without database or table, or marked as DDL")
    if message.extension is not None:
        if message.extension.claimCheckLocation:
            text = "TiCDC put the row into a storage of its own (claim-check)"
            raise UnsupportedRecord("record.rows_elsewhere", text)
        if message.extension.onlyHandleKey and op != "delete":
            raise UnsupportedRecord("record.partial_image", "TiCDC left out all columns but the key of a large row")
    return message.data


def _former_values(message: _Message) -> Sequence[Former]:
    """Return for each row of an update the values that it had before."""
    old = message.old or ()
    if len(old) != len(message.data or ()):
        text = "old does not have an entry for each row, so the former values of a row are unknown (Canal before 1.1.7)"
        raise UnsupportedRecord("record.old_incomplete", text)
    return old


def _other(out: ChangeBuilder, index: int, message: _Message) -> None:
    """Add the change of a record without rows."""
    time = None if message.es is None else message.es * 1000
    sql, database = message.sql or "", message.database or ""
    if message.data:
        raise ValueError("rows of an unknown type of change")
    if message.type == "TIDB_WATERMARK":
        out.add(index, "progress", source_time=time, tool_time=message.ts)
    elif message.type == "XACOMMIT":
        name = sql.removeprefix("XA COMMIT").strip()
        out.add(index, "transaction", op="commit", transaction_id=name, source_time=time, tool_time=message.ts)
    elif message.type == "XAROLLBACK":
        text = "a prepared XA transaction was rolled back; its rows were sent before and cannot be identified"
        raise UnsupportedRecord("record.xa_rollback", text)
    elif message.type == "QUERY" and not message.isDdl and sql and not changes_tables(sql, database):
        out.ignore(index)  # the statement that rows of other records come from
    elif sql and (message.isDdl or message.type in _DDL or message.type == "QUERY"):
        out.add(
            index,
            "schema",
            database=database,
            table=message.table or None,
            source_time=time,
            tool_time=message.ts,
            statement=sql,
            default_database=session_database(sql, database, message.table or ""),
        )
    else:
        raise ValueError("neither rows, DDL, annotation nor watermark")
