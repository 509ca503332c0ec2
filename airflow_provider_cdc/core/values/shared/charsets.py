# SPDX-License-Identifier: Apache-2.0
"""Decode text in MySQL's character sets: every character as the server converts it, or raise.

``test_charsets.py`` compares the result with the tables of a server for every sequence of up to three bytes.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import lru_cache

from airflow_provider_cdc.core.values.fields import ConversionError, Reason

_Decode = Callable[[bytes], str]

# MySQL's name -> Python's; MySQL's utf16, utf32 and ucs2 are big-endian
_UNICODE = {
    "": "utf-8",
    "binary": "utf-8",
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
_SINGLE_BYTE = {
    "ascii": "ascii",
    "latin1": "cp1252",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "hp8": "hp-roman8",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "macce": "mac-latin2",
    "macroman": "mac-roman",
    "tis620": "tis-620",
}
_MULTI_BYTE = {
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "big5": "big5",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
}
_NOTHING = "\ufffe"  # for charmap_decode a byte without a meaning
_NEC_ROW = {bytes([0xAD, 0xA1 + i]): bytes([0x87, 0x40 + i + (i > 62)]) for i in range(94)}

# differences of MySQL from Python: other characters for the same bytes, ...
_DIFFERENT: dict[str, dict[bytes, str]] = {
    # in MySQL's latin1 the five bytes that cp1252 leaves out are control characters
    "latin1": {bytes([byte]): chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},
    "greek": {b"\xa1": "\u02bd", b"\xa2": "\u02bc", b"\xa4": _NOTHING, b"\xa5": _NOTHING, b"\xaa": _NOTHING},
    "hebrew": {b"\xaf": "\u203e"},
    "cp866": {b"\xfc": "\u207f", b"\xfd": "\u00b2"},
    "cp1256": {bytes([byte]): _NOTHING for byte in (0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF)},
    "koi8u": {b"\x95": "\u2022"},
    "gb18030": {b"\xa8\xbc": "\u1e3f", b"\x81\x35\xf4\x37": "\ue7c7"},  # the standard of 2005
    "sjis": {b"\x81\x5f": "\\"},
    "cp932": {bytes([byte]): _NOTHING for byte in (0x80, 0xA0, 0xFD, 0xFE, 0xFF)},
    "ujis": {b"\xa1\xc0": "\\"},
    "eucjpms": {
        b"\xa1\xc1": "\uff5e",
        b"\xa1\xc2": "\u2225",
        b"\xa1\xdd": "\uff0d",
        b"\xa1\xf1": "\uffe0",
        b"\xa1\xf2": "\uffe1",
        b"\xa2\xcc": "\uffe2",
        b"\x8f\xa2\xc3": "\uffe4",
    },
}
# ... and characters for bytes that Python does not know
_ADDITIONAL: dict[str, dict[bytes, str]] = {
    "big5": {bytes([0xF9, 0xD6 + i]): char for i, char in enumerate("碁銹裏墻恒粧嫺")},
    "eucjpms": {euc: char for euc, sjis in _NEC_ROW.items() if (char := sjis.decode("cp932", "ignore")) > "\x7f"},
}


def is_utf8(charset: str | None) -> bool:
    """Return whether text in a character set is UTF-8."""
    return _UNICODE.get(_name(charset)) == "utf-8"


def is_ascii_based(charset: str | None) -> bool:
    """Return whether bytes are ASCII if all of them are below 128."""
    return _name(charset) in _SINGLE_BYTE or _name(charset) in _MULTI_BYTE


@lru_cache(maxsize=256)
def decoder(charset: str | None) -> _Decode:
    """Return a function that decodes bytes, and raises :class:`ConversionError` for invalid ones; None is UTF-8."""
    name = _name(charset)
    if name in _SINGLE_BYTE:
        return _strict(_by_table(_table(name)))
    if name in _MULTI_BYTE:
        return _strict(_multi_byte(name))
    if name in _UNICODE:
        return _strict(_two_bytes_each if name == "ucs2" else _by_codec(_UNICODE[name]))
    raise ConversionError(Reason.CHARSET)


def _name(charset: str | None) -> str:
    return (charset or "").lower()


def _strict(decode: _Decode) -> _Decode:
    def text(raw: bytes) -> str:
        try:
            return decode(raw)
        except UnicodeDecodeError:
            raise ConversionError(Reason.TEXT) from None

    return text


def _by_codec(codec: str, errors: str = "strict") -> _Decode:
    decode = codecs.getdecoder(codec)
    return lambda raw: decode(raw, errors)[0]


def _by_table(table: str) -> _Decode:
    return lambda raw: codecs.charmap_decode(raw, "strict", table)[0]


def _two_bytes_each(raw: bytes) -> str:
    text = raw.decode("utf-16-be")
    if 2 * len(text) != len(raw):
        raise ConversionError(Reason.TEXT)  # UCS-2 has no characters of four bytes
    return text


def _table(name: str) -> str:
    known = [bytes([byte]).decode(_SINGLE_BYTE[name], "replace").replace("\ufffd", _NOTHING) for byte in range(256)]
    for raw, char in _DIFFERENT.get(name, {}).items():
        known[raw[0]] = char
    return "".join(known)


def _multi_byte(name: str) -> _Decode:
    decode = _by_codec(_MULTI_BYTE[name], _added(name) if name in _ADDITIONAL else "strict")
    other = {raw.decode(_MULTI_BYTE[name]): char for raw, char in _DIFFERENT.get(name, {}).items()}
    if not other:
        return decode
    translation = str.maketrans(other)

    def text(raw: bytes) -> str:
        if name == "eucjpms":
            raw = raw.replace(b"\x8f\xa2\xb7", b"\xa1\xc1")  # both are U+FF5E, Python takes the former for ASCII
        decoded = decode(raw)
        if any(char in decoded for char in other):
            decoded = decoded.translate(translation)
            if _NOTHING in decoded:
                raise ConversionError(Reason.TEXT)
        return decoded

    return text


def _added(name: str) -> str:
    """Register an error handler that knows a character set's additional characters; return its name."""
    additional = _ADDITIONAL[name]

    def known(error: UnicodeError) -> tuple[str, int]:
        if isinstance(error, UnicodeDecodeError):
            char = additional.get(bytes(error.object[error.start : error.start + 2]))
            if char is not None:
                return char, error.start + 2
        raise error

    handler = f"mysql_{name}"
    codecs.register_error(handler, known)
    return handler
