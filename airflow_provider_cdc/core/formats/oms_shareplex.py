"""The method "SharePlex" of OceanBase Migration Service (OMS).

Records name neither types nor the key: ``tables.<name>.create`` does (specs/oceanbase-oms.md, sections 6, 7, 8, 10).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats import oms_columns
from airflow_provider_cdc.core.formats.change_columns import ChangeColumns
from airflow_provider_cdc.core.formats.contract import Description, Progress, Records
from airflow_provider_cdc.core.formats.oms_sequence import place_of
from airflow_provider_cdc.core.formats.oms_source import OPTIONS, Source
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
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


class _NoPlace(Exception):
    """A change that should say its place and does not."""


_message = msgspec.json.Decoder(_Message)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_decoder = msgspec.json.Decoder()


class WireFormat:
    """``oms-shareplex``: rows of the method SharePlex; ``order`` is exact unless the task writes no ``scn``."""

    name = "oms-shareplex"
    summary = "OceanBase OMS, method SharePlex"
    carries = frozenset({"rows"})
    updates_move_keys = True
    ddl_among_rows = False
    partial_images = True
    options: Mapping[str, str] = {
        **OPTIONS,
        "sequenceEnabled": "true | false (default true): whether the task writes meta.scn; without, order is by second",
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._source = Source(options or {})
        sequenced = (options or {}).get("sequenceEnabled", "true")
        problems = list(self._source.problems)
        if sequenced not in ("true", "false"):
            problems.append(f"source.options.sequenceEnabled: {sequenced!r} is not one of true, false")
        if problems:
            raise ConfigurationError(problems)
        self._sequenced = sequenced == "true"
        self.order = "exact" if self._sequenced else "second"
        self.splits_partitions = self._sequenced
        self._texts: list[str] = []
        self._numbers: dict[tuple[tuple[str, ...], bool], int] = {}
        self._times: dict[str, int] = {}

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        out = ChangeColumns(self._texts)
        for place, (key, value) in enumerate(zip(records.keys, records.values, strict=True)):
            if value is None:
                out.add(place, "ignored")
                continue
            try:
                self._row(out, place, _open(value), records.timestamps[place])
            except _NoPlace:
                text = "a change without scn: set source.options.sequenceEnabled to false if the task writes none"
                out.error(place, "record.without_position", text, key, value)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                reason = str(error).split(" - at `$", 1)[0][:120]
                out.error(place, "record.malformed", f"no OMS SharePlex message: {reason}", key, value)
        return out.batch(records)

    def _row(self, out: ChangeColumns, place: int, message: _Message, kafka_millis: int | None) -> None:
        meta = message.meta
        op = _ROW_OPS.get(meta.op)
        database, _, table = meta.table.rpartition(".")
        if op is None or not database or not table:
            raise ValueError("an unknown op, or a table without its database")
        before, after, columns = self._images(op, message)
        time, tool_time = self._time(meta.time), None if self._sequenced else self._time(meta.posttime)
        position: tuple[int | None, ...] = (None, None, None)
        if self._sequenced:
            found = place_of(meta.scn)
            if found is None and op != "insert":
                raise _NoPlace
            if found is None:  # a row of the full load: before every change, in the order of the topic
                op, found = "snapshot", (0, max(kafka_millis or 0, 0))
            position = (*found, 0)
        out.changes.append((place, 0, "row", op, database, table, *position, time, before, after, columns))
        if tool_time is not None:
            out.note(len(out.changes) - 1, "tool_time", tool_time // 1000)
        if meta.trans not in (None, ""):
            out.note(len(out.changes) - 1, "transaction_id", str(meta.trans))

    def _images(self, op: str, message: _Message) -> tuple[bytes | None, bytes | None, int]:
        """Return both images and the number of the ``columns`` text.

        An update's ``data`` has the changed columns, its ``key`` the row before them, of which samples show all columns
        but the text promises none: what neither has is unchanged.
        """
        data = _members.decode(message.data)
        if op != "update":
            if not data:
                raise ValueError("a row without columns")
            image = bytes(message.data)
            columns = self._columns(tuple(data), complete=True)
            return (None, image, columns) if op == "insert" else (image, None, columns)
        key = _members.decode(message.key)
        if not key:
            raise ValueError("an update without key")
        after = {**key, **data}
        return bytes(message.key), msgspec.json.encode(after), self._columns(tuple(after), complete=False)

    def _columns(self, names: tuple[str, ...], *, complete: bool) -> int:
        number = self._numbers.get((names, complete))
        if number is None:
            number = self._numbers[names, complete] = len(self._texts)
            self._texts.append(msgspec.json.encode({"columns": names, "complete": complete}).decode())
        return number

    def _time(self, text: str | None) -> int | None:
        """Return a civil time in microseconds since the epoch."""
        if not text:
            return None
        time = self._times.get(text)
        if time is None:
            try:
                time = instant_of(civil.moment(text), self._source.zone)[0]
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

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change."""
        data = _decoder.decode(columns)
        return Description(tuple(data["columns"]), None, None, data["complete"])

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images."""
        return oms_columns.encoding(name, column, oracle=self._source.oracle, zone=self._source.zone)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing: the method carries no schema changes."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return None: records name neither types nor key."""
        return None


def _open(value: bytes) -> _Message:
    try:
        return _message.decode(value)
    except msgspec.DecodeError:
        # rowid joins key values by U+0001, which may stand bare in the text (section 10, 25)
        if b"\x01" not in value:
            raise
        return _message.decode(value.replace(b"\x01", b"\\u0001"))
