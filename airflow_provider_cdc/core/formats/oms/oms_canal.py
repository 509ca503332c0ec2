# SPDX-License-Identifier: Apache-2.0
"""Decode the method "Canal" of OceanBase Migration Service (OMS): Canal's members, values as OMS writes them.

Numbers are JSON numbers, bytes base64, TIMESTAMP an epoch; there is no position in the source's log, and the text of a
schema change is empty (docs/wire/oceanbase-oms.md 4, 7, 10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.formats.canal.statements import session_database
from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.described_tables import DescribedTables
from airflow_provider_cdc.core.formats.common.epoch_times import EpochMillis
from airflow_provider_cdc.core.formats.common.exact_structs import exact_struct
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord, decode_each
from airflow_provider_cdc.core.formats.common.row_images import members_of
from airflow_provider_cdc.core.formats.contract import Progress, Records
from airflow_provider_cdc.core.formats.oms import images as oms_images
from airflow_provider_cdc.core.formats.oms.columns import MYSQL_TYPES, dialect_of, speaks_oracle
from airflow_provider_cdc.core.formats.oms.evidence import of_canal_method
from airflow_provider_cdc.core.formats.oms.options import DB_TYPE, NULL_IN_BOTH, TIMEZONE, OmsOptions

# ROW is a row of the full load elsewhere in OMS; of this method nobody says (docs/wire/oceanbase-oms.md 4)
_ROW_OPS = {"INSERT": "insert", "UPDATE": "update", "DELETE": "delete", "ROW": "snapshot"}
# what a schema change without text still says by its type, in Canal's words; RENAME says too little
_TEXTLESS = {"TRUNCATE": "TRUNCATE TABLE {}.{}", "ERASE": "DROP TABLE {}.{}"}
_UNTOLD = "RENAME"


class _Message(msgspec.Struct, gc=False):
    """Any record; ``mysqlType`` states types more exactly than ``sqlType`` (docs/wire/oceanbase-oms.md 10.14)."""

    database: str | None = None
    table: str | None = None
    type: str | None = None
    data: list[msgspec.Raw] | None = None
    old: list[msgspec.Raw] | None = None
    pkNames: msgspec.Raw = msgspec.Raw()
    mysqlType: msgspec.Raw = msgspec.Raw()
    es: EpochMillis | None = None
    ts: EpochMillis | None = None
    isDdl: bool | None = None
    sql: str | None = None


class _Times(msgspec.Struct, gc=False):
    es: EpochMillis | None = None
    type: str | None = None


class _TableOnly(msgspec.Struct, gc=False):
    """Members that name the table of a message, whatever else in it cannot be read."""

    database: str | None = None
    table: str | None = None
    type: str | None = None
    isDdl: bool | None = None


_read_table = msgspec.json.Decoder(_TableOnly)
_read: Callable[[bytes], _Message] = msgspec.json.Decoder(_Message).decode
_times = msgspec.json.Decoder(_Times)
_types = msgspec.json.Decoder(dict[str, str | None] | None)
_names = msgspec.json.Decoder(list[str] | None)


class _DescribedTable:
    """Hold what records state about columns (``mysqlType``, ``pkNames``), and the numbers of the texts made of it."""

    def __init__(self, types: bytes, key: bytes) -> None:
        self.types: Mapping[str, str | None] = (_types.decode(types) if types else None) or {}
        # null is a table without key; a record that lacks the member does not say
        self.key = tuple(_names.decode(key) or ()) if key else None
        words = ((kind or "").upper().partition("(")[0] for kind in self.types.values())
        self.mysql_type = next((word for word in words if word in MYSQL_TYPES), None)
        self.numbers: dict[tuple[tuple[str, ...], bool], int] = {}
        self.number = -1  # of the text for images with all columns
        self._full, self._fields = exact_struct(tuple(self.types))

    def full_images(self, image: msgspec.Raw, old: msgspec.Raw | None) -> tuple[bytes | None, bytes] | None:
        """Return the image before an update and the given one, if that has just the columns of :attr:`types`."""
        try:
            row = self._full(image)
            if old is None:
                return None, bytes(image)
            for name, value in members_of(old).items():
                if name in self._fields:
                    setattr(row, self._fields[name], value)
        except (ValueError, RecursionError):
            return None
        return msgspec.json.encode(row), bytes(image)


class WireFormat(oms_images.OmsFormat):
    """``oms-canal``: rows of the method Canal."""

    name = "oms-canal"
    summary = "OceanBase OMS, method Canal"
    evidence = staticmethod(of_canal_method)
    order = "clock"
    carries = frozenset({"rows", "types"})
    # schema changes are records among the rows, even if their text is empty: rows describe unknown tables only, since
    # their types have no lengths and a renamed column would look like a dropped and an added one
    ddl_among_rows = True
    splits_partitions = False
    partial_images = False
    options: Mapping[str, str] = {"dbType": DB_TYPE, "timezone": TIMEZONE, "null_in_both": NULL_IN_BOTH}

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = OmsOptions(options or {}, sequenced=False)
        self._oracle = speaks_oracle(self._options.source)
        self.partial_images = self._options.null_is_unchanged
        self._descriptions = oms_images.Descriptions()
        self._described = DescribedTables(_DescribedTable)

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are no message become ``error`` changes."""
        return decode_each(records, self._descriptions.texts, self._record, "an OMS Canal message", _table_of)

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the changes of one record."""
        message = _read(value)
        op = _ROW_OPS.get(message.type or "")
        if op is not None and not message.isDdl:
            self._rows(out, index, message, op)
        elif message.isDdl or (message.data is None and message.sql):
            self._schema_change(out, index, message)
        else:
            raise ValueError("unknown type")

    def _rows(self, out: ChangeBuilder, index: int, message: _Message, op: str) -> None:
        database, table = message.database, message.table
        described = self._described.find(message.mysqlType, message.pkNames)
        if not message.data or not database or not table:
            raise ValueError("a row without data, database or table")
        if self._oracle and described.mysql_type:
            text = f"a column has the type {described.mysql_type}, which Oracle does not: source.options.dbType"
            raise UnsupportedRecord("format.option_contradicted", f"{text} is {self._options.source}")
        time, written = None if message.es is None else message.es * 1000, message.ts
        olds = message.old or [] if op == "update" else None
        if olds is not None and len(olds) != len(message.data):
            raise ValueError("an update whose old does not have an entry for each row of data")
        changes: list[tuple[Any, ...]] = []
        for number, image in enumerate(message.data):
            before, after, columns = self._images(described, image, None if olds is None else olds[number])
            if op == "delete":
                before, after = after, None
            changes.append(
                (
                    index,
                    number,
                    "row",
                    op,
                    database,
                    table,
                    None,
                    None,
                    None,
                    time,
                    written,
                    None,
                    before,
                    after,
                    columns,
                )
            )
        out.changes += changes

    def _schema_change(self, out: ChangeBuilder, index: int, message: _Message) -> None:
        """Take the text of a schema change, or what its type says where the text is empty, as documented."""
        statement, dialect = message.sql or "", dialect_of(self._options.stated_source)
        if not statement.strip():
            if message.type == _UNTOLD:
                raise UnsupportedRecord("record.ddl_without_text", "a RENAME that does not say what it renamed")
            statement, dialect = _statement_of_type(message), None
        out.add(
            index,
            "schema",
            database=message.database or "",
            table=message.table or None,
            source_time=None if message.es is None else message.es * 1000,
            tool_time=message.ts,
            statement=statement,
            default_database=session_database(statement, message.database or "", message.table or "", dialect),
            dialect=dialect,
        )

    def _images(
        self, described: _DescribedTable, image: msgspec.Raw, old: msgspec.Raw | None
    ) -> tuple[bytes | None, bytes | None, int]:
        """Return the image before an update, the one after it and the number of the ``columns`` text.

        The row before is as after, but for the columns that ``old`` lists. A sample lists a column that the row does
        not have (docs/wire/oceanbase-oms.md 10.12): none is invented.

        :param old: None for other operations.
        """
        images = None if self.partial_images else described.full_images(image, old)
        if images is None:
            return self._other_images(described, image, old)
        if described.number < 0:
            described.number = self._number(described, tuple(described.types), complete=True)
        return *images, described.number

    def _other_images(
        self, described: _DescribedTable, image: msgspec.Raw, old: msgspec.Raw | None
    ) -> tuple[bytes | None, bytes | None, int]:
        """Return the same for an image with other columns than the record names."""
        members = members_of(image)
        if not members:
            raise ValueError("a row without columns")
        names = tuple(members)
        if old is None:
            return None, bytes(image), self._number(described, names, complete=True)
        listed = members_of(old)
        before = {**members, **{name: token for name, token in listed.items() if name in members}}
        if not self.partial_images:
            return msgspec.json.encode(before), bytes(image), self._number(described, names, complete=True)
        after, left = oms_images.without_unchanged_nulls(before, members)
        return msgspec.json.encode(before), after, self._number(described, left, complete=len(left) == len(names))

    def _number(self, described: _DescribedTable, names: tuple[str, ...], complete: bool) -> int:
        """Return the number of the ``columns`` text for a row."""
        number = described.numbers.get((names, complete))
        if number is None:
            type_names = {name: text for name, text in described.types.items() if text is not None}
            oracle = speaks_oracle(self._options.source)
            number = self._descriptions.number(names, described.key, type_names, oracle, complete)
            described.numbers[names, complete] = number
        return number

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of a record; the method is not known to have heartbeats."""
        if value is None:
            return None
        try:
            message = _times.decode(value)
        except (ValueError, RecursionError):  # what msgspec raises is a ValueError, and so is text that is not UTF-8
            return None
        return None if message.es is None or message.type is None else Progress(message.es, heartbeat=False)


def _table_of(value: bytes) -> tuple[str | None, str | None]:
    """Return the table of a row change."""
    message = _read_table.decode(value)
    if message.type not in _ROW_OPS or message.isDdl:
        raise ValueError("no row change")
    return message.database, message.table


def _statement_of_type(message: _Message) -> str:
    template = _TEXTLESS.get(message.type or "")
    if template is None:
        return ""
    if not message.database or not message.table:
        raise ValueError(f"{message.type} without database or table")
    return template.format(*("`" + name.replace("`", "``") + "`" for name in (message.database, message.table)))
