"""Read what follows DEFAULT."""

from __future__ import annotations

from airflow_provider_cdc.core.ddl.literals import Literal, stored_text
from airflow_provider_cdc.core.ddl.reader import TokenReader
from airflow_provider_cdc.core.ddl.tokens import Kind, Token, tokenize
from airflow_provider_cdc.core.model.schema import ColumnType, Default

_NOW = frozenset({"CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"})
_TRUTHS = {"TRUE": "1", "FALSE": "0"}
# what a literal of a type is stored in as it is written
_MOMENTS = {"DATE": ("date", "datetime"), "TIME": ("time",), "TIMESTAMP": ("date", "datetime", "timestamp")}
_ANY_TEXT = ColumnType("longtext")
_NUMBERS = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "bit", "year"})
_BYTES = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_WIDE_CHARSETS = frozenset({"ucs2", "utf16", "utf16le", "utf32"})


def read_default(reader: TokenReader, kind: ColumnType) -> Default:
    """Read a default value and return what a column of type ``kind`` stores for it."""
    if reader.at("("):
        return _parenthesised(reader.group(), kind)
    start = reader.peek().start
    if accept_now(reader):
        return Default("now")
    return _constant(reader, kind) or Default("expression", _expression(reader, start))


def read_default_text(reader: TokenReader) -> str:
    """Read a default value and return its SQL, for a statement that does not tell the column's type."""
    start = reader.peek().start
    read_default(reader, _ANY_TEXT)
    return reader.text[start : reader.last_end]


def default_of(sql: str, kind: ColumnType) -> Default:
    """Return the default that :func:`read_default_text` found, now that the column's type is known."""
    return read_default(TokenReader(sql, tokenize(sql)), kind)


def accept_now(reader: TokenReader) -> bool:
    """Read CURRENT_TIMESTAMP or a synonym, with or without precision, if it comes next."""
    if not reader.at_any(_NOW) or (reader.at("NOW") and reader.peek(1).word != "("):
        return False
    reader.take()
    if reader.accept("(") and not reader.accept(")"):
        reader.integer()
        reader.expect(")")
    return True


def _parenthesised(sql: str, kind: ColumnType) -> Default:
    inner = TokenReader(sql, tokenize(sql))
    if not inner.at_end:
        constant = _constant(inner, kind)
        if constant is not None and inner.at_end:
            return constant
    return Default("expression", sql)


def _constant(reader: TokenReader, kind: ColumnType) -> Default | None:
    """Read a literal; its value is an expression's where it is not certain. None if no literal comes next."""
    start, word = reader.peek().start, reader.peek().word
    if word == "NULL":
        reader.take()
        return Default("constant", None)
    text: str | None
    introduced = word.startswith("_") or word in _MOMENTS
    if introduced and (reader.at_string(1) or reader.peek(1).kind is Kind.BITS):
        reader.take()
    if word in _TRUTHS:
        reader.take()
        text = stored_text(Literal(_TRUTHS[word], number=True), kind)
    elif reader.at_string():
        text = stored_text(Literal(reader.string()), kind)
        if kind.name not in _MOMENTS.get(word, (kind.name,)):
            text = None  # a TIME in a DATETIME gets the day's date, a DATE in a text is written as a date
    elif reader.peek().kind is Kind.BITS:
        text = _bits(reader.take(), kind)
    else:
        number = _number(reader)
        if number is None:
            return None
        text = stored_text(number, kind)
    return Default("expression", reader.text[start : reader.last_end]) if text is None else Default("constant", text)


def _number(reader: TokenReader) -> Literal | None:
    sign = reader.peek().word if reader.peek().word in ("-", "+") else ""
    if reader.peek(1 if sign else 0).kind is not Kind.NUMBER:
        return None
    if sign:
        reader.take()
    return Literal(sign.replace("+", "") + reader.take().value, number=True)


def _bits(token: Token, kind: ColumnType) -> str | None:
    """The value of ``b'101'``, ``x'41'``, ``0x41``: a number for a number column, else bytes read as text."""
    base, width = (16, 4) if token.value[0] in "xX" or token.value.startswith("0x") else (2, 1)
    digits = token.value[2:].rstrip("'")
    size = (len(digits) * width + 7) // 8
    number = int(digits or "0", base)
    if kind.name in _NUMBERS:
        return stored_text(Literal(str(number), number=True), kind) if size <= 8 else None
    text = _text(number.to_bytes(size, "big"), kind)
    return text if text is None or kind.name in _BYTES else stored_text(Literal(text), kind)


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
