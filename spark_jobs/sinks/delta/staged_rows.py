# SPDX-License-Identifier: Apache-2.0
"""Read the rows that a task staged for a commit that something else makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.lake.storage import Storage

ACTION = "action.json"


class StagedRows:
    """Read what one task staged.

    :param document: the action, as :class:`StageWriter` wrote it.
    """

    def __init__(self, storage: Storage, document: dict[str, Any]) -> None:
        self._storage, self.document = storage, document

    @property
    def schema(self) -> pa.Schema:
        """Return the columns of the rows."""
        with self._open(self.document["rows"][0]) as file:
            return file.schema_arrow

    @property
    def count(self) -> int:
        """Return the number of rows."""
        counts = []
        for name in self.document["rows"]:
            with self._open(name) as file:
                counts.append(file.metadata.num_rows)
        return sum(counts)

    def pieces(self) -> Iterator[pa.Table]:
        """Yield the rows, a row group at a time."""
        for name in self.document["rows"]:
            with self._open(name) as file:
                for number in range(file.num_row_groups):
                    yield file.read_row_group(number, use_threads=False)

    def deletes(self, key: Sequence[str]) -> pa.Table:
        """Return the keys of the rows to remove."""
        files = [self._open(name) for name in self.document["deletes"]]
        return pa.concat_tables(file.read(columns=list(key), use_threads=False) for file in files)

    def _open(self, file: str) -> pq.ParquetFile:
        with self._storage.access(file) as path:
            return pq.ParquetFile(path, filesystem=self._storage.filesystem)


def staged_rows(storage: Storage, folder: str) -> StagedRows | None:
    """Return what a task staged in a folder, None where it staged nothing."""
    document = storage.read_json(f"{folder}/{ACTION}")
    return None if document is None else StagedRows(storage, document)
