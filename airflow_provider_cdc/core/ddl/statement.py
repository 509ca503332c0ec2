# SPDX-License-Identifier: Apache-2.0
"""Define parsed DDL statements, independent of how they were written."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_cdc.core.ddl.database_statements import AlterDatabase as AlterDatabase
from airflow_provider_cdc.core.ddl.database_statements import CreateDatabase as CreateDatabase
from airflow_provider_cdc.core.ddl.database_statements import DropDatabase as DropDatabase
from airflow_provider_cdc.core.ddl.database_statements import RenameDatabase as RenameDatabase
from airflow_provider_cdc.core.ddl.database_statements import UseDatabase as UseDatabase
from airflow_provider_cdc.core.model.schema import ColumnType, Default


@dataclass(frozen=True, slots=True)
class Name:
    """Hold a table name of a statement; ``database`` is None if it was not qualified."""

    database: str | None
    table: str


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """FOREIGN KEY (columns) REFERENCES parent (parent_columns).

    :param names: names by which it can be dropped; empty if the server makes the name.
    :param parent_columns: empty if they are the parent's primary key.
    :param cascades: whether deleting or changing a parent's row changes rows of this table without row events:
        CASCADE, SET NULL or SET DEFAULT, ON DELETE or ON UPDATE; never so in Oracle.
    :param empties: whether Oracle's TRUNCATE ... CASCADE of the parent empties this table: ON DELETE CASCADE.
    """

    names: tuple[str, ...]
    columns: tuple[str, ...]
    parent: Name
    parent_columns: tuple[str, ...] = ()
    cascades: bool = False
    empties: bool = False


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """Hold a column as CREATE or ALTER defines it.

    :param nullable: None if the statement does not state it.
    :param any_scale: a number of any scale, which is stored as text: equal numbers may be spelled in two ways.
    :param expression: SQL of a generated column, None if it is generated in another way.
    :param on_update: ON UPDATE CURRENT_TIMESTAMP.
    :param versioned: WITH SYSTEM VERSIONING, which makes the table a versioned one.
    :param references: the foreign key that REFERENCES in the definition makes (MariaDB, MySQL 9).
    """

    name: str
    type: ColumnType
    nullable: bool | None = None
    default: Default | None = None
    generated: bool = False
    auto_increment: bool = False
    primary_key: bool = False
    unique: bool = False
    on_update: bool = False
    versioned: bool = False
    references: ForeignKey | None = None
    expression: str | None = None
    any_scale: bool = False
    comment: str = ""


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ADD COLUMN; ``after`` names the column it follows."""

    definition: ColumnDefinition
    first: bool = False
    after: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """DROP COLUMN.

    :param with_keys: Oracle's CASCADE CONSTRAINTS: keys that have the column are dropped; else they lose the column.
    """

    name: str
    if_exists: bool = False
    with_keys: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE old definition, or MODIFY (``old_name`` equals the definition's name)."""

    old_name: str
    definition: ColumnDefinition
    first: bool = False
    after: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class ModifyColumn:
    """MODIFY of Oracle; a property that is None stays as it was."""

    name: str
    type: ColumnType | None = None
    nullable: bool | None = None
    default: Default | None = None
    any_scale: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """RENAME COLUMN."""

    old_name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN SET DEFAULT, or DROP DEFAULT with None.

    :param default: its SQL; the stored value depends on the column's type, which the statement does not state.
    """

    name: str
    default: str | None


@dataclass(frozen=True, slots=True)
class AddPrimaryKey:
    """ADD PRIMARY KEY.

    :param name: by which it can be dropped, if the server accepts one (Oracle).
    """

    columns: tuple[str, ...]
    name: str | None = None


@dataclass(frozen=True, slots=True)
class DropPrimaryKey:
    """DROP PRIMARY KEY."""


@dataclass(frozen=True, slots=True)
class AddUnique:
    """ADD UNIQUE KEY; ``index`` is its name, by default that of the first column."""

    index: str
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX, KEY or CONSTRAINT by name."""

    index: str


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """DROP CONSTRAINT of Oracle, for a constraint of any kind."""

    name: str


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    """ADD FOREIGN KEY."""

    key: ForeignKey


@dataclass(frozen=True, slots=True)
class DropForeignKey:
    """DROP FOREIGN KEY by name."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameIndex:
    """RENAME INDEX or KEY; a unique key may later be dropped by its new name."""

    old_name: str
    new_name: str


@dataclass(frozen=True, slots=True)
class RenameTo:
    """ALTER TABLE ... RENAME [TO|AS|=] name."""

    name: Name


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET."""

    charset: str


@dataclass(frozen=True, slots=True)
class SetCharset:
    """[DEFAULT] CHARACTER SET or COLLATE: of the columns that are defined without one from now on."""

    charset: str


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """Hold a partition or tablespace clause that changes rows without row events.

    ``kind`` is ``drop``, ``truncate``, ``exchange``, ``discard``, ``import``; or ``detach``: the partition becomes the
    table ``other``; ``attach``: the table ``other`` becomes a partition.
    """

    kind: str
    other: Name | None = None


@dataclass(frozen=True, slots=True)
class Versioning:
    """ADD or DROP SYSTEM VERSIONING of MariaDB: between them the log also has rows of the table's history."""

    added: bool


@dataclass(frozen=True, slots=True)
class SetComment:
    """COMMENT of the table; empty for none."""

    comment: str


@dataclass(frozen=True, slots=True)
class NoEffect:
    """Mark a clause that changes neither columns, key, name nor rows (index, engine, ...)."""

    clause: str


AlterAction = (
    AddColumn
    | DropColumn
    | ChangeColumn
    | ModifyColumn
    | RenameColumn
    | SetDefault
    | AddPrimaryKey
    | DropPrimaryKey
    | AddUnique
    | DropIndex
    | DropConstraint
    | AddForeignKey
    | DropForeignKey
    | RenameIndex
    | RenameTo
    | ConvertCharset
    | SetCharset
    | PartitionRows
    | Versioning
    | SetComment
    | NoEffect
)


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
