# SPDX-License-Identifier: Apache-2.0
"""Read Iceberg tables through pyiceberg."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pyarrow as pa
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import NoSuchTableError, RESTError
from pyiceberg.table.snapshots import ancestors_of
from sqlalchemy.exc import DBAPIError

from airflow_provider_cdc.core.config.sinks.iceberg_options import catalog_properties, identifier_of
from airflow_provider_cdc.sinks.contract import UnreadableTableError

if TYPE_CHECKING:
    import pyarrow.dataset as ds

_ERRORS = (RESTError, DBAPIError, OSError, ValueError, pa.ArrowInvalid)


def _catalog(options: Mapping[str, str]) -> Catalog:
    return load_catalog(**catalog_properties(options))


class _Stored:
    """One version of an Iceberg table."""

    def __init__(self, location: str, options: Mapping[str, str], version: int | None) -> None:
        try:
            self._table = _catalog(options).load_table(identifier_of(location, options))
        except (*_ERRORS, NoSuchTableError) as error:
            raise UnreadableTableError(type(error).__name__) from None
        history = ancestors_of(self._table.current_snapshot(), self._table.metadata)
        self._snapshot = next((one for one in history if version in (None, one.sequence_number)), None)
        if self._snapshot is None and version:
            raise UnreadableTableError("the version has expired")
        self.version = 0 if self._snapshot is None else int(self._snapshot.sequence_number or 0)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._table.scan(snapshot_id=self._snapshot_id).count())

    @property
    def _snapshot_id(self) -> int | None:
        return None if self._snapshot is None else self._snapshot.snapshot_id

    def rows(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows."""
        names = ("*",) if columns is None else tuple(columns)
        return self._table.scan(selected_fields=names, snapshot_id=self._snapshot_id).to_arrow()

    def dataset(self) -> ds.Dataset:
        """Return the table for reading in parts."""
        import pyarrow.dataset as ds

        return ds.dataset(self.rows())

    def has_all_files(self) -> bool:
        """Return whether every data file of the version exists."""
        try:
            tasks = self._table.scan(snapshot_id=self._snapshot_id).plan_files()
            return all(self._table.io.new_input(task.file.file_path).exists() for task in tasks)
        except _ERRORS:
            return False


class _Reader:
    """Opens Iceberg tables."""

    errors = _ERRORS

    def open(self, location: str, options: Mapping[str, str], version: int | None = None) -> _Stored:
        """Open a table in a version."""
        return _Stored(location, options, version)

    def is_table(self, location: str, options: Mapping[str, str]) -> bool:
        """Return whether there is a table at a location."""
        return bool(_catalog(options).table_exists(identifier_of(location, options)))

    def example(self, location: str, options: Mapping[str, str]) -> list[str]:
        """Return lines of Python that print the rows of a table."""
        name, *properties = catalog_properties(options).items()
        stated = ", ".join([repr(name[1]), f"**{dict(properties)!r}"])
        table = ".".join(identifier_of(location, options))
        return [
            "from pyiceberg.catalog import load_catalog",
            f"print(load_catalog({stated}).load_table({table!r}).scan().to_arrow())",
        ]

    def read_at(self, tables: Sequence[tuple[str, int]], naming: Mapping[str, str]) -> list[str]:
        """Return lines of Python: SQL wants the id of a snapshot, and a version is its sequence number."""
        names = [(identifier_of(location, naming), version) for location, version in tables]
        return [
            "from pyiceberg.catalog import load_catalog",
            'catalog = load_catalog("cdc")  # with the settings of the catalog',
            "def read(name, version):",
            "    table = catalog.load_table(name)",
            "    ids = {one.sequence_number: one.snapshot_id for one in table.snapshots()}",
            "    return table.scan(snapshot_id=ids[version]).to_arrow()",
            "",
            *(f"read({name!r}, {version})" for name, version in names),
        ]


def reader() -> _Reader:
    """Return what opens Iceberg tables."""
    return _Reader()
