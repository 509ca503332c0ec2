# SPDX-License-Identifier: Apache-2.0
"""Check the CREATE TABLE statements that a pipeline states itself (``tables.<database.table>.create``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from airflow_provider_cdc.core.config.tables import TableRules
from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.server import Server
from airflow_provider_cdc.core.ddl.statement import CreateTable, Statement
from airflow_provider_cdc.core.ddl.tokens import DdlError

_DIALECTS = (None, "oracle")  # what no MySQL reads may be what Oracle prints


def stated_problems(rules: TableRules, options: Mapping[str, str]) -> list[str]:
    """Return what is wrong with ``create`` of any table, one sentence each.

    :param options: of the source.
    """
    folds = Server.of(options).lower_case_names is True
    return [
        f"tables.{full}.create: {problem}"
        for full, create in stated_tables(rules)
        if (problem := _problem(full, create, folds)) is not None
    ]


def stated_tables(rules: TableRules) -> Iterator[tuple[str, str]]:
    """Yield the name of each table with the statement that is stated for it."""
    return ((full, rule.create) for full, rule in rules.tables.items() if rule.create)


def dialect_of(create: str) -> str | None:
    """Return the first dialect that a statement is understood in, that of MySQL if it is in none."""
    return next((dialect for dialect in _DIALECTS if _is_understood(_read(create, dialect))), None)


def stated_create(create: str) -> CreateTable | None:
    """Return a statement that is stated, None where it is not one CREATE TABLE that is understood."""
    read = _read(create, dialect_of(create))
    return read[0] if not isinstance(read, DdlError) and len(read) == 1 and isinstance(read[0], CreateTable) else None


def _is_understood(read: list[Statement] | DdlError) -> bool:
    if isinstance(read, DdlError):
        return False
    return not any(isinstance(item, CreateTable) and item.unknown for item in read)


def _read(create: str, dialect: str | None) -> list[Statement] | DdlError:
    try:
        return parse(create, dialect)
    except DdlError as error:
        return error


def _problem(full: str, create: str, folds: bool) -> str | None:
    """Return what is wrong with the statement of one table.

    :param folds: whether the server stores names in lower case.
    """
    read = _read(create, dialect_of(create))
    if isinstance(read, DdlError):
        return f"the statement is not understood: {read.message}"
    if len(read) != 1:
        return f"expected one CREATE TABLE statement, got {len(read)} statements"
    (item,) = read
    if not isinstance(item, CreateTable):
        return "is not a CREATE TABLE statement"
    if not item.columns or item.as_select or item.unknown:
        return f"does not state the columns of the table{f': {item.unknown}' if item.unknown else ''}"
    database, _, table = full.partition(".")
    named = f"{item.name.database or database}.{item.name.table}"
    if (named.lower() if folds else named) != f"{database}.{table}":
        return f"is the statement of another table, {named!r}"
    return None
