# SPDX-License-Identifier: Apache-2.0
"""Data files of a Delta table, written a piece at a time.

delta-rs gathers 8 192 rows before it writes any and holds them up to four times, however large they are: 960 MB in rows
of 8 MB took 3.8 GB (deltalake 1.6.6), from a stream of batches too.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence

import pyarrow as pa
from deltalake.transaction import AddAction

from spark_jobs.lake.storage import Storage
from spark_jobs.sinks.delta.file_statistics import FileStatistics
from spark_jobs.sinks.row_group_files import RowGroupFiles


class DataFiles(RowGroupFiles[AddAction, FileStatistics]):
    """Writes rows into new files of a table.

    :param storage: folder of the table.
    :param bounded: names of the columns of which readers may expect bounds.
    :param file_bytes: size of a file in the store that ends it, None where it is measured by its rows in memory.
    :param order: columns in whose order rows are written.
    :ivar schema: of the rows.
    """

    def __init__(
        self,
        storage: Storage,
        schema: pa.Schema,
        bounded: Sequence[str],
        file_bytes: int | None = None,
        order: Sequence[str] = (),
    ) -> None:
        self._storage, self.schema, self._bounded = storage, schema, bounded
        super().__init__(schema, "snappy", file_bytes, order)

    def _open(self, number: int) -> tuple[str, pa.NativeFile]:
        name = f"part-{number:05d}-{uuid.uuid4()}-c000.snappy.parquet"
        return name, self._storage.open_new(name)

    def _remove(self, name: str) -> None:
        self._storage.delete_file(name)

    def _statistics_of_file(self) -> FileStatistics:
        return FileStatistics(self._bounded)

    def _describe(self, name: str, size: int, statistics: FileStatistics) -> AddAction:
        return AddAction(name, size, {}, int(time.time() * 1000), True, statistics.document())
