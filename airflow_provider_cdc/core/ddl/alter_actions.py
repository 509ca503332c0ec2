# SPDX-License-Identifier: Apache-2.0
"""Define the clauses of ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass

from airflow_provider_cdc.core.ddl.table_parts import ColumnDefinition, ForeignKey, Name
from airflow_provider_cdc.core.model.schema import ColumnType, Default


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
