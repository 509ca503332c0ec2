# SPDX-License-Identifier: Apache-2.0
"""Write data files and files of position deletes, with the bounds by which readers leave them out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.conversions import to_bytes
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.typedef import Record

from airflow_provider_cdc.core.arrays import IntArray
from spark_jobs.sinks.iceberg.columns import Fields, iceberg_type
from spark_jobs.sinks.iceberg.live_files import PATH, POSITION
from spark_jobs.sinks.iceberg.partitions import RowPartitions
from spark_jobs.sinks.row_group_files import PIECE_BYTES, RowGroupFiles, text_above

_CODEC = "zstd"
_LENGTH = 16  # characters of a text in its bounds: Iceberg's default
_COUNTS, _BOUNDS = ("value_counts", "null_value_counts"), ("lower_bounds", "upper_bounds")
_MOST_OPEN = 64  # files of partitions that are written at a time
_POSITIONS = pa.schema(
    [
        pa.field("file_path", pa.string(), False, {"PARQUET:field_id": str(PATH)}),
        pa.field("pos", pa.int64(), False, {"PARQUET:field_id": str(POSITION)}),
    ]
)


class _Bounds:
    """Counts and bounds of one file, by the ids of its fields."""

    def __init__(self, fields: Fields) -> None:
        self._fields = fields
        self.rows = 0
        self._nulls = dict.fromkeys(fields.fields, 0)
        self._known: dict[int, tuple[Any, Any]] = {}
        self._unbounded: set[int] = set()

    def note(self, rows: pa.Table) -> None:
        """Add rows of the file."""
        self.rows += rows.num_rows
        for field, values in zip(self._fields.fields, rows.columns, strict=True):
            self._nulls[field] += values.null_count
            if field not in self._unbounded and values.null_count < len(values) and _is_bounded(values.type):
                self._widen(field, values)

    def _widen(self, field: int, values: pa.ChunkedArray) -> None:
        kind = values.type
        if pa.types.is_timestamp(kind):
            values = values.cast(pa.int64())
        elif pa.types.is_date32(kind):
            values = values.cast(pa.int32())
        extremes = pc.min_max(values).as_py()
        low, high = extremes["min"], extremes["max"]
        if pa.types.is_string(kind):
            low, high = low[:_LENGTH], text_above(high, _LENGTH)
        if high is None:  # no text of that length is above it
            self._unbounded.add(field)
            self._known.pop(field, None)
            return
        known_low, known_high = self._known.get(field, (low, high))
        self._known[field] = (min(low, known_low), max(high, known_high))

    def document(self) -> dict[str, Any]:
        """Return what a data file states of its columns."""
        kinds = dict(zip(self._fields.fields, self._fields.columns.types, strict=True))
        plain = [field for field, kind in kinds.items() if not pa.types.is_list(kind)]

        def stated(side: int) -> dict[int, bytes]:
            return {field: to_bytes(iceberg_type(kinds[field]), bounds[side]) for field, bounds in self._known.items()}

        return {
            "record_count": self.rows,
            "value_counts": dict.fromkeys(plain, self.rows),
            "null_value_counts": {field: self._nulls[field] for field in plain},
            "lower_bounds": stated(0),
            "upper_bounds": stated(1),
        }


def _is_bounded(kind: pa.DataType) -> bool:
    """Return whether a file states bounds of a type: doubles have NaN, and of bytes no reader of ours asks."""
    types = pa.types
    numbers = types.is_integer(kind) or types.is_decimal128(kind) or types.is_boolean(kind)
    return bool(numbers or types.is_string(kind) or types.is_date32(kind) or types.is_timestamp(kind))


class NewFiles(RowGroupFiles[DataFile, _Bounds]):
    """Writes rows into new data files of a table.

    :param folder: of the table.
    :param fields: of the rows.
    :param order: columns in whose order they are written.
    :param spec_id: number of the table's partition spec.
    :param partition: values of the rows' partition.
    """

    def __init__(
        self,
        io: FileIO,
        folder: str,
        fields: Fields,
        file_bytes: int | None = None,
        order: Sequence[str] = (),
        spec_id: int = 0,
        partition: Record | None = None,
    ) -> None:
        self._io, self._folder, self._fields = io, folder, fields
        self._parted = (spec_id, partition or Record())
        self.schema = fields.columns
        super().__init__(schema_to_pyarrow(fields.schema()), _CODEC, file_bytes, order)

    def _open(self, number: int) -> tuple[str, pa.NativeFile]:
        name = f"{self._folder}/data/{number:05d}-{uuid.uuid4()}.parquet"
        return name, self._io.new_output(name).create()

    def _remove(self, name: str) -> None:
        self._io.delete(name)

    def _statistics_of_file(self) -> _Bounds:
        return _Bounds(self._fields)

    def _as_stored(self, rows: pa.Table) -> pa.Table:
        return rows.cast(self._stored)

    def _describe(self, name: str, size: int, statistics: _Bounds) -> DataFile:
        return _file(DataFileContent.DATA, name, size, self._parted, **statistics.document())


class PartitionedFiles:
    """Writes rows into new data files of a table, each with rows of one partition.

    :param make: returns what writes the files of a partition.
    :ivar schema: of the rows.
    """

    def __init__(self, partitions: RowPartitions, schema: pa.Schema, make: Callable[[Record], NewFiles]) -> None:
        self._partitions, self.schema, self._make = partitions, schema, make
        self._files: dict[Record, NewFiles] = {}

    def add(self, rows: pa.Table) -> None:
        """Take rows; what waits for row groups of all partitions stays bounded, and so do the open files."""
        for partition, some in self._partitions.split(rows):
            if partition not in self._files:
                self._files[partition] = self._make(partition)
            self._files[partition].add(some)
        files = list(self._files.values())
        while sum(one.waiting_bytes for one in files) > PIECE_BYTES:
            max(files, key=lambda one: one.waiting_bytes).write_waiting()
        if sum(one.is_open for one in files) > _MOST_OPEN:
            self.end_file(small=True)

    def end_file(self, *, small: bool = False) -> None:
        """End the files that are large already.

        :param small: whether to end small ones, too.
        """
        for files in self._files.values():
            files.end_file(small=small)

    def close(self) -> list[DataFile]:
        """Write what is left; return what a commit has to say of the files."""
        return [file for files in self._files.values() for file in files.close()]

    def discard(self) -> None:
        """Remove the files: nothing was committed."""
        for files in self._files.values():
            files.discard()


def write_deletes(io: FileIO, folder: str, file: DataFile, positions: IntArray) -> DataFile:
    """Write a file that deletes rows of one data file by their positions, in the partition of that one.

    :param folder: of the table.
    """
    path = str(file.file_path)
    positions = np.sort(positions)
    rows = pa.table({"file_path": pa.repeat(path, len(positions)), "pos": pa.array(positions)}, schema=_POSITIONS)
    name = f"{folder}/data/{uuid.uuid4()}-deletes.parquet"
    with io.new_output(name).create() as stream:
        pq.write_table(rows, stream, compression=_CODEC, store_schema=False)
        size = stream.tell()
    bounds = {PATH: path.encode()}
    counts = {"record_count": len(positions), "lower_bounds": bounds, "upper_bounds": bounds}
    return _file(DataFileContent.POSITION_DELETES, name, size, (file.spec_id, file.partition), **counts)


def document_of(file: DataFile) -> dict[str, Any]:
    """Return what a new data file states of itself, as plain JSON data."""
    bounds = {name: {field: value.hex() for field, value in getattr(file, name).items()} for name in _BOUNDS}
    plain = {"path": file.file_path, "size": file.file_size_in_bytes, "record_count": file.record_count}
    partition = [_plain(file.partition[ordinal]) for ordinal in range(len(file.partition))]
    counts = {"value_counts": file.value_counts, "null_value_counts": file.null_value_counts}
    return {**plain, "spec": file.spec_id, "partition": partition, **counts, **bounds}


def file_of(document: Mapping[str, Any]) -> DataFile:
    """Return the data file of a document."""
    counts = {name: {int(field): n for field, n in document[name].items()} for name in _COUNTS}
    bounds = {name: {int(field): bytes.fromhex(n) for field, n in document[name].items()} for name in _BOUNDS}
    stated = {"record_count": document["record_count"], **counts, **bounds}
    parted = (document["spec"], Record(*map(_value, document["partition"])))
    return _file(DataFileContent.DATA, document["path"], document["size"], parted, **stated)


def _plain(value: Any) -> Any:
    """Return a value of a partition as JSON has it."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return {"decimal": str(value)} if isinstance(value, Decimal) else value


def _value(plain: Any) -> Any:
    if not isinstance(plain, dict):
        return plain
    return bytes.fromhex(plain["bytes"]) if "bytes" in plain else Decimal(plain["decimal"])


def _file(content: DataFileContent, path: str, size: int, parted: tuple[int, Record], **stated: Any) -> DataFile:
    """Return what a manifest says of a file.

    :param parted: number of its partition spec, and the values of its partition.
    """
    spec_id, partition = parted
    file = DataFile.from_args(
        content=content,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=size,
        **{
            "column_sizes": None,
            "value_counts": None,
            "null_value_counts": None,
            "nan_value_counts": None,
            "key_metadata": None,
            "split_offsets": None,
            "equality_ids": None,
            "sort_order_id": None,
            **stated,
        },
    )
    file.spec_id = spec_id
    return file
