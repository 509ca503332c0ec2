"""Text in MySQL's character sets: every character, or none at all."""

from __future__ import annotations

import codecs
from collections.abc import Callable
from functools import lru_cache

from airflow_provider_cdc.core.values.field import Misfit, Reason

# MySQL's name -> Python's codec; MySQL's utf16, utf32 and ucs2 are big-endian
_CODECS = {
    "": "utf-8",
    "binary": "utf-8",
    "utf8": "utf-8",
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "ascii": "ascii",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "latin7": "iso8859-13",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "koi8r": "koi8-r",
    "koi8u": "koi8-u",
    "macroman": "mac-roman",
    "tis620": "tis-620",
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
_WIDE = frozenset({"ucs2", "utf16", "utf16le", "utf32"})


def is_utf8(charset: str | None) -> bool:
    """Say whether text in a character set is UTF-8."""
    return _CODECS.get(_name(charset)) == "utf-8"


def is_ascii_based(charset: str | None) -> bool:
    """Say whether bytes below 128 are ASCII, whatever stands around them."""
    return _name(charset) not in _WIDE


@lru_cache(maxsize=256)
def decoder(charset: str | None) -> Callable[[bytes], str]:
    """Return what turns bytes into text and raises :class:`Misfit` for any other; None is UTF-8."""
    name = _name(charset)
    if name == "latin1":
        return _latin1
    if name not in _CODECS:
        raise Misfit(Reason.CHARSET)
    decode = codecs.getdecoder(_CODECS[name])

    def text(raw: bytes) -> str:
        try:
            return decode(raw, "strict")[0]
        except UnicodeDecodeError:
            raise Misfit(Reason.TEXT) from None

    return text


def _name(charset: str | None) -> str:
    return (charset or "").lower()


# in MySQL's latin1 the bytes 80-9F are those of cp1252; only the five without a meaning there are control characters
_LATIN1 = "".join(bytes([byte]).decode("cp1252", "replace").replace("\ufffd", chr(byte)) for byte in range(256))


def _latin1(raw: bytes) -> str:
    return codecs.charmap_decode(raw, "strict", _LATIN1)[0]
