# SPDX-License-Identifier: Apache-2.0
"""Parse texts that are one statement, one CREATE TABLE, one column."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.statement import CreateTable, Statement
from airflow_provider_cdc.core.ddl.table_parts import ColumnDefinition
from airflow_provider_cdc.core.model.schema import ColumnType

INT = ColumnType("int")


def one(text: str) -> Statement:
    """Return the only statement of a text."""
    (statement,) = parse(text)
    return statement


def create(text: str) -> CreateTable:
    """Return the CREATE TABLE that a text is."""
    statement = one(text)
    assert isinstance(statement, CreateTable)
    return statement


def column(text: str) -> ColumnDefinition:
    """Return the column that a definition describes."""
    (definition,) = create(f"CREATE TABLE t ({text})").columns
    return definition
