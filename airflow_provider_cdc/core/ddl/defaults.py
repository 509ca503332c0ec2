"""Read what follows DEFAULT."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.tokens import Kind, Token, tokenize
from airflow_provider_cdc.core.model.schema import ColumnType, Default

_NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_WORDS = {"NULL": None, "TRUE": "1", "FALSE": "0"}
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year"})
_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_WIDE_CHARSETS = frozenset({"ucs2", "utf16", "utf16le", "utf32"})


def read_default(reader: TokenReader, kind: ColumnType | None) -> Default:
    """Read a default value; ``kind`` is the column's type where the statement tells it."""
    if reader.at("("):
        return _parenthesised(reader.group(), kind)
    constant = _constant(reader, kind)
    if constant is not None:
        return constant
    if accept_now(reader):
        return Default("now")
    return Default("expression", _expression(reader))


def accept_now(reader: TokenReader) -> bool:
    """Read CURRENT_TIMESTAMP or a synonym, with or without precision, if it comes next."""
    if not reader.at_any(_NOW) or (reader.at("NOW") and reader.peek(1).word != "("):
        return False
    reader.take()
    if reader.accept("(") and not reader.accept(")"):
        reader.integer()
        reader.expect(")")
    return True


def _parenthesised(sql: str, kind: ColumnType | None) -> Default:
    inner = TokenReader(sql, tokenize(sql))
    if not inner.at_end:
        constant = _constant(inner, kind)
        if constant is not None and inner.at_end:
            return constant
    return Default("expression", sql)


def _constant(reader: TokenReader, kind: ColumnType | None) -> Default | None:
    token = reader.peek()
    if token.word in _WORDS:
        reader.take()
        return Default("constant", _WORDS[token.word])
    introduced = token.word.startswith("_") or token.word in ("DATE", "TIME", "TIMESTAMP")
    if introduced and (reader.at_string(1) or reader.peek(1).kind is Kind.BITS):
        reader.take()
    if reader.at_string():
        return Default("constant", reader.string())
    if reader.peek().kind is Kind.BITS:
        return _bits(reader.take(), kind)
    sign = token.word if token.word in ("-", "+") else ""
    if reader.peek(1 if sign else 0).kind is not Kind.NUMBER:
        return None
    if sign:
        reader.take()
    return Default("constant", sign.replace("+", "") + reader.take().value)


def _bits(token: Token, kind: ColumnType | None) -> Default:
    """The value of ``b'101'``, ``x'41'``, ``0x41``: a number for a number column, else bytes read as text."""
    base, width = (16, 4) if token.value[0] in "xX" or token.value.startswith("0x") else (2, 1)
    digits = token.value[2:].rstrip("'")
    size = (len(digits) * width + 7) // 8
    number = int(digits or "0", base)
    text = None
    if kind is not None and kind.name in _NUMBERS:
        text = str(number) if size <= 8 else None
    elif kind is not None:
        text = _text(number.to_bytes(size, "big"), kind)
    return Default("expression", token.value) if text is None else Default("constant", text)


def _text(value: bytes, kind: ColumnType) -> str | None:
    """Bytes as the text the column prints, None where that depends on what is not known here."""
    charset = (kind.charset or "").lower()
    readable = kind.name in _BYTES or charset.startswith("utf8") or value.isascii()
    if not readable or charset in _WIDE_CHARSETS:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _expression(reader: TokenReader) -> str:
    """Read a function call, a column or a sequence value and return its SQL."""
    start = reader.peek().start
    if reader.peek().kind is Kind.NAME and reader.peek(1).word == "(":
        reader.take()
    else:
        reader.accept("NEXT", "VALUE", "FOR")
        reader.column_name()
    if reader.at("("):
        reader.group()
    return reader.text[start : reader.last_end]
