# SPDX-License-Identifier: Apache-2.0
"""Kernels of texts; positions count characters from 1."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.expressions.rows import Values


def concat(*texts: Values) -> pa.Array:
    """Join texts; NULL if one is."""
    return pc.binary_join_element_wise(*texts, "", null_handling="emit_null")


def trim(text: pa.Array) -> pa.Array:
    """Remove spaces, and no other white space, on both sides."""
    return pc.utf8_trim(text, characters=" ")


def substring(text: pa.Array, position: int, length: int | None = None) -> pa.Array:
    """Return characters from a position on, which counts from the end if it is negative."""
    start = position - 1 if position > 0 else position
    if length is None:
        return pc.utf8_slice_codeunits(text, start)
    stop = start + length
    if position < 0 <= stop:
        return pc.utf8_slice_codeunits(text, start)
    return pc.utf8_slice_codeunits(text, start, stop)


def left(text: pa.Array, length: int) -> pa.Array:
    """Return the first characters."""
    return pc.utf8_slice_codeunits(text, 0, max(0, length))


def right(text: pa.Array, length: int) -> pa.Array:
    """Return the last characters."""
    return pc.utf8_slice_codeunits(text, -length) if length > 0 else left(text, 0)


def lpad(text: pa.Array, length: int, padding: str = " ") -> pa.Array:
    """Put characters in front until a text has a length; cut one that is longer."""
    if length <= 0:
        return left(text, 0)
    needed = pc.max_element_wise(pc.subtract(pa.scalar(length, pa.int32()), pc.utf8_length(text)), 0, skip_nulls=False)
    sizes = needed.dictionary_encode()
    whole = padding * (length // len(padding) + 1)
    pads = pa.array([whole[: size.as_py()] for size in sizes.dictionary], pa.string()).take(sizes.indices)
    return concat(pads, left(text, length))


def replace(text: pa.Array, searched: str, replacement: str) -> pa.Array:
    """Replace each occurrence of a text, from left to right."""
    return pc.replace_substring(text, searched, replacement)


def like(text: pa.Array, pattern: str, escape: str) -> pa.Array:
    """Return whether texts match a pattern; a simple one without a regular expression."""
    parts = list(like_parts(pattern, escape))
    plain = [part for part in parts if isinstance(part, str)]
    anys = [part for part in parts if part is None]
    if len(plain) <= 1 and 0 not in parts:
        searched = "".join(plain)
        if not anys:
            return pc.equal(text, searched)
        begins, ends = parts[0] is not None, parts[-1] is not None
        if begins:
            return pc.starts_with(text, searched)
        return pc.ends_with(text, searched) if ends else pc.match_substring(text, searched)
    regex = "".join(_literally(part) if isinstance(part, str) else ("." if part == 0 else ".*") for part in parts)
    return pc.match_substring_regex(text, rf"(?s)\A{regex}\z")


def like_parts(pattern: str, escape: str) -> list[str | int | None]:
    """Split the pattern of LIKE into plain texts, 0 for one character and None for any number of them.

    :raises ValueError: the escape character stands before an ordinary character, or at the end.
    """
    parts: list[str | int | None] = []
    plain = ""
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            plain += _escaped(next(characters, ""), escape)
            continue
        if character not in "%_":
            plain += character
            continue
        if plain:
            parts.append(plain)
            plain = ""
        if character == "_":
            parts.append(0)
        elif not parts or parts[-1] is not None:
            parts.append(None)
    return [*parts, plain] if plain else parts


def _escaped(character: str, escape: str) -> str:
    # two backslashes are one in the literals of some databases
    allowed = ("%", "_") if escape == "\\" else ("%", "_", escape)
    if character not in allowed:
        raise ValueError(f"the escape character {escape} stands in a pattern only before {', '.join(allowed)}")
    return character


def _literally(text: str) -> str:
    """Return a regular expression for a text itself."""
    return "".join(c if c.isalnum() or ord(c) > 127 else f"\\x{{{ord(c):x}}}" for c in text)
