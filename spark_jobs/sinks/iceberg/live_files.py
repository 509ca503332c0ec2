# SPDX-License-Identifier: Apache-2.0
"""List the files of one version of a table: which data files it has, and which deletes are on each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pyiceberg.conversions import from_bytes
from pyiceberg.io import FileIO
from pyiceberg.manifest import DataFile, DataFileContent, ManifestContent, ManifestEntry, ManifestFile
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask
from pyiceberg.table.snapshots import Snapshot

from airflow_provider_cdc.core.arrays import IntArray
from airflow_provider_cdc.core.errors import SinkError

PATH, POSITION = 2147483546, 2147483545
"""Iceberg's ids of the fields of a file of position deletes."""


@dataclass(frozen=True, slots=True)
class LiveFile:
    """A data file of a table.

    :param deletes: files of position deletes that may name rows of it.
    :param keys: indices of the keys that it may hold, where files were asked for by keys.
    """

    file: DataFile
    deletes: tuple[DataFile, ...] = ()
    keys: IntArray | None = field(default=None, compare=False)

    @property
    def path(self) -> str:
        """Return the path of the data file."""
        return str(self.file.file_path)

    @property
    def rows(self) -> int:
        """Return the number of its rows that are not deleted; no less where two files delete the same row."""
        deleted = sum(int(one.record_count) for one in self.deletes if only_path(one))
        return max(0, int(self.file.record_count) - deleted)

    def scan(self, *, whole: bool = False) -> FileScanTask:
        """Return what pyiceberg reads.

        :param whole: whether deleted rows are read, too, so that the number of a row is its position.
        """
        return FileScanTask(self.file, delete_files=set() if whole else set(self.deletes))


class LiveFiles:
    """The files of one snapshot; each manifest is read once.

    :param snapshot: None for a table without.
    """

    def __init__(self, snapshot: Snapshot | None, io: FileIO) -> None:
        self._io = io
        every = [] if snapshot is None else list(snapshot.manifests(io))
        # of a manifest of nothing but removed files no later snapshot needs to know
        self.manifests = [one for one in every if one.has_added_files() or one.has_existing_files()]
        self._entries: dict[str, list[ManifestEntry]] = {}

    def entries(self, manifest: ManifestFile) -> list[ManifestEntry]:
        """Return the live entries of a manifest."""
        path = manifest.manifest_path
        if path not in self._entries:
            self._entries[path] = manifest.fetch_manifest_entry(self._io, discard_deleted=True)
        return self._entries[path]

    @cached_property
    def files(self) -> list[LiveFile]:
        """The data files.

        :raises SinkError: ``sink.unreadable``, others delete rows by their values.
        """
        data, by_path, unbounded = [], dict[str, list[ManifestEntry]](), list[ManifestEntry]()
        for manifest in self.manifests:
            for entry in self.entries(manifest):
                if manifest.content == ManifestContent.DATA:
                    data.append(entry)
                    continue
                if entry.data_file.content != DataFileContent.POSITION_DELETES:
                    raise SinkError(
                        "sink.unreadable",
                        "the table has equality deletes, which another writer made",
                        hint="compact the table with that writer's engine, then run again",
                    )
                path = only_path(entry.data_file)
                (unbounded if path is None else by_path.setdefault(path, [])).append(entry)
        return [
            LiveFile(one.data_file, _later(one, [*by_path.get(one.data_file.file_path, ()), *unbounded]))
            for one in data
        ]

    def every_file(self) -> Iterator[DataFile]:
        """Yield all files, those of deletes included."""
        for manifest in self.manifests:
            for entry in self.entries(manifest):
                yield entry.data_file

    def paths(self) -> Iterator[str]:
        """Yield the paths of all files, those of deletes included."""
        for file in self.every_file():
            yield file.file_path


def _later(data: ManifestEntry, deletes: list[ManifestEntry]) -> tuple[DataFile, ...]:
    """Return the deletes that are not older than a data file."""
    return tuple(one.data_file for one in deletes if (one.sequence_number or 0) >= (data.sequence_number or 0))


def only_path(deletes: DataFile) -> str | None:
    """Return the data file that all position deletes of a file are of, None where that is not known."""
    low, high = (bounds.get(PATH) for bounds in (deletes.lower_bounds or {}, deletes.upper_bounds or {}))
    return low.decode() if low is not None and low == high else None


def bounds_of(file: DataFile, schema: Schema, fields: Mapping[str, int]) -> dict[str, tuple[Any, Any]]:
    """Return the bounds of columns in a file; columns without are left out.

    :param fields: Iceberg's id of each column.
    """
    stated = {}
    for name, number in fields.items():
        low, high = (file.lower_bounds or {}).get(number), (file.upper_bounds or {}).get(number)
        if low is not None and high is not None:
            kind = schema.find_type(number)
            stated[name] = (from_bytes(kind, low), from_bytes(kind, high))
    return stated
