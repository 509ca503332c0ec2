# SPDX-License-Identifier: Apache-2.0
"""Decode Huawei DRS's format Avro by the schema that the vendor gives its customers (docs/wire/huawei-drs.md 1).

The schema is not public, so it is stated, and with it which of its fields says what. Avro does not describe itself: a
wrong schema is recognised by bytes that are left over, unknown operations, and invalid names, times and values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.change_builder import ChangeBuilder
from airflow_provider_cdc.core.formats.common.interning import Interner
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord, decode_each
from airflow_provider_cdc.core.formats.common.timezone_option import timezone_problems
from airflow_provider_cdc.core.formats.contract import Description, Progress, Records
from airflow_provider_cdc.core.formats.drs.avro_fields import ROLES, Fields
from airflow_provider_cdc.core.formats.drs.avro_images import Row, carried
from airflow_provider_cdc.core.formats.drs.avro_reader import FRAMINGS, AvroReader, SchemaMismatch
from airflow_provider_cdc.core.formats.drs.avro_tokens import ABSENT, Token, has_instants
from airflow_provider_cdc.core.formats.drs.options import DIALECT, demand_dialect, dialect_of
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from airflow_provider_cdc.core.values.fields import ConversionError
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES

# what a record is -> names of the operation that mean it; the first five are those of the vendor's JSON formats
_OPERATIONS = {
    "snapshot": "INIT",
    "insert": "INSERT",
    "update": "UPDATE",
    "delete": "DELETE",
    "schema": "DDL,INIT_DDL",
    "begin": "",
    "commit": "",
    "rollback": "",
    "progress": "",
    "ignored": "",
}
_ROW_OPS = frozenset({"snapshot", "insert", "update", "delete"})
_UNSTATED = "source.options.schema_file: is missing; state the path of the Avro schema (.avsc) that the vendor gives"
_texts = msgspec.json.Decoder()
_encode = msgspec.json.Encoder().encode


def prepare(options: Mapping[str, str]) -> dict[str, str]:
    """Return options that hold on every machine: the schema's text in place of the path of its file.

    :raises ConfigurationError: there is no schema, or its file cannot be read.
    """
    prepared = {name: text for name, text in options.items() if name != "schema_file"}
    if ("schema" in options) == ("schema_file" in options):
        raise ConfigurationError([_UNSTATED if "schema" not in options else f"{_UNSTATED}, or its text, not both"])
    if "schema_file" in options:
        try:
            prepared["schema"] = Path(options["schema_file"]).read_text(encoding="utf-8-sig")
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "is not UTF-8 text"
            raise ConfigurationError([f"source.options.schema_file: {options['schema_file']}: {reason}"]) from None
    return prepared


class WireFormat:
    """``drs-avro``: records of a stated schema; opened without one it reads nothing."""

    name = "drs-avro"
    summary = "Huawei DRS, Avro, by a schema that is stated"
    order = "exact"
    carries = frozenset({"rows", "ddl"})
    updates_move_keys = True
    updates_name_changes = False
    ddl_among_rows = True
    splits_partitions = True
    partial_images = True
    inserts_lack_defaults = False
    chosen_keys = False
    row_numbers = "event"
    snapshot_rows = "numbered"
    options: Mapping[str, str] = {
        "schema_file": "path of the Avro schema (.avsc), read when a batch is planned",
        "schema": "the schema's text, in place of a file",
        "framing": f"what stands before each record: {' | '.join(FRAMINGS)} (default bare)",
        **{f"field.{role}": f"field, with dots into records and maps: {text}" for role, (_, text) in ROLES.items()},
        **{
            f"operation.{op}": f"operations, with commas, that mean {op} (default {names or 'none'})"
            for op, names in _OPERATIONS.items()
        },
        "null_symbols": "enum symbols, with commas, that stand for NULL among values",
        "absent_symbols": "enum symbols, with commas, that stand for a column that is not carried",
        "dialect": DIALECT,
        "timezone": "time zone of TIMESTAMP values that are local times; without it they are refused",
    }

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        stated = prepare(options) if options else {}
        self._zone = stated.get("timezone")
        self._dialect = dialect_of(stated)
        self._texts = Interner[str]()
        self._text_ids: dict[Any, int] = {}
        self._operations = {
            symbol: op for op, names in _OPERATIONS.items() for symbol in _listed(stated.get(f"operation.{op}", names))
        }
        self._reader: AvroReader | None = None
        if options:
            self._open(stated)

    def _open(self, stated: Mapping[str, str]) -> None:
        problems = timezone_problems(stated)
        framing = stated.get("framing", FRAMINGS[0])
        if framing not in FRAMINGS:
            problems.append(f"source.options.framing: {framing!r} is not one of {', '.join(FRAMINGS)}")
        try:
            self._reader = AvroReader(stated["schema"], framing, stated.get("field.columns"))
        except ValueError as error:
            raise ConfigurationError([*problems, f"source.options.schema: the text {error}"]) from None
        symbols: dict[str, Token] = dict.fromkeys(_listed(stated.get("null_symbols", "")))
        symbols.update(dict.fromkeys(_listed(stated.get("absent_symbols", "")), ABSENT))
        self._fields = Fields(self._reader.root, stated, symbols)
        problems += self._fields.problems
        if problems:
            raise ConfigurationError(problems)
        self._instants = has_instants(self._reader.root)

    def decode(self, records: Records) -> pa.RecordBatch:
        """Return the changes of these records, in their order; bytes that are not a record become ``error`` changes."""
        noun = "a record as the options state it, or one of another schema"
        return decode_each(records, self._texts.values, self._record, noun, self._table_of)

    def _table_of(self, value: bytes) -> tuple[str | None, str | None]:
        """Return the table of a row change."""
        try:
            record = None if self._reader is None else self._reader.read(value)
            if record is None or self._operations.get(self._fields.text("operation", record) or "") not in _ROW_OPS:
                raise ValueError("no row change")
            return self._fields.names(record)
        except ConversionError as error:
            raise ValueError(str(error)) from None

    def _record(self, out: ChangeBuilder, index: int, value: bytes) -> None:
        """Add the changes of one record."""
        if self._reader is None:
            raise UnsupportedRecord("schema.missing", _UNSTATED)
        try:
            self._change(out, index, self._reader.read(value))
        except SchemaMismatch as error:
            raise UnsupportedRecord("record.schema_mismatch", str(error)) from None
        except ConversionError as error:
            raise ValueError(str(error)) from None

    def _change(self, out: ChangeBuilder, index: int, record: Any) -> None:
        fields = self._fields
        kind = self._operations.get(fields.text("operation", record) or "")
        if kind in _ROW_OPS:
            self._rows(out, index, kind, record)
        elif kind == "schema":
            self._schema_change(out, index, record)
        elif kind == "progress":
            time = fields.time(record)
            if time is None:
                raise ValueError("a progress mark without its time")
            out.add(index, "progress", source_time=time)
        elif kind in ("begin", "commit", "rollback"):
            time = fields.time(record)
            out.add(index, "transaction", op=kind, transaction_id=fields.transaction(record), source_time=time)
        elif kind == "ignored":
            out.ignore(index)
        else:
            raise ValueError("an operation that no option names")

    def _rows(self, out: ChangeBuilder, index: int, op: str, record: Any) -> None:
        fields = self._fields
        (database, table), position, time = fields.names(record), fields.position(record), fields.time(record)
        columns = fields.columns(record)
        befores, afters = fields.images("before", record, columns), fields.images("after", record, columns)
        if op == "delete":
            befores = befores or afters  # the JSON formats differ in where it is (docs/wire/huawei-drs.md 3)
        count = len(befores) if op == "delete" else len(afters)
        if not count or (op == "update" and len(befores) != count) or (op in ("insert", "snapshot") and befores):
            raise ValueError(f"a row of the operation {op} without its images, or with others")
        when, changes = (time, None, fields.transaction(record)), []
        for row in range(count):
            before = befores[row] if op in ("update", "delete") else None
            after = afters[row] if op != "delete" else None
            images = self._images(before, after)
            changes.append((index, row, "row", op, database, table, 0, position, row, *when, *images))
        out.changes += changes

    def _images(self, before: Row | None, after: Row | None) -> tuple[bytes | None, bytes | None, int]:
        """Return both images as JSON and the number of their description."""
        was, now = before, after
        plain = bytes not in set(map(type, (*(before or {}).values(), *(after or {}).values())))
        if not plain:
            was, now = before and carried(before), after and carried(after)
        if was is not None and now is not None and was.keys() != now.keys():
            was, now = {**now, **was}, {**was, **now}  # a column that one of them lacks did not change
        names = tuple((now if was is None else was) or ())
        if not names:
            raise ValueError("a row without columns")
        raw = () if plain else _of_bytes(names, [row for row in (was, now) if row is not None])
        complete = plain or len(names) == len({**(before or {}), **(after or {})})
        number = self._number(names, raw, complete)
        return None if was is None else _encode(was), None if now is None else _encode(now), number

    def _number(self, names: Sequence[str], raw: Sequence[str], complete: bool) -> int:
        """Return the number of the ``columns`` text."""
        mark = (names, raw, complete)
        number = self._text_ids.get(mark)
        if number is None:
            description = {"columns": sorted(names), "bytes": sorted(raw), "complete": complete}
            number = self._text_ids[mark] = self._texts.id_of(msgspec.json.encode(description).decode())
        return number

    def _schema_change(self, out: ChangeBuilder, index: int, record: Any) -> None:
        fields = self._fields
        statement = fields.text("statement", record)
        if not statement or not statement.strip():
            raise ValueError("a schema change without its statement")
        database, table = fields.text("database", record), fields.text("table", record)
        if database is None:
            database = (fields.text("name", record) or "").partition(".")[0]
        demand_dialect(self._dialect, statement, table)
        out.add(
            index,
            "schema",
            database=database or None,
            table=table or None,
            file=0,
            pos=fields.position(record),
            row=0,
            source_time=fields.time(record),
            statement=statement,
            default_database=database,
            dialect=self._dialect,
        )

    def progress_of(self, topic: str, key: bytes | None, value: bytes | None) -> Progress | None:
        """Return the source time of a record.

        :raises ConfigurationError: there is no schema.
        """
        if self._reader is None:
            raise ConfigurationError([_UNSTATED])
        if value is None:
            return None
        try:
            record = self._reader.read(value)
            kind = self._operations.get(self._fields.text("operation", record) or "")
            time = self._fields.time(record)
        except (ValueError, ConversionError):
            return None
        if time is None or not (kind in _ROW_OPS or kind in ("schema", "progress")):
            return None
        return Progress(time // 1000, heartbeat=kind == "progress")

    def describe(self, columns: str) -> Description:
        """Read the ``columns`` text of a change; details say of which columns the values are bytes."""
        data = _texts.decode(columns)
        return Description(tuple(data["columns"]), None, dict.fromkeys(data["bytes"], "bytes"), data["complete"])

    def encoding_of(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images; a form that is not understood is one that is refused."""
        raw = description is not None and name in (description.details or ())
        kind = column.name
        if kind in GEOMETRIES:
            return Encoded(name, Encoding.GEOMETRY)  # refused: nothing says what the bytes begin with
        if kind in BINARIES:
            # text in a column of bytes is refused, unless it is a list of them
            return Encoded(name, Encoding.BASE64 if raw else Encoding.BYTE_LIST)
        if kind == "bit":
            return Encoded(name, Encoding.BITS_BE if raw else Encoding.TEXT)
        if raw:
            return Encoded(name, Encoding.CHARSET_BYTES, charset=column.charset)
        if kind == "time":
            return Encoded(name, Encoding.ISO_TEXT)
        if kind == "timestamp":
            return self._timestamp(name)
        return Encoded(name, Encoding.TEXT)

    def _timestamp(self, name: str) -> Encoded:
        if self._reader is not None and self._instants:
            return Encoded(name, Encoding.EPOCH_SECONDS)
        if self._zone is None:
            return Encoded(name, Encoding.ZONED_TEXT)
        return Encoded(name, Encoding.TEXT, zone=self._zone)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing: schema changes come as statements only."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return None: records carry no types."""
        return None


def _of_bytes(names: Sequence[str], rows: Sequence[Row]) -> tuple[str, ...]:
    """Return the columns whose values are bytes."""
    raw = tuple(name for name in names if any(row[name].__class__ is bytes for row in rows))
    if any(isinstance(row[name], str) for name in raw for row in rows):
        raise ValueError("a column that is text in one image and bytes in the other")
    return raw


def _listed(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]
