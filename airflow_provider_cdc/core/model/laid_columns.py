# SPDX-License-Identifier: Apache-2.0
"""Say how the columns of a table of the source lie in a stored table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow_provider_cdc.core.model.schema import TableSchema

MASK, HASH = "mask ", "mask hash "
"""Marks of masked columns begin with it; of hashes a digest of their salt follows."""
ADD = "add "
"""Marks of computed columns begin with it; their expression follows."""


@dataclass(frozen=True, slots=True)
class LaidColumn:
    """Say how a column lies in a stored table.

    :param id: that of the source's column that it stands for; negative where it stands for none.
    :param mark: says how its values are made; empty where they are the source's own.
    """

    id: int
    name: str
    mark: str = ""

    @property
    def is_masked(self) -> bool:
        """Return whether its values are masked."""
        return self.mark.startswith(MASK)

    @property
    def expression(self) -> str:
        """Return what it is computed by, empty where it is not."""
        return self.mark.removeprefix(ADD) if self.mark.startswith(ADD) else ""

    @property
    def salt(self) -> str:
        """Return a digest of the salt of its hashes, empty where it has none."""
        return self.mark.removeprefix(HASH) if self.mark.startswith(HASH) else ""


@dataclass(frozen=True, slots=True)
class LaidColumns:
    """The columns of a stored table, in their order.

    :param columns: None where they are those of the source's schema.
    """

    columns: tuple[LaidColumn, ...] | None = None

    def of(self, schema: TableSchema) -> tuple[LaidColumn, ...]:
        """Return the columns of rows that lie under a schema."""
        if self.columns is not None:
            return self.columns
        return tuple(LaidColumn(column.id, column.name) for column in schema.columns)

    def document(self) -> list[list[Any]] | None:
        """Return plain JSON data."""
        return None if self.columns is None else [[one.id, one.name, one.mark] for one in self.columns]

    @staticmethod
    def from_document(data: list[list[Any]] | None) -> LaidColumns:
        """Rebuild from :meth:`document`."""
        return LaidColumns(None if data is None else tuple(LaidColumn(*one) for one in data))

    def names(self, schema: TableSchema) -> dict[int, str]:
        """Return the names of the columns that have the source's own values, by id."""
        return {one.id: one.name for one in self.of(schema) if not one.mark}


AS_SOURCE = LaidColumns()
"""Of rows whose columns are the source's."""
