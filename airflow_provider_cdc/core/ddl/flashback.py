# SPDX-License-Identifier: Apache-2.0
"""Read FLASHBACK and RECOVER, by which TiDB, OceanBase and Oracle bring tables or rows back without row events."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.statement import RestoreDatabase, RestoreTable, RevertRows, Statement
from airflow_provider_cdc.core.ddl.table_parts import Name
from airflow_provider_cdc.core.ddl.tokens import Kind

_DATABASE = ("DATABASE", "SCHEMA")
_POINTS = ("TIMESTAMP", "TSO", "SCN", "RESTORE")  # what a point in time begins with
_RECYCLED = ("BIN$", "__RECYCLE_$")  # names that Oracle and OceanBase give to dropped tables


def read_flashback(reader: TokenReader) -> list[Statement]:
    """Read what follows FLASHBACK."""
    if reader.accept_any(("CLUSTER", "TENANT")):
        reader.rest()
        return [RevertRows()]
    if reader.accept_any(_DATABASE):
        return [_flashback_database(reader)]
    reader.expect("TABLE")
    names = [reader.table_name()]
    while reader.accept(","):
        names.append(reader.table_name())
    if _at_point(reader):
        reader.rest()
        return [RevertRows(tuple(names))]
    new_name = reader.table_name() if _accept_new_name(reader) else None
    if len(names) > 1:
        raise reader.error("a point in time")
    return [RestoreTable(_original(names[0]), new_name)]


def read_recover(reader: TokenReader) -> list[Statement]:
    """Read what follows RECOVER."""
    reader.expect("TABLE")
    if reader.accept("BY", "JOB"):
        reader.integer()
        return [RestoreTable(None)]
    name = reader.table_name()
    if not reader.at_end:
        reader.integer()  # TiDB 3.0: how many tables of the name to go back
    return [RestoreTable(name)]


def _flashback_database(reader: TokenReader) -> Statement:
    database = None if reader.at("TO") else reader.name("a database name")
    if _at_point(reader):
        reader.rest()
        return RevertRows(database=database)
    if database is None:
        raise reader.error("a point in time")
    return RestoreDatabase(database, reader.name("a database name") if _accept_new_name(reader) else None)


def _at_point(reader: TokenReader) -> bool:
    """Return whether TO and a point in time come next, not a new name."""
    after = reader.peek(2)
    return reader.at("TO") and reader.peek(1).word in _POINTS and after.kind is not Kind.END and after.word != "."


def _accept_new_name(reader: TokenReader) -> bool:
    """Read what stands before a new name, where there is one."""
    if reader.accept("TO", "BEFORE", "DROP"):
        return reader.accept("RENAME", "TO")
    return reader.accept("TO")


def _original(name: Name) -> Name | None:
    """Return the name of a table that was dropped, None where only its name in the recycle bin is stated."""
    return None if name.table.upper().startswith(_RECYCLED) else name
