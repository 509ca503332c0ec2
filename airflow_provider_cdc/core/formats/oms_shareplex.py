"""The method "SharePlex" of OceanBase Migration Service (OMS).

Records name neither types nor the key: ``tables.<name>.create`` does (specs/oceanbase-oms.md, sections 6, 7, 8, 10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats import oms_images
from airflow_provider_cdc.core.formats.change_columns import ChangeColumns
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.oms_columns import is_oceanbase, speaks_oracle
from airflow_provider_cdc.core.formats.oms_options import DB_TYPE, NULL_IN_BOTH, SEQUENCE, TENANT, TIMEZONE, OmsOptions
from airflow_provider_cdc.core.formats.oms_positions import (
    NO_SEQUENCE,
    NOWHERE,
    NoPosition,
    change_place,
    snapshot_place,
)
from airflow_provider_cdc.core.values import civil
from airflow_provider_cdc.core.values.field import Misfit
from airflow_provider_cdc.core.values.zones import instant_of

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


_read: Callable[[bytes], _Message] = msgspec.json.Decoder(_Message).decode


class WireFormat(oms_images.OmsFormat):
    """``oms-shareplex``: rows of the method SharePlex; ``order`` is exact unless the task writes no ``scn``."""

    name = "oms-shareplex"
    summary = "OceanBase OMS, method SharePlex"
    carries = frozenset({"rows"})
    updates_move_keys = True
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
        self.order = "exact" if self._options.sequenced else "second"
        self.splits_partitions = self._options.sequenced
        self._oracle = speaks_oracle(self._options.source)
        self._descriptions = oms_images.Descriptions()
        self._numbers: dict[tuple[tuple[str, ...], bool], int] = {}
        self._names: dict[str, tuple[str, str]] = {}
        self._shapes: dict[str, oms_images.Shape] = {}  # by table, of its latest image in full
        self._times: dict[str, int] = {}

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        out = ChangeColumns(self._descriptions.texts)
        out.rest["transaction_id"] = []
        for place, value in enumerate(records.values):
            if value is None:
                out.add(place, "ignored")
                continue
            try:
                self._row(out, place, _open(value), records.timestamps[place])
            except NoPosition as error:
                out.error(place, "record.without_position", str(error), records.keys[place], value)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                reason = str(error).split(" - at `$", 1)[0][:120]
                out.error(place, "record.malformed", f"no OMS SharePlex message: {reason}", records.keys[place], value)
        return out.batch(records)

    def _row(self, out: ChangeColumns, place: int, message: _Message, written_ms: int | None) -> None:
        meta = message.meta
        op = _ROW_OPS.get(meta.op)
        if op is None:
            raise ValueError("unknown op")
        before, after, columns = self._images(op, message)
        file, pos, number = NOWHERE
        if self._options.sequenced:
            if op == "insert" and meta.scn in NO_SEQUENCE:
                op = "snapshot"  # only rows of the full load have none
                file, pos, number = snapshot_place(written_ms)
            else:
                file, pos, number = change_place(meta.scn)
        time, written = self._time(meta.time), None if self._options.sequenced else self._time(meta.posttime)
        database, table = self._names.get(meta.table) or self._table(meta.table)
        out.changes.append((place, 0, "row", op, database, table, file, pos, number, time, before, after, columns))
        if written is not None:
            out.note(len(out.changes) - 1, "tool_time", written // 1000)
        if meta.trans is not None and meta.trans != "":
            out.rest["transaction_id"].append((len(out.changes) - 1, str(meta.trans)))

    def _table(self, text: str) -> tuple[str, str]:
        """Return database and table of a qualified name, the database without its tenant."""
        database, _, table = text.rpartition(".")
        tenant = self._options.tenant
        if tenant is not None:
            database = database.removeprefix(f"{tenant}.")
        elif is_oceanbase(self._options.source):
            database = database.partition(".")[2] or database
        if not database or not table:
            raise ValueError("a table without its database")
        names = self._names[text] = database, table
        return names

    def _images(self, op: str, message: _Message) -> tuple[bytes | None, bytes | None, int]:
        """Return both images and the number of the ``columns`` text.

        An update's ``data`` has the changed columns, its ``key`` the row before them, of which samples show all columns
        but the text promises none: what neither has is unchanged.
        """
        shape = self._shapes.get(message.meta.table)
        if shape is None or self._options.null_is_unchanged:
            return self._unlike_images(op, message)
        image = bytes(message.key if op == "update" else message.data)
        row = shape.row_of(image)
        if row is None:
            return self._unlike_images(op, message)
        if op != "update":
            columns = self._columns(shape.names, complete=True)
            return (None, image, columns) if op == "insert" else (image, None, columns)
        data = oms_images.members_of(bytes(message.data))
        if not data.keys() <= shape.fields.keys():
            return self._unlike_images(op, message)
        return image, shape.changed(row, data), self._columns(shape.names, complete=False)

    def _unlike_images(self, op: str, message: _Message) -> tuple[bytes | None, bytes | None, int]:
        """Return the same for images that are not as the one before them."""
        data = oms_images.members_of(message.data)
        full = data if op != "update" else oms_images.members_of(message.key)
        if not full:
            raise ValueError("an update without key" if op == "update" else "a row without columns")
        names = tuple(full)
        known = self._shapes.get(message.meta.table)
        if known is None or known.names != names:
            self._shapes[message.meta.table] = oms_images.Shape(names)
        if op != "update":
            image, columns = bytes(message.data), self._columns(names, complete=True)
            return (None, image, columns) if op == "insert" else (image, None, columns)
        after = {**full, **data}
        if self._options.null_is_unchanged:
            image, left = oms_images.without_unchanged_nulls(full, after)
        else:
            image, left = msgspec.json.encode(after), tuple(after)
        return bytes(message.key), image, self._columns(left, complete=False)

    def _columns(self, names: tuple[str, ...], *, complete: bool) -> int:
        number = self._numbers.get((names, complete))
        if number is None:
            number = self._descriptions.number(names, None, {}, self._oracle, complete)
            self._numbers[names, complete] = number
        return number

    def _time(self, text: str | None) -> int | None:
        """Return a civil time in microseconds since the epoch."""
        if not text:
            return None
        time = self._times.get(text)
        if time is None:
            try:
                time = instant_of(civil.moment(text), self._options.zone or "UTC")[0]
            except Misfit:
                raise ValueError("a time that is none in the stated timezone") from None
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


def _open(value: bytes) -> _Message:
    try:
        return _read(value)
    except msgspec.DecodeError:
        # rowid joins key values by U+0001, which may stand bare in the text (section 10, 25)
        if b"\x01" not in value:
            raise
        return _read(value.replace(b"\x01", b"\\u0001"))
