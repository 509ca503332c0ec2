"""What fits into a text or binary column: lengths and character sets."""

from __future__ import annotations

from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values import binary
from airflow_provider_cdc.core.values.certain import Step, Uncertain, demand

_ALL_OF_UNICODE = frozenset({None, "utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
_BMP_ONLY = frozenset({"utf8", "utf8mb3", "ucs2"})
_UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4", "ascii"})
_FOUR_BYTES = frozenset({"utf16", "utf16le", "utf32", "ucs2", "gb18030"})
# In MySQL's latin1 the bytes 80-9F are those of cp1252; only the five without a meaning there are control characters
_LATIN1 = r"\x{00}-\x{7F}\x{81}\x{8D}\x{8F}\x{90}\x{9D}\x{A0}-\x{FF}€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_LIMITS = {
    "tinytext": 255,
    "text": 65_535,
    "mediumtext": (1 << 24) - 1,
    "longtext": (1 << 32) - 1,
    "tinyblob": 255,
    "blob": 65_535,
    "mediumblob": (1 << 24) - 1,
    "longblob": (1 << 32) - 1,
}


def fitted(texts: pa.Array, step: Step) -> pa.Array:
    """Return texts as the new column holds them; refuse what it cannot hold."""
    return _charset(_length(texts, step.new), step)


def _length(texts: pa.Array, column: ColumnType) -> pa.Array:
    if column.name == "char":
        texts = pc.ascii_rtrim(texts, " ")  # CHAR never gives back the spaces at its end
    if column.name in ("char", "varchar"):
        return _characters(texts, column.length if column.length is not None else 1)
    limit = column.length or _LIMITS[column.name]
    lengths = pc.multiply(pc.utf8_length(texts), 4) if column.charset in _FOUR_BYTES else pc.binary_length(texts)
    demand(pc.less_equal(lengths, limit), "a text is too long")
    return texts


def _characters(texts: pa.Array, limit: int) -> pa.Array:
    if pc.all(pc.less_equal(pc.utf8_length(texts), limit)).as_py() is not False:
        return texts
    # spaces at the end are cut off without an error
    rest = pc.ascii_rtrim(pc.utf8_slice_codeunits(texts, limit), " ")
    demand(pc.equal(rest, ""), "a text is too long")
    return pc.utf8_slice_codeunits(texts, 0, limit)


def _charset(texts: pa.Array, step: Step) -> pa.Array:
    if step.new.charset == step.old.charset or step.new.charset in _ALL_OF_UNICODE:
        return texts
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    if step.new.charset in _BMP_ONLY:
        allowed = r"[\x{0}-\x{FFFF}]*"
    elif step.new.charset == "latin1":
        allowed = f"[{_LATIN1}]*"
    else:
        raise Uncertain("whether the new character set has every character")
    demand(pc.match_substring_regex(texts, rf"\A{allowed}\z"), "the new character set lacks a character")
    return texts


def encoded(texts: pa.Array, step: Step) -> pa.Array:
    """Return the bytes of texts in the old column's character set."""
    if step.old.charset not in _UTF8 and pc.all(pc.string_is_ascii(texts)).as_py() is False:
        raise Uncertain("the bytes of a text in its character set")
    if step.old.charset in _FOUR_BYTES - {"gb18030"}:
        raise Uncertain("the bytes of a text in its character set")
    return sized(texts.cast(pa.binary()), step)


def decoded(values: pa.Array, step: Step) -> pa.Array:
    """Return bytes as text of the new column's character set."""
    texts = values.cast(pa.string())
    if step.new.charset not in _UTF8 and pc.all(pc.string_is_ascii(texts)).as_py() is False:
        raise Uncertain("what bytes mean in the new character set")
    if step.new.charset in _FOUR_BYTES - {"gb18030"}:
        raise Uncertain("what bytes mean in the new character set")
    return _length(texts, step.new)


def sized(values: pa.Array, step: Step) -> pa.Array:
    """Return bytes as the new binary column holds them."""
    new = step.new
    limit = _LIMITS.get(new.name, 1) if new.length is None else new.length
    demand(pc.less_equal(pc.binary_length(values), limit), "a value is too long")
    return binary.padded(values, new)


def relabelled(texts: pa.Array, step: Step) -> pa.Array:
    """Keep ENUM labels that the new list has too."""
    demand(pc.is_in(pc.drop_null(texts), pa.array(step.new.labels, pa.string())), "the ENUM lacks a label")
    return texts


def members(texts: pa.Array, step: Step) -> pa.Array:
    """Keep SET members that the new list has too, in its order."""
    order = {label: i for i, label in enumerate(step.new.labels)}
    return pa.array([None if text is None else _members(text, order) for text in texts.to_pylist()], pa.string())


def _members(text: str, order: dict[str, int]) -> str:
    chosen = set(text.split(",")) if text else set()
    if not chosen <= order.keys():
        raise Uncertain("the SET lacks a member")
    return ",".join(sorted(chosen, key=order.__getitem__))


def bitmask(texts: pa.Array, step: Step) -> pa.Array:
    """Return a SET as its number."""
    bits = {label: 1 << i for i, label in enumerate(step.old.labels)}
    numbers = [None if text is None else _bitmask(text, bits) for text in texts.to_pylist()]
    return pa.array(numbers, pa.decimal128(38, 0))


def _bitmask(text: str, bits: dict[str, int]) -> int:
    try:
        return reduce(int.__or__, (bits[member] for member in text.split(",")), 0) if text else 0
    except KeyError:
        raise Uncertain("a SET value has a member that its type lacks") from None
