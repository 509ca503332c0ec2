# SPDX-License-Identifier: Apache-2.0
"""Cut MySQL and MariaDB statement text into tokens, in one pass from left to right."""

from __future__ import annotations

import re
from enum import Enum
from typing import NamedTuple

from airflow_provider_cdc.core.errors import DataError


class DdlError(DataError):
    """Signal a statement that may concern tables and is not fully understood; it is never guessed."""

    def __init__(self, message: str, text: str, offset: int) -> None:
        line = text.count("\n", 0, offset) + 1
        column = offset - (text.rfind("\n", 0, offset) + 1) + 1
        super().__init__(
            "ddl.not_understood",
            message,
            where={"line": line, "column": column},
        )


class Kind(Enum):
    """Name the kinds of tokens."""

    NAME = "name"
    QUOTED = "quoted name"
    DOUBLE_QUOTED = "double-quoted text"
    STRING = "string"
    BITS = "bit or hex literal"
    NUMBER = "number"
    OPERATOR = "operator"
    END = "end of the statement"


class Token(NamedTuple):
    """Hold one token.

    :param word: upper-case text of unquoted names and operators.
    :param value: text without quotes.
    """

    kind: Kind
    word: str
    value: str
    start: int
    end: int


LONGEST = 1_000_000
"""Longest text that is parsed, in characters. Parsing costs microseconds a character, again in each later batch."""
MOST_TOKENS = 250_000
"""Most tokens of a text that is parsed; an ENUM with all its 65,535 labels has 131,000."""

_NAME_CHARACTER = r"[0-9A-Za-z_$\u0080-\U0010ffff]"
_SPACES = " \t\r\n\f\v"
_SPACE = rf"[{_SPACES}]*+"  # most tokens follow some
_TOKEN = re.compile(
    rf"""
    {_SPACE} (?:
      (?P<nothing>     \Z )
    | (?P<remark>      (?: --(?=[\x00-\x20]|\Z) | \# ) [^\n]* | /\*(?!M?!).*?\*/ )
    | (?P<opening>     /\*M?!(?:\d{{5,6}})? )
    | (?P<closing>     \*/ )
    | (?P<unfinished>  /\* )
    | (?P<bits>        [xX]'[0-9A-Fa-f]*' | [bB]'[01]*'
                       | 0x[0-9A-Fa-f]+(?!{_NAME_CHARACTER}) | 0b[01]+(?!{_NAME_CHARACTER}) )
    | (?P<string>      [nN]?'[^'\\]*(?:(?:\\.|'')[^'\\]*)*'(?!') )
    | (?P<double>      "[^"\\]*(?:(?:\\.|"")[^"\\]*)*"(?!") )
    | (?P<quoted>      `[^`]*(?:``[^`]*)*`(?!`) )
    | (?P<number>      (?: \d+(?:\.\d*)? | (?<!{_NAME_CHARACTER})(?<![`"])\.\d+ )
                       (?:[eE][+-]?\d+)?(?!{_NAME_CHARACTER}) )
    | (?P<name>        {_NAME_CHARACTER}+ )
    | (?P<operator>    [-+*/%=<>!&|^~(),.;:@?{{}}\[\]\\] )
    )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
# the program of a stored function in another language: AS $$ ... $$, AS $js$ ... $js$ (MySQL 9)
_PROGRAM = re.compile(rf"{_SPACE}(?P<string>\$(?P<tag>[0-9A-Za-z_\u0080-\U0010ffff]*)\$.*?\$(?P=tag)\$)", re.DOTALL)
_MEMBER = re.compile(rf"(?P<name>{_NAME_CHARACTER}+)")
_ESCAPE = re.compile(r"\\(.)|''|\"\"", re.DOTALL)
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_KINDS = {
    "bits": Kind.BITS,
    "string": Kind.STRING,
    "double": Kind.DOUBLE_QUOTED,
    "quoted": Kind.QUOTED,
    "number": Kind.NUMBER,
    "name": Kind.NAME,
    "operator": Kind.OPERATOR,
}


def tokenize(text: str) -> list[Token]:
    """Return the tokens of ``text`` without comments, but with the content of executable comments.

    :raises DdlError: the text is too long, or has no tokens that MySQL or MariaDB would find.
    """
    if len(text) > LONGEST:
        raise DdlError(f"a statement text of more than {LONGEST} characters is not read", text, 0)
    tokens: list[Token] = []
    executable = offset = 0
    while offset < len(text):
        if len(tokens) > MOST_TOKENS:
            raise DdlError(f"a statement text of more than {MOST_TOKENS} tokens is not read", text, offset)
        before = tokens[-1].word if tokens else ""
        match, group = None, "name"
        if before == "." and _after_dot(tokens, offset):
            match = _MEMBER.match(text, offset)
        elif before == "AS" and (match := _PROGRAM.match(text, offset)) is not None:
            group = "string"
        if match is None:
            match = _TOKEN.match(text, offset)
            group = (match.lastgroup or "") if match else "unfinished"
        if match is None or group == "unfinished":
            offset = len(text) - len(text[offset:].lstrip(_SPACES))
            raise DdlError("a quoted text or comment has no end, or a character is unknown", text, offset)
        offset, end = match.span(group)
        if group == "opening":
            executable += 1
        elif group == "closing" and executable:
            executable -= 1
        elif group == "closing":  # "*" before an ordinary comment
            end = offset + 1
            tokens.append(Token(Kind.OPERATOR, "*", "*", offset, end))
        elif group not in ("nothing", "remark"):
            tokens.append(_token(group, match.group(group), offset, end))
        offset = end
    if executable:
        raise DdlError("an executable comment has no end", text, len(text))
    return tokens


def _after_dot(tokens: list[Token], offset: int) -> bool:
    """Return whether a name precedes the dot right before: then digits also begin a name (``db.2024``)."""
    if len(tokens) < 2 or tokens[-1].end != offset:
        return False
    return tokens[-2].end == tokens[-1].start and tokens[-2].kind in (Kind.NAME, Kind.QUOTED, Kind.DOUBLE_QUOTED)


def _token(group: str, raw: str, start: int, end: int) -> Token:
    kind = _KINDS[group]
    if kind is Kind.NAME or kind is Kind.OPERATOR:
        return Token(kind, raw.upper() if raw.isascii() else raw, raw, start, end)
    if kind is Kind.QUOTED:
        return Token(kind, "", raw[1:-1].replace("``", "`"), start, end)
    if kind is Kind.STRING and raw.startswith("$"):
        tag = raw.index("$", 1) + 1
        return Token(kind, "", raw[tag:-tag], start, end)
    if kind is Kind.STRING:
        return Token(kind, "", unescape(raw[raw.index("'") + 1 : -1], "'"), start, end)
    return Token(kind, "", raw, start, end)


def unescape(content: str, quote: str) -> str:
    """Return the value of a string literal from the text between its quotes."""

    def replacement(match: re.Match[str]) -> str:
        letter = match.group(1)
        if letter is not None:
            return _ESCAPED.get(letter, letter)
        return quote if match.group() == 2 * quote else match.group()

    return _ESCAPE.sub(replacement, content) if "\\" in content or 2 * quote in content else content
