# SPDX-License-Identifier: Apache-2.0
"""Read DDL text of Oracle as statements; what is not fully understood is an error, never a guess."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from airflow_provider_cdc.core.ddl.flashback import read_flashback
from airflow_provider_cdc.core.ddl.oracle.alter_table import read_alter_table
from airflow_provider_cdc.core.ddl.oracle.create_table import read_create_table
from airflow_provider_cdc.core.ddl.oracle.tokens import RESERVED, tokenize
from airflow_provider_cdc.core.ddl.reader import TokenReader, words
from airflow_provider_cdc.core.ddl.statement import (
    CommentOn,
    DropDatabase,
    DropTable,
    Other,
    RenameTable,
    Statement,
    TruncateTable,
)
from airflow_provider_cdc.core.ddl.table_parts import Name
from airflow_provider_cdc.core.ddl.tokens import Kind, Token

# Statements that change no table's columns, key or name, and rows only by row events of their own.
_HARMLESS = words(
    """GRANT REVOKE AUDIT NOAUDIT ANALYZE ASSOCIATE DISASSOCIATE COMMIT ROLLBACK SAVEPOINT SET LOCK EXPLAIN CALL
    EXEC EXECUTE SELECT INSERT UPDATE DELETE MERGE PURGE"""
)
BLOCKS = words("BEGIN DECLARE")
_DYNAMIC = words("DBMS_SQL DBMS_UTILITY DBMS_REDEFINITION")
_HARMLESS_OBJECTS = words(
    """INDEX UNIQUE BITMAP VIEW MATERIALIZED SNAPSHOT SEQUENCE SYNONYM TRIGGER PROCEDURE FUNCTION PACKAGE TYPE LIBRARY
    ROLE PROFILE DIRECTORY CONTEXT OUTLINE INDEXTYPE OPERATOR DIMENSION JAVA EDITION SESSION SYSTEM TABLEGROUP RESOURCE
    DOMAIN ASSERTION MULTIVALUE"""
)
_PROGRAMS = words("TRIGGER PROCEDURE FUNCTION PACKAGE TYPE LIBRARY JAVA")
_ADJECTIVES = words("FORCE NOFORCE EDITIONABLE NONEDITIONABLE EDITIONING PUBLIC SHARED")

_HEAD = 12  # words before the type of object in a statement


def read_statements(text: str) -> Iterator[Statement]:
    """Return the statements of ``text`` in order.

    :raises DdlError: one is not understood.
    """
    for tokens in _split(tokenize(text)):
        yield from _statement(TokenReader(text, tokens, RESERVED))


def _split(tokens: list[Token]) -> Iterator[list[Token]]:
    """Return the tokens of each statement; a stored program has semicolons of its own and is the last one."""
    statement: list[Token] = []
    for token in tokens:
        if token.word not in (";", "/") or (token.word == "/" and statement) or _is_program(statement):
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement and statement[-1].word == "/":  # as SQL*Plus ends a statement
        statement.pop()
    if statement:
        yield statement


def _is_program(statement: list[Token]) -> bool:
    if not statement:
        return False
    first = statement[0].word
    if first in ("CREATE", "ALTER"):
        skipped = _ADJECTIVES | {"OR", "REPLACE", "IF", "NOT", "EXISTS"}
        kind = next((token.word for token in islice(statement, 1, _HEAD) if token.word not in skipped), "")
        return kind in _PROGRAMS
    return first in BLOCKS


def _statement(reader: TokenReader) -> list[Statement]:
    if reader.at_any(BLOCKS):
        return _block(reader)
    if reader.at_any(_HARMLESS):
        return _other(reader)
    read = _STATEMENTS.get(reader.peek().word)
    if read is None:
        raise reader.error("a statement about tables or users")
    reader.take()
    statements = read(reader)
    reader.expect_end()
    return statements


def _block(reader: TokenReader) -> list[Statement]:
    """Read an anonymous block: what it does to rows is in the log, what it does to tables by dynamic SQL may not be.

    A block of nothing but ``EXECUTE IMMEDIATE 'text';`` is read as these texts.
    """
    texts, ahead = [], 1
    while _executes_text(reader, ahead):
        texts.append(reader.peek(ahead + 2).value)
        ahead += 4
    ends = [reader.peek(ahead + number).word for number in range(3)]
    if texts and reader.at("BEGIN") and ends in (["END", ";", ""], ["END", "", ""]):
        reader.rest()
        return [statement for text in texts for statement in read_statements(text)]
    while not reader.at_end:
        if reader.at("EXECUTE", "IMMEDIATE") or reader.at_any(_DYNAMIC):
            raise reader.error("a block without dynamic SQL, which may change tables,")
        reader.take()
    return [Other(reader.statement)]


def _executes_text(reader: TokenReader, ahead: int) -> bool:
    words_ahead = [reader.peek(ahead + number).word for number in (0, 1, 3)]
    return words_ahead == ["EXECUTE", "IMMEDIATE", ";"] and reader.peek(ahead + 2).kind is Kind.STRING


def _other(reader: TokenReader) -> list[Statement]:
    reader.rest()
    return [Other(reader.statement)]


def _create(reader: TokenReader) -> list[Statement]:
    if reader.accept("TABLE"):
        return [read_create_table(reader)]
    if reader.at("GLOBAL", "TEMPORARY") or reader.at("PRIVATE", "TEMPORARY"):
        return _other(reader)
    if reader.at("IMMUTABLE") or reader.at("BLOCKCHAIN"):
        while reader.accept_any(("IMMUTABLE", "BLOCKCHAIN")):
            continue
        reader.expect("TABLE")
        return [read_create_table(reader)]
    reader.accept("OR", "REPLACE")
    if reader.at_any(("USER", "DATABASE", "TABLESPACE", "BIGFILE", "TEMPORARY", "UNDO")):
        return _other(reader)
    return _harmless_object(reader)


def _alter(reader: TokenReader) -> list[Statement]:
    if reader.accept("TABLE"):
        return [read_alter_table(reader)]
    if reader.at_any(("USER", "DATABASE", "TABLESPACE")):
        return _other(reader)
    return _harmless_object(reader)


def _drop(reader: TokenReader) -> list[Statement]:
    if reader.accept("TABLE"):
        return [_drop_table(reader)]
    if reader.accept("USER"):
        return _drop_user(reader)
    if reader.at("DATABASE", "LINK"):
        return _other(reader)
    return _harmless_object(reader)


def _drop_table(reader: TokenReader) -> DropTable:
    if_exists = reader.accept("IF", "EXISTS")
    names = [reader.table_name()]
    while reader.accept(","):  # OceanBase
        names.append(reader.table_name())
    if_exists = reader.accept("IF", "EXISTS") or if_exists
    if reader.accept("CASCADE") and not reader.accept_any(("CONSTRAINTS", "CONSTRAINT")):
        raise reader.error("CONSTRAINTS")
    reader.accept_any(("PURGE", "FORCE"))
    if reader.accept("AS"):  # Oracle's log names the table in the recycle bin
        reader.take()
    return DropTable(tuple(names), if_exists)


def _drop_user(reader: TokenReader) -> list[Statement]:
    """Read DROP USER: it drops the user's schema, which must be empty without CASCADE."""
    reader.accept("IF", "EXISTS")
    user = reader.name("a user name")
    if not reader.accept("CASCADE"):
        return _other(reader)
    return [DropDatabase(user)]


def _rename(reader: TokenReader) -> list[Statement]:
    reader.accept("TABLE")  # OceanBase
    old = reader.table_name()
    reader.expect("TO")
    return [RenameTable(((old, reader.table_name()),))]


def _truncate(reader: TokenReader) -> list[Statement]:
    reader.expect("TABLE")
    name = reader.table_name()
    if reader.accept_any(("PRESERVE", "PURGE")):
        reader.accept("MATERIALIZED", "VIEW", "LOG")
    if reader.accept_any(("DROP", "REUSE")):
        reader.accept("ALL")
        reader.expect("STORAGE")
    return [TruncateTable(name, cascade=reader.accept("CASCADE"))]


def _comment(reader: TokenReader) -> list[Statement]:
    """Read COMMENT ON; one that is of no table or column, or not understood, changes none."""
    reader.expect("ON")
    kind = reader.accept_any(("TABLE", "COLUMN"))
    names = [reader.name()] if kind and reader.at_name() else []
    while names and reader.accept(".") and reader.at_name():
        names.append(reader.name())
    parts = 1 if kind == "TABLE" else 2
    if parts <= len(names) <= parts + 1 and reader.at("IS") and reader.at_string(1) and not reader.peek(2).word:
        reader.take()
        column = names.pop() if kind == "COLUMN" else None
        name = Name(names[0] if len(names) > 1 else None, names[-1])
        return [CommentOn(name, column, reader.string())]
    return _other(reader)


def _harmless_object(reader: TokenReader) -> list[Statement]:
    while reader.accept_any(_ADJECTIVES) or reader.accept("NO", "FORCE"):
        continue
    if reader.at("DATABASE", "LINK"):
        return _other(reader)
    if not reader.at_any(_HARMLESS_OBJECTS):
        raise reader.error("a kind of object")
    return _other(reader)


_STATEMENTS: dict[str, Callable[[TokenReader], list[Statement]]] = {
    "COMMENT": _comment,
    "CREATE": _create,
    "ALTER": _alter,
    "DROP": _drop,
    "RENAME": _rename,
    "TRUNCATE": _truncate,
    "FLASHBACK": read_flashback,
}
