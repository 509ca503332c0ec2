# SPDX-License-Identifier: Apache-2.0
"""Define parsed DDL statements, independent of how they were written."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_cdc.core.ddl.alter_actions import AddUnique, AlterAction
from airflow_provider_cdc.core.ddl.table_parts import ColumnDefinition, ForeignKey, Name


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE; either columns, or ``like``, or ``as_select`` (columns then may be incomplete).

    :param key_name: name of the primary key, if the server accepts one (Oracle).
    :param versioned: WITH SYSTEM VERSIONING.
    :param references: its foreign keys.
    :param unknown: why its columns, or what tells its rows apart, cannot be known from the text.
    """

    name: Name
    columns: tuple[ColumnDefinition, ...] = ()
    key: tuple[str, ...] = ()
    key_name: str | None = None
    unique: tuple[AddUnique, ...] = ()
    like: Name | None = None
    as_select: bool = False
    if_not_exists: bool = False
    or_replace: bool = False
    temporary: bool = False
    charset: str | None = None
    versioned: bool = False
    references: tuple[ForeignKey, ...] = ()
    unknown: str | None = None
    comment: str = ""


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE with its clauses in order.

    :param ignore: ALTER IGNORE: of rows that a new key makes equal all but one are removed.
    :param if_exists: without the table the statement has no effect.
    """

    name: Name
    actions: tuple[AlterAction, ...]
    ignore: bool = False
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE of one or more tables."""

    names: tuple[Name, ...]
    if_exists: bool = False
    temporary: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable:
    """TRUNCATE [TABLE].

    :param cascade: Oracle's CASCADE: tables with a foreign key to this one are also emptied.
    """

    name: Name
    cascade: bool = False


@dataclass(frozen=True, slots=True)
class RenameTable:
    """RENAME TABLE pairs, applied one after the other in one atomic step.

    :param if_exists: pairs without their table have no effect.
    """

    pairs: tuple[tuple[Name, Name], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CommentOn:
    """COMMENT ON TABLE or COLUMN of Oracle; an empty comment is none.

    :param column: None for the table.
    """

    name: Name
    column: str | None
    comment: str


@dataclass(frozen=True, slots=True)
class RestoreTable:
    """FLASHBACK TABLE or RECOVER TABLE: the rows of a dropped or truncated table come back without row events.

    :param name: the table that had them, None where the statement does not say (BY JOB).
    :param new_name: name of the table that has them now, None for the same.
    """

    name: Name | None
    new_name: Name | None = None


@dataclass(frozen=True, slots=True)
class RestoreDatabase:
    """FLASHBACK DATABASE: the tables of a dropped database come back without row events.

    :param new_name: name that the database gets, None for its own.
    """

    database: str
    new_name: str | None = None


@dataclass(frozen=True, slots=True)
class RevertRows:
    """FLASHBACK to a point in time: rows become what they were then.

    :param names: the tables; empty for those of the database, or without one for all.
    """

    names: tuple[Name, ...] = ()
    database: str | None = None


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    """CREATE DATABASE or SCHEMA."""

    database: str
    charset: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """ALTER DATABASE or SCHEMA with a character set, of the tables that are created in it from now on.

    ``database`` is empty for that of the session.
    """

    database: str
    charset: str


@dataclass(frozen=True, slots=True)
class DropDatabase:
    """DROP DATABASE or SCHEMA: drops every table in it."""

    database: str


@dataclass(frozen=True, slots=True)
class RenameDatabase:
    """ALTER DATABASE `#mysql50#name` UPGRADE DATA DIRECTORY NAME: the database loses the prefix."""

    database: str
    new_name: str


@dataclass(frozen=True, slots=True)
class UseDatabase:
    """USE database."""

    database: str


@dataclass(frozen=True, slots=True)
class Other:
    """Mark a statement without effect on tables (views, routines, users, temporary tables, SET, FLUSH)."""

    text: str


Statement = (
    CreateTable
    | AlterTable
    | DropTable
    | TruncateTable
    | RenameTable
    | CommentOn
    | RestoreTable
    | RestoreDatabase
    | RevertRows
    | CreateDatabase
    | AlterDatabase
    | DropDatabase
    | RenameDatabase
    | UseDatabase
    | Other
)
