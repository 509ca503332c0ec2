# SPDX-License-Identifier: Apache-2.0
"""Shorten DDL texts for the page, without the values in them."""

from __future__ import annotations

import re

from airflow_provider_cdc.core.printable import printable

_SHOWN = 500
# An unfinished literal or comment reaches to the end of the text.
_STRING = r"'(?:[^'\\]|\\.|'')*(?:'|\\?\Z)"
_DOUBLE = r'"(?:[^"\\]|\\.|"")*(?:"|\\?\Z)'
_QUOTED = r"`[^`]*(?:`|\Z)"
_COMMENT = r"/\*.*?(?:\*/|\Z)|--[^\n]*|\#[^\n]*"
_NUMBER = r"(?<=[dD][eE][fF][aA][uU][lL][tT])\s+[-+]?[\w.]*\d[\w.]*"
_MYSQL = re.compile(
    f"(?P<name>{_QUOTED})|(?P<value>{_STRING}|{_DOUBLE})|(?P<comment>{_COMMENT})|(?P<number>{_NUMBER})", re.DOTALL
)
# Oracle: a backslash is a character, and double quotes enclose names.
_ORACLE = re.compile(
    rf"""(?P<name>"[^"]*(?:"|\Z))|(?P<value>'(?:[^']|'')*(?:'|\Z))|(?P<comment>/\*.*?(?:\*/|\Z)|--[^\n]*)|(?P<number>{_NUMBER})""",
    re.DOTALL,
)


def statement_text(statement: str, dialect: str | None = None) -> str:
    """Return a statement in one line, with each literal as ``'…'`` and without comments.

    A default or a label of an ENUM is a value of the source, and a comment may say anything.

    :param dialect: ``oracle``, or None for MySQL's.
    """
    pattern = _ORACLE if dialect == "oracle" else _MYSQL
    text = " ".join(pattern.sub(_without_value, statement[:100_000]).split())
    return printable(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


def _without_value(match: re.Match[str]) -> str:
    if match["name"] is not None:
        return match["name"]
    return " " if match["comment"] is not None else " …" if match["number"] is not None else "'…'"
