# SPDX-License-Identifier: Apache-2.0
"""A made-up connector with members of ``source`` and an order of its own: all that the product learns of it is here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from airflow_provider_cdc.core.formats.common.row_images import Images
from airflow_provider_cdc.core.formats.connect import columns as connect_columns
from airflow_provider_cdc.core.formats.connect import debezium_columns
from airflow_provider_cdc.core.formats.connect.connectors.contract import SchemaLog
from airflow_provider_cdc.core.formats.connect.messages import Count, Source, Transaction
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema


class LsnSource(Source, gc=False):
    """Hold the place of the commit, and the change's in it."""

    schema: str | None = None
    change_lsn: str | None = None
    commit_lsn: str | None = None
    event_serial_no: Count | None = None


class LsnConnector:
    """Order by the commit, then by the change; tables are named as ``schema.table``."""

    source = LsnSource
    writers: ClassVar[frozenset[str]] = frozenset({"lsnserver"})
    databases: ClassVar[tuple[str, ...]] = ("LSN Server",)
    dialect: str | None = "lsnserver"
    table_members: ClassVar[tuple[str, str]] = ("schema", "table")
    place_members: ClassVar[tuple[str, ...]] = (
        "op",
        *(f"source.{name}" for name in ("schema", "table", "commit_lsn", "change_lsn", "event_serial_no", "snapshot")),
    )
    widths = (25, 25, 10)
    no_key: tuple[str, ...] | None = ()
    carries = frozenset({"rows", "progress", "types"})
    updates_move_keys = False
    partial_images = False
    inserts_lack_defaults: bool | None = False
    snapshot_rows = "shared"
    schema_logs: tuple[SchemaLog, ...] = ()
    options: ClassVar[Mapping[str, str]] = {}

    def __init__(self, options: Mapping[str, str]) -> None:
        pass

    def position(
        self, source: LsnSource, transaction: Transaction | None, *, keyed: bool = True
    ) -> tuple[int, int, int]:
        """Return the numbers of both places, and that of the event."""
        if source.commit_lsn is None:
            raise ValueError("a record without its place")
        return _number(source.commit_lsn), _number(source.change_lsn or "0"), source.event_serial_no or 0

    def may_share_place(self, op: str, source: LsnSource) -> bool:
        """Return whether it may."""
        return False

    def row_op(self, op: str, source: LsnSource) -> str:
        """Return the op as it is."""
        return op

    def images(
        self,
        op: str,
        before: bytes | None,
        after: bytes | None,
        key: tuple[str, ...] | None,
        columns: tuple[str, ...] | None = None,
    ) -> Images:
        """Return them as they are."""
        return before, after

    def transaction_id(self, source: LsnSource) -> str | None:
        """Return the place of the commit."""
        return source.commit_lsn

    def encoding(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images."""
        return debezium_columns.assumed_encoding(name, column, {})

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the embedded schema's types."""
        return connect_columns.inferred_schema(description)


def _number(lsn: str) -> int:
    return int(lsn.replace(":", ""), 16)
