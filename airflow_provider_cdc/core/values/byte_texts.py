"""Bytes as tools write them in JSON, one value at a time."""

from __future__ import annotations

from binascii import Error as BadBase64
from binascii import a2b_base64, unhexlify
from typing import Any

import msgspec

from airflow_provider_cdc.core.values.field import Misfit, Reason

_LIST: msgspec.json.Decoder[list[int]] = msgspec.json.Decoder(list[int])


def base64_bytes(text: str) -> bytes:
    """Decode base64 with its padding and nothing else in it."""
    try:
        return a2b_base64(text, strict_mode=True)
    except (BadBase64, ValueError):
        raise Misfit(Reason.BASE64) from None


def base64_url_bytes(text: str) -> bytes:
    """Decode the URL-safe alphabet, with or without padding."""
    if "+" in text or "/" in text:
        raise Misfit(Reason.BASE64)
    if "=" not in text:
        text += "=" * (-len(text) % 4)
    return base64_bytes(text.replace("-", "+").replace("_", "/"))


def hex_bytes(text: str) -> bytes:
    """Decode hexadecimal digits of either case, with or without ``0x`` (docs/wire/tencent-dts.md 8.2)."""
    try:
        return unhexlify(text[2:] if text[:2] in ("0x", "0X") else text)
    except (BadBase64, ValueError):
        raise Misfit(Reason.HEX) from None


def latin1_bytes(text: str) -> bytes:
    """Return one byte for each character (docs/wire/canal.md 4.4)."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise Misfit(Reason.BYTE) from None


def list_bytes(value: Any) -> bytes:
    """Return one byte for each number of a list, or of its text (docs/wire/huawei-drs.md 3.2).

    :param value: whole numbers; Java writes bytes above 127 as negative ones.
    """
    if isinstance(value, str):
        try:
            value = _LIST.decode(value)
        except (ValueError, RecursionError):
            raise Misfit(Reason.BYTE) from None
    try:
        return bytes(value)
    except ValueError:
        pass  # some are negative, or none is a byte
    except TypeError:
        raise Misfit(Reason.BYTE) from None
    if min(value) < -128 or max(value) > 255:
        raise Misfit(Reason.BYTE)
    return bytes([number & 255 for number in value])
