# SPDX-License-Identifier: Apache-2.0
"""Parse DDL text to statements; a statement that is not fully understood raises, it is never guessed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache

from airflow_provider_cdc.core.ddl.alter_actions import AddUnique
from airflow_provider_cdc.core.ddl.alter_table import (
    accept_tiflash,
    read_alter_table,
    read_drop_index,
    skip_algorithm_or_lock,
    skip_wait,
)
from airflow_provider_cdc.core.ddl.column_types import ORACLE_NAMES, accept_charset, read_charset, read_collation
from airflow_provider_cdc.core.ddl.create_table import read_create_table
from airflow_provider_cdc.core.ddl.flashback import read_flashback, read_recover
from airflow_provider_cdc.core.ddl.keys import accept_index_condition, read_index_options, read_index_parts
from airflow_provider_cdc.core.ddl.options import accept_setting, skip_item
from airflow_provider_cdc.core.ddl.reader import TokenReader, words
from airflow_provider_cdc.core.ddl.splitting import split
from airflow_provider_cdc.core.ddl.statement import (
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateTable,
    DropDatabase,
    DropTable,
    Other,
    RenameDatabase,
    RenameTable,
    Statement,
    TruncateTable,
    UseDatabase,
)
from airflow_provider_cdc.core.ddl.table_parts import Name
from airflow_provider_cdc.core.ddl.tokens import DdlError, Kind, tokenize

__all__ = ["DdlError", "parse"]

_TABLES = ("TABLE", "TABLES")
_DATABASE = ("DATABASE", "SCHEMA")

# Statements that change neither tables nor rows, or rows only by row events of their own.
_HARMLESS = words(
    """BEGIN COMMIT ROLLBACK SAVEPOINT RELEASE START XA SET FLUSH GRANT REVOKE DENY LOCK UNLOCK OPTIMIZE REPAIR CHECK
    CHECKSUM CACHE SHOW SELECT DESCRIBE DESC EXPLAIN HELP KILL PURGE RESET STOP INSTALL UNINSTALL SHUTDOWN
    RESTART DO DEALLOCATE"""
)
# Statements about anything else than these have no effect on rows: views, stored programs, users, policies, ...
_HOLDS_ROWS = words("TABLE TABLES DATABASE SCHEMA INDEX CATALOG")
_KIND = 3  # words in which a statement says what it is about: CREATE JSON RELATIONAL DUALITY VIEW
_INDEX_WORDS = words("FULLTEXT SPATIAL VECTOR GLOBAL LOCAL CLUSTERED CLUSTERING COLUMNAR")
_DATABASE_OPTIONS = frozenset({"CHARSET", "CHAR", "ENCRYPTION", "COMMENT", "READ", "PLACEMENT"})
_OLD_ENCODING = "#mysql50#"  # prefix in names of folders that MySQL 5.0 made


MOST_CLAUSES = 4096
"""Columns and keys, or clauses, of all statements of a text; a MySQL table has at most 4096 columns."""


def parse(text: str, dialect: str | None = None) -> list[Statement]:
    """Return the statements of ``text`` in order.

    :param dialect: ``oracle``, ``db2``, ``mysql`` or None: the server of the MySQL family is then unknown, and
        MariaDB's names of Oracle's types count.
    :raises DdlError: a statement is not understood; for Db2 every statement raises.
    """
    result = _parsed(text, dialect)
    if isinstance(result, DdlError):
        raise result.with_traceback(None)
    return list(result)


@lru_cache(maxsize=20_000)
def _parsed(text: str, dialect: str | None) -> tuple[Statement, ...] | DdlError:
    # A batch reads each text several times: timelines are built before and after its changes. Errors cost as much.
    statements: list[Statement] = []
    try:
        statements.extend(_read(text, dialect))
        if sum(_clauses(item) for item in statements) > MOST_CLAUSES:
            raise DdlError(f"more than {MOST_CLAUSES} columns, keys or clauses are not read", text, 0)
    except DdlError as error:
        return error
    return tuple(statements)


def _read(text: str, dialect: str | None) -> Iterator[Statement]:
    if dialect == "oracle":
        # loaded where it is needed: its patterns cost 20 ms in every batch
        from airflow_provider_cdc.core.ddl.oracle.parser import read_statements

        yield from read_statements(text)
        return
    if not is_mysql(dialect):
        raise DdlError(f"statements of {dialect} are not read", text, 0)
    unknown_types = ORACLE_NAMES if dialect == "mysql" else ()
    for tokens in split(tokenize(text)):
        yield from _statement(TokenReader(text, tokens, unknown_types=unknown_types))


def is_mysql(dialect: str | None) -> bool:
    """Return whether a dialect is one of the MySQL family."""
    return dialect in (None, "mysql")


def _clauses(item: Statement) -> int:
    match item:
        case CreateTable():
            return len(item.columns) + len(item.unique)
        case AlterTable():
            return len(item.actions)
    return 1


def _statement(reader: TokenReader) -> list[Statement]:
    if reader.accept("SET", "STATEMENT"):  # MariaDB: settings for one statement
        while not reader.accept("FOR"):
            skip_item(reader)
    compound = reader.at("BEGIN") and reader.peek(1).word not in ("", "WORK")
    if (reader.at_any(_HARMLESS) and not compound) or _analyzes_tables(reader):
        return _other(reader)
    read = _STATEMENTS.get(reader.peek().word)
    if read is None:
        raise reader.error("a statement about tables or databases")
    reader.take()
    statements = read(reader)
    reader.expect_end()
    return statements


def _analyzes_tables(reader: TokenReader) -> bool:
    if not reader.at("ANALYZE"):
        return False
    ahead = 2 if reader.peek(1).word in ("NO_WRITE_TO_BINLOG", "LOCAL") else 1
    return reader.peek(ahead).word in _TABLES


def _create(reader: TokenReader) -> list[Statement]:
    or_replace = reader.accept("OR", "REPLACE")
    if reader.at("TEMPORARY") or reader.at("GLOBAL", "TEMPORARY") or reader.at("EXTERNAL", "TABLE"):
        return _other(reader)
    if reader.at("PARTITION", "TABLE"):  # PolarDB-X
        reader.take()
    if reader.accept("TABLE"):
        return [read_create_table(reader, or_replace=or_replace)]
    if reader.accept_any(_DATABASE):
        return _create_database(reader, or_replace)
    while reader.accept_any(("ONLINE", "OFFLINE")):
        continue
    unique = reader.accept("UNIQUE")
    if reader.at("SPATIAL", "REFERENCE", "SYSTEM"):
        return _other(reader)
    while reader.at_any(_INDEX_WORDS) and reader.peek(1).word in (*_INDEX_WORDS, "INDEX"):
        reader.take()
    if unique:
        reader.expect("INDEX")
        return _create_unique_index(reader)
    return _other(reader) if reader.at("INDEX") else _harmless_object(reader)


def _create_database(reader: TokenReader, or_replace: bool) -> list[Statement]:
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    database = reader.name("a database name")
    charset = _database_options(reader)
    dropped: list[Statement] = [DropDatabase(database)] if or_replace else []
    return [*dropped, CreateDatabase(database, charset, if_not_exists)]


def _create_unique_index(reader: TokenReader) -> list[Statement]:
    """Read CREATE UNIQUE INDEX, another spelling of ALTER TABLE ... ADD UNIQUE."""
    reader.accept("IF", "NOT", "EXISTS")
    index = reader.name("an index name")
    read_index_options(reader)
    reader.expect("ON")
    table = reader.table_name()
    columns = read_index_parts(reader)
    read_index_options(reader)
    partial = accept_index_condition(reader)
    _skip_manner(reader)
    if columns is None or partial:
        return [Other(reader.statement)]
    return [AlterTable(table, (AddUnique(index, columns),))]


def _alter(reader: TokenReader) -> list[Statement]:
    if reader.accept_any(_DATABASE):
        return [_alter_database(reader)]
    ignore = False
    while word := reader.accept_any(("ONLINE", "OFFLINE", "IGNORE")):
        ignore = ignore or word == "IGNORE"
    if reader.accept("TABLE"):
        return [replace(read_alter_table(reader), ignore=ignore)]
    if reader.at("EXTERNAL", "TABLE"):
        return _other(reader)
    return _harmless_object(reader)


def _alter_database(reader: TokenReader) -> Statement:
    database = reader.name() if reader.at_name() and not reader.at_any(_DATABASE_OPTIONS) else ""
    if reader.accept("UPGRADE", "DATA", "DIRECTORY", "NAME"):
        return RenameDatabase(database, database.removeprefix(_OLD_ENCODING))
    charset = _database_options(reader)
    return Other(reader.statement) if charset is None else AlterDatabase(database, charset)


def _drop(reader: TokenReader) -> list[Statement]:
    if reader.at("TEMPORARY") or reader.at("EXTERNAL", "TABLE"):
        return _other(reader)
    if reader.accept_any(_TABLES):
        return [_drop_tables(reader)]
    if reader.accept_any(_DATABASE):
        reader.accept("IF", "EXISTS")
        return [DropDatabase(reader.name("a database name"))]
    while reader.accept_any(("ONLINE", "OFFLINE")):
        continue
    if reader.accept("INDEX"):
        return [_drop_index(reader)]
    return _harmless_object(reader)


def _drop_tables(reader: TokenReader) -> DropTable:
    if_exists = reader.accept("IF", "EXISTS")
    names = [reader.table_name()]
    while reader.accept(","):
        names.append(reader.table_name())
    skip_wait(reader)
    reader.accept_any(("RESTRICT", "CASCADE"))
    return DropTable(tuple(names), if_exists)


def _drop_index(reader: TokenReader) -> AlterTable:
    """Read DROP INDEX, another spelling of ALTER TABLE ... DROP INDEX."""
    reader.accept("IF", "EXISTS")
    action = read_drop_index(reader)
    reader.expect("ON")
    table = reader.table_name()
    _skip_manner(reader)
    return AlterTable(table, (action,))


def _rename(reader: TokenReader) -> list[Statement]:
    if reader.at("USER"):
        return _other(reader)
    if not reader.accept_any(_TABLES):
        raise reader.error("TABLE")
    if_exists = reader.accept("IF", "EXISTS")
    pairs = [_rename_pair(reader)]
    while reader.accept(","):
        pairs.append(_rename_pair(reader))
    return [RenameTable(tuple(pairs), if_exists)]


def _rename_pair(reader: TokenReader) -> tuple[Name, Name]:
    old = reader.table_name()
    skip_wait(reader)
    reader.expect("TO")
    return old, reader.table_name()


def _truncate(reader: TokenReader) -> list[Statement]:
    reader.accept("TABLE")
    name = reader.table_name()
    skip_wait(reader)
    return [TruncateTable(name)]


def _use(reader: TokenReader) -> list[Statement]:
    return [UseDatabase(reader.name("a database name"))]


def _other(reader: TokenReader) -> list[Statement]:
    reader.rest()
    return [Other(reader.statement)]


def _harmless_object(reader: TokenReader) -> list[Statement]:
    """Return a statement about a view, a stored program, a user or the like, after CREATE, ALTER or DROP.

    What these may not be is a statement about something that holds rows in a manner that is not known here.
    """
    while True:
        if reader.accept("DEFINER", "="):
            _skip_account(reader)
        elif reader.accept("ALGORITHM", "=") or reader.accept("SQL", "SECURITY"):
            reader.take()
        elif not reader.accept_any(("AGGREGATE", "UNDO")):
            break
    named = reader.peek().kind is Kind.NAME
    if not named or any(reader.peek(ahead).word in _HOLDS_ROWS for ahead in range(_KIND)):
        raise reader.error("a kind of object")
    return _other(reader)


def _skip_account(reader: TokenReader) -> None:
    """Skip ``user``, ``'user'@'host'``, ``user@10.0.0.1`` or ``CURRENT_USER()``."""
    reader.take()
    if reader.at("("):
        reader.group()
    if reader.accept("@"):
        reader.take()
        while reader.peek().kind is Kind.NUMBER or reader.at_any((".", "-", "%")):
            reader.take()


def _skip_manner(reader: TokenReader) -> None:
    """Skip WAIT, ALGORITHM and LOCK at the end of an index statement."""
    skip_wait(reader)
    while skip_algorithm_or_lock(reader):
        continue


def _database_options(reader: TokenReader) -> str | None:
    charset = collation = None
    while not reader.at_end:
        reader.accept("DEFAULT")
        if accept_charset(reader):
            charset = read_charset(reader)
        elif reader.accept("COLLATE"):
            collation = read_collation(reader)
        elif reader.accept_any(("ENCRYPTION", "COMMENT")):
            reader.accept("=")
            reader.string()
        elif reader.accept("PLACEMENT", "POLICY") or reader.accept("READ", "ONLY"):
            reader.accept("=")
            reader.take()
        elif not accept_tiflash(reader) and not accept_setting(reader):
            raise reader.error("a database option")
    return charset or collation


_STATEMENTS: dict[str, Callable[[TokenReader], list[Statement]]] = {
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "RENAME": _rename,
    "TRUNCATE": _truncate,
    "FLASHBACK": read_flashback,
    "RECOVER": read_recover,
    "USE": _use,
}
