# SPDX-License-Identifier: Apache-2.0
"""Decode Debezium's JSON, with and without embedded schema (MySQL and MariaDB connectors, 0.8 to 3.x).

Field lists and their history: docs/wire/debezium-dtle.md B1 to B4 and B9.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.epoch_times import EpochMicros, EpochMillis
from airflow_provider_cdc.core.formats.common.log_names import CONNECTORS, CONNECTORS_MEANING
from airflow_provider_cdc.core.formats.common.record_decoder import decode_each
from airflow_provider_cdc.core.formats.common.timezone_option import timezone_problems
from airflow_provider_cdc.core.formats.connect import columns as connect_columns
from airflow_provider_cdc.core.formats.connect import debezium_columns, debezium_table_changes
from airflow_provider_cdc.core.formats.connect.binlog_files import FileNumbers
from airflow_provider_cdc.core.formats.connect.columns import ColumnTexts
from airflow_provider_cdc.core.formats.connect.envelope import NO_VALUE, EnvelopeReader, Message, is_delete, table_of
from airflow_provider_cdc.core.formats.connect.evidence import of_debezium
from airflow_provider_cdc.core.formats.contract import Description, Progress, Records
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema

_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_RowCount = Annotated[int, msgspec.Meta(ge=0, le=9_999_999_999)]

_ROW_OPS: Mapping[str | None, str] = {"r": "snapshot", "c": "insert", "u": "update", "d": "delete", "t": "truncate"}
_NULL = b"null"
_ABSENT = (msgspec.Raw(_NULL), msgspec.Raw())
_STREAMED = (*_ABSENT, msgspec.Raw(b'"false"'), msgspec.Raw(b"false"))
_INCREMENTAL = msgspec.Raw(b'"incremental"')


# MariaDB writes no place of their own into the events of a transaction since 11.4
_WITHOUT_PLACES = "mariadb"


class _Transaction(msgspec.Struct, gc=False):
    """Hold what ``provide.transaction.metadata`` adds to a row change (docs/wire/debezium-dtle.md B1)."""

    total_order: _RowCount
    data_collection_order: _RowCount | None = None


class _Source(msgspec.Struct, gc=False):
    """Members needed of ``source``, in the connector's order; ``ts_sec`` is the layout before 0.10.

    ``snapshot`` is a text, up to 0.9 a boolean (docs/wire/debezium-dtle.md B1).
    """

    connector: str | None = None
    name: str | None = None
    ts_ms: EpochMillis | None = None
    ts_sec: EpochMillis | None = None
    snapshot: msgspec.Raw = msgspec.Raw()
    db: str | None = None
    ts_us: EpochMicros | None = None
    table: str | None = None
    gtid: str | None = None
    file: str | None = None
    pos: _Count | None = None
    row: _RowCount | None = None


class _Payload(Message, gc=False):
    """Any message of the connector: row, schema change, transaction mark, heartbeat or notification."""

    before: msgspec.Raw = msgspec.Raw()
    after: msgspec.Raw = msgspec.Raw()
    source: _Source | None = None
    transaction: _Transaction | None = None
    op: str | None = None
    ts_ms: EpochMillis | None = None
    ddl: str | None = None
    databaseName: str | None = None
    tableChanges: msgspec.Raw = msgspec.Raw()
    historyRecord: str | None = None
    status: str | None = None
    id: str | None = None
    aggregate_type: str | None = None


class _History(msgspec.Struct, gc=False):
    """A record of the schema history, which Flink CDC sends on as text (docs/wire/debezium-dtle.md B4, B11.1)."""

    ddl: str
    databaseName: str = ""


_history = msgspec.json.Decoder(_History)


class WireFormat:
    """``debezium-json``: rows, schema-change topic, heartbeats and transaction topic of Debezium's JSON converter."""

    name = "debezium-json"
    summary = "Debezium JSON (MySQL, MariaDB), with or without embedded schema"
    order = "exact"
    carries = frozenset({"rows", "ddl", "progress", "transactions", "types", "ad_hoc_snapshots", "transaction_orders"})
    updates_move_keys = False  # a moved key is a delete and an insert (docs/wire/debezium-dtle.md B1)
    updates_name_changes = False
    ddl_among_rows = False
    splits_partitions = True
    partial_images = False
    inserts_lack_defaults = False
    chosen_keys = True
    row_numbers = "event"
    snapshot_rows = "shared"
    evidence = staticmethod(of_debezium)
    is_delete = staticmethod(is_delete)
    options: Mapping[str, str] = {
        **debezium_columns.OPTIONS,
        debezium_columns.TIMEZONE: debezium_columns.TIMEZONE_MEANING,
        CONNECTORS: CONNECTORS_MEANING,
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        problems = debezium_columns.option_problems(options or {}) + timezone_problems(options or {})
        if problems:
            raise ConfigurationError(problems)
        self._modes = {**{name: default for name, (default, _) in debezium_columns.MODES.items()}, **(options or {})}
        self._reader = EnvelopeReader(_Payload)
        self._columns = ColumnTexts(no_key=())
        self._files = FileNumbers()

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        return decode_each(records, self._columns.texts, self._record, "a Debezium message", self._table_of)

    def table_of_topic(self, topic: str, schema_topic: str | None) -> tuple[str, str] | None:
        """Return database and table of ``<topic.prefix>.<database>.<table>``; the schema topic's name is the prefix."""
        prefix = f"{schema_topic}."
        database, _, table = topic.removeprefix(prefix).partition(".")
        if schema_topic is None or not topic.startswith(prefix) or not database or not table or "." in table:
            return None
        return database, table

    def _table_of(self, value: bytes) -> tuple[str | None, str | None]:
        """Return the table of a row change."""
        message = table_of(value)
        if message.op not in _ROW_OPS:
            raise ValueError("no row change")
        return message.source.db, message.source.table

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the change of one record."""
        if value == NO_VALUE:
            out.ignore(index)  # tombstone
            return
        columns, message = self._reader.read(value)
        op, source = _ROW_OPS.get(message.op), message.source
        if source is not None and source.name != out.log_name:
            out.note_log(index, source.name)
        if op is not None and source is not None:
            out.changes.append(self._row(index, message, op, source, out.records.keys[index], columns))
            if message.transaction is not None:
                out.note(len(out.changes) - 1, "transaction_order", message.transaction.data_collection_order)
        elif message.op is None or source is None:
            self._other(out, index, message)
        elif message.op == "m":
            out.ignore(index)  # logical decoding message: no row
        else:
            raise ValueError("unknown op")

    def _row(
        self,
        index: int,
        message: _Payload,
        op: str,
        source: _Source,
        key: bytes | None,
        columns: tuple[str, ...] | None,
    ) -> tuple[Any, ...]:
        """Return the fields of a :class:`Change`."""
        before = None if message.before in _ABSENT else bytes(message.before)
        after = None if message.after in _ABSENT else bytes(message.after)
        lacks = before is None if op == "delete" else after is None and op != "truncate"
        if lacks or source.table is None or source.db is None:
            raise ValueError(f"a row of op {message.op} without its image, database or table")
        if source.file is None or source.pos is None:
            raise ValueError("a row without its position in a binlog")
        file, pos, row = self._files[source.file], source.pos, source.row or 0
        if source.connector == _WITHOUT_PLACES and message.transaction is not None:
            row = message.transaction.total_order
        database, table, time = source.db, source.table, source.ts_us or _source_time(source)
        image = before if after is None else after
        number = None if image is None else self._columns.number(columns, key, (database, table), image)
        transaction = source.gtid or None
        if op == "snapshot" and source.snapshot == _INCREMENTAL:
            op = "incremental"
        return (index, 0, "row", op, database, table, file, pos, row, time, None, transaction, before, after, number)

    def _other(self, out: ChangeBuilder, index: int, message: _Payload) -> None:
        source = message.source
        if message.historyRecord is not None:
            # its tableChanges lack the labels of ENUM and SET in old versions; the statement says it all
            history = _history.decode(message.historyRecord)
            message.ddl, message.databaseName = history.ddl, history.databaseName
        if message.ddl is not None or message.tableChanges:
            if source is None or source.file is None or source.pos is None:
                raise ValueError("a schema change without its position in a binlog")
            changes = bytes(message.tableChanges)
            out.add(
                index,
                "schema",
                op=None if source.snapshot in _STREAMED else "snapshot",
                database=message.databaseName or source.db or "",
                table=source.table or None,
                file=self._files[source.file],
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
            out.add(index, "transaction", op=op, transaction_id=message.id, source_time=time)
        elif (
            message.ts_ms is not None
            and message.op is None
            and source is None
            and not message.before
            and not message.after
        ):
            out.add(index, "progress", source_time=message.ts_ms * 1000)
        elif message.aggregate_type is not None and message.id is not None:
            out.ignore(index)  # notification
        else:
            raise ValueError("neither row, schema change, transaction mark nor heartbeat")

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of a row or the time of a heartbeat."""
        if value is None:
            return None
        try:
            message = self._reader.read(value)[1]
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
        return connect_columns.describe(columns)

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images, by the record's schema or by the stated handling modes."""
        detail = None if description is None or description.details is None else description.details.get(name)
        if detail is not None:
            return debezium_columns.described_encoding(name, column, detail, self._modes)
        return debezium_columns.assumed_encoding(name, column, self._modes)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Read ``tableChanges``."""
        return debezium_table_changes.structures(table_changes)

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the embedded schema's types."""
        return connect_columns.inferred_schema(description)


def _source_time(source: _Source) -> int | None:
    if source.ts_us is not None:
        return source.ts_us
    if source.ts_ms is not None:
        return source.ts_ms * 1000
    return None if source.ts_sec is None else source.ts_sec * 1_000_000
