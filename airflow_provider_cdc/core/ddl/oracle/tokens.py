# SPDX-License-Identifier: Apache-2.0
"""Cut Oracle statement text into tokens."""

from __future__ import annotations

import re

from airflow_provider_cdc.core.ddl.reader import words
from airflow_provider_cdc.core.ddl.tokens import LONGEST, MOST_TOKENS, DdlError, Kind, Token

# Oracle's reserved words (V$RESERVED_WORDS), and those that no column can have as its unquoted name
RESERVED = words(
    """ACCESS ADD ALL ALTER AND ANY AS ASC AUDIT BETWEEN BY CHAR CHECK CLUSTER COLUMN COMMENT COMPRESS CONNECT CREATE
    CURRENT DATE DECIMAL DEFAULT DELETE DESC DISTINCT DROP ELSE EXCLUSIVE EXISTS FILE FLOAT FOR FROM GRANT GROUP HAVING
    IDENTIFIED IMMEDIATE IN INCREMENT INDEX INITIAL INSERT INTEGER INTERSECT INTO IS LEVEL LIKE LOCK LONG MAXEXTENTS
    MINUS MLSLABEL MODE MODIFY NOAUDIT NOCOMPRESS NOT NOWAIT NULL NUMBER OF OFFLINE ON ONLINE OPTION OR ORDER PCTFREE
    PRIOR PUBLIC RAW RENAME RESOURCE REVOKE ROW ROWID ROWNUM ROWS SELECT SESSION SET SHARE SIZE SMALLINT START
    SUCCESSFUL SYNONYM SYSDATE TABLE THEN TO TRIGGER UID UNION UNIQUE UPDATE USER VALIDATE VALUES VARCHAR VARCHAR2 VIEW
    WHENEVER WHERE WITH"""
)
_NAME_CHARACTER = r"[0-9A-Za-z_$\#\u0080-\U0010ffff]"
_TOKEN = re.compile(
    rf"""
      (?P<space>       \s+ )
    | (?P<remark>      --[^\n]* | /\*.*?\*/ )
    | (?P<delimited>   [nN]?[qQ]'(?: \[.*?\]' | \{{.*?\}}' | \(.*?\)' | <.*?>' | (?P<mark>[^\s\[{{(<]).*?(?P=mark)' ) )
    | (?P<unfinished>  /\* | [nN]?[qQ]' )
    | (?P<string>      [nN]?'[^']*(?:''[^']*)*' )
    | (?P<quoted>      "[^"\x00]+" )
    | (?P<number>      (?: \d+(?:\.\d*)? | \.\d+ )(?:[eE][+-]?\d+)?(?:[fFdD](?!{_NAME_CHARACTER}))? )
    | (?P<name>        [A-Za-z\u0080-\U0010ffff]{_NAME_CHARACTER}* )
    | (?P<operator>    [^\s'"] )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


def tokenize(text: str) -> list[Token]:
    """Return the tokens of ``text`` without comments; names that are not quoted are in upper case, as Oracle has them.

    :raises DdlError: the text is too long, or a quoted text or comment in it has no end.
    """
    if len(text) > LONGEST:
        raise DdlError(f"a statement text of more than {LONGEST} characters is not read", text, 0)
    tokens: list[Token] = []
    offset = 0
    while offset < len(text):
        if len(tokens) > MOST_TOKENS:
            raise DdlError(f"a statement text of more than {MOST_TOKENS} tokens is not read", text, offset)
        match = _TOKEN.match(text, offset)
        if match is None or match["unfinished"]:
            raise DdlError("a quoted text or comment has no end", text, offset)
        token = _token(match)
        if token is not None:
            tokens.append(token)
        offset = match.end()
    return tokens


def _token(match: re.Match[str]) -> Token | None:
    raw, (start, end) = match.group(), match.span()
    if match["name"] or match["operator"]:
        upper = raw.upper()
        return Token(Kind.NAME if match["name"] else Kind.OPERATOR, upper, upper, start, end)
    if match["quoted"]:
        return Token(Kind.QUOTED, "", raw[1:-1], start, end)
    if match["string"]:
        return Token(Kind.STRING, "", raw[raw.index("'") + 1 : -1].replace("''", "'"), start, end)
    if match["delimited"]:
        return Token(Kind.STRING, "", raw[raw.index("'") + 2 : -2], start, end)
    return Token(Kind.NUMBER, "", raw, start, end) if match["number"] else None
