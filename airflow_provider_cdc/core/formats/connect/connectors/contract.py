# SPDX-License-Identifier: Apache-2.0
"""Define a connector of Debezium: what its records say of places, tables, structures and values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, NamedTuple, Protocol, TypeVar

from airflow_provider_cdc.core.errors import ConfigurationError
from airflow_provider_cdc.core.formats.common.row_images import Images
from airflow_provider_cdc.core.formats.connect.messages import Source, Transaction
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.relation import RelationChange
from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema


class LoggedChange(NamedTuple):
    """Hold a schema change that a row of a table stands for.

    :param position: where it stands in the source's log, as :meth:`Connector.position` gives it.
    :param statement: its text, for people.
    :param database: of the table that it changes.
    :param table: its name, None where the row does not say.
    :param text: what :meth:`SchemaLog.relation` reads.
    :param read: whether a snapshot read the row: what it says happened before, and may be read again.
    """

    position: tuple[int, int, int]
    statement: str
    database: str
    table: str | None
    text: str
    read: bool = False


def schema_and_name(option: str, table: str) -> tuple[str, str]:
    """Return the schema and the name of a table as an option of a pipeline states it.

    :raises ConfigurationError: it is not a schema and a name.
    """
    schema, dot, name = table.partition(".")
    if not dot or not schema or not name:
        raise ConfigurationError([f"source.options.{option}: {table!r} is not SCHEMA.NAME"])
    return schema, name


class SchemaLog(Protocol):
    """A table of the source into which the source itself writes its schema changes, or which server it is.

    :ivar name: as ``Connector.table_members`` have it.
    :ivar has_rows: whether its rows are rows of a table all the same; most of them say what the one before them said.
    """

    name: tuple[str, str]
    has_rows: bool

    def change(self, op: str, position: tuple[int, int, int], after: bytes | None) -> LoggedChange | None:
        """Return the schema change that a row stands for, None where it changes no table.

        :param op: of the row, as :meth:`Connector.row_op` says it.
        :param position: of the row.
        :raises ValueError: it is no such row.
        """
        ...

    def relation(self, text: str) -> RelationChange | None:
        """Read a text that :meth:`change` gave; None where it is another log's.

        :raises ValueError: it is none.
        """
        ...


S = TypeVar("S", bound=Source)


class Connector(Protocol[S]):
    """One family of connectors; the attributes are those of :class:`core.formats.contract.Format`.

    :ivar source: members of ``source`` that are read: the connector's own behind those of all.
    :ivar writers: what ``source.connector`` is in its records.
    :ivar databases: what it reads, for people.
    :ivar dialect: of the source's statements (:func:`core.ddl.parser.parse`).
    :ivar options: of a pipeline, with their meanings: mostly the connector's own settings.
    :ivar table_members: of ``source``: database and table of a row, as tables are called in a pipeline.
    :ivar place_members: members of a row's message that order it and name its table: what a flattened row has to keep.
    :ivar widths: digits of the numbers that :meth:`position` returns.
    :ivar schema_logs: tables with the source's schema changes, none where the connector itself sends them.
    :ivar no_key: columns of the key where a record has no key: none, or None where that says nothing.
    """

    source: type[S]
    writers: ClassVar[frozenset[str]]
    databases: ClassVar[tuple[str, ...]]
    dialect: str | None
    options: ClassVar[Mapping[str, str]]
    table_members: ClassVar[tuple[str, str]]
    place_members: ClassVar[tuple[str, ...]]
    widths: tuple[int, int, int]
    no_key: tuple[str, ...] | None
    carries: frozenset[str]
    updates_move_keys: bool
    partial_images: bool
    inserts_lack_defaults: bool | None
    snapshot_rows: str
    schema_logs: tuple[SchemaLog, ...]

    def __init__(self, options: Mapping[str, str]) -> None:
        """Take the options of a pipeline that are this connector's.

        :raises ConfigurationError: one has a value that the connector does not know.
        """
        ...

    def position(self, source: S, transaction: Transaction | None, *, keyed: bool = True) -> tuple[int, int, int]:
        """Return where a change stands in the source's log, as three numbers of :attr:`widths` digits.

        :param keyed: whether the record has a key: without one, rows of two snapshots look alike.
        :raises ValueError: the record does not say.
        """
        ...

    def may_share_place(self, op: str, source: S) -> bool:
        """Return whether a change may have place and content of another one where their transaction numbers none.

        Then ``carries`` has ``build_times``.

        :param op: of the row, as ``op`` says it.
        """
        ...

    def row_op(self, op: str, source: S) -> str:
        """Return what a row is to tables: rows that are read on request, while changes are streamed, are no snapshot.

        :param op: as ``op`` says it.
        """
        ...

    def images(
        self,
        op: str,
        before: bytes | None,
        after: bytes | None,
        key: tuple[str, ...] | None,
        columns: tuple[str, ...] | None = None,
    ) -> Images:
        """Return the images before and after a change without what the connector made up.

        :param op: of :meth:`row_op`.
        :param key: columns of the record's key, None where it has none or they are not known.
        :param columns: of the record's schema, as JSON texts, None without one.
        :raises UnsupportedRecord: a value of the row is not in the record.
        """
        ...

    def transaction_id(self, source: S) -> str | None:
        """Return what the changes of one transaction share."""
        ...

    def encoding(self, name: str, column: ColumnType, description: Description | None) -> Encoded:
        """Return the encoding of a column, by the record's schema or by the stated handling modes."""
        ...

    def structure(self, table_changes: str) -> list[tuple[str, str, TableSchema | None]]:
        """Read ``tableChanges``."""
        ...

    def infer(self, description: Description) -> TableSchema | None:
        """Return a schema made from the Connect types of a record, None without them."""
        ...
