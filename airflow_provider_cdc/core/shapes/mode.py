# SPDX-License-Identifier: Apache-2.0
"""Say which columns a mode gives a stored table in addition to those of the source."""

from __future__ import annotations

from typing import Protocol

from airflow_provider_cdc.core.shapes.columns import SourceColumns, TargetColumn


class ModeColumns(Protocol):
    """Give a stored table columns of a mode.

    :ivar name: as ``tables.<name>.mode`` states it.
    :ivar is_mirror: the table has the rows of the source's table, and nothing else.
    :ivar of_change: columns of the change log, beyond those of every table, that it reads.
    """

    name: str
    is_mirror: bool
    of_change: tuple[str, ...]

    def columns(self, source: SourceColumns) -> list[TargetColumn]:
        """Return its columns.

        :raises DataError: ``mode.needs_key``.
        """
        ...


class AsAtSource:
    """A stored table is a mirror of the source's."""

    name: str = "mirror"
    is_mirror = True
    of_change: tuple[str, ...] = ()

    def columns(self, source: SourceColumns) -> list[TargetColumn]:
        """Return no columns."""
        return []


MIRROR = AsAtSource()
