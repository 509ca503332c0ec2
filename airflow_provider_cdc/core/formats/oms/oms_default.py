# SPDX-License-Identifier: Apache-2.0
"""Decode OceanBase OMS, serialization method Default (docs/wire/oceanbase-oms.md 2, 7, 8, 10)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.record_decoder import decode_each
from airflow_provider_cdc.core.formats.common.row_images import members_of
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.oms import images as oms_images
from airflow_provider_cdc.core.formats.oms.columns import dialect_of, is_oceanbase, speaks_oracle
from airflow_provider_cdc.core.formats.oms.evidence import of_default
from airflow_provider_cdc.core.formats.oms.light_types import LIGHT_TYPE, TypedImages
from airflow_provider_cdc.core.formats.oms.messages import reader_of
from airflow_provider_cdc.core.formats.oms.options import NULL_IN_BOTH, TIMEZONE, OmsOptions
from airflow_provider_cdc.core.formats.oms.positions import NOWHERE, change_position, snapshot_position

_ROW_OPS = {"ROW": "snapshot", "INSERT": "insert", "UPDATE": "update", "DELETE": "delete"}
_KEY_SEPARATOR = "\x01"
_WITH_BEFORE = ("update", "delete")
_SECONDS_DIGITS = 11  # of a time in seconds; a longer one is in another unit
_NULL = msgspec.Raw(b"null")
_ABSENT = (b"", b"{}")


class _Meta(msgspec.Struct, gc=False):
    """Members needed of ``allMetaData``; samples lack most of the promised ones (docs/wire/oceanbase-oms.md 10.8)."""

    db: str | None = None
    table_name: str | None = None
    dbType: str | None = None
    record_primary_key: str | None = None
    storeDataSequence: int | str | None = None
    timestamp: int | str | None = None
    transId: int | str | None = None
    uniqueId: int | str | None = None


class _Message(msgspec.Struct, gc=False):
    allMetaData: _Meta
    recordType: str | None = None
    prevStruct: msgspec.Raw = msgspec.Raw()
    postStruct: msgspec.Raw = msgspec.Raw()


class _Ddl(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    ddl: str
    types: msgspec.Raw = msgspec.field(name=LIGHT_TYPE, default=msgspec.Raw())


class _Named(msgspec.Struct, gc=False):
    db: str | None = None
    table_name: str | None = None
    dbType: str | None = None


class _TableOnly(msgspec.Struct, gc=False):
    """Members that name the table of a message, whatever else in it cannot be read."""

    allMetaData: _Named
    recordType: str | None = None


_read_table = reader_of(_TableOnly)
_open = reader_of(_Message)
_ddl = msgspec.json.Decoder(_Ddl)


class _Table(TypedImages):
    """Hold what records of one table have in common."""

    def __init__(self, descriptions: oms_images.Descriptions, meta: _Meta, tenant: str | None) -> None:
        self.database, self.name = _database_of(meta, tenant), meta.table_name or ""
        if not self.database or not self.name:
            raise ValueError("a row without database or table")
        names = (meta.record_primary_key or "").split(_KEY_SEPARATOR)
        super().__init__(descriptions, tuple(name for name in names if name), speaks_oracle(meta.dbType))


class WireFormat(oms_images.OmsFormat):
    """``oms-default``: rows of the full load and of changes, DDL and heartbeats in one stream."""

    name = "oms-default"
    summary = "OceanBase OMS, method Default"
    evidence = staticmethod(of_default)
    order = "exact"
    carries = frozenset({"rows", "ddl", "progress"})
    ddl_among_rows = True
    splits_partitions = True
    partial_images = False
    light_types = False  # whether images hold the types of their columns
    options: Mapping[str, str] = {
        "sequenceEnabled": "true | false (default true): as in the OMS task, whether changes carry storeDataSequence",
        "tenant": "name of the OceanBase tenant that stands before the database (default: whichever stands there)",
        "timezone": TIMEZONE,
        "null_in_both": NULL_IN_BOTH,
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = OmsOptions(options or {}, sequenced=True)
        self._sequenced = self._options.sequenced
        if not self._sequenced:
            self.order, self.splits_partitions = "clock", False
        self.partial_images = self._options.null_is_unchanged
        self._descriptions = oms_images.Descriptions()
        self._tables: dict[tuple[str | None, ...], _Table] = {}
        self._latest: tuple[_Meta, _Table] | None = None

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        return decode_each(records, self._descriptions.texts, self._record, "an OMS Default message", self._table_of)

    def _table_of(self, value: bytes) -> tuple[str | None, str | None]:
        """Return the table of a row change."""
        message = _read_table(value)
        if message.recordType not in _ROW_OPS:
            raise ValueError("no row change")
        return _database_of(message.allMetaData, self._options.tenant), message.allMetaData.table_name

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the change of one record."""
        message = _open(value)
        op = _ROW_OPS.get(message.recordType or _kind_of(message))
        if op is None:
            self._other(out, index, message)
        else:
            out.changes.append(self._row(index, op, message, out.records.timestamps[index]))

    def _row(self, index: int, op: str, message: _Message, written_ms: int | None) -> tuple[Any, ...]:
        """Return the fields of a :class:`Change`."""
        meta = message.allMetaData
        before, after = _image(message.prevStruct), _image(message.postStruct)
        if (before is None) is (op in _WITH_BEFORE) or (after is None) is (op != "delete"):
            raise ValueError(f"{op} with other images than it has")
        table = self._table(meta)
        if self.light_types:
            before, after = table.without_types(before, after)
        written = None
        if not self._sequenced:
            file = pos = row = None
            written = 0 if op == "snapshot" else None  # older than every change, and no clock shows when
        elif op == "snapshot":
            file, pos, row = snapshot_position(written_ms)
        else:
            file, pos, row = change_position(meta.storeDataSequence)
        after, columns = table.described(before, after, self.partial_images)
        time, database, name = _micros(meta.timestamp), table.database, table.name
        transaction = meta.transId or meta.uniqueId or None
        if isinstance(transaction, int):
            transaction = str(transaction)
        return (index, 0, "row", op, database, name, file, pos, row, time, written, transaction, before, after, columns)

    def _other(self, out: ChangeBuilder, index: int, message: _Message) -> None:
        """Add the change of a record without rows."""
        kind = message.recordType or _kind_of(message)
        if kind == "DDL":
            self._schema_change(out, index, message)
        elif kind == "HEARTBEAT":
            _heartbeat(out, index, message.allMetaData)
        else:
            raise ValueError("unknown recordType")

    def _schema_change(self, out: ChangeBuilder, index: int, message: _Message) -> None:
        meta = message.allMetaData
        statement = _ddl.decode(message.postStruct).ddl if message.postStruct else ""
        if not statement.strip():
            raise ValueError("DDL without its text")
        database = _database_of(meta, self._options.tenant)
        file, pos, row = change_position(meta.storeDataSequence) if self._sequenced else NOWHERE
        out.add(
            index,
            "schema",
            database=database,
            table=meta.table_name or None,
            file=file,
            pos=pos,
            row=row,
            source_time=_micros(meta.timestamp),
            transaction_id=str(meta.transId or meta.uniqueId or "") or None,
            statement=statement,
            default_database=database,
            dialect=dialect_of(meta.dbType),
        )

    def _table(self, meta: _Meta) -> _Table:
        if self._latest is not None:
            latest, table = self._latest
            # usually it is the table of the record before, and to compare is cheaper than to hash
            if (
                meta.table_name == latest.table_name
                and meta.db == latest.db
                and meta.record_primary_key == latest.record_primary_key
                and meta.dbType == latest.dbType
            ):
                return table
        mark = (meta.db, meta.table_name, meta.dbType, meta.record_primary_key)
        known = self._tables.get(mark)
        if known is None:
            known = self._tables[mark] = _Table(self._descriptions, meta, self._options.tenant)
        self._latest = meta, known
        return known

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of a change or of a heartbeat."""
        if value is None:
            return None
        try:
            message = _open(value)
            time = _micros(message.allMetaData.timestamp)
            kind = message.recordType or _kind_of(message)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return None if time is None or kind == "ROW" else Progress(time // 1000, heartbeat=kind == "HEARTBEAT")


def _kind_of(message: _Message) -> str:
    """Return what a message without ``recordType`` must be (docs/wire/oceanbase-oms.md 10.6)."""
    before, after = _image(message.prevStruct), _image(message.postStruct)
    if after is None:
        if before is None and message.allMetaData.timestamp is None:
            raise ValueError("neither recordType, image nor time")
        return "HEARTBEAT" if before is None else "DELETE"
    if before is not None:
        return "UPDATE"
    return "DDL" if set(members_of(after)) == {"ddl"} else "INSERT"


def _image(raw: msgspec.Raw) -> bytes | None:
    if raw == _NULL:
        return None
    image = bytes(raw)
    if image[1:2] == b'"':  # it has a member
        return image
    return None if image in _ABSENT or image[1:-1].isspace() else image


def _heartbeat(out: ChangeBuilder, index: int, meta: _Meta) -> None:
    time = _micros(meta.timestamp)
    if time is None:
        out.ignore(index)  # what ``checkpoint`` says of one partition is not known
    else:
        out.add(index, "progress", source_time=time)


def _database_of(meta: _Meta | _Named, tenant: str | None) -> str:
    """Return the database without the tenant before it.

    Of another tenant than the stated one the whole name stays, so that tables of two tenants never mix.
    """
    name = meta.db or ""
    if tenant is not None:
        return name.removeprefix(f"{tenant}.")
    _, dot, rest = name.partition(".")
    return rest if dot and is_oceanbase(meta.dbType) else name


@lru_cache(maxsize=4096)  # the same for all changes of one second
def _micros(seconds: int | str | None) -> int | None:
    """Return a time in seconds as microseconds."""
    if seconds is None or seconds == "":
        return None
    text = str(seconds)
    if not text.isascii() or not text.isdigit() or len(text) > _SECONDS_DIGITS:
        raise ValueError("a timestamp that is not in seconds")
    return int(text) * 1_000_000
