# SPDX-License-Identifier: Apache-2.0
"""Define what statements on tables are made of: names, columns, foreign keys."""

from __future__ import annotations

from dataclasses import dataclass

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
