# SPDX-License-Identifier: Apache-2.0
"""Open the stored tables of a pipeline."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from airflow_provider_cdc.core.config.sinks.kinds import SINKS
from airflow_provider_cdc.core.lake.roots import located
from airflow_provider_cdc.sinks.contract import UnreadableTableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_cdc.core.config import CdcPipeline
    from airflow_provider_cdc.core.config.sinks.sections import Sink
    from airflow_provider_cdc.core.documents import TableState
    from airflow_provider_cdc.core.lake.own_lake import LakeIdentity
    from airflow_provider_cdc.sinks.contract import StoredTable, TableReader


def reader_of(kind: str) -> TableReader:
    """Return what opens tables of a kind.

    :param kind: ``sink.type``.
    :raises ImportError: its library is not installed.
    """
    reader: TableReader = importlib.import_module(SINKS[kind].reader).reader()
    return reader


class PipelineTables:
    """The stored tables of one pipeline.

    :param connected: returns the options of a sink, secrets included; asked once, when a table is read.
    """

    def __init__(self, pipeline: CdcPipeline, connected: Callable[[Sink], dict[str, str]]) -> None:
        self._sink, self._connected = pipeline.sink, connected

    @cached_property
    def options(self) -> dict[str, str]:
        """Return all options of the sink, secrets included."""
        return self._connected(self._sink)

    @property
    def reader(self) -> TableReader:
        """Return what opens the tables."""
        return reader_of(self._sink.type)

    def location(self, state: TableState) -> str:
        """Return where a table lies."""
        return located(self._sink.root, state.location)

    def example(self, database: str, table: str) -> list[str]:
        """Return lines of Python that print the rows of a table, without secrets."""
        location = located(self._sink.root, f"{database}/{table}")
        return self.reader.example(location, self._sink.options())

    def lake_document(self, lake: LakeIdentity) -> dict[str, Any]:
        """Return what the ledger notes of a lake: with the kind of the tables and how they are named, no secrets."""
        return {**lake.document(), "sink": {"type": self._sink.type, "naming": self._sink.naming(self.options)}}

    def newest(self, state: TableState) -> StoredTable:
        """Open a table as it is now.

        :raises UnreadableTableError: it cannot be opened.
        """
        return self.reader.open(self.location(state), self.options)

    @contextmanager
    def as_committed(self, state: TableState) -> Iterator[StoredTable]:
        """Open a table in its version of the last batch.

        :raises UnreadableTableError: it cannot be read, inside the block as well.
        """
        reader = self.reader
        try:
            yield reader.open(self.location(state), self.options, state.version)
        except reader.errors as error:
            raise UnreadableTableError(type(error).__name__) from None
