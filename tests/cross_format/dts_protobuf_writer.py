# SPDX-License-Identifier: Apache-2.0
"""A history as Tencent DTS sends it: numbered records, some in slices, DDL to every partition (tencent-dts.md)."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from itertools import groupby

from airflow_provider_cdc.core.formats.generated.dts_pb2 import (
    BeginEvent,
    CheckpointEvent,
    Column,
    CommitEvent,
    Data,
    DataType,
    DDLEvent,
    DMLEvent,
    DMLType,
    Entries,
    Entry,
    Envelope,
    Event,
    Header,
    MessageType,
    RowChange,
    SourceType,
)
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from tests.cross_format import events
from tests.cross_format.events import Ddl, Image, Message, Row, Value

NUMBERS = {
    **{"tinyint": DataType.INT8, "smallint": DataType.INT16, "mediumint": DataType.INT32, "int": DataType.INT32},
    **{"bigint": DataType.INT64, "bit": DataType.INT64, "year": DataType.INT64, "decimal": DataType.DECIMAL},
    **{"float": DataType.FLOAT32, "double": DataType.FLOAT64},
}
UNSIGNED = DataType.UINT8 - DataType.INT8  # from a signed type to the unsigned one
SLICED, CHECKED = 7, 20  # one event in so many comes in slices, or is followed by a checkpoint


class Writer:
    """Write one record for each transaction, which has rows of one partition: that of their key's hash.

    As it stands it is made to find mistakes: a transaction for each event, and many records in three slices.

    :param rows: row changes of a transaction; those that follow each other with the same operation are one event.
    :param sliced: a record with one event in so many comes in slices.
    :param slices: how many.
    :param checked: one event in so many is followed by a checkpoint.
    """

    format = "dts-protobuf"
    options: Mapping[str, str] = {}
    creates = False

    def __init__(self, rows: int = 1, sliced: int = SLICED, slices: int = 3, checked: int = CHECKED) -> None:
        self._rows, self._sliced, self._slices, self._checked = rows, sliced, slices, checked
        self._sent: Counter[int] = Counter()  # records by partition
        self._waiting: dict[int, list[events.Event]] = {}  # transactions that are not full yet, by partition

    def write(self, event: events.Event, partitions: int) -> list[Message]:
        """Return the records that are complete with one event."""
        messages: list[Message] = []
        if isinstance(event.what, Ddl):
            messages += self.rest()
            body = Event(ddlEvent=DDLEvent(schemaName=event.what.database.encode(), sql=event.what.statement.encode()))
            entries = [self._entry(event, MessageType.DDL, body, 1)]
            for partition_number in range(partitions):
                messages += self._messages(
                    partition_number, entries, self._slices if event.number % self._sliced == 0 else 1
                )
        else:
            partition_number = _partition(event.what, partitions)
            self._waiting.setdefault(partition_number, []).append(event)
            if len(self._waiting[partition_number]) == self._rows:
                messages += self._transaction(partition_number, self._waiting.pop(partition_number))
        if event.number % self._checked == 0:
            messages += self.rest()
            body = Event(checkpointEvent=CheckpointEvent(syncedGtid="u:1-5", fileName="b.000001", position=event.pos))
            entries = [self._entry(event, MessageType.CHECKPOINT, body, 2)]
            messages += [
                message
                for partition_number in range(partitions)
                for message in self._messages(partition_number, entries, 1)
            ]
        return messages

    def rest(self) -> list[Message]:
        """Return the records of the transactions that are not full yet."""
        waiting, self._waiting = self._waiting, {}
        return [
            message
            for partition_number in waiting
            for message in self._transaction(partition_number, waiting[partition_number])
        ]

    def _transaction(self, partition_number: int, rows: list[events.Event]) -> list[Message]:
        entries = [self._entry(rows[0], MessageType.BEGIN, Event(beginEvent=BeginEvent(threadId=5)), 0)]
        changes = [(event, event.what) for event in rows if isinstance(event.what, Row)]
        for _, group in groupby(changes, lambda change: (change[1].op, change[1].table, change[1].schema)):
            alike = list(group)
            body = Event(dmlEvent=_dml([row for _, row in alike]))
            entries.append(self._entry(alike[0][0], MessageType.DML, body, 1))
        entries.append(self._entry(rows[-1], MessageType.COMMIT, Event(commitEvent=CommitEvent(transactionId="9")), 2))
        sliced = any(event.number % self._sliced == 0 for event in rows)
        return self._messages(partition_number, entries, self._slices if sliced else 1)

    def _entry(self, event: events.Event, kind: int, body: Event, step: int) -> Entry:
        header = Header(
            version=1,
            sourceType=SourceType.MYSQL,
            messageType=kind,
            timestamp=event.time_ms // 1000,
            serverId=1,
            fileName=f"mysql-bin.{event.file:06d}",
            position=event.pos,
            gtid=f"38cecd93-a9c2-11ec-b952-043f72d8da53:{event.transaction}",
            seqId=event.number * 3 + step,
            isLast=True,
        )
        if kind in (MessageType.DML, MessageType.DDL):
            header.schemaName, header.tableName = event.what.database, event.what.table
        return Entry(header=header, event=body)

    def _messages(self, partition: int, entries: list[Entry], slices: int) -> list[Message]:
        data = Entries(items=entries).SerializeToString()
        cuts = [len(data) * cut // slices for cut in range(slices + 1)]
        messages = []
        for index in range(slices):
            self._sent[partition] += 1
            envelope = Envelope(version=1, total=slices, index=index, data=data[cuts[index] : cuts[index + 1]])
            headers = (("ps", str(self._sent[partition]).encode()),)
            messages.append(Message(partition, None, envelope.SerializeToString(), headers=headers))
        return messages


def _partition(row: Row, partitions: int) -> int:
    """Return where the policy "table name + primary key" puts a row; its hash is open (docs/wire/tencent-dts.md 7)."""
    image = row.after if row.before is None else row.before
    assert image is not None
    key = [row.table, *(str(image[column.name]) for column in row.schema.key_columns)]
    return zlib.crc32("\0".join(key).encode()) % partitions


def _dml(rows: list[Row]) -> DMLEvent:
    row = rows[0]
    columns = [
        Column(name=column.name, originalType=str(column.type).encode(), isKey=column.id in row.schema.key)
        for column in row.schema.columns
    ]
    changes = [RowChange(oldColumns=_image(r.before, r.schema), newColumns=_image(r.after, r.schema)) for r in rows]
    described = [column.SerializeToString() for column in columns]
    return DMLEvent(dmlEventType=DMLType.Value(row.op.upper()), columns=described, rows=changes)


def _image(image: Image | None, schema: TableSchema) -> list[Data]:
    if image is None:
        return []
    absent = Data(dataType=DataType.NA)
    return [_data(image[c.name], c.type) if c.name in image else absent for c in schema.columns]


def _data(value: Value, kind: ColumnType) -> Data:
    if value is None:
        return Data()
    if kind.name in NUMBERS:
        unsigned = UNSIGNED if kind.unsigned and kind.name.endswith("int") else 0
        return Data(dataType=NUMBERS[kind.name] + unsigned, sv=_numeral(value))
    if kind.name == "json":
        return Data(dataType=DataType.BYTES, bv=str(value).encode())
    if isinstance(value, bytes):
        if kind.name == "blob":
            return Data(dataType=DataType.BYTES, bv=value)
        return Data(dataType=DataType.STRING, charset="binary", bv=value)
    return Data(dataType=DataType.STRING, charset="utf8mb4", bv=str(value).encode())


def _numeral(value: Value) -> str:
    """Return plain text; a double that holds 1 is written ``1`` (docs/wire/tencent-dts.md 3)."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    return repr(value).removesuffix(".0")
