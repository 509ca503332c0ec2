# SPDX-License-Identifier: Apache-2.0
"""Decode Debezium's messages, whatever encoding they are read from and whatever connector wrote them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.log_names import CONNECTORS, CONNECTORS_MEANING
from airflow_provider_cdc.core.formats.common.record_decoder import decode_each
from airflow_provider_cdc.core.formats.connect import flattening
from airflow_provider_cdc.core.formats.connect.columns import ColumnTexts, describe
from airflow_provider_cdc.core.formats.connect.connectors.contract import LoggedChange, SchemaLog
from airflow_provider_cdc.core.formats.connect.connectors.registry import (
    CONNECTOR,
    CONNECTOR_MEANING,
    connector_of,
    connector_options,
    open_connector,
    refusal,
)
from airflow_provider_cdc.core.formats.connect.envelope import NO_VALUE
from airflow_provider_cdc.core.formats.connect.messages import MessageReader, Payload, Source, Transaction
from airflow_provider_cdc.core.formats.contract import Description, Progress, Records
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.relation import RelationChange
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema

_ROW_OPS: Mapping[str | None, str] = {"r": "snapshot", "c": "insert", "u": "update", "d": "delete", "t": "truncate"}
_NOT_IN_TOPICS = re.compile(r"[^A-Za-z0-9._-]")  # the connector writes an underscore for each
_NO_TOMBSTONE = (
    "a record without a value, which a transform that is set to rewrite deletes never writes: its "
    "delete.tombstone.handling.mode is another one, and the row's place in the log is lost"
)
_NULL = b"null"
_ABSENT = (msgspec.Raw(_NULL), msgspec.Raw())
_STREAMED = (*_ABSENT, msgspec.Raw(b'"false"'), msgspec.Raw(b"false"))


class _History(msgspec.Struct, gc=False):
    """A record of the schema history, which Flink CDC sends on as text (docs/wire/debezium-dtle.md B4, B11.1)."""

    ddl: str
    databaseName: str = ""


_history = msgspec.json.Decoder(_History)


class DebeziumFormat:
    """Rows, in their envelopes or flattened, schema-change topic, heartbeats and transaction topic of Debezium.

    :param reader_of: returns the encoding's reader of messages with such a ``source``, and of rows that are flattened
        so, None for those in their envelopes.
    """

    order = "exact"
    updates_name_changes = False
    ddl_among_rows = False
    splits_partitions = True
    chosen_keys = True
    row_numbers = "event"
    may_delete: Callable[[bytes], bool]  # where records without a value stand behind deletes
    options: Mapping[str, str] = {
        CONNECTOR: CONNECTOR_MEANING,
        **connector_options(),
        CONNECTORS: CONNECTORS_MEANING,
        **flattening.OPTIONS,
    }

    def __init__(
        self,
        options: Mapping[str, str] | None,
        reader_of: Callable[[type[Source], flattening.Flattening | None], MessageReader],
    ) -> None:
        flat = flattening.flattening_of(options or {})
        connector = self._connector = open_connector(options or {})
        if flat is not None:
            flat.demand(connector.place_members)
        self.reads_headers = flat is not None and bool(flat.headers)
        self.loses_truncates = flat is not None
        self.carries = connector.carries
        self.dialect = connector.dialect
        self.updates_move_keys = connector.updates_move_keys
        self.partial_images = connector.partial_images
        self.inserts_lack_defaults = connector.inserts_lack_defaults
        self.snapshot_rows = connector.snapshot_rows
        self._reader = reader_of(connector.source, flat)
        self._tombstones = flat is None or flat.tombstones
        if self._tombstones:
            self.may_delete = self._reader.may_delete
        self._names: Callable[[Source], tuple[str | None, str | None]] = attrgetter(*connector.table_members)
        self._columns = ColumnTexts(connector.no_key)
        self._logs: dict[tuple[str | None, str | None], SchemaLog] = {log.name: log for log in connector.schema_logs}
        written = (".".join(log.name) for log in connector.schema_logs if not log.has_rows)
        self._log_topic = next((_NOT_IN_TOPICS.sub("_", name) for name in written), None)
        self._said: str | None = None  # by the newest row of a log, of the records that are read at once

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        self._said = None
        return decode_each(
            records,
            self._columns.texts,
            self._record,
            "a Debezium message",
            self._table_of,
            self._connector.widths,
            without_value=self._without_value,
            nearly=self._reader.near_miss,
        )

    def topic_prefix(self, schema_topic: str | None) -> str | None:
        """Return the connector's ``topic.prefix``: the schema topic's name, or what stands before that of the table."""
        if schema_topic is None or self._log_topic is None:
            return schema_topic
        ending = f".{self._log_topic}"
        return schema_topic.removesuffix(ending) or None if schema_topic.endswith(ending) else None

    def table_of_topic(self, topic: str, schema_topic: str | None) -> tuple[str, str] | None:
        """Return database and table of ``<topic.prefix>.<database>.<table>``."""
        known = self.topic_prefix(schema_topic)
        prefix = f"{known}."
        database, _, table = topic.removeprefix(prefix).partition(".")
        if known is None or not topic.startswith(prefix) or not database or not table or "." in table:
            return None
        if self._log_topic is not None and "_" in f"{database}{table}":
            return None  # may stand for another character, and then it is another table's name
        return database, table

    def _table_of(self, value: bytes) -> tuple[str | None, str | None]:
        """Return the table of a row change."""
        message = self._reader.origin(value)
        table = message.named(*self._connector.table_members)
        log = self._logs.get(table)
        if message.op not in _ROW_OPS or (log is not None and not log.has_rows):
            raise ValueError("no row change")
        return table

    def _without_value(self, out: ChangeBuilder, index: int) -> None:
        """Add the change of a record without a value; it is an error where deletes have none behind them."""
        if self._tombstones:
            out.ignore(index)
        else:
            out.error(index, "record.tombstone_alone", _NO_TOMBSTONE)

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the change of one record."""
        if value == NO_VALUE:
            self._without_value(out, index)
            return
        headers = out.records.headers
        columns, message = self._reader.read(value, headers[index] if headers else None)
        op, source = _ROW_OPS.get(message.op), message.source
        if source is not None and source.name != out.log_name:
            out.note_log(index, source.name)
        if op is None or source is None:
            self._without_row(out, index, message)
            return
        log = self._logs.get(self._names(source)) if self._logs else None
        logged = None if log is None else self._logged(message, op, source, log)
        if log is None or log.has_rows:
            key = self._reader.key(out.records.keys[index])
            out.changes.append(self._row(index, message, op, source, key, columns))
            order = None if message.transaction is None else message.transaction.data_collection_order
            if order is not None:
                out.note(len(out.changes) - 1, "transaction_order", int(order))
            elif key is None and self._connector.may_share_place(op, source):
                out.note(len(out.changes) - 1, "built", message.ts_us)
        elif logged is None:
            out.ignore(index)
        if log is not None and logged is not None and not (log.has_rows and logged.text == self._said):
            self._log(out, index, source, log, logged)
            self._said = logged.text

    def _without_row(self, out: ChangeBuilder, index: int, message: Payload) -> None:
        """Add the change of a record that is not a row."""
        if message.op is None or message.source is None:
            self._other(out, index, message)
        elif message.op == "m":
            self._demand_read(message.source)
            out.ignore(index)  # logical decoding message: no row
        else:
            raise ValueError("unknown op")

    def _row(
        self,
        index: int,
        message: Payload,
        op: str,
        source: Source,
        key: bytes | None,
        columns: tuple[str, ...] | None,
    ) -> tuple[Any, ...]:
        """Return the fields of a :class:`Change`."""
        before = None if message.before in _ABSENT else bytes(message.before)
        after = None if message.after in _ABSENT else bytes(message.after)
        lacks = before is None if op == "delete" else after is None and op != "truncate"
        database, table = self._names(source)
        if lacks or table is None or database is None:
            raise ValueError(f"a row of op {message.op} without its image, database or table")
        file, pos, row = self._position(source, message.transaction, keyed=key is not None)
        time = source.time()
        image = before if after is None else after
        number = None if image is None else self._columns.number(columns, key, (database, table), image)
        transaction = self._connector.transaction_id(source)
        op = self._connector.row_op(op, source)
        names = None if key is None else self._columns.key_names
        before, after = self._connector.images(op, before, after, names, columns)
        return (index, 0, "row", op, database, table, file, pos, row, time, None, transaction, before, after, number)

    def _logged(self, message: Payload, op: str, source: Source, log: SchemaLog) -> LoggedChange | None:
        """Return the schema change that a row stands for, None where it stands for none."""
        position = self._position(source, message.transaction)
        after = None if message.after in _ABSENT else bytes(message.after)
        return log.change(self._connector.row_op(op, source), position, after)

    def _log(self, out: ChangeBuilder, index: int, source: Source, log: SchemaLog, change: LoggedChange) -> None:
        """Add the schema change that a row stands for."""
        file, pos, row = change.position
        out.add(
            index,
            "schema",
            op="snapshot" if change.read else None,
            number=int(log.has_rows),
            database=change.database,
            table=change.table,
            file=file,
            pos=pos,
            row=row,
            source_time=source.time(),
            transaction_id=self._connector.transaction_id(source),
            statement=change.statement,
            default_database=change.database,
            dialect=self.dialect,
            table_changes=change.text,
        )

    def _position(self, source: Source, transaction: Transaction | None, *, keyed: bool = True) -> tuple[int, int, int]:
        """Return where a change stands in the log; of another connector than the stated one no place is read."""
        self._demand_read(source)
        return self._connector.position(source, transaction, keyed=keyed)

    def _demand_read(self, source: Source) -> None:
        """Refuse a message of another connector than the stated one.

        :raises ValueError: it is; the text says how it is read, or why it is not.
        """
        writer = source.connector
        if writer is None or writer in self._connector.writers:
            return
        other = connector_of(writer)
        if other is not None:
            way = f"which is read with source.options.{CONNECTOR}: {other}"
            raise ValueError(f"a record of the connector {writer}, {way}")
        raise ValueError(refusal(writer) or f"a record of the connector {writer}, which no format reads")

    def _other(self, out: ChangeBuilder, index: int, message: Payload) -> None:
        source = message.source
        if message.historyRecord is not None:
            # its tableChanges lack the labels of ENUM and SET in old versions; the statement says it all
            history = _history.decode(message.historyRecord)
            message.ddl, message.databaseName = history.ddl, history.databaseName
        if message.ddl is not None or message.tableChanges:
            if source is None:
                raise ValueError("a schema change without its source")
            file, pos, _ = self._position(source, None)
            changes = bytes(message.tableChanges)
            out.add(
                index,
                "schema",
                op=None if source.snapshot in _STREAMED else "snapshot",
                database=message.databaseName or source.db or "",
                table=source.table or None,
                file=file,
                pos=pos,
                row=0,
                source_time=source.time(),
                transaction_id=self._connector.transaction_id(source),
                statement=message.ddl or "",
                default_database=message.databaseName or source.db or "",
                dialect=self.dialect,
                table_changes=None if changes in (b"", _NULL, b"[]") else changes.decode(),
            )
        elif message.status is not None and message.id is not None:
            op = {"BEGIN": "begin", "END": "commit"}.get(message.status)
            if op is None:
                raise ValueError("unknown transaction status")
            time = None if message.ts_ms is None else message.ts_ms * 1000
            counts = None if op == "begin" or message.data_collections in _ABSENT else bytes(message.data_collections)
            text = counts.decode() if counts and "transaction_counts" in self.carries else None
            out.add(index, "transaction", op=op, transaction_id=message.id, source_time=time, statement=text)
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
            time = message.source.time()
            return None if time is None else Progress(time // 1000, heartbeat=False)
        if message.ts_ms is not None and message.status is None:
            return Progress(message.ts_ms, heartbeat=True)
        return None

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change."""
        return describe(columns)

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images."""
        encoded = self._connector.encoding(name, column, description)
        member = None if description is None else description.members.get(name)
        return encoded if member is None else replace(encoded, name=member)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Read ``tableChanges``."""
        return self._connector.structure(table_changes)

    def relation(self, table_changes: str) -> RelationChange | None:
        """Read what a row of the source's own log of schema changes says; None where the connector sends them."""
        relations = (log.relation(table_changes) for log in self._logs.values())
        return next((relation for relation in relations if relation is not None), None)

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the record's own types."""
        return self._connector.infer(description)
