# SPDX-License-Identifier: Apache-2.0
"""Read the tokens of one statement with a cursor."""

from __future__ import annotations

from collections.abc import Collection

from airflow_provider_cdc.core.ddl.table_parts import Name
from airflow_provider_cdc.core.ddl.tokens import DdlError, Kind, Token, unescape


def words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


# Words that no server accepts as an unquoted name. One of them where a name is expected means an unknown clause.
RESERVED = words(
    """ADD ALL ALTER ANALYZE AND AS ASC BETWEEN BY CASCADE CASE CHANGE CHARACTER CHECK COLLATE COLUMN CONSTRAINT
    CONVERT CREATE CROSS DATABASE DEFAULT DELETE DESC DISTINCT DROP ELSE EXISTS FALSE FOR FOREIGN FROM FULLTEXT GRANT
    GROUP HAVING IF IGNORE IN INDEX INSERT INTERVAL INTO IS JOIN KEY KEYS LIKE LIMIT LOCK NOT NULL ON OPTIMIZE OR ORDER
    PRIMARY REFERENCES RENAME REPLACE RESTRICT REVOKE SELECT SET SPATIAL SQL STARTING TABLE THEN TO TRIGGER TRUE UNION
    UNIQUE UNLOCK UNSIGNED UPDATE USE USING VALUES WHEN WHERE WHILE WITH ZEROFILL"""
)
_NAMES = (Kind.QUOTED, Kind.DOUBLE_QUOTED)
_SHOWN = 20


class TokenReader:
    """Read tokens from left to right; words compare without regard to case, quoted names are never words."""

    def __init__(
        self,
        text: str,
        tokens: list[Token],
        reserved: Collection[str] = RESERVED,
        unknown_types: Collection[str] = (),
    ) -> None:
        """Start before the first token.

        :param reserved: words that no unquoted name can be.
        :param unknown_types: names of types, in lower case, that the source's server does not have.
        """
        self.text = text
        self.unknown_types = unknown_types
        self._reserved = reserved
        self._tokens = tokens
        end = tokens[-1].end if tokens else len(text)
        self._end = Token(Kind.END, "", "", end, end)
        self._index = 0

    @property
    def at_end(self) -> bool:
        """True when every token was read."""
        return self._index >= len(self._tokens)

    @property
    def last_end(self) -> int:
        """The end offset in the text of the token that was read last."""
        return self._tokens[self._index - 1].end if self._index else 0

    @property
    def statement(self) -> str:
        """The statement's text, from its first token to its last."""
        return self.text[self._tokens[0].start : self._tokens[-1].end] if self._tokens else ""

    def peek(self, ahead: int = 0) -> Token:
        """Return a token without reading it."""
        index = self._index + ahead
        return self._tokens[index] if index < len(self._tokens) else self._end

    def take(self) -> Token:
        """Read one token."""
        token = self.peek()
        if token.kind is Kind.END:
            raise self.error("something more")
        self._index += 1
        return token

    def at(self, *words: str) -> bool:
        """Return whether these words come next, in this order."""
        index = self._index
        if index >= len(self._tokens) or self._tokens[index].word != words[0]:
            return False  # the usual case, and tested for dozens of words at each token
        return len(words) == 1 or all(self.peek(ahead).word == word for ahead, word in enumerate(words))

    def at_any(self, words: Collection[str]) -> bool:
        """Return whether one of these words comes next."""
        return self.peek().word in words

    def accept(self, *words: str) -> bool:
        """Read these words if they come next."""
        if self._index >= len(self._tokens) or self._tokens[self._index].word != words[0]:
            return False  # as in :meth:`at`, without a call
        if len(words) > 1 and not self.at(*words):
            return False
        self._index += len(words)
        return True

    def accept_any(self, words: Collection[str]) -> str:
        """Read one of these words if it comes next and return it, else an empty text."""
        return self.take().word if self.at_any(words) else ""

    def expect(self, *words: str) -> None:
        """Read these words or raise."""
        if not self.accept(*words):
            raise self.error(" ".join(words))

    def expect_end(self) -> None:
        """Raise if tokens are left."""
        if not self.at_end:
            raise self.error("the end of the statement")

    def at_name(self, ahead: int = 0) -> bool:
        """Return whether the token can be a name."""
        token = self.peek(ahead)
        return token.kind in _NAMES or (token.kind is Kind.NAME and token.word not in self._reserved)

    def name(self, what: str = "a name") -> str:
        """Read a name."""
        if not self.at_name():
            raise self.error(what)
        return self._plain_name(self.take())

    def table_name(self) -> Name:
        """Read a table name, qualified or not."""
        first = self.name("a table name")
        return Name(first, self._member()) if self.accept(".") else Name(None, first)

    def column_name(self) -> str:
        """Read a column name; old servers allow the table and the database before it."""
        name = self.name("a column name")
        while self.accept("."):
            name = self._member()
        return name

    def _member(self) -> str:
        token = self.peek()
        if token.kind is not Kind.NAME and token.kind not in _NAMES:
            raise self.error("a name")
        return self._plain_name(self.take())

    def _plain_name(self, token: Token) -> str:
        name = token.value[1:-1].replace('""', '"') if token.kind is Kind.DOUBLE_QUOTED else token.value
        if not name:
            raise DdlError("a name is empty", self.text, token.start)
        return name

    def at_string(self, ahead: int = 0) -> bool:
        """Return whether a string literal comes next; where a value is expected, a double-quoted text is one."""
        return self.peek(ahead).kind in (Kind.STRING, Kind.DOUBLE_QUOTED)

    def string(self) -> str:
        """Read a string literal; adjacent literals are one, as in C."""
        if not self.at_string():
            raise self.error("a string")
        parts = []
        while self.at_string():
            token = self.take()
            quoted = token.kind is Kind.DOUBLE_QUOTED
            parts.append(unescape(token.value[1:-1], '"') if quoted else token.value)
        return "".join(parts)

    def integer(self) -> int:
        """Read a whole number without sign."""
        token = self.peek()
        if token.kind is not Kind.NUMBER or not token.value.isdecimal() or len(token.value) > _SHOWN:
            raise self.error("a whole number")
        return int(self.take().value)

    def group(self) -> str:
        """Skip a parenthesised group and return the SQL inside."""
        start = self.peek().end
        self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            depth += (token.word == "(") - (token.word == ")")
        return self.text[start : token.start].strip()

    def rest(self) -> None:
        """Skip all tokens that are left."""
        self._index = len(self._tokens)

    def error(self, expected: str) -> DdlError:
        """Return an error that states what was expected and which token comes next."""
        token = self.peek()
        actual = token.kind.value
        if token.kind in (Kind.NAME, Kind.OPERATOR):
            actual = repr(token.value if len(token.value) <= _SHOWN else token.value[:_SHOWN] + "...")
        return DdlError(f"expected {expected}, found {actual}", self.text, token.start)
