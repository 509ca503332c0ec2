# SPDX-License-Identifier: Apache-2.0
"""Describe Debezium's PostgreSQL connector, 1.5 to 3.x (docs/wire/debezium-postgres.md)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.record_decoder import UnsupportedRecord
from airflow_provider_cdc.core.formats.common.row_images import Images, members_of
from airflow_provider_cdc.core.formats.connect.connectors import postgresql_columns
from airflow_provider_cdc.core.formats.connect.connectors.contract import SchemaLog
from airflow_provider_cdc.core.formats.connect.connectors.postgresql_beat import (
    HEARTBEAT_TABLE,
    HEARTBEAT_TABLE_MEANING,
    BeatTable,
)
from airflow_provider_cdc.core.formats.connect.connectors.postgresql_ddl import DDL_TABLE, DDL_TABLE_MEANING, DdlLog
from airflow_provider_cdc.core.formats.connect.connectors.unchanged_values import (
    PLACEHOLDER,
    PLACEHOLDER_MEANING,
    UnchangedValues,
    is_key_made_up,
)
from airflow_provider_cdc.core.formats.connect.messages import Count, Source, Transaction
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema

_LSN_DIGITS, _ROW_DIGITS = 20, 16  # of 64 bits; of microseconds since the epoch
_NOT_READ = (b"", b"null", b"false", b'"false"')  # what streamed rows have in ``source.snapshot``
_sequence = msgspec.json.Decoder(tuple[str | None, str | None]).decode


class PostgreSqlSource(Source, gc=False):
    """Hold a change's place in the WAL, and its transaction."""

    schema: str | None = None
    sequence: str | None = None
    txId: Count | None = None


class PostgreSqlConnector:
    """The PostgreSQL connector: its log has no DDL, and its rows lack values that did not change."""

    source = PostgreSqlSource
    writers: ClassVar[frozenset[str]] = frozenset({"postgresql"})
    databases: ClassVar[tuple[str, ...]] = ("PostgreSQL",)
    dialect: str | None = "postgresql"
    table_members: ClassVar[tuple[str, str]] = ("schema", "table")
    place_members: ClassVar[tuple[str, ...]] = (
        "op",
        *(f"source.{name}" for name in ("schema", "table", "sequence", "snapshot", "txId")),
    )
    widths = (_LSN_DIGITS, _LSN_DIGITS, _ROW_DIGITS)
    no_key: tuple[str, ...] | None = None  # a table that was renamed or dropped meanwhile has none in its records
    carries = frozenset(
        {"rows", "progress", "transactions", "types", "ad_hoc_snapshots", "transaction_orders"}
        | {"full_snapshots", "deleted_keys", "keyed_partitions", "own_places", "transaction_counts"}
        | {"younger_snapshots", "build_times"}
    )
    updates_move_keys = False  # a moved key is a delete and an insert
    partial_images = True
    inserts_lack_defaults: bool | None = False
    snapshot_rows = "shared"
    options: ClassVar[Mapping[str, str]] = {
        **postgresql_columns.OPTIONS,
        PLACEHOLDER: PLACEHOLDER_MEANING,
        DDL_TABLE: DDL_TABLE_MEANING,
        HEARTBEAT_TABLE: HEARTBEAT_TABLE_MEANING,
    }

    def __init__(self, options: Mapping[str, str]) -> None:
        problems = postgresql_columns.option_problems(options)
        if problems:
            raise ConfigurationError(problems)
        self._modes = postgresql_columns.modes_of(options)
        self.schema_logs: tuple[SchemaLog, ...] = (
            BeatTable(options.get(HEARTBEAT_TABLE)),
            DdlLog(options.get(DDL_TABLE)),
        )
        self._unchanged = UnchangedValues(options.get(PLACEHOLDER))

    def position(
        self, source: PostgreSqlSource, transaction: Transaction | None, *, keyed: bool = True
    ) -> tuple[int, int, int]:
        """Return the place up to which commits were processed, that of the change, and its number in its transaction.

        Rows of the first transaction behind a snapshot, and those of the snapshot, have one place only. A row that is
        read while changes are streamed stands before all that comes behind the commits processed by then.

        A connector that dies in its snapshot takes it again, often at its place. Rows without key of both would count,
        so theirs is told apart by the time at which their snapshot began. All rows of a table have the same
        (Debezium since 1.9.6, DBZ-5591), ``ts_us`` since 2.6; only tables with a key are read by several sessions.
        """
        if source.sequence is None:
            raise ValueError("a row without source.sequence, which Debezium writes since 1.5")
        committed, own = _sequence(source.sequence)
        first, second = committed or own, own or committed
        if first is None or second is None:
            raise ValueError("a row without its place in the WAL")
        if bytes(source.snapshot) not in _NOT_READ:
            if committed is not None:
                return int(first), 0, 0
            if not keyed and source.ts_us is not None:
                return int(first), max(0, int(second) - 1), source.ts_us
        return int(first), int(second), 0 if transaction is None else int(transaction.total_order)

    def may_share_place(self, op: str, source: PostgreSqlSource) -> bool:
        """Return whether another row of a COPY may be equal."""
        return op == "insert"

    def row_op(self, op: str, source: PostgreSqlSource) -> str:
        """Distinguish rows of full snapshots, which name no commit, from those of incremental and blocking ones."""
        if op != "snapshot" or source.sequence is None:
            return op
        return op if _sequence(source.sequence)[0] is None else "incremental"

    def images(
        self,
        op: str,
        before: bytes | None,
        after: bytes | None,
        key: tuple[str, ...] | None,
        columns: tuple[str, ...] | None = None,
    ) -> Images:
        """Return the images without values that did not come.

        :raises UnsupportedRecord: ``record.value_missing``, a value that did not change is in no stored row of the key;
            ``record.key_made_up``, a deleted row comes without its key.
        """
        if op == "delete" and before is not None and key and is_key_made_up(members_of(before), key, columns):
            raise UnsupportedRecord(
                "record.key_made_up",
                "a deleted row comes with 0 or an empty value in all columns of its key, and with values in others, as "
                "REPLICA IDENTITY USING INDEX lets it: set REPLICA IDENTITY DEFAULT or FULL for the table, then send "
                "it again by a snapshot",
            )
        if after is None or not self._unchanged.may_be_in(after):
            return before, after
        if op == "update":
            return before, self._unchanged.without(after, before)
        if op == "insert" and self._unchanged.are_in(after):
            raise UnsupportedRecord(
                "record.value_missing",
                "a row came under a new key without a long value that did not change (TOAST): set REPLICA IDENTITY "
                "FULL for the table, so that its changes have all values, then send the table again by a snapshot",
            )
        return before, after

    def transaction_id(self, source: PostgreSqlSource) -> str | None:
        """Return the number of the transaction: ``transaction.id`` of a row names the row's place, too."""
        return None if source.txId is None else str(source.txId)

    def encoding(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return how a column stands in the images, by the record's schema or by the stated handling modes."""
        detail = None if description is None or description.details is None else description.details.get(name)
        if detail is not None:
            return postgresql_columns.described_encoding(name, column, detail, self._modes)
        return postgresql_columns.assumed_encoding(name, column, self._modes)

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Return nothing: the connector writes no structures."""
        return []

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the embedded schema's types."""
        return postgresql_columns.inferred_schema(description)
