# SPDX-License-Identifier: Apache-2.0
"""Say which columns a mode gives a stored table in addition to those of the source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.shapes.columns import SourceColumns, TargetColumn
from airflow_provider_cdc.core.timeline.timeline import SchemaVersion


class ModeColumns(Protocol):
    """Give a stored table columns of a mode.

    :ivar name: as ``tables.<name>.mode`` states it.
    :ivar is_mirror: the table has the rows of the source's table, and nothing else.
    :ivar has_key: the key of the source's table identifies its rows; else each change adds a row.
    :ivar further_key: ids of its columns that identify a row in addition to the key of the source's table.
    :ivar needs_order: the order of changes has to be exact.
    :ivar types_later: rows may be typed when they are written: each of them is right by itself.
    :ivar keeps_rows: stored rows stay as they are where the source's table is emptied.
    :ivar of_change: columns of the change log, beyond those of every table, that it reads.
    :ivar named: columns of the source that its options name.
    :ivar of_source: condition of the rows that the source's table has, None for all.
    """

    name: str
    is_mirror: bool
    has_key: bool
    further_key: tuple[int, ...]
    needs_order: bool
    types_later: bool
    keeps_rows: bool
    of_change: tuple[str, ...]
    named: tuple[str, ...]
    of_source: pc.Expression | None

    def columns(self, source: SourceColumns, others: Sequence[TargetColumn]) -> list[TargetColumn]:
        """Return its columns.

        :param others: of the table.
        :raises DataError: ``mode.needs_key``.
        """
        ...

    def barriers(self, versions: Sequence[SchemaVersion], of_mirror: Sequence[int]) -> Sequence[int]:
        """Return the indexes of the schema versions that are barriers, ascending.

        :param of_mirror: those of a mirror.
        """
        ...


class AsAtSource:
    """A stored table is a mirror of the source's."""

    name: str = "mirror"
    is_mirror = True
    has_key = True
    further_key: tuple[int, ...] = ()
    needs_order = False
    types_later = True
    keeps_rows = False
    of_change: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    of_source: pc.Expression | None = None

    def columns(self, source: SourceColumns, others: Sequence[TargetColumn]) -> list[TargetColumn]:
        """Return no columns."""
        return []

    def barriers(self, versions: Sequence[SchemaVersion], of_mirror: Sequence[int]) -> Sequence[int]:
        """Return the barriers of every table."""
        return of_mirror


MIRROR = AsAtSource()


def source_rows(rows: pa.Table, mode: ModeColumns) -> pa.Table:
    """Return the stored rows that the source's table has."""
    return rows if mode.of_source is None else rows.filter(mode.of_source)
