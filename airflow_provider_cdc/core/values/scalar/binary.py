# SPDX-License-Identifier: Apache-2.0
"""Decode bytes as tools write them in JSON, one value at a time; twin of ``columnar/binary.py``."""

from __future__ import annotations

from binascii import Error as BadBase64
from binascii import a2b_base64, unhexlify
from typing import Any

import msgspec

from airflow_provider_cdc.core.values.fields import ConversionError, Reason

_LIST: msgspec.json.Decoder[list[int]] = msgspec.json.Decoder(list[int])


def base64_bytes(text: str) -> bytes:
    """Decode base64 with its padding and without other characters."""
    try:
        return a2b_base64(text, strict_mode=True)
    except (BadBase64, ValueError):
        raise ConversionError(Reason.BASE64) from None


def base64_url_bytes(text: str) -> bytes:
    """Decode the URL-safe alphabet, with or without padding."""
    if "+" in text or "/" in text:
        raise ConversionError(Reason.BASE64)
    if "=" not in text:
        text += "=" * (-len(text) % 4)
    return base64_bytes(text.replace("-", "+").replace("_", "/"))


def hex_bytes(text: str) -> bytes:
    """Decode hexadecimal digits of either case, with or without ``0x`` (docs/wire/tencent-dts.md 8.2)."""
    try:
        return unhexlify(text[2:] if text[:2] in ("0x", "0X") else text)
    except (BadBase64, ValueError):
        raise ConversionError(Reason.HEX) from None


def latin1_bytes(text: str) -> bytes:
    """Return one byte for each character (docs/wire/canal.md 4.4)."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise ConversionError(Reason.BYTE) from None


def list_bytes(value: Any) -> bytes:
    """Return one byte for each integer of a list, or of a text with a JSON list (docs/wire/huawei-drs.md 3.2).

    :param value: integers; Java writes bytes above 127 as negative ones.
    """
    if isinstance(value, str):
        try:
            value = _LIST.decode(value)
        except (ValueError, RecursionError):
            raise ConversionError(Reason.BYTE) from None
    try:
        return bytes(value)
    except ValueError:
        pass  # some are negative, or out of range
    except TypeError:
        raise ConversionError(Reason.BYTE) from None
    if min(value) < -128 or max(value) > 255:
        raise ConversionError(Reason.BYTE)
    return bytes([item & 255 for item in value])
