# SPDX-License-Identifier: Apache-2.0
"""Find the tables that a statement names if it cannot be parsed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from airflow_provider_cdc.core.ddl.tokens import DdlError, Kind, Token, tokenize
from airflow_provider_cdc.core.model.schema import TableName

# a table's name follows one of these, or a comma after another table's name
_BEFORE_TABLE = frozenset({"TABLE", "TABLES", "TO", "TRUNCATE", "UPDATE", "INTO", "FROM", "JOIN", "ON"})
_BETWEEN = frozenset({"IF", "NOT", "EXISTS"})
_NO_TABLE = frozenset({"COLUMN", "INDEX", "KEY"})  # RENAME COLUMN a TO b
_NAMES = (Kind.NAME, Kind.QUOTED, Kind.DOUBLE_QUOTED)
_WORD = re.compile(r"`(?:[^`]|``)+`|[\w$]+")
_ORACLE_WORD = re.compile(r'"[^"]+"|[\w$#]+|\.')
_ORACLE_BLOCK = re.compile(r"\s*(?:BEGIN|DECLARE)\b", re.IGNORECASE)  # names tables within its strings too


@dataclass(frozen=True, slots=True)
class _Mention:
    """Hold an identifier, qualified or not, and whether it is where a table's name is expected."""

    database: str | None
    table: str
    marked: bool

    def means(self, name: TableName, default: str) -> bool:
        if self.table != name.table:
            return False
        database = self.database or default
        return not database or database == name.database


def named_tables(
    statement: str, database: str, known: Collection[TableName], *, upper_case: bool, lower_case: bool
) -> list[TableName]:
    """Return the known tables that a statement names.

    These are the names where a table's name is expected, for example after TABLE. If there are none, it is every known
    table whose whole name the text has outside of strings and comments.

    :param database: the database of unqualified names; empty if the tool does not state it: then every database.
    :param upper_case: whether the server stores names that are not quoted in upper case, as Oracle and Db2 do.
    :param lower_case: whether the server stores names in lower case.
    """
    mentions = _mentions(statement.lower() if lower_case else statement, upper_case)
    by_table: dict[str, list[TableName]] = {}
    for name in known:
        by_table.setdefault(name.table, []).append(name)
    known_names = {marked: _known(mentions, marked, by_table, database) for marked in (True, False)}
    head = any(mention.marked for mention in mentions)
    return list(dict.fromkeys(known_names[True] if head else known_names[False]))


def mentioned_tables(statement: str, database: str, *, upper_case: bool, lower_case: bool) -> list[TableName]:
    """Return all names, known or not, that stand where a table's name is expected; without a database none.

    The parameters are those of :func:`named_tables`.
    """
    mentions = _mentions(statement.lower() if lower_case else statement, upper_case)
    names = [TableName(mention.database or database, mention.table) for mention in mentions if mention.marked]
    return list(dict.fromkeys(name for name in names if name.database))


def _known(
    mentions: Sequence[_Mention], marked: bool, by_table: dict[str, list[TableName]], database: str
) -> list[TableName]:
    return [
        name
        for mention in mentions
        if mention.marked == marked
        for name in by_table.get(mention.table, ())
        if mention.means(name, database)
    ]


@lru_cache(maxsize=1_000)
def _mentions(statement: str, upper_case: bool) -> tuple[_Mention, ...]:
    # a batch builds several timelines of the same statements
    if upper_case and _ORACLE_BLOCK.match(statement):
        return tuple(replace(mention, marked=False) for mention in _read_mentions(_oracle_words(statement)))
    return tuple(_read_mentions(_tokens(statement, upper_case)))


def _tokens(statement: str, upper_case: bool) -> list[Token]:
    try:
        if not upper_case:
            return tokenize(statement)
        from airflow_provider_cdc.core.ddl.oracle.tokens import tokenize as tokenize_oracle  # most logs have no Oracle

        return tokenize_oracle(statement)
    except DdlError:  # for example a quoted text without an end: the tokens before it still count
        if upper_case:
            return _oracle_words(statement)
        return [_token(match) for match in _WORD.finditer(statement)]


def _read_mentions(tokens: Sequence[Token]) -> Iterator[_Mention]:
    index, after_table = 0, False
    before = leader = ""
    while index < len(tokens):
        token = tokens[index]
        index += 1
        if token.word in _BETWEEN:
            continue
        if token.kind not in _NAMES or token.word in _BEFORE_TABLE:
            after_table = after_table and token.word == ","
            before = "" if token.word == "TO" and leader in _NO_TABLE else token.word
            continue
        parts = [_text(token)]
        while index + 1 < len(tokens) and tokens[index].word == "." and tokens[index + 1].kind in _NAMES:
            parts.append(_text(tokens[index + 1]))
            index += 2
        after_table = before in _BEFORE_TABLE or (before == "," and after_table)
        yield _Mention(parts[-2] if len(parts) > 1 else None, parts[-1], after_table)
        leader, before = before, token.word


def _text(token: Token) -> str:
    return token.value[1:-1].replace('""', '"') if token.kind is Kind.DOUBLE_QUOTED else token.value


def _token(match: re.Match[str]) -> Token:
    word = match.group()
    if word.startswith("`"):
        return Token(Kind.QUOTED, "", word[1:-1].replace("``", "`"), match.start(), match.end())
    return Token(Kind.NAME, word.upper(), word, match.start(), match.end())


def _oracle_words(statement: str) -> list[Token]:
    return [_oracle_token(match) for match in _ORACLE_WORD.finditer(statement)]


def _oracle_token(match: re.Match[str]) -> Token:
    word = match.group()
    if word == ".":
        return Token(Kind.OPERATOR, word, word, match.start(), match.end())
    if word.startswith('"'):
        return Token(Kind.QUOTED, "", word[1:-1], match.start(), match.end())
    return Token(Kind.NAME, word.upper(), word.upper(), match.start(), match.end())
