# SPDX-License-Identifier: Apache-2.0
"""Read the clause after DEFAULT."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl.literals import Literal, stored_text
from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.tokens import Kind, Token, tokenize
from airflow_provider_cdc.core.model.schema import ColumnType, Default

_NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_TRUTHS = {"TRUE": "1", "FALSE": "0"}
# types whose columns store a DATE, TIME or TIMESTAMP literal as it is written
_TYPED_LITERALS = {"DATE": ("date", "datetime"), "TIME": ("time",), "TIMESTAMP": ("date", "datetime", "timestamp")}
_ANY_TEXT = ColumnType("longtext")
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year"})
_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_WIDE_CHARSETS = frozenset({"ucs2", "utf16", "utf16le", "utf32"})


def read_default(reader: TokenReader, column_type: ColumnType) -> Default:
    """Read a default value; return the value that a column of this type stores for it."""
    if reader.at("("):
        return _parenthesised(reader.group(), column_type)
    start = reader.peek().start
    if accept_now(reader):
        return Default("now")
    return _constant(reader, column_type) or Default("expression", _expression(reader, start))


def read_default_text(reader: TokenReader) -> str:
    """Read a default value and return its SQL, for a statement that does not state the column's type."""
    start = reader.peek().start
    read_default(reader, _ANY_TEXT)
    return reader.text[start : reader.last_end]


def default_of(sql: str, column_type: ColumnType) -> Default:
    """Return the default of SQL that :func:`read_default_text` returned, once the column's type is known."""
    return read_default(TokenReader(sql, tokenize(sql)), column_type)


def accept_now(reader: TokenReader) -> bool:
    """Read CURRENT_TIMESTAMP or a synonym, with or without precision, if it comes next."""
    if not reader.at_any(_NOW) or (reader.at("NOW") and reader.peek(1).word != "("):
        return False
    reader.take()
    if reader.accept("(") and not reader.accept(")"):
        reader.integer()
        reader.expect(")")
    return True


def _parenthesised(sql: str, column_type: ColumnType) -> Default:
    inner = TokenReader(sql, tokenize(sql))
    if not inner.at_end:
        constant = _constant(inner, column_type)
        if constant is not None and inner.at_end:
            return constant
    return Default("expression", sql)


def _constant(reader: TokenReader, column_type: ColumnType) -> Default | None:
    """Read a literal; return an expression if its value is not certain, None if no literal comes next."""
    start, word = reader.peek().start, reader.peek().word
    if word == "NULL":
        reader.take()
        return Default("constant", None)
    text: str | None
    introduced = word.startswith("_") or word in _TYPED_LITERALS
    if introduced and (reader.at_string(1) or reader.peek(1).kind is Kind.BITS):
        reader.take()
    if word in _TRUTHS:
        reader.take()
        text = stored_text(Literal(_TRUTHS[word], number=True), column_type)
    elif reader.at_string():
        text = stored_text(Literal(reader.string()), column_type)
        if column_type.name not in _TYPED_LITERALS.get(word, (column_type.name,)):
            text = None  # a TIME in a DATETIME gets the day's date, a DATE in a text is written as a date
    elif reader.peek().kind is Kind.BITS:
        text = _bits(reader.take(), column_type)
    else:
        literal = _number(reader)
        if literal is None:
            return None
        text = stored_text(literal, column_type)
    return Default("expression", reader.text[start : reader.last_end]) if text is None else Default("constant", text)


def _number(reader: TokenReader) -> Literal | None:
    sign = reader.peek().word if reader.peek().word in ("-", "+") else ""
    if reader.peek(1 if sign else 0).kind is not Kind.NUMBER:
        return None
    if sign:
        reader.take()
    return Literal(sign.replace("+", "") + reader.take().value, number=True)


def _bits(token: Token, column_type: ColumnType) -> str | None:
    """Return the value of ``b'101'``, ``x'41'``, ``0x41``: an integer for a number column, else bytes read as text."""
    base, width = (16, 4) if token.value[0] in "xX" or token.value.startswith("0x") else (2, 1)
    digits = token.value[2:].rstrip("'")
    size = (len(digits) * width + 7) // 8
    bits = int(digits or "0", base)
    if column_type.name in _NUMBERS:
        return stored_text(Literal(str(bits), number=True), column_type) if size <= 8 else None
    text = _text(bits.to_bytes(size, "big"), column_type)
    return text if text is None or column_type.name in _BYTES else stored_text(Literal(text), column_type)


def _text(value: bytes, column_type: ColumnType) -> str | None:
    """Return bytes as the text that the column prints, None if that depends on unknown settings."""
    charset = (column_type.charset or "").lower()
    readable = column_type.name in _BYTES or charset.startswith("utf8") or value.isascii()
    if not readable or charset in _WIDE_CHARSETS:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _expression(reader: TokenReader, start: int) -> str:
    """Read a function call, a column or a sequence value and return its SQL from ``start`` on."""
    if reader.peek().kind is Kind.NAME and reader.peek(1).word == "(":
        reader.take()
    else:
        reader.accept("NEXT", "VALUE", "FOR")
        reader.column_name()
    if reader.at("("):
        reader.group()
    return reader.text[start : reader.last_end]
