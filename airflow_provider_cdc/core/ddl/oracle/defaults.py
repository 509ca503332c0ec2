# SPDX-License-Identifier: Apache-2.0
"""Read the clause after DEFAULT, and convert a literal to the value that Oracle stores."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from airflow_provider_cdc.core.ddl.options import skip_item
from airflow_provider_cdc.core.ddl.oracle.column_types import Declared
from airflow_provider_cdc.core.ddl.reader import TokenReader, words
from airflow_provider_cdc.core.ddl.tokens import Kind, Token
from airflow_provider_cdc.core.model.schema import Default

_BEHIND = words(
    """, ) ; NOT NULL CONSTRAINT PRIMARY UNIQUE CHECK REFERENCES ENABLE DISABLE ENCRYPT DECRYPT VISIBLE INVISIBLE ADD
    MODIFY DROP RENAME ANNOTATIONS COLLATE SUPPLEMENTAL"""
)
_NUMERAL = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?\s*", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_SECOND = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?", re.ASCII)


def read_default(reader: TokenReader, declared: Declared | None) -> Default:
    """Read a default value; if the column's type is not stated, its value is not known."""
    start = reader.peek().start
    tokens: list[Token] = []
    while not reader.at_end and (not tokens or not reader.at_any(_BEHIND)):
        tokens.append(reader.peek())
        skip_item(reader)
    if not tokens:
        raise reader.error("a default value")
    constant = None
    if tokens[0].word == "NULL" and len(tokens) == 1:
        constant = Default("constant", None)
    elif declared is not None:
        constant = _constant(tokens, declared)
    return constant or Default("expression", reader.text[start : reader.last_end])


def _constant(tokens: list[Token], declared: Declared) -> Default | None:
    """Return the stored value of a literal in a column of this type, None if it depends on settings of the server."""
    sign = tokens[0].word if tokens[0].word in ("-", "+") else ""
    unsigned = tokens[1:] if sign else tokens
    if len(unsigned) == 1 and unsigned[0].kind is Kind.NUMBER:
        return _of_number(sign + unsigned[0].value, declared)
    if len(tokens) == 1 and tokens[0].kind is Kind.STRING:
        return _of_string(tokens[0].value, declared)
    if len(tokens) == 2 and tokens[1].kind is Kind.STRING and declared.family == "datetime":
        return _of_datetime(tokens[0].word, tokens[1].value, declared)
    return None


def _of_number(text: str, declared: Declared) -> Default | None:
    if declared.family == "text" and text.isdecimal():
        return Default("constant", str(int(text)))
    if declared.family not in ("number", "binary") or not _NUMERAL.fullmatch(text):
        return None
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    column_type = declared.type
    if column_type.name == "decimal" and -int(number.normalize().as_tuple().exponent) > (column_type.scale or 0):
        return None  # Oracle rounds it
    plain = format(number, "f")
    plain = plain.rstrip("0").rstrip(".") if "." in plain else plain
    return Default("constant", "0" if number == 0 else plain)


def _of_string(text: str, declared: Declared) -> Default | None:
    if text == "":
        return Default("constant", None)  # the empty text is NULL
    if declared.family == "text":
        return Default("constant", text)
    if declared.family == "char" and text.isascii() and declared.length is not None:
        return Default("constant", text.ljust(declared.length))
    return _of_number(text, declared) if declared.family == "number" else None


def _of_datetime(word: str, text: str, declared: Declared) -> Default | None:
    if word == "DATE" and _DAY.fullmatch(text):
        return Default("constant", f"{text} 00:00:00")
    if word == "TIMESTAMP" and declared.type.length and _SECOND.fullmatch(text):
        return Default("constant", text)
    return None
