# SPDX-License-Identifier: Apache-2.0
"""Read Delta tables through delta-rs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, QueryBuilder
from deltalake.exceptions import DeltaError
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

from airflow_provider_cdc.core.config.sinks.delta import store_options
from airflow_provider_cdc.sinks.contract import StoredColumn, UnreadableTableError

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_ERRORS = (DeltaError, OSError, pa.ArrowInvalid)


class _Stored:
    """One version of a Delta table."""

    def __init__(self, location: str, options: Mapping[str, str], version: int | None) -> None:
        self._location = location
        self._options = store_options(options)
        try:
            self._table = DeltaTable(location, version=version, storage_options=self._options or None)
        except _ERRORS as error:
            raise UnreadableTableError(type(error).__name__) from None

    @cached_property
    def version(self) -> int:
        """Return the number of the version."""
        version: int = self._table.version()
        return version

    def columns(self) -> list[StoredColumn]:
        """Return the columns."""
        fields = json.loads(self._table.schema().to_json())["fields"]
        return [
            StoredColumn(one["name"], one["type"], one["nullable"], str(one["metadata"].get("comment", "")))
            for one in fields
        ]

    def comment(self) -> str:
        """Return the table's description, empty without one."""
        return self._table.metadata().description or ""

    def count(self) -> int:
        """Return the number of rows, as the files state it."""
        if self._has_deletes:
            return int(pa.table(self._query("SELECT count(*) FROM t")).column(0)[0].as_py())
        return int(self._table.count())

    @property
    def _has_deletes(self) -> bool:
        return "deletionVectors" in (self._table.protocol().reader_features or ())

    def _query(self, query: str) -> pa.RecordBatchReader:
        return QueryBuilder().register("t", self._table).execute(query).read_all()

    def rows(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows."""
        if not self._has_deletes:
            return self._table.to_pyarrow_table(columns=None if columns is None else list(columns))
        schema = pa.schema(self._table.schema().to_arrow())
        rows = pa.table(self._query("SELECT * FROM t")).cast(schema)
        return rows if columns is None else rows.select(list(columns))

    def dataset(self) -> ds.Dataset:
        """Return the table for reading in parts."""
        if self._has_deletes:  # which delta-rs' dataset refuses (1.6.6)
            import pyarrow.dataset as ds

            return ds.dataset(self.rows())
        return self._table.to_pyarrow_dataset()

    def has_all_files(self) -> bool:
        """Return whether every data file of the version exists."""
        try:
            added = pa.table(self._table.get_add_actions())
            files = fs.PyFileSystem(DeltaStorageHandler(self._location, self._options or None))
            infos = files.get_file_info([unquote(path) for path in added.column("path").to_pylist()])
        except _ERRORS:
            return False
        return all(info.type == fs.FileType.File for info in infos)


class _Reader:
    """Opens Delta tables."""

    errors = _ERRORS

    def open(self, location: str, options: Mapping[str, str], version: int | None = None) -> _Stored:
        """Open a table in a version."""
        return _Stored(location, options, version)

    def is_table(self, location: str, options: Mapping[str, str]) -> bool:
        """Return whether there is a table at a location."""
        return bool(DeltaTable.is_deltatable(location, store_options(options)))

    def example(self, location: str, options: Mapping[str, str]) -> list[str]:
        """Return lines of Python that print the rows of a table."""
        return ["from deltalake import DeltaTable", f"print(DeltaTable({location!r}).to_pyarrow_table())"]

    def read_at(self, tables: Sequence[tuple[str, int]], naming: Mapping[str, str]) -> list[str]:
        """Return a statement of Spark SQL for each table; none where the location could end its quotes."""
        return [
            f"-- {location}: no statement can name this place"
            if "`" in location
            else f"SELECT * FROM delta.`{location}` VERSION AS OF {version};"
            for location, version in tables
        ]


def reader() -> _Reader:
    """Return what opens Delta tables."""
    return _Reader()
