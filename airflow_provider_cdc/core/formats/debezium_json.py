"""Debezium's JSON envelope, with and without embedded schema (MySQL and MariaDB connectors, 0.8 to 3.x).

Field lists and their history: specs/debezium-dtle.md, B1 to B4 and B9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats import debezium_columns
from airflow_provider_cdc.core.formats.change_columns import ChangeColumns
from airflow_provider_cdc.core.formats.contract import Description, Progress, Records
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.position import binlog_file_number
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
# milliseconds and microseconds up to the year 9999: what a timestamp column can hold
_Millis = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999)]
_Micros = Annotated[int, msgspec.Meta(ge=0, le=253_402_300_799_999_999)]
_RowCount = Annotated[int, msgspec.Meta(ge=0, le=9_999_999_999)]

_ROW_OPS = {"r": "snapshot", "c": "insert", "u": "update", "d": "delete", "t": "truncate"}
_NULL = b"null"
_NEWEST_PREFIXES = 64  # distinct embedded schemas remembered per partition; a table's changes only with DDL


class _Source(msgspec.Struct, gc=False):
    """Members needed of ``source``; ``ts_sec`` is the layout before 0.10."""

    db: str | None = None
    table: str | None = None
    file: str | None = None
    pos: _Count | None = None
    row: _RowCount | None = None
    ts_ms: _Millis | None = None
    ts_us: _Micros | None = None
    ts_sec: _Millis | None = None
    gtid: str | None = None


class _Payload(msgspec.Struct, gc=False):
    """Any message of the connector: row, schema change, transaction mark or heartbeat."""

    op: str | None = None
    source: _Source | None = None
    before: msgspec.Raw = msgspec.Raw()
    after: msgspec.Raw = msgspec.Raw()
    ts_ms: _Millis | None = None
    ddl: str | None = None
    databaseName: str | None = None
    tableChanges: msgspec.Raw = msgspec.Raw()
    status: str | None = None
    id: str | None = None


class _Enveloped(msgspec.Struct):
    schema: msgspec.Raw = msgspec.Raw()
    payload: msgspec.Raw = msgspec.Raw()


_payload = msgspec.json.Decoder(_Payload)
_enveloped = msgspec.json.Decoder(_Enveloped)
_members = msgspec.json.Decoder(dict[str, msgspec.Raw])


class WireFormat:
    """``debezium-json``: rows, schema-change topic, heartbeats and transaction topic of Debezium's JSON converter."""

    name = "debezium-json"
    summary = "Debezium JSON (MySQL, MariaDB), with or without embedded schema"
    order = "exact"
    carries = frozenset({"rows", "ddl", "progress", "transactions", "types"})
    updates_move_keys = False  # a moved key is a delete and an insert (B1)
    ddl_among_rows = False
    splits_partitions = True
    partial_images = False
    options = debezium_columns.OPTIONS

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        problems = debezium_columns.option_problems(options or {})
        if problems:
            raise ConfigurationError(problems)
        self._modes = {**{name: default for name, (default, _) in debezium_columns.MODES.items()}, **(options or {})}
        self._prefixes: dict[bytes, tuple[str, ...] | None] = {}
        self._texts: list[str] = []
        self._numbers: dict[Any, int] = {}
        self._key_head = b""
        self._key_names: tuple[str, ...] | None = None
        self._last_fields: Any = None
        self._last_columns = 0
        self._files: dict[str, int] = {}

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        out = ChangeColumns(self._texts)
        prefix, fields = b"", None
        for place, (key, value) in enumerate(zip(records.keys, records.values, strict=True)):
            if value is None:
                out.add(place, "ignored")  # tombstone
                continue
            try:
                if prefix and value.startswith(prefix) and value[-1:] == b"}":
                    message = _payload.decode(memoryview(value)[len(prefix) : -1])
                else:
                    prefix, fields, message = self._open(value)
                if message.op is not None and message.source is not None:
                    self._row(out, place, message, message.source, key, fields)
                else:
                    self._other(out, place, message, key, value)
            except (msgspec.MsgspecError, ValueError, RecursionError) as error:
                out.error(place, "record.malformed", f"no Debezium message: {_reason(error)}", key, value)
        return out.batch(records)

    def _open(self, value: bytes) -> tuple[bytes, Any, _Payload]:
        """Decode a message whose embedded schema is another than before; returns what stands before its payload."""
        for prefix, fields in self._prefixes.items():
            if value.startswith(prefix) and value[-1:] == b"}":
                return prefix, fields, _payload.decode(memoryview(value)[len(prefix) : -1])
        enveloped = _enveloped.decode(value)
        if not enveloped.payload:
            return b"", None, _payload.decode(value)
        if bytes(enveloped.schema) in (b"", _NULL):
            return b"", None, _payload.decode(enveloped.payload)
        fields = debezium_columns.value_fields(bytes(enveloped.schema))
        message = _payload.decode(enveloped.payload)
        # the same bytes before the payload mean the same schema: later messages are compared, not parsed
        size = len(value) - len(enveloped.payload) - 1
        prefix = value[:size]
        if value[size:-1] == bytes(enveloped.payload) and prefix.rstrip().endswith(b":"):
            if len(self._prefixes) >= _NEWEST_PREFIXES:
                self._prefixes.pop(next(iter(self._prefixes)))
            self._prefixes[prefix] = fields
            return prefix, fields, message
        return b"", fields, message

    def _row(
        self, out: ChangeColumns, place: int, message: _Payload, source: _Source, key: bytes | None, fields: Any
    ) -> None:
        op = _ROW_OPS.get(message.op or "")
        if op is None:
            if message.op == "m":
                out.add(place, "ignored")  # logical decoding message: no row
                return
            raise ValueError("unknown op")
        before, after = bytes(message.before) or _NULL, bytes(message.after) or _NULL
        image = after if after != _NULL else before
        lacks = before == _NULL if op == "delete" else after == _NULL and op != "truncate"
        if lacks or source.table is None or source.db is None:
            raise ValueError(f"a row of op {message.op} without its image, database or table")
        file = None if source.file is None or source.pos is None else self._file(source.file)
        out.changes.append(
            (
                place,
                0,
                "row",
                op,
                source.db,
                source.table,
                file,
                source.pos,
                source.row or 0,
                _source_time(source),
                None if before == _NULL else before,
                None if after == _NULL else after,
                None if image == _NULL else self._columns(fields, image, key),
            )
        )
        if source.gtid:
            out.note(len(out.changes) - 1, "transaction_id", source.gtid)

    def _other(self, out: ChangeColumns, place: int, message: _Payload, key: bytes | None, value: bytes) -> None:
        source = message.source
        if message.ddl is not None or message.tableChanges:
            if source is None or source.file is None or source.pos is None:
                raise ValueError("a schema change without its place in the source's log")
            changes = bytes(message.tableChanges)
            out.add(
                place,
                "schema",
                database=message.databaseName or source.db or "",
                table=source.table or None,
                file=self._file(source.file),
                pos=source.pos,
                row=0,
                source_time=_source_time(source),
                transaction_id=source.gtid,
                statement=message.ddl or "",
                default_database=message.databaseName or source.db or "",
                table_changes=None if changes in (b"", _NULL, b"[]") else changes.decode(),
            )
        elif message.status is not None and message.id is not None:
            op = {"BEGIN": "begin", "END": "commit"}.get(message.status)
            if op is None:
                raise ValueError("unknown transaction status")
            time = None if message.ts_ms is None else message.ts_ms * 1000
            out.add(place, "transaction", op=op, transaction_id=message.id, source_time=time)
        elif (
            message.ts_ms is not None
            and message.op is None
            and source is None
            and not message.before
            and not message.after
        ):
            out.add(place, "progress", source_time=message.ts_ms * 1000)
        elif bytes(value).strip() == b'{"schema":null,"payload":null}':
            out.add(place, "ignored")
        else:
            raise ValueError("neither row, schema change, transaction mark nor heartbeat")

    def _file(self, file: str) -> int:
        number = self._files.get(file)
        if number is None:
            number = self._files[file] = binlog_file_number(file)
        return number

    def _columns(self, fields: Any, image: bytes, key: bytes | None) -> int:
        """Return the number of the ``columns`` text for a row."""
        if key is None or not self._key_head or not key.startswith(self._key_head):
            self._key_head, self._key_names = (b"", None) if key is None else debezium_columns.key_names(key)
            self._last_fields = None
        if fields is not None and fields is self._last_fields:  # one table's rows stand together: no text is looked up
            return self._last_columns
        typed = fields is not None
        mark = (fields if typed else tuple(_members.decode(image)), self._key_names, typed)
        number = self._numbers.get(mark)
        if number is None:
            number = self._numbers[mark] = len(self._texts)
            self._texts.append(debezium_columns.columns_text(*mark))
        self._last_fields, self._last_columns = fields, number
        return number

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of a row or the time of a heartbeat."""
        if value is None:
            return None
        try:
            message = self._open(value)[2]
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        if message.source is not None:
            time = _source_time(message.source)
            return None if time is None else Progress(time // 1000, heartbeat=False)
        if message.ts_ms is not None and message.status is None:
            return Progress(message.ts_ms, heartbeat=True)
        return None

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change."""
        return debezium_columns.describe(columns)

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images, by the record's schema or by the stated handling modes."""
        detail = None if description is None or description.details is None else description.details.get(name)
        if detail is not None:
            return debezium_columns.described_encoding(name, column, detail, self._modes)
        return debezium_columns.assumed_encoding(name, column, self._modes)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Read ``tableChanges``."""
        return debezium_columns.structures(table_changes)

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the embedded schema's types."""
        return debezium_columns.inferred_schema(description)


def _source_time(source: _Source) -> int | None:
    if source.ts_us is not None:
        return source.ts_us
    if source.ts_ms is not None:
        return source.ts_ms * 1000
    return None if source.ts_sec is None else source.ts_sec * 1_000_000


def _reason(error: Exception) -> str:
    """Return the error's text without what it may quote of the data."""
    return str(error).split(" - at `$", 1)[0][:120]
