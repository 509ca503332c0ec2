# SPDX-License-Identifier: Apache-2.0
"""Decode dtle's JSON: like Debezium 0.8, with its own types, times and DDL messages (docs/wire/debezium-dtle.md A)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.epoch_times import EpochSeconds
from airflow_provider_cdc.core.formats.common.log_names import CONNECTORS, CONNECTORS_MEANING
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord, decode_each
from airflow_provider_cdc.core.formats.common.timezone_option import timezone_problems
from airflow_provider_cdc.core.formats.connect import dtle_columns, dtle_statements
from airflow_provider_cdc.core.formats.connect.binlog_files import FileNumbers
from airflow_provider_cdc.core.formats.connect.columns import ColumnTexts, describe
from airflow_provider_cdc.core.formats.connect.envelope import NO_VALUE, EnvelopeReader, Message, origin_of
from airflow_provider_cdc.core.formats.connect.evidence import of_dtle
from airflow_provider_cdc.core.formats.contract import Description, Progress, Records
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_RowCount = Annotated[int, msgspec.Meta(ge=0, le=9_999_999_999)]

OPTIONS: dict[str, str] = {
    "timezone": "DateTimeZone of the dtle job, in which it takes DATETIME: a name or an offset (default UTC)",
    "text_as_base64": "true | false (default false): whether TEXT and JSON of binlog rows are base64 (dtle issue 775)",
    CONNECTORS: CONNECTORS_MEANING,
    "default_database": "database of DDL that names none: dtle leaves the session's out, and such DDL is refused",
}

_ROW_OPS: Mapping[str | None, str] = {"c": "insert", "u": "update", "d": "delete"}


class _Source(msgspec.Struct, gc=False):
    """Members needed of ``source``, in dtle's order; its times are dtle's clock, not the database's (#956)."""

    name: str | None = None
    gtid: str | None = None
    file: str | None = None
    pos: _Count | None = None
    row: _RowCount | None = None
    snapshot: bool = False
    db: str | None = None
    table: str | None = None


class _Position(msgspec.Struct, gc=False):
    """``position`` of a DDL message; ``ts_sec`` is the database's time."""

    file: str | None = None
    pos: _Count | None = None
    ts_sec: EpochSeconds = 0
    snapshot: bool = False


class _Message(Message, gc=False):
    """A row or a DDL message."""

    before: msgspec.Raw = msgspec.Raw()
    after: msgspec.Raw = msgspec.Raw()
    source: _Source | None = None
    op: str | None = None
    position: _Position | None = None
    databaseName: str | None = None
    ddl: str | None = None


class WireFormat:
    """``dtle-json``: rows and the topic SchemaChangeTopic of dtle's Kafka output."""

    name = "dtle-json"
    summary = "dtle's Kafka output (MySQL), with embedded schema"
    order = "exact"
    carries = frozenset({"rows", "ddl", "types"})  # neither heartbeats nor times of the database with the rows
    updates_move_keys = True  # the record's key is that of the row before (docs/wire/debezium-dtle.md A2)
    updates_name_changes = False
    ddl_among_rows = False
    splits_partitions = True
    partial_images = False
    inserts_lack_defaults = False
    chosen_keys = True
    row_numbers = "event"
    snapshot_rows = "shared"
    evidence = staticmethod(of_dtle)
    options = OPTIONS

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        stated = options or {}
        zone, base64 = stated.get("timezone"), stated.get("text_as_base64", "false")
        problems = timezone_problems(stated)
        if base64 not in ("true", "false"):
            problems.append(f"source.options.text_as_base64: {base64!r} is not one of true, false")
        if stated.get("default_database") == "":
            problems.append("source.options.default_database: is empty")
        if problems:
            raise ConfigurationError(problems)
        self._zone, self._text_as_base64 = zone, base64 == "true"
        self._default_database = stated.get("default_database")
        self._reader = EnvelopeReader(_Message)
        self._columns = ColumnTexts(no_key=None)
        self._files = FileNumbers()

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        return decode_each(records, self._columns.texts, self._record, "a dtle message", self._table_of)

    def _table_of(self, value: bytes) -> tuple[str | None, str | None]:
        """Return the table of a row change."""
        message = origin_of(value)
        if message.op not in _ROW_OPS:
            raise ValueError("no row change")
        return message.named("db", "table")

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the change of one record."""
        if value == NO_VALUE:
            out.ignore(index)  # tombstone
            return
        columns, message = self._reader.read(value)
        if message.ddl is not None:
            self._statement(out, index, message)
        else:
            if message.source is not None and message.source.name != out.log_name:
                out.note_log(index, message.source.name)
            out.changes.append(self._row(index, message, message.source, out.records.keys[index], columns))

    def _row(
        self,
        index: int,
        message: _Message,
        source: _Source | None,
        key: bytes | None,
        columns: tuple[str, ...] | None,
    ) -> tuple[Any, ...]:
        """Return the fields of a :class:`Change`."""
        op = _ROW_OPS.get(message.op)
        if source is None or op is None:
            raise ValueError("neither a row of a known op nor DDL")
        if columns is None:
            raise ValueError("a row without its schema")
        before, after = _image(message.before), _image(message.after)
        if (before is None) is not (op == "insert") or (after is None) is not (op == "delete"):
            raise ValueError(f"a row of op {message.op} with other images than it has")
        database, table, snapshot = source.db, source.table, source.snapshot
        if not database or not table:
            raise ValueError("a row without database or table")
        if snapshot:
            if op != "insert":
                raise ValueError(f"a row of op {message.op} in a snapshot")
            op = "snapshot"
        file, pos = self._position(source.file, source.pos, snapshot)
        number = self._columns.number(columns, key, (database, table), b"", snapshot)
        row, transaction = source.row or 0, source.gtid or None
        return (index, 0, "row", op, database, table, file, pos, row, None, None, transaction, before, after, number)

    def _position(self, file: str | None, pos: int | None, snapshot: bool) -> tuple[int, int]:
        """Return where an event begins in the log; a snapshot is before it (docs/wire/debezium-dtle.md A2, A4)."""
        if file is None or pos is None or (not file and not snapshot):
            raise ValueError("an event without its place in a binlog")
        return (self._files[file], pos) if file else (0, 0)

    def _statement(self, out: ChangeBuilder, index: int, message: _Message) -> None:
        position = message.position
        if position is None or message.op is not None:
            raise ValueError("DDL without its position, or with an op")
        file, pos = self._position(position.file, position.pos, position.snapshot)
        statement = dtle_statements.without_mark(message.ddl or "")
        if not statement:
            raise ValueError("DDL without text")
        database = message.databaseName or self._default_database or ""
        if not database and dtle_statements.needs_database(statement):
            reason = "DDL with unqualified names and no database; source.options.default_database says which they mean"
            raise UnsupportedRecord("record.database_unknown", reason)
        out.add(
            index,
            "schema",
            database=database,
            file=file,
            pos=pos,
            row=0,
            source_time=position.ts_sec * 1_000_000 or None,  # 0 in a snapshot
            statement=statement,
            default_database=database,
        )

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return None: a record has dtle's clock, not how far dtle has read (docs/wire/debezium-dtle.md A2)."""
        return None

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change."""
        return describe(columns)

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images, in snapshot rows otherwise than in rows of the binlog."""
        detail = (description.details or {}).get(name) if description is not None else None
        return dtle_columns.encoding(name, column, detail, self._zone, self._text_as_base64)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing: dtle never fills ``tableChanges`` (docs/wire/debezium-dtle.md A4)."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the embedded schema's types, None where they leave open what a value means."""
        return None if self._text_as_base64 else dtle_columns.inferred_schema(description)


def _image(raw: msgspec.Raw) -> bytes | None:
    text = bytes(raw)
    if text[:1] == b"{":
        return text
    if text in (b"", b"null"):
        return None
    raise ValueError("an image that is not an object")
