# SPDX-License-Identifier: Apache-2.0
"""Cut tokens into statements at semicolons, but not inside the bodies of stored programs."""

from __future__ import annotations

from collections.abc import Iterator

from airflow_provider_cdc.core.ddl.tokens import Token

_PROGRAMS = frozenset({"PROCEDURE", "FUNCTION", "TRIGGER", "EVENT", "PACKAGE"})
_NO_PROGRAM = frozenset({"TABLE", "DATABASE", "SCHEMA", "VIEW", "INDEX", "USER", "ROLE", "SERVER", "SEQUENCE"})
_OPENING = frozenset({"BEGIN", "CASE", "LOOP", "WHILE"})
# IF and REPEAT open a block where a statement may begin; elsewhere they are functions.
_BEFORE_STATEMENT = frozenset({";", "BEGIN", "THEN", "ELSE", "DO", "LOOP", "REPEAT", "ROW", ":", ")"})


def split(tokens: list[Token]) -> Iterator[list[Token]]:
    """Return the tokens of each statement that is not empty."""
    statement: list[Token] = []
    program, depth = False, 0
    for index, token in enumerate(tokens):
        before = tokens[index - 1].word if index else ";"
        if not statement:
            program, depth = False, 0
        elif program:
            depth = max(0, depth + _change(token, before))
        elif token.word in _PROGRAMS and statement[0].word in ("CREATE", "ALTER"):
            program = not any(earlier.word in _NO_PROGRAM for earlier in statement[:12])
            depth = int(program and token.word == "PACKAGE")  # MariaDB: END closes it, also without BEGIN
        if token.word != ";" or depth:
            statement.append(token)
        elif statement:
            yield statement
            statement = []
    if statement:
        yield statement


def _change(token: Token, before: str) -> int:
    """Return by how much a token of a stored program changes the depth of its blocks."""
    if before == "END":
        return 0
    if token.word == "END":
        return -1
    if token.word in _OPENING:
        return 1
    return int(token.word in ("IF", "REPEAT") and before in _BEFORE_STATEMENT)
