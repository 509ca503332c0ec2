"""Collects changes column by column and turns them into one Arrow batch."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.formats.contract import CHANGE_SCHEMA, Records
from airflow_provider_cdc.core.model.position import FILE_DIGITS, GENERATION_DIGITS, POS_DIGITS, ROW_DIGITS

# error text and raw bytes of a record that is longer are cut there; the record itself stays in Kafka
RAW_LIMIT = 1 << 20

_TEXT_COLUMNS = ("transaction_id", "statement", "default_database", "table_changes", "error_code", "error")
_NAME_COLUMNS = ("kind", "op", "database", "schema", "table", "columns")


class ChangeColumns:
    """Lists of equal length, one per column of a change; ``rest`` holds the seldom used ones as (row, value)."""

    __slots__ = (
        "after",
        "before",
        "columns",
        "database",
        "file",
        "index",
        "kind",
        "op",
        "pos",
        "record",
        "rest",
        "row",
        "source_time",
        "table",
    )

    def __init__(self) -> None:
        self.record: list[int] = []  # place of the record in the batch
        self.index: list[int] = []
        self.kind: list[str] = []
        self.op: list[str | None] = []
        self.database: list[str | None] = []
        self.table: list[str | None] = []
        self.file: list[int | None] = []
        self.pos: list[int | None] = []
        self.row: list[int | None] = []
        self.source_time: list[int | None] = []  # microseconds
        self.before: list[bytes | None] = []
        self.after: list[bytes | None] = []
        self.columns: list[str | None] = []
        self.rest: dict[str, list[tuple[int, Any]]] = {}

    def add(self, record: int, kind: str, *, op: str | None = None, index: int = 0, **rest: Any) -> None:
        """Append one change that is no row; ``rest`` are further columns by name."""
        place = len(self.record)
        self.record.append(record)
        self.index.append(index)
        self.kind.append(kind)
        self.op.append(op)
        for name in ("database", "table", "file", "pos", "row", "source_time", "before", "after", "columns"):
            getattr(self, name).append(rest.pop(name, None))
        for name, value in rest.items():
            if value is not None:
                self.rest.setdefault(name, []).append((place, value))

    def error(self, record: int, code: str, message: str, key: bytes | None, value: bytes | None) -> None:
        """Append an error change that keeps the record's bytes."""
        raw = value if value is not None else key
        self.add(record, "error", error_code=code, error=message, raw=None if raw is None else bytes(raw[:RAW_LIMIT]))

    def batch(self, records: Records) -> pa.RecordBatch:
        """Return everything as one batch of :data:`CHANGE_SCHEMA`."""
        self._reject_invalid_utf8(records)
        count = len(self.record)
        place = pa.array(self.record, pa.int32())
        arrays: dict[str, pa.Array] = {
            "topic": pa.repeat(pa.scalar(records.topic), count),
            "partition": pa.repeat(pa.scalar(records.partition, pa.int32()), count),
            "offset": pa.array(records.offsets, pa.int64()).take(place),
            "index": pa.array(self.index, pa.int32()),
            "kafka_time": pa.array(records.timestamps, pa.int64()).take(place).cast(pa.timestamp("ms", "UTC")),
            "position": binlog_positions(self.file, self.pos, self.row),
            "source_time": pa.array(self.source_time, pa.int64()).cast(pa.timestamp("us", "UTC")),
            "before": pa.array(self.before, pa.binary()).cast(pa.string()),
            "after": pa.array(self.after, pa.binary()).cast(pa.string()),
            "raw": self._sparse("raw", count, pa.binary()),
        }
        for name in _TEXT_COLUMNS:
            arrays[name] = self._sparse(name, count, pa.string())
        for name in _NAME_COLUMNS:
            values = pa.nulls(count, pa.string()) if name == "schema" else pa.array(getattr(self, name), pa.string())
            arrays[name] = values.dictionary_encode()
        return pa.RecordBatch.from_arrays([arrays[name] for name in CHANGE_SCHEMA.names], schema=CHANGE_SCHEMA)

    def _reject_invalid_utf8(self, records: Records) -> None:
        # images are slices of a record that msgspec skipped over; it checks UTF-8 only where it builds text
        for images in (self.before, self.after):
            try:
                pa.array(images, pa.binary()).cast(pa.string())
            except pa.ArrowInvalid:
                for place, image in enumerate(images):
                    if image is not None and not _is_utf8(image):
                        self._make_error(place, records)

    def _make_error(self, place: int, records: Records) -> None:
        self.kind[place] = "error"
        for values in (self.op, self.before, self.after, self.file, self.pos, self.row, self.columns):
            values[place] = None  # type: ignore[call-overload]
        raw = records.values[self.record[place]] or b""
        for name, value in (
            ("error_code", "record.not_utf8"),
            ("error", "an image is not valid UTF-8"),
            ("raw", bytes(raw[:RAW_LIMIT])),
        ):
            self.rest.setdefault(name, []).append((place, value))

    def _sparse(self, name: str, count: int, kind: pa.DataType) -> pa.Array:
        pairs = self.rest.get(name)
        if not pairs:
            return pa.nulls(count, kind)
        dense: list[Any] = [None] * count
        for place, value in pairs:
            dense[place] = value
        return pa.array(dense, kind)


def _is_utf8(data: bytes) -> bool:
    try:
        bytes(data).decode()
    except UnicodeDecodeError:
        return False
    return True


def binlog_positions(files: list[int | None], pos: list[int | None], rows: list[int | None]) -> pa.Array:
    """Encode binlog places column by column as :func:`core.model.position.binlog_position` does; null where the file is."""
    generation = "0" * GENERATION_DIGITS
    parts = [pa.scalar(generation)]
    for values, digits in ((files, FILE_DIGITS), (pos, POS_DIGITS), (rows, ROW_DIGITS)):
        parts.append(pc.utf8_lpad(pa.array(values, pa.int64()).cast(pa.string()), digits, "0"))
    return pc.binary_join_element_wise(*parts, ".", null_handling="emit_null")
