# SPDX-License-Identifier: Apache-2.0
"""Decode row images to Python tokens with one cached msgspec struct for each set of members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
from msgspec import UNSET, UnsetType
from msgspec.structs import astuple

from airflow_provider_cdc.core.model.encoding import Encoding
from airflow_provider_cdc.core.values.fields import Field

BadImage = (ValueError, RecursionError)  # every msgspec error is a ValueError, and so is broken UTF-8
RAW: msgspec.json.Decoder[dict[str, msgspec.Raw]] = msgspec.json.Decoder(dict[str, msgspec.Raw])


class Geometry(msgspec.Struct, gc=False):
    """Decode a geometry as Debezium writes it."""

    wkb: bytes | None


_TOKENS: dict[Encoding, Any] = {
    Encoding.BOOLEAN: bool | int,
    Encoding.BASE64: bytes,
    Encoding.DECIMAL_BASE64: bytes,
    Encoding.BITS_LE: bytes,
    Encoding.BITS_BE: bytes,
    Encoding.LATIN1_BYTES: str,
    Encoding.BYTE_LIST: list[int] | str,
    Encoding.ENUM_INDEX: int | str,
    Encoding.SET_BITMASK: int | str,
    Encoding.EPOCH_SECONDS: int | str,
    Encoding.EPOCH_MILLIS_TEXT: int | str,
    Encoding.CHARSET_BYTES: bytes,
    Encoding.MIXED_DATETIME: str,
    Encoding.GEOMETRY: Geometry,
    Encoding.FLOAT: float,
    **dict.fromkeys((Encoding.VARIABLE_DECIMAL, Encoding.DOCUMENT, Encoding.LIST), msgspec.Raw),
    **dict.fromkeys((Encoding.TEXT, Encoding.BASE64_URL, Encoding.HEX, Encoding.ISO_TEXT), str),
    **dict.fromkeys((Encoding.ZONED_TEXT, Encoding.INSTANT), str),
    **dict.fromkeys((Encoding.EPOCH_DAYS, Encoding.EPOCH_MILLIS, Encoding.EPOCH_MICROS, Encoding.EPOCH_NANOS), int),
    **dict.fromkeys((Encoding.TIME_MILLIS, Encoding.TIME_MICROS, Encoding.TIME_NANOS, Encoding.WRAPPED_UNSIGNED), int),
    **dict.fromkeys((Encoding.TIME_MICROS_UNSCALED, Encoding.YEAR_SINCE_1900), int),
}


def token_type(field: Field) -> Any:
    """Return the Python type to which msgspec decodes a field's tokens."""
    if field.encoded.encoding is not Encoding.NUMBER:
        return _TOKENS[field.encoded.encoding]
    if pa.types.is_signed_integer(field.target) or pa.types.is_boolean(field.target):
        return int | bool  # Debezium writes both for TINYINT(1) and BOOLEAN
    if pa.types.is_floating(field.target):
        return float
    # other targets must keep the digits of the text
    return list[float] if pa.types.is_list(field.target) else msgspec.Raw


def structable(name: str) -> bool:
    """Return whether msgspec accepts a member name in a struct."""
    return not any(character in '"\\' or character < " " for character in name)


@lru_cache(maxsize=1024)
def decoder(members: tuple[tuple[str, Any], ...]) -> tuple[msgspec.json.Decoder[Any], Any]:
    """Return a decoder for these members, and a struct in which all of them are absent."""
    fields = [
        (f"f{i}", token | None | UnsetType if token is not msgspec.Raw else token | UnsetType, UNSET)
        for i, (_, token) in enumerate(members)
    ]
    struct = msgspec.defstruct("Image", fields, rename={f"f{i}": name for i, (name, _) in enumerate(members)}, gc=False)
    return msgspec.json.Decoder(struct), struct()


def read(texts: Sequence[bytes], members: tuple[tuple[str, Any], ...]) -> tuple[list[Any], list[int]]:
    """Decode every image; return the structs, and the indexes of invalid images, whose structs are empty."""
    parse, blank = decoder(members)
    rows: list[Any] = []
    bad: list[int] = []
    remaining: Iterator[bytes] = iter(texts)
    while len(rows) < len(texts):
        try:
            # structs decoded before an error stay in the list, and the iterator is past the invalid image
            rows.extend(map(parse.decode, remaining))
        except BadImage:
            bad.append(len(rows))
            rows.append(blank)
    return rows, bad


def gathered(rows: Sequence[Any], width: int) -> list[tuple[Any, ...]]:
    """Return the values of each member; a tuple of each struct costs half as much as to ask for each member."""
    return list(zip(*map(astuple, rows), strict=True)) if rows else [()] * width


def texts_of(images: pa.Array) -> list[bytes]:
    """Return the images' bytes."""
    if pa.types.is_string(images.type):
        images = images.view(pa.binary())
    elif pa.types.is_large_string(images.type):
        images = images.view(pa.large_binary())
    texts: list[bytes] = images.to_numpy(zero_copy_only=False).tolist() if len(images) else []
    return texts


def with_members(image: bytes, members: bytes) -> bytes:
    """Return an image in which some members have the values that another text gives them; tokens stay as they are."""
    try:
        text: bytes = msgspec.json.encode({**RAW.decode(image), **RAW.decode(members)})
    except BadImage:
        return image  # typing it says what is wrong with it
    return text


def member_mark(name: str) -> str:
    """Return a text that every image as msgspec writes it contains that has a member of this name."""
    return f"{msgspec.json.encode(name).decode()}:"
