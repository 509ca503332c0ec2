# SPDX-License-Identifier: Apache-2.0
"""Decode OceanBase OMS, serialization method Dataworks, version 2.0 (docs/wire/oceanbase-oms.md 5, 7, 8, 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.described_tables import DescribedTables
from airflow_provider_cdc.core.formats.common.epoch_times import EpochMillis
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord, decode_each
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.oms import images as oms_images
from airflow_provider_cdc.core.formats.oms.columns import dialect_of, speaks_oracle
from airflow_provider_cdc.core.formats.oms.options import NULL_IN_BOTH, TIMEZONE, OmsOptions
from airflow_provider_cdc.core.formats.oms.positions import NOWHERE, BinlogPosition, change_position, snapshot_position

_VERSION = "2.0"
# ROW is OMS's word for a row of the full load, which the text on this method does not mention; UPDATE_AFTER with both
# images is DataWorks's own spelling of an update
_ROW_OPS = {"INSERT": "insert", "UPDATE": "update", "UPDATE_AFTER": "update", "DELETE": "delete", "ROW": "snapshot"}
_WITH_BEFORE = ("update", "delete")
_MARKS = {"TRANSACTION_BEGIN": "begin", "TRANSACTION_END": "commit", "XACOMMIT": "commit"}
_SCHEMA_CHANGES = frozenset({"CREATE", "ALTER", "ERASE", "QUERY", "TRUNCATE", "RENAME", "CINDEX", "DINDEX"})
_SAID_BY_OP = {"TRUNCATE": "TRUNCATE TABLE", "ERASE": "DROP TABLE"}  # what is clear without the statement's text


class _Source(msgspec.Struct, gc=False):
    dbType: str | None = None
    dbName: str | None = None
    schema: str | None = None
    table: str | None = None


class _Column(msgspec.Struct, gc=False):
    name: str
    type: str


class _Schema(msgspec.Struct, gc=False):
    source: _Source
    column: list[_Column] | None = None
    pk: list[str] | None = None


class _Image(msgspec.Struct, gc=False):
    data: msgspec.Raw


class _Times(msgspec.Struct, gc=False):
    """Milliseconds; ``checkpointTime`` next to them is in seconds and not needed."""

    eventTime: EpochMillis | None = None
    systemTime: EpochMillis | None = None


class _Ddl(msgspec.Struct, gc=False):
    text: str | None = None


class _Payload(msgspec.Struct, gc=False):
    op: str
    before: _Image | None = None
    after: _Image | None = None
    timestamp: _Times | None = None
    ddl: _Ddl | None = None
    scn: int | str | None = None


class _Message(msgspec.Struct, gc=False):
    version: str
    payload: _Payload
    schema: msgspec.Raw = msgspec.Raw()


class _Op(msgspec.Struct, gc=False):
    op: str


class _Where(msgspec.Struct, gc=False):
    source: _Source


class _TableOnly(msgspec.Struct, gc=False):
    """Members that name the table of a message, whatever else in it cannot be read."""

    payload: _Op
    schema: _Where


_read_table = msgspec.json.Decoder(_TableOnly)
_message = msgspec.json.Decoder(_Message)
_schema = msgspec.json.Decoder(_Schema | None)
_NULL = msgspec.Raw(b"null")


class _Table(oms_images.Images):
    """Hold what records with the same ``schema`` have in common."""

    def __init__(self, descriptions: oms_images.Descriptions, schema: _Schema | None) -> None:
        source = _Source() if schema is None else schema.source
        key = () if schema is None else tuple(schema.pk or ())
        super().__init__(descriptions, key, speaks_oracle(source.dbType))
        self.database = source.schema or source.dbName or ""  # where there are schemas, they distinguish tables
        self.name = source.table or ""
        self.dialect = dialect_of(source.dbType)
        if schema is not None:
            self.state_types({column.name: column.type for column in schema.column or ()})


class WireFormat(oms_images.OmsFormat):
    """``oms-dataworks``: rows, DDL, heartbeats and transaction marks in one stream."""

    name = "oms-dataworks"
    summary = "OceanBase OMS, method Dataworks 2.0"
    order = "exact"
    carries = frozenset({"rows", "ddl", "progress", "transactions", "types"})
    ddl_among_rows = True
    splits_partitions = True
    partial_images = False
    options: Mapping[str, str] = {
        "sequenceEnabled": 'true | false (default false: samples have scn "null"): whether changes carry payload.scn',
        "timezone": TIMEZONE,
        "null_in_both": NULL_IN_BOTH,
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = OmsOptions(options or {}, sequenced=False)
        if not self._options.sequenced:
            self.order, self.splits_partitions = "clock", False
        self.partial_images = self._options.null_is_unchanged
        self._descriptions = oms_images.Descriptions()
        self._tables = DescribedTables(self._table)

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        return decode_each(records, self._descriptions.texts, self._record, "an OMS Dataworks message", _table_of)

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the change of one record."""
        message = _open(value)
        payload = message.payload
        op = _ROW_OPS.get(payload.op)
        if op is not None:
            stamp = out.records.timestamps[index]
            out.changes.append(self._row(index, op, payload, self._tables.find(message.schema), stamp))
        elif payload.op in _SCHEMA_CHANGES:
            self._schema_change(out, index, payload, self._tables.find(message.schema))
        else:
            self._mark(out, index, payload)

    def _row(self, index: int, op: str, payload: _Payload, table: _Table, written_ms: int | None) -> tuple[Any, ...]:
        """Return the fields of a :class:`Change`."""
        before, after = _image(payload.before), _image(payload.after)
        if (before is None) is (op in _WITH_BEFORE) or (after is None) is (op != "delete"):
            raise ValueError(f"{op} with other images than it has")
        if not table.database or not table.name:
            raise ValueError("a row without database or table")
        file, pos, row = self._position(payload, op, written_ms) if self._options.sequenced else NOWHERE
        (time, written), database, name = self._times(payload), table.database, table.name
        after, columns = table.described(before, after, self.partial_images)
        return (index, 0, "row", op, database, name, file, pos, row, time, written, None, before, after, columns)

    def _schema_change(self, out: ChangeBuilder, index: int, payload: _Payload, table: _Table) -> None:
        statement = (payload.ddl.text if payload.ddl is not None else None) or ""
        dialect = table.dialect if statement.strip() else None
        if not statement.strip():
            if payload.op not in _SAID_BY_OP or not table.database or not table.name:
                raise ValueError(f"{payload.op} without its text")
            names = ("`" + name.replace("`", "``") + "`" for name in (table.database, table.name))
            statement = f"{_SAID_BY_OP[payload.op]} {'.'.join(names)}"
        file, pos, row = self._position(payload, "ddl", None)
        time, tool_time = self._times(payload)
        out.add(
            index,
            "schema",
            database=table.database,
            table=table.name or None,
            file=file,
            pos=pos,
            row=row,
            source_time=time,
            tool_time=tool_time,
            statement=statement,
            default_database=table.database,
            dialect=dialect,
        )

    def _mark(self, out: ChangeBuilder, index: int, payload: _Payload) -> None:
        time, _ = self._times(payload)
        if payload.op in _MARKS:
            out.add(index, "transaction", op=_MARKS[payload.op], source_time=time)
        elif payload.op == "HEARTBEAT" and time is not None:
            out.add(index, "progress", source_time=time)
        elif payload.op in ("HEARTBEAT", "GTID"):
            out.ignore(index)
        elif payload.op == "XAROLLBACK":
            text = "a prepared XA transaction was rolled back; its rows were sent before and cannot be identified"
            raise UnsupportedRecord("record.xa_rollback", text)
        else:
            raise ValueError("unknown op")

    def _position(self, payload: _Payload, op: str, written_ms: int | None) -> BinlogPosition:
        if not self._options.sequenced:
            return NOWHERE
        return snapshot_position(written_ms) if op == "snapshot" else change_position(payload.scn)

    def _times(self, payload: _Payload) -> tuple[int | None, int | None]:
        """Return source time in microseconds and, where it orders, the tool's in milliseconds."""
        times = payload.timestamp
        if times is None:
            return None, None
        time = None if times.eventTime is None else times.eventTime * 1000
        return time, None if self._options.sequenced else times.systemTime

    def _table(self, schema: bytes, _: bytes) -> _Table:
        return _Table(self._descriptions, _schema.decode(schema) if schema else None)

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of a change or of a heartbeat."""
        if value is None:
            return None
        try:
            payload = _open(value).payload
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        time = None if payload.timestamp is None else payload.timestamp.eventTime
        if time is None or payload.op == "ROW":  # the full load says nothing of changes
            return None
        return Progress(time, heartbeat=payload.op == "HEARTBEAT")


def _open(value: bytes) -> _Message:
    message = _message.decode(value)
    if message.version != _VERSION:
        raise ValueError("another version than 2.0")
    return message


def _image(image: _Image | None) -> bytes | None:
    return None if image is None or image.data == _NULL else bytes(image.data)


def _table_of(value: bytes) -> tuple[str | None, str | None]:
    """Return the table of a row change."""
    message = _read_table.decode(value)
    if message.payload.op not in _ROW_OPS:
        raise ValueError("no row change")
    source = message.schema.source
    return source.schema or source.dbName, source.table
