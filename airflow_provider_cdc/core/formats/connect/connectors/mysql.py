# SPDX-License-Identifier: Apache-2.0
"""Describe Debezium's MySQL and MariaDB connectors, 0.8 to 3.x (docs/wire/debezium-dtle.md B1 to B4 and B9)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.row_images import Images
from airflow_provider_cdc.core.formats.common.timezone_option import timezone_problems
from airflow_provider_cdc.core.formats.connect import columns as connect_columns
from airflow_provider_cdc.core.formats.connect import debezium_columns, debezium_table_changes
from airflow_provider_cdc.core.formats.connect.binlog_files import FileNumbers
from airflow_provider_cdc.core.formats.connect.connectors.contract import SchemaLog
from airflow_provider_cdc.core.formats.connect.messages import Count, RowCount, Source, Transaction
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.position import WIDTHS
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema

# MariaDB writes no place of their own into the events of a transaction since 11.4
_WITHOUT_PLACES = "mariadb"
_INCREMENTAL = b'"incremental"'


class MySqlSource(Source, gc=False):
    """Hold a change's place in the binlog, and its transaction."""

    gtid: str | None = None
    file: str | None = None
    pos: Count | None = None
    row: RowCount | None = None


class MySqlConnector:
    """The MySQL and MariaDB connectors, and Flink CDC's, which is made of the first."""

    source = MySqlSource
    writers: ClassVar[frozenset[str]] = frozenset({"mysql", "mariadb"})
    databases: ClassVar[tuple[str, ...]] = ("MySQL", "MariaDB")
    dialect: str | None = None
    table_members: ClassVar[tuple[str, str]] = ("db", "table")
    place_members: ClassVar[tuple[str, ...]] = (
        "op",
        *(f"source.{name}" for name in (*table_members, "file", "pos", "row", "snapshot")),
    )
    widths = WIDTHS
    no_key: tuple[str, ...] | None = ()
    carries = frozenset({"rows", "ddl", "progress", "transactions", "types", "ad_hoc_snapshots"}) | {
        "transaction_orders",
        "build_times",
    }
    updates_move_keys = False  # a moved key is a delete and an insert (docs/wire/debezium-dtle.md B1)
    partial_images = False
    inserts_lack_defaults: bool | None = False
    snapshot_rows = "shared"
    schema_logs: tuple[SchemaLog, ...] = ()
    options: ClassVar[Mapping[str, str]] = {
        **debezium_columns.OPTIONS,
        debezium_columns.TIMEZONE: debezium_columns.TIMEZONE_MEANING,
    }

    def __init__(self, options: Mapping[str, str]) -> None:
        problems = debezium_columns.option_problems(options) + timezone_problems(options)
        if problems:
            raise ConfigurationError(problems)
        self._modes = {**{name: default for name, (default, _) in debezium_columns.MODES.items()}, **options}
        self._files = FileNumbers()

    def position(
        self, source: MySqlSource, transaction: Transaction | None, *, keyed: bool = True
    ) -> tuple[int, int, int]:
        """Return binlog file, byte and row."""
        if source.file is None or source.pos is None:
            raise ValueError("a record without its position in a binlog")
        row = source.row or 0
        if source.connector == _WITHOUT_PLACES and transaction is not None:
            row = int(transaction.total_order)
        return self._files[source.file], source.pos, row

    def may_share_place(self, op: str, source: MySqlSource) -> bool:
        """Return whether another statement of a transaction of MariaDB may have made an equal change."""
        return source.connector == _WITHOUT_PLACES and op != "snapshot"

    def row_op(self, op: str, source: MySqlSource) -> str:
        """Tell rows of incremental snapshots apart; those of a blocking one look like those of any other."""
        return "incremental" if op == "snapshot" and bytes(source.snapshot) == _INCREMENTAL else op

    def images(
        self,
        op: str,
        before: bytes | None,
        after: bytes | None,
        key: tuple[str, ...] | None,
        columns: tuple[str, ...] | None = None,
    ) -> Images:
        """Return them as they are: the binlog has whole rows."""
        return before, after

    def transaction_id(self, source: MySqlSource) -> str | None:
        """Return the GTID."""
        return source.gtid or None

    def encoding(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images, by the record's schema or by the stated handling modes."""
        detail = None if description is None or description.details is None else description.details.get(name)
        if detail is not None:
            return debezium_columns.described_encoding(name, column, detail, self._modes)
        return debezium_columns.assumed_encoding(name, column, self._modes)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Read ``tableChanges``."""
        return debezium_table_changes.structures(table_changes)

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the embedded schema's types."""
        return connect_columns.inferred_schema(description)
