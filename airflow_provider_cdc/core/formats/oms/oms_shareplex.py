# SPDX-License-Identifier: Apache-2.0
"""Decode the method "SharePlex" of OceanBase Migration Service (OMS).

Records name neither types nor the key: ``tables.<name>.create`` does (docs/wire/oceanbase-oms.md 6, 7, 8, 10).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.exact_structs import NO_STRUCT, exact_struct
from airflow_provider_cdc.core.formats.common.record_decoder import decode_each
from airflow_provider_cdc.core.formats.common.row_images import members_of
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.oms import images as oms_images
from airflow_provider_cdc.core.formats.oms.columns import is_oceanbase, speaks_oracle
from airflow_provider_cdc.core.formats.oms.messages import reader_of
from airflow_provider_cdc.core.formats.oms.options import DB_TYPE, NULL_IN_BOTH, SEQUENCE, TENANT, TIMEZONE, OmsOptions
from airflow_provider_cdc.core.formats.oms.positions import (
    NO_SEQUENCE,
    NOWHERE,
    change_position,
    snapshot_position,
)
from airflow_provider_cdc.core.values.fields import ConversionError
from airflow_provider_cdc.core.values.shared import calendar
from airflow_provider_cdc.core.values.shared.time_zones import instant_of

_ROW_OPS = {"ins": "insert", "upd": "update", "del": "delete"}
_TIMES = 4096  # distinct texts remembered; second precision, so they repeat


class _Meta(msgspec.Struct, gc=False):
    """Members needed of ``meta``; ``idx`` and ``size`` mean nothing, ``rowid`` cannot be split for the key."""

    op: str
    table: str
    time: str | None = None
    posttime: str | None = None
    scn: str | int | None = None
    trans: str | int | None = None


class _Message(msgspec.Struct, gc=False):
    meta: _Meta
    data: msgspec.Raw = msgspec.Raw()
    key: msgspec.Raw = msgspec.Raw()


class _Named(msgspec.Struct, gc=False):
    op: str
    table: str


class _TableOnly(msgspec.Struct, gc=False):
    """Members that name the table of a message, whatever else in it cannot be read."""

    meta: _Named


_read_table = reader_of(_TableOnly)
_open = reader_of(_Message)


_Images = tuple[bytes | None, bytes | None, int]  # before and after, and the number of their ``columns`` text


class _Table:
    """A table and the members that its latest image had; nearly all have the same."""

    def __init__(self, database: str, name: str) -> None:
        self.database, self.name = database, name
        self._full, self._fields = NO_STRUCT
        self._complete = self._partial = 0

    def learn(self, names: tuple[str, ...], complete: int, partial: int) -> None:
        """Take the members of an image of all columns, and the numbers of texts for such."""
        self._full, self._fields = exact_struct(names)
        self._complete, self._partial = complete, partial

    def full_images(self, op: str, data: msgspec.Raw, key: msgspec.Raw) -> _Images | None:
        """Return both images and the number of their text where the whole one has the known members, else None."""
        try:
            if op == "insert":
                self._full(data)
                return None, bytes(data), self._complete
            if op == "delete":
                self._full(data)
                return bytes(data), None, self._complete
            row, before = self._full(key), bytes(key)
            if msgspec.json.encode(row) != before:
                return None  # in another order: the image after it has the order of the one before it
            for name, value in members_of(data).items():
                setattr(row, self._fields[name], value)
        except (ValueError, RecursionError, KeyError):
            return None
        return before, msgspec.json.encode(row), self._partial


class WireFormat(oms_images.OmsFormat):
    """``oms-shareplex``: rows of the method SharePlex; ``order`` is exact unless the task writes no ``scn``."""

    name = "oms-shareplex"
    summary = "OceanBase OMS, method SharePlex"
    carries = frozenset({"rows"})
    ddl_among_rows = False
    partial_images = True
    options: Mapping[str, str] = {
        "sequenceEnabled": SEQUENCE,
        "timezone": TIMEZONE,
        "tenant": TENANT,
        "dbType": DB_TYPE,
        "null_in_both": NULL_IN_BOTH,
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = OmsOptions(options or {}, sequenced=True)
        self.order = "exact" if self._options.sequenced else "clock"
        self.splits_partitions = self._sequenced = self._options.sequenced
        self._oracle = speaks_oracle(self._options.source)
        self._descriptions = oms_images.Descriptions()
        self._tables: dict[str, _Table] = {}
        self._times: dict[str | None, int] = {}

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        return decode_each(records, self._descriptions.texts, self._record, "an OMS SharePlex message", self._table_of)

    def _table_of(self, value: bytes) -> tuple[str | None, str | None]:
        """Return the table of a row change."""
        message = _read_table(value).meta
        if message.op not in _ROW_OPS:
            raise ValueError("no row change")
        return self._named(message.table)

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the change of one record."""
        out.changes.append(self._row(index, _open(value), out.records.timestamps[index]))

    def _row(self, index: int, message: _Message, written_ms: int | None) -> tuple[Any, ...]:
        """Return the fields of a :class:`Change`."""
        meta = message.meta
        op = _ROW_OPS.get(meta.op)
        if op is None:
            raise ValueError("unknown op")
        table = self._tables.get(meta.table) or self._table(meta.table)
        images = table.full_images(op, message.data, message.key)
        before, after, columns = images or self._images(op, message.data, message.key, table)
        written = None
        if not self._sequenced:
            file, pos, row = NOWHERE
            if (posted := self._time(meta.posttime)) is not None:
                written = posted // 1000
        elif op == "insert" and meta.scn in NO_SEQUENCE:
            op = "snapshot"  # only rows of the full load have none
            file, pos, row = snapshot_position(written_ms)
        else:
            file, pos, row = change_position(meta.scn)
        time = self._times.get(meta.time) or self._time(meta.time)
        transaction = None if meta.trans is None or meta.trans == "" else str(meta.trans)
        database, name = table.database, table.name
        return (index, 0, "row", op, database, name, file, pos, row, time, written, transaction, before, after, columns)

    def _table(self, text: str) -> _Table:
        """Return what is known of the table with a qualified name."""
        table = self._tables[text] = _Table(*self._named(text))
        return table

    def _named(self, text: str) -> tuple[str, str]:
        """Return database and table of a qualified name; the database is without the tenant."""
        database, _, name = text.rpartition(".")
        tenant = self._options.tenant
        if tenant is not None:
            database = database.removeprefix(f"{tenant}.")
        elif is_oceanbase(self._options.source):
            database = database.partition(".")[2] or database
        if not database or not name:
            raise ValueError("a table without its database")
        return database, name

    def _images(self, op: str, data: msgspec.Raw, key: msgspec.Raw, table: _Table) -> _Images:
        """Return both images and the number of the ``columns`` text.

        An update's ``data`` has the changed columns, its ``key`` the row before them, of which samples show all columns
        but the text promises none: what neither has is unchanged.
        """
        members = members_of(data)
        full = members if op != "update" else members_of(key)
        if not full:
            raise ValueError("an update without key" if op == "update" else "a row without columns")
        names = tuple(full)
        if not self._options.null_is_unchanged:
            table.learn(names, self._number(names, complete=True), self._number(names, complete=False))
        if op != "update":
            image, columns = bytes(data), self._number(names, complete=True)
            return (None, image, columns) if op == "insert" else (image, None, columns)
        after = {**full, **members}
        if self._options.null_is_unchanged:
            image, left = oms_images.without_unchanged_nulls(full, after)
        else:
            image, left = msgspec.json.encode(after), tuple(after)
        return bytes(key), image, self._number(left, complete=False)

    def _number(self, names: tuple[str, ...], *, complete: bool) -> int:
        return self._descriptions.number(tuple(sorted(names)), None, {}, self._oracle, complete)

    def _time(self, text: str | None) -> int | None:
        """Return a local time in microseconds since the epoch."""
        if not text:
            return None
        time = self._times.get(text)
        if time is None:
            try:
                time = instant_of(calendar.parse_datetime(text), self._options.zone or "UTC")[0]
            except ConversionError:
                raise ValueError("an invalid time in the stated timezone") from None
            if len(self._times) >= _TIMES:
                self._times.clear()
            self._times[text] = time
        return time

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of a row; no heartbeat of the method is known."""
        if value is None:
            return None
        try:
            time = self._time(_open(value).meta.time)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return None if time is None else Progress(time // 1000, heartbeat=False)
