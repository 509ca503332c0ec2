# SPDX-License-Identifier: Apache-2.0
"""Correct the text of dtle's DDL, which lacks parts and has too much (docs/wire/debezium-dtle.md A4)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_provider_cdc.core.ddl import alter_actions, table_parts
from airflow_provider_cdc.core.ddl import statement as ddl
from airflow_provider_cdc.core.ddl.parser import parse
from airflow_provider_cdc.core.errors import DataError

_MARK = re.compile(r"\s*/\*dtle_gtid1 [^*]* dtle_gtid\*/\s*$")


def without_mark(text: str) -> str:
    """Return DDL without the comment in which dtle notes job and transaction at its end."""
    return _MARK.sub("", text)


def needs_database(text: str) -> bool:
    """Say whether DDL names a table without its database; text that is not understood is not judged here."""
    try:
        statements = parse(text)
    except DataError:
        return False
    return any(name.database is None for statement in statements for name in _names(statement))


def _names(statement: ddl.Statement) -> Iterator[table_parts.Name]:
    match statement:
        case ddl.CreateTable(temporary=False):
            yield statement.name
            if statement.like is not None:
                yield statement.like
        case ddl.AlterTable():
            yield statement.name
            yield from (action.name for action in statement.actions if isinstance(action, alter_actions.RenameTo))
        case ddl.DropTable(temporary=False):
            yield from statement.names
        case ddl.TruncateTable():
            yield statement.name
        case ddl.RenameTable():
            for old, new in statement.pairs:
                yield old
                yield new
        case _:
            pass
