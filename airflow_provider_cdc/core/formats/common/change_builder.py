# SPDX-License-Identifier: Apache-2.0
"""Collect changes one by one and convert them to one Arrow batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.common.log_names import with_names
from airflow_provider_cdc.core.formats.common.sortable_texts import padded_texts
from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Records
from airflow_provider_cdc.core.model.position import FIRST_GENERATION, WIDTHS

# error text and raw bytes of a record that is longer are cut there; the record itself stays in Kafka
RAW_LIMIT = 1 << 20


class Change(NamedTuple):
    """Fields that most changes have; one tuple for each change is the cheapest thing to collect in a loop.

    :param record: index of the record in the batch.
    :param number: counts changes inside one record.
    :param file: number of the binlog file, ``pos`` and ``row`` the position in it.
    :param source_time: microseconds since the epoch; ``tool_time`` milliseconds.
    :param columns: number of the text in :attr:`ChangeBuilder.texts`.
    """

    record: int
    number: int
    kind: str
    op: str | None
    database: str | None
    table: str | None
    file: int | None
    pos: int | None
    row: int | None
    source_time: int | None
    tool_time: int | None
    transaction_id: str | None
    before: bytes | None
    after: bytes | None
    columns: int | None


_MILLIS, _MICROS = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC")
_NO_WORDS = pa.nulls(0, pa.string())  # pa.array() imports pandas where it is installed
_EMPTY = Change(0, 0, "", *[None] * 12)
_IGNORED = _EMPTY._replace(kind="ignored")[1:]  # all but the record


class ChangeBuilder:
    """Collect the changes of one batch of records.

    :param texts: distinct ``columns`` texts; they are long and repeat, so changes name them by number.
    :param widths: digits of the numbers of positions.
    """

    def __init__(self, records: Records, texts: Sequence[str], widths: tuple[int, int, int] = WIDTHS) -> None:
        self.records, self._widths = records, widths
        self.changes: list[tuple[Any, ...]] = []  # fields of Change, in its order
        self.rest: dict[str, list[tuple[int, Any]]] = {}  # rarely used columns: (index of the change, value)
        self.texts = texts
        self.tool_batches: dict[int, int] = {}  # by index of the record
        self.log_names: dict[str, int] = {}  # name of the source's log -> first record that is of it
        self.log_name: str | None = None  # of the newest record
        self._ignored: list[int] = []  # indexes of records

    def add(self, record: int, kind: str, *, op: str | None = None, **more: Any) -> None:
        """Append one change that is not a row; ``more`` are further columns by name."""
        index = len(self.changes)
        known = {name: more.pop(name) for name in Change._fields if name in more}
        self.changes.append(_EMPTY._replace(record=record, kind=kind, op=op, **known))
        for name, value in more.items():
            self.note(index, name, value)

    def note_log(self, record: int, name: str | None) -> None:
        """Note which log a record is of; to be called where another name stands there than :attr:`log_name`."""
        self.log_name = name
        if name:
            self.log_names.setdefault(name, record)

    def ignore(self, record: int) -> None:
        """Add a change that says that a record needs nothing to be done, such as one without a value.

        It will stand behind all others: leaving out rows between others would copy those.
        """
        self._ignored.append(record)

    def note(self, index: int, name: str, value: Any) -> None:
        """Set a value of a change in a rarely used column."""
        if value is not None:
            self.rest.setdefault(name, []).append((index, value))

    def error(self, record: int, code: str, message: str, table: tuple[str, str] | None = None) -> None:
        """Append an error change that keeps the record's bytes.

        :param table: database and table that the record is about, where they are known.
        """
        database, name = table or (None, None)
        self.add(record, "error", database=database, table=name, error_code=code, error=message, raw=self._raw(record))

    def _raw(self, record: int) -> bytes:
        return bytes((self.records.values[record] or b"")[:RAW_LIMIT])

    def batch(self) -> pa.RecordBatch:
        """Return everything as one batch of :data:`CHANGE_SCHEMA`."""
        ignored = len(self._ignored)
        self.changes += [(record, *_IGNORED) for record in self._ignored]
        records, fields = self.records, self._fields()
        count = len(self.changes)
        index = pa.array(fields["record"], pa.int32())
        arrays: dict[str, pa.Array] = {
            "topic": pa.repeat(pa.scalar(records.topic), count),
            "partition": pa.repeat(pa.scalar(records.partition, pa.int32()), count),
            "offset": pa.array(records.offsets, pa.int64()).take(index),
            "index": pa.array(fields["number"], pa.int32()),
            "kafka_time": pa.array(records.timestamps, pa.int64()).take(index).view(_MILLIS),
            "position": binlog_positions(fields["file"], fields["pos"], fields["row"], self._widths),
            "source_time": pa.array(fields["source_time"], pa.int64()).view(_MICROS),
            "tool_time": pa.array(fields["tool_time"], pa.int64()).view(_MILLIS),
            "tool_batch": self._batches(count, index),
            "transaction_id": pa.array(fields["transaction_id"], pa.string()),
            "before": fields["before"],
            "after": fields["after"],
            "schema": pa.DictionaryArray.from_arrays(pa.nulls(count, pa.int32()), _NO_WORDS),
            "columns": self._described(fields["columns"]),
            "transaction_order": self._sparse("transaction_order", count, pa.int64()),
            "built": self._sparse("built", count, pa.int64()),
            "raw": self._sparse("raw", count, pa.binary()),
        }
        for name in ("kind", "op", "database", "table"):
            arrays[name] = _words(fields[name], ignored)
        for name in ("statement", "default_database", "dialect", "table_changes", "error_code", "error"):
            arrays[name] = self._sparse(name, count, pa.string())
        batch = pa.RecordBatch.from_arrays([arrays[name] for name in CHANGE_SCHEMA.names], schema=CHANGE_SCHEMA)
        return with_names(batch, self.log_names)

    def _described(self, numbers: Sequence[int | None]) -> pa.DictionaryArray:
        """Return the descriptions that these changes have: those of all other tables would go with each batch."""
        codes = pa.array(numbers, pa.int32())
        used = codes.unique().drop_null()
        texts = [self.texts[number] for number in used.to_pylist()]
        return pa.DictionaryArray.from_arrays(pc.index_in(codes, used), pa.array(texts, pa.string()))

    def _fields(self) -> dict[str, Any]:
        columns = zip(*self.changes, strict=True) if self.changes else [()] * len(Change._fields)
        fields: dict[str, Any] = dict(zip(Change._fields, columns, strict=True))
        try:
            # images are slices of a record that msgspec skipped over; it checks UTF-8 only where it builds text
            images = {name: pa.array(fields[name], pa.binary()).cast(pa.string()) for name in ("before", "after")}
        except pa.ArrowInvalid:
            self._reject_invalid_utf8()
            return self._fields()
        return {**fields, **images}

    def _reject_invalid_utf8(self) -> None:
        for index, values in enumerate(self.changes):
            change = Change(*values)
            if all(image is None or _is_utf8(image) for image in (change.before, change.after)):
                continue
            self.changes[index] = _EMPTY._replace(
                record=change.record,
                number=change.number,
                kind="error",
                database=change.database,
                table=change.table,
            )
            self.note(index, "error_code", "record.not_utf8")
            self.note(index, "error", "an image is not valid UTF-8")
            self.note(index, "raw", self._raw(change.record))

    def _batches(self, count: int, index: pa.Array) -> pa.Array:
        if not self.tool_batches:
            return pa.nulls(count, pa.int64())
        return pa.array(map(self.tool_batches.get, range(len(self.records))), pa.int64()).take(index)

    def _sparse(self, name: str, count: int, kind: pa.DataType) -> pa.Array:
        pairs = self.rest.get(name)
        if not pairs:
            return pa.nulls(count, kind)
        dense: list[Any] = [None] * count
        for index, value in pairs:
            dense[index] = value
        return pa.array(dense, kind)


def _words(values: Sequence[str | None], ignored: int) -> pa.DictionaryArray:
    """Dictionary-encode strings; fast path: all values are equal but those of ignored records.

    :param ignored: how many of the last values are of ignored records, and equal.
    """
    count = len(values) - ignored
    last = values[-1] if ignored else None
    if not count or values[0] is None or values[0] == last or values.count(values[0]) != count:
        return pa.array(values, pa.string()).dictionary_encode()
    codes = np.zeros(len(values), np.int32)
    codes[count:] = 1
    words, mask = ([values[0]], codes == 1) if last is None else ([values[0], last], None)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=mask), pa.array(words, pa.string()))


def _is_utf8(data: bytes) -> bool:
    try:
        bytes(data).decode()
    except UnicodeDecodeError:
        return False
    return True


def binlog_positions(files: Any, pos: Any, rows: Any, widths: tuple[int, int, int] = WIDTHS) -> pa.Array:
    """Encode binlog positions (:mod:`core.model.position`), column by column; null without file.

    :param files: numbers of the files; ``pos`` and ``rows`` the positions in them.
    :param widths: digits of each of the three.
    """
    return padded_texts(FIRST_GENERATION, list(zip((files, pos, rows), widths, strict=True)))
