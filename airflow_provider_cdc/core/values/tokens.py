"""JSON tokens as Python values: a number keeps its text."""

from __future__ import annotations

from typing import Any

import msgspec

from airflow_provider_cdc.core.values.field import Misfit, Reason
from airflow_provider_cdc.core.values.fit import INTEGER


class Number(str):
    """A JSON number's text."""

    __slots__ = ()


def datum_of(token: bytes) -> Any:
    """Return what a token stands for; a number as :class:`Number`."""
    first = token[:1]
    if first == b"n":
        return None
    if first in (b"t", b"f"):
        return first == b"t"
    if first == b'"' or first in (b"{", b"["):
        try:
            return msgspec.json.decode(token)
        except (ValueError, RecursionError):
            raise Misfit(Reason.TEXT) from None
    return Number(token.decode("ascii"))


def string_of(datum: Any) -> str:
    """Return a JSON string's text."""
    if isinstance(datum, str) and not isinstance(datum, Number):
        return datum
    raise Misfit(Reason.TOKEN)


def numeral_of(datum: Any) -> str:
    """Return a number's text, be it a JSON number or in a JSON string."""
    if isinstance(datum, str):
        return datum
    raise Misfit(Reason.TOKEN)


def integer_of(datum: Any) -> int:
    """Return a whole number, be it a JSON number or in a JSON string."""
    text = numeral_of(datum)
    if not INTEGER.fullmatch(text):
        raise Misfit(Reason.NUMBER)
    try:
        return int(text)
    except ValueError:  # thousands of digits
        raise Misfit(Reason.NUMBER) from None
