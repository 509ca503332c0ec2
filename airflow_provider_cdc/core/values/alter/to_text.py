# SPDX-License-Identifier: Apache-2.0
"""Convert stored values to text and binary types: limit lengths, convert character sets and labels."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.alter.type_families import Step, UncertainConversion, convert_distinct
from airflow_provider_cdc.core.values.columnar import binary
from airflow_provider_cdc.core.values.fields import CHARACTER_REPLACED, LABEL_LOST, TEXT_CUT

_ALL_OF_UNICODE = frozenset({None, "utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
_BMP_ONLY = frozenset({"utf8", "utf8mb3", "ucs2"})
_UTF8 = frozenset({"utf8", "utf8mb3", "utf8mb4", "ascii"})
_FOUR_BYTES = frozenset({"utf16", "utf16le", "utf32", "ucs2", "gb18030"})
# In MySQL's latin1 the bytes 80-9F are those of cp1252; only the five without a meaning there are control characters
_LATIN1 = r"\x{00}-\x{7F}\x{81}\x{8D}\x{8F}\x{90}\x{9D}\x{A0}-\x{FF}€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_COUNTED_IN_CHARACTERS = frozenset({"char", "varchar"})
_LABEL_INDEX = re.compile("[0-9]{1,5}")
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
    """Return texts as the new column holds them: cut to its length, in its character set."""
    return _length(_charset(texts, step), step)


def keeps_texts(old: ColumnType, new: ColumnType) -> bool:
    """Return whether a column of another text type holds every text of the old one unchanged."""
    all_characters = new.charset == old.charset or new.charset in _ALL_OF_UNICODE
    if not all_characters or (new.name == "char" and old.name != "char"):
        return False
    if new.name in _COUNTED_IN_CHARACTERS:
        most = old.length or 1 if old.name in _COUNTED_IN_CHARACTERS else _LIMITS[old.name]
        return (1 if new.length is None else new.length) >= most
    if old.name in _COUNTED_IN_CHARACTERS:
        return _LIMITS[new.name] >= 4 * (old.length or 1)
    return _LIMITS[new.name] >= _LIMITS[old.name] * (1 if new.charset == old.charset else 4)


def keeps_bytes(old: ColumnType, new: ColumnType) -> bool:
    """Return whether a column of another type of varying bytes holds every value of the old one."""
    return _most_bytes(new) >= _most_bytes(old)


def _length(texts: pa.Array, step: Step) -> pa.Array:
    column = step.new
    if column.name not in _COUNTED_IN_CHARACTERS:
        return _within_bytes(texts, step)
    texts = _within_characters(texts, 1 if column.length is None else column.length, step)
    # CHAR never returns trailing spaces
    return pc.ascii_rtrim(texts, " ") if column.name == "char" else texts


def _within_characters(texts: pa.Array, limit: int, step: Step) -> pa.Array:
    if pc.all(pc.less_equal(pc.utf8_length(texts), limit)).as_py() is not False:
        return texts
    # strict mode cuts trailing spaces too
    step.lose(TEXT_CUT, pc.not_equal(pc.ascii_rtrim(pc.utf8_slice_codeunits(texts, limit), " "), ""))
    return pc.utf8_slice_codeunits(texts, 0, limit)


def _within_bytes(texts: pa.Array, step: Step) -> pa.Array:
    """Cut texts to the bytes that the TEXT types hold, after a whole character."""
    limit, charset = _LIMITS[step.new.name], step.new.charset
    lengths = pc.multiply(pc.utf8_length(texts), 4) if charset in _FOUR_BYTES else pc.binary_length(texts)
    longer = pc.greater(lengths, limit)
    if not pc.any(longer).as_py():
        return texts
    if charset == "latin1":
        return _within_characters(texts, limit, step)
    if charset not in _UTF8 and (charset in _FOUR_BYTES or pc.any(pc.invert(pc.string_is_ascii(texts))).as_py()):
        raise UncertainConversion("the bytes of a text in its character set")
    step.lose(TEXT_CUT, longer)
    whole = [None if text is None else text.encode()[:limit].decode(errors="ignore") for text in texts.to_pylist()]
    return pa.array(whole, pa.string())


def _charset(texts: pa.Array, step: Step) -> pa.Array:
    if step.new.charset == step.old.charset or step.new.charset in _ALL_OF_UNICODE:
        return texts
    if pc.all(pc.string_is_ascii(texts)).as_py() is not False:
        return texts
    if step.new.charset in _BMP_ONLY:
        lacking = r"[^\x{0}-\x{FFFF}]"
    elif step.new.charset == "latin1":
        lacking = f"[^{_LATIN1}]"
    else:
        raise UncertainConversion("whether the new character set has every character")
    step.lose(CHARACTER_REPLACED, pc.match_substring_regex(texts, lacking))
    return pc.replace_substring_regex(texts, lacking, "?")


def encoded(texts: pa.Array, step: Step) -> pa.Array:
    """Return the bytes of texts in the old column's character set."""
    if step.old.charset not in _UTF8 and pc.all(pc.string_is_ascii(texts)).as_py() is False:
        raise UncertainConversion("the bytes of a text in its character set")
    if step.old.charset in _FOUR_BYTES - {"gb18030"}:
        raise UncertainConversion("the bytes of a text in its character set")
    return sized(texts.cast(pa.binary()), step)


def decoded(values: pa.Array, step: Step) -> pa.Array:
    """Return bytes as text of the new column's character set."""
    texts = values.cast(pa.string())
    if step.new.charset not in _UTF8 and pc.all(pc.string_is_ascii(texts)).as_py() is False:
        raise UncertainConversion("what bytes mean in the new character set")
    if step.new.charset in _FOUR_BYTES - {"gb18030"}:
        raise UncertainConversion("what bytes mean in the new character set")
    return _length(texts, step)


def sized(values: pa.Array, step: Step) -> pa.Array:
    """Return bytes as the new binary column holds them: cut to its length, BINARY padded with zeros."""
    longer = pc.greater(pc.binary_length(values), _most_bytes(step.new))
    if pc.any(longer).as_py():
        step.lose(TEXT_CUT, longer)
        values = pc.binary_slice(values, 0, _most_bytes(step.new))
    return binary.padded(values, step.new)


def printed_as(
    old: str, printed: Callable[[pa.Array, Step], pa.Array]
) -> dict[tuple[str, str], Callable[[pa.Array, Step], pa.Array]]:
    """Return the steps from a family of types to texts and to bytes, by way of the text that the server prints."""
    return {
        (old, "text"): lambda values, step: fitted(printed(values, step), step),
        (old, "bytes"): lambda values, step: sized(printed(values, step).cast(pa.binary()), step),
    }


def _most_bytes(column: ColumnType) -> int:
    return _LIMITS.get(column.name, 1) if column.length is None else column.length


def relabelled(texts: pa.Array, step: Step) -> pa.Array:
    """Convert texts to ENUM labels; a text without a label becomes the empty text."""

    def convert(text: str) -> tuple[str, str | None]:
        if text in labels or (not text and step.old.name == "enum"):
            return text, None
        _demand_unlike(text, labels)
        if _LABEL_INDEX.fullmatch(text) and 0 < int(text) <= len(
            labels
        ):  # a text that is not a label may be the number of one
            return labels[int(text) - 1], None
        return "", LABEL_LOST

    labels = step.new.labels
    return convert_distinct(texts, convert, step, pa.string())


def members(texts: pa.Array, step: Step) -> pa.Array:
    """Keep SET members that the new list has, in its order."""

    def convert(text: str) -> tuple[str, str | None]:
        names = set(text.split(",")) if text else set()
        lacking = names - order.keys()
        for member in lacking:
            _demand_unlike(member, step.new.labels)
        if lacking == names and _LABEL_INDEX.fullmatch(text):
            raise UncertainConversion("a text is a number, which may stand for members of a SET")
        return ",".join(sorted(names - lacking, key=order.__getitem__)), LABEL_LOST if lacking else None

    order = {label: i for i, label in enumerate(step.new.labels)}
    return convert_distinct(texts, convert, step, pa.string())


def _demand_unlike(text: str, labels: Sequence[str]) -> None:
    """Raise for a text that the column's collation, which is not known, may equal to a label."""
    texts = (text, *labels)
    if not all(item.isascii() and item.isprintable() for item in texts) or text.strip().lower() in {
        label.strip().lower() for label in labels
    }:
        raise UncertainConversion("whether a value is like one of the new labels")


def bitmask(texts: pa.Array, step: Step) -> pa.Array:
    """Return SET values as the integers that the server stores."""
    bits = {label: 1 << i for i, label in enumerate(step.old.labels)}
    masks = [None if text is None else _bitmask(text, bits) for text in texts.to_pylist()]
    return pa.array(masks, pa.decimal128(38, 0))


def _bitmask(text: str, bits: dict[str, int]) -> int:
    try:
        return reduce(int.__or__, (bits[member] for member in text.split(",")), 0) if text else 0
    except KeyError:
        raise UncertainConversion("a SET value has a member that its type lacks") from None
