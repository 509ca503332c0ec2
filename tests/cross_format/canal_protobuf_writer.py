# SPDX-License-Identifier: Apache-2.0
"""A history as Canal's protobuf packets, hashed by key over partitions (docs/wire/canal.md 1, 2, 4, 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from airflow_provider_cdc.core.formats.generated.canal_entry_pb2 import (
    ALTER,
    CREATE,
    DELETE,
    ERASE,
    INSERT,
    MYSQL,
    RENAME,
    ROWDATA,
    TRUNCATE,
    UPDATE,
    Column,
    Entry,
    Header,
    Pair,
    RowChange,
    RowData,
)
from airflow_provider_cdc.core.formats.generated.canal_packet_pb2 import MESSAGES, Messages, Packet
from airflow_provider_cdc.core.model.schema import TableSchema
from tests.cross_format.canal_values import ZONE, image_of, partition_of, sql_type
from tests.cross_format.events import Ddl, Event, Image, Message, Row

EVENTS = {"insert": INSERT, "update": UPDATE, "delete": DELETE}
STATEMENTS = {"CREATE": CREATE, "ALTER": ALTER, "ERASE": ERASE, "TRUNCATE": TRUNCATE, "RENAME": RENAME}


class Writer:
    """Write one packet for each event: rows to the partition of their key's hash, DDL to partition 0."""

    format = "canal-protobuf"
    options: Mapping[str, str] = {"timezone": ZONE}
    creates = False

    def write(self, event: Event, partitions: int) -> list[Message]:
        """Return the packet of one event."""
        what = event.what
        if isinstance(what, Ddl):
            kind = STATEMENTS[what.canal_type]
            change = RowChange(eventType=kind, isDdl=True, sql=what.statement, ddlSchemaName=what.database)
            return [_message(event, 0, change)]
        before, after = (_columns(image, what.schema) for image in (what.before, what.after))
        for column in after:
            same = [old for old in before if old.index == column.index]
            column.updated = not same or (same[0].isNull, same[0].value) != (column.isNull, column.value)
        rows = [RowData(beforeColumns=before, afterColumns=after)]
        key = image_of(what.before if what.after is None else what.after, what.schema)
        change = RowChange(tableId=108, eventType=EVENTS[what.op], isDdl=False, rowDatas=rows)
        return [_message(event, partition_of(what, key, partitions), change)]


def _columns(image: Image | None, schema: TableSchema) -> list[Column]:
    if image is None:
        return []
    columns, texts = [], image_of(image, schema)
    for index, column in enumerate(schema.columns):
        if column.name not in texts:
            continue
        text = texts[column.name]
        written = Column(index=index, sqlType=sql_type(column.type, text), name=column.name, isNull=text is None)
        written.isKey = column.id in schema.key
        written.value = text or ""
        written.mysqlType = str(column.type)
        columns.append(written)
    return columns


def _message(event: Event, partition: int, change: RowChange) -> Message:
    header = Header(
        version=1,
        logfileName=f"mysql-bin.{event.file:06d}",
        logfileOffset=event.pos,
        serverId=1,
        serverenCode="UTF-8",
        executeTime=event.time_ms,
        sourceType=MYSQL,
        schemaName=event.what.database,
        tableName=event.what.table,
        eventLength=40,
        eventType=change.eventType,
        props=[Pair(key="rowsCount", value="1")] if isinstance(event.what, Row) else [],
    )
    entry = Entry(header=header, entryType=ROWDATA, storeValue=change.SerializeToString())
    body = Messages(messages=[entry.SerializeToString()]).SerializeToString()
    return Message(partition, None, Packet(version=1, type=MESSAGES, body=body).SerializeToString())


def together(messages: Sequence[Message]) -> Message:
    """Return packets of one partition as one packet, as Canal sends a batch of events."""
    packets = [Packet.FromString(message.value or b"") for message in messages]
    entries = [entry for packet in packets for entry in Messages.FromString(packet.body).messages]
    body = Messages(messages=entries).SerializeToString()
    return Message(messages[0].partition, None, Packet(version=1, type=MESSAGES, body=body).SerializeToString())
