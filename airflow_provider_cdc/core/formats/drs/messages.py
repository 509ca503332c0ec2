# SPDX-License-Identifier: Apache-2.0
"""Decode Huawei DRS's JSON and JSON-C: they differ in the image of a DELETE and in TIMESTAMP values.

docs/wire/huawei-drs.md 3; nothing in a message says which of the two it is.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.described_tables import DescribedTables
from airflow_provider_cdc.core.formats.common.interning import Interner
from airflow_provider_cdc.core.formats.common.record_decoder import decode_each
from airflow_provider_cdc.core.formats.contract import Description, Progress, Records
from airflow_provider_cdc.core.formats.drs.images import Table, uneven
from airflow_provider_cdc.core.formats.drs.options import demand_dialect, dialect_of
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES

# Numbers may be strings (docs/wire/huawei-drs.md 6.1). Times are milliseconds; after the year 5138 they have 15 digits.
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] | Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,18}\Z")]
_Millis = Annotated[int, msgspec.Meta(ge=0, lt=10**14)] | Annotated[str, msgspec.Meta(pattern=r"\A[0-9]{1,14}\Z")]

_ROW_OPS: Mapping[str | None, str] = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete", "INIT": "snapshot"}
_SCHEMA_CHANGES = frozenset({"DDL", "INIT_DDL"})
_KNOWN = _ROW_OPS.keys() | _SCHEMA_CHANGES

# The smallest type for every value of a bare type name: no length, no sign (docs/wire/huawei-drs.md 3, 3.2).
_WIDEST = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "integer"), ColumnType("bigint")),
    "bigint": ColumnType("decimal", 20, 0),
    "float": ColumnType("float"),
    "double": ColumnType("double"),
    "year": ColumnType("year"),
    "bit": ColumnType("bit", 64),
    "date": ColumnType("date"),
    "time": ColumnType("time", 6),
    "datetime": ColumnType("datetime", 6),
    "timestamp": ColumnType("timestamp", 6),
    "json": ColumnType("json"),
    **dict.fromkeys(("decimal", "numeric"), ColumnType("longtext")),  # no scale is stated, and money is not rounded
    **dict.fromkeys(("char", "varchar", "tinytext", "text", "mediumtext", "longtext"), ColumnType("longtext")),
    **dict.fromkeys(("enum", "set"), ColumnType("longtext")),
    **dict.fromkeys(BINARIES, ColumnType("longblob")),
}


class _Message(msgspec.Struct, gc=False):
    """Any message; members not named here (``ts``, ``sqlType``, those of newer editions) decide nothing.

    In the order of the documents' samples, in which members are found fastest.
    """

    mysqlType: msgspec.Raw = msgspec.Raw()
    data: list[msgspec.Raw] | None = None
    old: list[msgspec.Raw] | None = None
    pkNames: msgspec.Raw = msgspec.Raw()
    id: _Count | None = None
    es: _Millis | None = None
    database: str | None = None
    table: str | None = None
    sql: str | None = None
    type: str | None = None


class _Times(msgspec.Struct, gc=False):
    type: str | None = None
    es: _Millis | None = None


class _TableOnly(msgspec.Struct, gc=False):
    """Members that name the table of a message, whatever else in it cannot be read."""

    database: str | None = None
    table: str | None = None
    type: str | None = None


_read_table = msgspec.json.Decoder(_TableOnly)
_NONE: tuple[msgspec.Raw | None, ...] = (None,)
_message = msgspec.json.Decoder(_Message)
_times = msgspec.json.Decoder(_Times)
_texts = msgspec.json.Decoder()


class DrsFormat(ABC):
    """Decode the messages; a format states where a DELETE's row stands and how a TIMESTAMP is written.

    :cvar deleted_in: which of ``data`` and ``old`` has the row of a DELETE; the other is taken if that has none.
    """

    deleted_in: str
    order = "exact"
    carries = frozenset({"rows", "ddl", "types"})
    updates_move_keys = True
    updates_name_changes = False
    ddl_among_rows = True
    splits_partitions = True
    partial_images = True  # Oracle: a column that is absent was not updated (docs/wire/huawei-drs.md 3.1)
    inserts_lack_defaults = False
    chosen_keys = False
    row_numbers = "record"
    snapshot_rows = "numbered"

    def __init__(self, options: Mapping[str, str]) -> None:
        self._dialect = dialect_of(options)
        self._texts = Interner[str]()
        self._tables = DescribedTables(self._table)

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        return decode_each(records, self._texts.values, self._record, "a DRS message", _table_of)

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the changes of one record."""
        message = _message.decode(value)
        op = _ROW_OPS.get(message.type)
        if op is not None:
            position, befores, afters = self._checked(message, op)
            if len(afters) == 1:  # as in nearly all messages
                out.changes.append(self._change(index, position, 0, message, op, befores[0], afters[0]))
                return
            images = enumerate(zip(befores, afters, strict=True))
            out.changes += [self._change(index, position, row, message, op, *sides) for row, sides in images]
        elif message.type in _SCHEMA_CHANGES:
            self._schema_change(out, index, message)
        else:
            raise ValueError("unknown type")

    def _schema_change(self, out: ChangeBuilder, index: int, message: _Message) -> None:
        if not message.sql or not message.sql.strip():
            raise ValueError("a schema change without its statement")
        demand_dialect(self._dialect, message.sql, message.table)
        out.add(
            index,
            "schema",
            database=message.database or None,
            table=message.table or None,
            file=0,
            pos=_position(message),
            row=0,
            source_time=_source_time(message),
            statement=message.sql,
            default_database=message.database or "",
            dialect=self._dialect,
        )

    def _checked(
        self, message: _Message, op: str
    ) -> tuple[int, Sequence[msgspec.Raw | None], Sequence[msgspec.Raw | None]]:
        """Return a message's position, and the images before and after of each row (docs/wire/huawei-drs.md 3)."""
        if not message.database or not message.table:
            raise ValueError("a row without its database or table")
        position = _position(message)
        data, old = message.data or (), message.old or ()
        befores: Sequence[msgspec.Raw | None] = old
        afters: Sequence[msgspec.Raw | None] = data
        if op == "update":
            if len(data) != len(old):
                raise ValueError("an UPDATE whose numbers of old and new rows differ")
        elif op == "delete":
            befores = (data or old) if self.deleted_in == "data" else (old or data)
            afters = _NONE * len(befores)
        elif old:
            raise ValueError("an inserted row with old rows")
        else:
            befores = _NONE * len(data)
        if not afters:
            raise ValueError("a row change without a row")
        return position, befores, afters

    def _change(
        self,
        index: int,
        position: int,
        row: int,
        message: _Message,
        op: str,
        before: msgspec.Raw | None,
        after: msgspec.Raw | None,
    ) -> tuple[Any, ...]:
        """Return the fields of a :class:`Change`."""
        table = self._tables.find(message.mysqlType, message.pkNames)
        images, columns = table.full(before, after), table.columns
        if images is None:
            images, together = uneven(before, after)
            columns = self._number(together, table)
        was, now = images
        time = None if message.es is None else int(message.es) * 1000
        database, name = message.database, message.table
        return (index, row, "row", op, database, name, 0, position, row, time, None, None, was, now, columns)

    def _table(self, types: bytes, key: bytes) -> Table:
        table = Table.described(types, key)
        if table.types:
            table.columns = self._number(table.types, table)
        return table

    def _number(self, names: Mapping[str, Any], table: Table) -> int:
        """Return the number of the ``columns`` text for images with these members; their order means nothing."""
        columns = [(name, table.types.get(name)) for name in sorted(names)]
        complete = table.types.keys() <= names.keys()
        text = msgspec.json.encode({"columns": columns, "key": table.key, "complete": complete}).decode()
        return self._texts.id_of(text)

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of a row or schema change."""
        if value is None:
            return None
        try:
            message = _times.decode(value)
        except (ValueError, RecursionError):
            return None
        if message.es is None or message.type not in _KNOWN:
            return None
        return Progress(int(message.es), heartbeat=False)

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change."""
        data = _texts.decode(columns)
        types = {name: kind for name, kind in data["columns"] if kind is not None}
        key = None if data["key"] is None else tuple(data["key"])
        return Description(tuple(name for name, _ in data["columns"]), key, types or None, data["complete"])

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return the encoding of a column in the images, by the type in the record (docs/wire/huawei-drs.md 3.2).

        Of types whose form is not documented, text that does not read as such a value is refused; GEOMETRY always is.
        """
        types = (description.details if description else None) or {}
        kind = _word(types.get(name)) or column.name
        if kind in BINARIES:
            return Encoded(name, Encoding.BYTE_LIST)
        if kind in GEOMETRIES:
            return Encoded(name, Encoding.GEOMETRY)
        if kind == "time":
            return Encoded(name, Encoding.ISO_TEXT)
        return self._timestamp(name) if kind == "timestamp" else Encoded(name, Encoding.TEXT)

    @abstractmethod
    def _timestamp(self, name: str) -> Encoded:
        """Return how the form writes a TIMESTAMP."""

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing: schema changes come as statements only."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema that holds every value of the bare type names, None where one is not known or the key is."""
        types, key = description.details or {}, description.key
        if not description.complete or key is None or not set(key) <= set(description.names):
            return None
        inferred = [_WIDEST.get(_word(types.get(name))) for name in description.names]
        if None in inferred:
            return None
        columns = tuple(
            Column(number, name, kind, nullable=name not in key)
            for number, (name, kind) in enumerate(zip(description.names, inferred, strict=True), 1)
            if kind is not None
        )
        ids = {column.name: column.id for column in columns}
        return TableSchema(columns, tuple(ids[name] for name in key))


def _table_of(value: bytes) -> tuple[str | None, str | None]:
    """Return the table of a row change."""
    message = _read_table.decode(value)
    if message.type not in _ROW_OPS:
        raise ValueError("no row change")
    return message.database, message.table


def _position(message: _Message) -> int:
    if message.id is None:
        raise ValueError("a change without its sequence number")
    return int(message.id)


def _source_time(message: _Message) -> int | None:
    return None if message.es is None else int(message.es) * 1000


def _word(kind: str | None) -> str:
    """Return the bare lower-case name of a type that may be spelled with a length."""
    match = re.match(r"[a-z0-9_]+", (kind or "").lower())
    return match.group() if match else ""
