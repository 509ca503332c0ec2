# SPDX-License-Identifier: Apache-2.0
"""Decode JSON tokens to Python values; a number keeps its text."""

from __future__ import annotations

from typing import Any

import msgspec

from airflow_provider_cdc.core.values.fields import ConversionError, Reason
from airflow_provider_cdc.core.values.shared.numbers import INTEGER


class Number(str):
    """Mark a text as that of a JSON number."""

    __slots__ = ()


def datum_of(token: bytes) -> Any:
    """Decode a token; a number becomes a :class:`Number`."""
    first = token[:1]
    if first == b"n":
        return None
    if first in (b"t", b"f"):
        return first == b"t"
    if first == b'"' or first in (b"{", b"["):
        try:
            return msgspec.json.decode(token)
        except (ValueError, RecursionError):
            raise ConversionError(Reason.TEXT) from None
    return Number(token.decode("ascii"))


def string_of(datum: Any) -> str:
    """Return a JSON string's text."""
    if isinstance(datum, str) and not isinstance(datum, Number):
        return datum
    raise ConversionError(Reason.TOKEN)


def numeral_of(datum: Any) -> str:
    """Return the text of a JSON number or of a JSON string."""
    if isinstance(datum, str):
        return datum
    raise ConversionError(Reason.TOKEN)


def integer_of(datum: Any) -> int:
    """Return an integer from a JSON number or a JSON string."""
    text = numeral_of(datum)
    if not INTEGER.fullmatch(text):
        raise ConversionError(Reason.NUMBER)
    try:
        return int(text)
    except ValueError:  # thousands of digits
        raise ConversionError(Reason.NUMBER) from None
