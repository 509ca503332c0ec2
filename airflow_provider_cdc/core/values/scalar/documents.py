# SPDX-License-Identifier: Apache-2.0
"""Read values that are JSON documents themselves, one token at a time: their numbers keep all digits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec
import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.fields import ConversionError, Field, Reason
from airflow_provider_cdc.core.values.scalar.json_tokens import Number, datum_of, string_of

Convert = Callable[[bytes, Field, "Counter[str]"], object]
_items: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_NULL = b"null"
_AS_THEY_ARE = frozenset({Encoding.NUMBER, Encoding.BOOLEAN, Encoding.FLOAT})
_TEXTS = frozenset({Encoding.BASE64, Encoding.BITS_LE, Encoding.INSTANT})
_NUMBERS = frozenset({Encoding.DECIMAL_BASE64, Encoding.VARIABLE_DECIMAL})


def document(token: bytes) -> str:
    """Return the text of a document: that in a JSON string, or that of the token, which may be an array's."""
    datum = datum_of(token)
    if isinstance(datum, str) and not isinstance(datum, Number):
        return string_of(datum)
    if isinstance(datum, list):
        _demand_one_dimension(datum)
    return _text(token)


def list_text(token: bytes, field: Field, lost: Counter[str], convert: Convert) -> str:
    """Return a list as JSON, each item as its column would have it: numbers as numbers, all else as text.

    A list of nothing but nulls is refused: Debezium writes an array of two dimensions so.

    :param convert: converts an item.
    """
    if field.encoded.items is None:
        return document(token)
    try:
        items = _items.decode(token)
    except (ValueError, RecursionError):
        raise ConversionError(Reason.TOKEN) from None
    _demand_one_dimension([None if bytes(item) == _NULL else item for item in items])
    return f"[{','.join(_item(bytes(item), *field.encoded.items, lost, convert) for item in items)}]"


def _demand_one_dimension(items: Sequence[object]) -> None:
    if items and all(item is None for item in items):
        raise ConversionError(Reason.DIMENSIONS)


def _item(token: bytes, encoded: Encoded, kind: ColumnType, lost: Counter[str], convert: Convert) -> str:
    if token == _NULL or encoded.encoding in _AS_THEY_ARE:
        return _text(token)
    if encoded.encoding in _TEXTS:
        return _quoted(string_of(datum_of(token)))
    text = convert(token, Field(encoded, kind, pa.string()), lost)
    if not isinstance(text, str):
        raise ConversionError(Reason.TARGET)
    return text if encoded.encoding in _NUMBERS or encoded.encoding is Encoding.LIST else _quoted(text)


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()


def _text(token: bytes) -> str:
    try:
        return token.decode()
    except UnicodeDecodeError:
        raise ConversionError(Reason.TEXT) from None
