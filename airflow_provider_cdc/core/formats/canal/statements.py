# SPDX-License-Identifier: Apache-2.0
"""Interpret statements in flat JSON, which does not name the session's database (docs/wire/canal.md 4.2, 5.2, 10.2)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.ddl.table_parts import Name
from airflow_provider_cdc.core.errors import DataError

# behind comments; what stands in an executable comment counts
_FIRST_WORD = re.compile(r"(?:\s|--\s[^\n]*|\#[^\n]*|/\*M?!\d*|/\*.*?\*/)*+([A-Za-z]+)", re.DOTALL)
# No statement that changes rows begins so. CREATE does: MariaDB annotates the rows of CREATE TABLE ... SELECT.
_VERBS = frozenset({"ALTER", "DROP", "RENAME", "TRUNCATE"})

_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_TABLE = rf"{_NAME}(?:\s*\.\s*{_NAME})?"
_HINTS = r"(?:(?:LOW_PRIORITY|DELAYED|HIGH_PRIORITY|QUICK|IGNORE)\s+)*"
_ONE_TABLE = re.compile(
    r"(?:INSERT|REPLACE)\b"
    rf"|UPDATE\s+{_HINTS}{_TABLE}\s+(?:(?:AS\s+)?{_NAME}\s+)?SET\b"
    rf"|DELETE\s+{_HINTS}FROM\s+{_TABLE}\s*(?:;|\bWHERE\b|\bORDER\b|\bLIMIT\b|$)",
    re.IGNORECASE,
)


def changes_one_table(statement: str) -> bool:
    """Return whether a statement certainly changes rows of no table but the first one that it names."""
    first = _FIRST_WORD.match(statement)
    return first is not None and _ONE_TABLE.match(statement, first.start(1)) is not None


def changes_tables(statement: str, database: str) -> bool:
    """Return whether a QUERY that is not marked as DDL is one.

    Servers before 1.1.5 marked no QUERY as DDL; annotations of rows are QUERY, too, and name no database.
    """
    first = _FIRST_WORD.match(statement)
    word = "" if first is None else first[1].upper()
    return word in _VERBS or (word == "CREATE" and database != "")


def session_database(statement: str, database: str, table: str, dialect: str | None = None) -> str:
    """Return the database that unqualified names of a DDL mean, "" where that cannot be known.

    Canal states the database of the first table that the statement names (of a rename: of its new name). That is the
    session's unless that name is qualified.

    :param dialect: the statement's, as :func:`core.ddl.parser.parse` takes it.
    """
    try:
        names = list(_names(tuple(parse(statement, dialect))))
    except DataError:
        return database
    bare = {name.table for name in names if name.database is None}
    qualified = {name.table for name in names if name.database is not None}
    known = not bare or not qualified or (table in bare and table not in qualified)
    return database if known else ""


def _names(item: Any) -> Iterator[Name]:
    if isinstance(item, Name):
        yield item
    elif isinstance(item, tuple):
        for part in item:
            yield from _names(part)
    elif is_dataclass(item):
        for field in fields(item):
            yield from _names(getattr(item, field.name))
