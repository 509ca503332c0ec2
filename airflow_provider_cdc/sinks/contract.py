# SPDX-License-Identifier: Apache-2.0
"""Define what the Airflow side needs of a kind of table: to open a version of it, and to read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


class UnreadableTableError(Exception):
    """A table cannot be opened or read; the text names the library's error and no value."""


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """A column as a table states it.

    :param type: in the notation of Spark's schemas: ``long``, or the object of an array, a map or a struct.
    """

    name: str
    type: Any
    nullable: bool = True
    comment: str = ""


class StoredTable(Protocol):
    """One version of one table.

    What reads it raises the library's errors (:attr:`TableReader.errors`), which ``PipelineTables`` explains.
    """

    version: int

    def count(self) -> int:
        """Return the number of rows."""
        ...

    def rows(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return all rows.

        :param columns: names; all if None.
        """
        ...

    def dataset(self) -> ds.Dataset:
        """Return the table for reading in parts."""
        ...

    def has_all_files(self) -> bool:
        """Return whether every data file of the version exists."""
        ...


@runtime_checkable
class DescribedTable(StoredTable, Protocol):
    """A version of a table of a kind that can be registered in a catalog."""

    def columns(self) -> list[StoredColumn]:
        """Return the columns."""
        ...

    def comment(self) -> str:
        """Return what the table says of itself, empty for nothing."""
        ...


class TableReader(Protocol):
    """Opens tables of one kind.

    :param errors: errors of the library that reading a table raises.
    """

    errors: tuple[type[Exception], ...]

    def open(self, location: str, options: Mapping[str, str], version: int | None = None) -> StoredTable:
        """Open a table.

        :param version: None for the newest.
        :raises UnreadableTableError: it cannot be opened.
        """
        ...

    def is_table(self, location: str, options: Mapping[str, str]) -> bool:
        """Return whether there is a table at a location; raises what the store's client raises."""
        ...

    def example(self, location: str, options: Mapping[str, str]) -> list[str]:
        """Return lines of Python that print the rows of a table, for people to copy.

        :param options: those of the sink that no connection holds: no secrets.
        """
        ...

    def read_at(self, tables: Sequence[tuple[str, int]], naming: Mapping[str, str]) -> list[str]:
        """Return lines that read tables as they were, for people to copy.

        :param tables: location and version of each.
        :param naming: of the sink's section.
        """
        ...
