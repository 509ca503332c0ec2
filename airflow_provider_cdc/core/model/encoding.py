# SPDX-License-Identifier: Apache-2.0
"""Define how tools write values: the closed set of encodings that formats name and ``core/values`` converts."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from airflow_provider_cdc.core.model.schema import ColumnType


class Encoding(StrEnum):
    """Name how one JSON token of an image encodes a value of the source."""

    TEXT = "text"  # JSON string with the value as the database prints it
    NUMBER = "number"  # JSON number; a string with a number is slower: use TEXT if a tool always writes strings
    BOOLEAN = "boolean"  # JSON true or false
    BASE64 = "base64"
    BASE64_URL = "base64_url"
    HEX = "hex"  # with or without 0x before it
    EPOCH_DAYS = "epoch_days"
    EPOCH_MILLIS = "epoch_millis"  # local time as if UTC
    EPOCH_MICROS = "epoch_micros"
    EPOCH_NANOS = "epoch_nanos"
    TIME_MILLIS = "time_millis"  # signed duration, TIME may be negative or above 24 h
    TIME_MICROS = "time_micros"
    TIME_NANOS = "time_nanos"
    TIME_MICROS_UNSCALED = "time_micros_unscaled"  # the declared fraction digits taken for µs: 1.5 s are 1000005
    ISO_TEXT = "iso_text"  # ISO 8601 date, time or date-time without a zone, or with Z meaning local time
    ZONED_TEXT = "zoned_text"  # ISO 8601 with an offset: an instant; for a TIMESTAMP, Go's zero time is a zero date
    YEAR_SINCE_1900 = "year_since_1900"  # YEAR less 1900; a result below 100 was made a year again as MySQL would
    DECIMAL_BASE64 = "decimal_base64"  # big-endian two's complement; the scale is in ``Encoded``
    BITS_LE = "bits_le"  # base64, little-endian
    WRAPPED_UNSIGNED = "wrapped_unsigned"  # unsigned 64-bit number written as signed
    GEOMETRY = "geometry"  # object with base64 member wkb
    LATIN1_BYTES = "latin1_bytes"  # JSON string, each character one byte (U+0000 to U+00FF)
    BYTE_LIST = "byte_list"  # JSON list of numbers -128 to 255, or a JSON string with such a list in it
    CHARSET_BYTES = "charset_bytes"  # base64 of text in ``Encoded.charset``; the bytes as they are for binary columns
    ENUM_INDEX = "enum_index"  # number of an ENUM's label from 1, as JSON number or string; 0 is the invalid value ''
    SET_BITMASK = "set_bitmask"  # SET as number, lowest bit the first member, of 64 maybe signed; JSON number or string
    BITS_BE = "bits_be"  # base64, big-endian
    EPOCH_SECONDS = "epoch_seconds"  # seconds since the epoch, maybe with a fraction, JSON number or string
    EPOCH_MILLIS_TEXT = "epoch_millis_text"  # milliseconds since the epoch, as for seconds
    # a date-time in one of several forms: JSON string with local time, maybe a zone's name or offset after a blank, or
    # with seconds since the epoch; JSON number of milliseconds since the epoch
    MIXED_DATETIME = "mixed_datetime"
    INSTANT = "instant"  # ISO 8601 with an offset
    FLOAT = "float"  # JSON number, or one of the strings NaN, Infinity and -Infinity
    VARIABLE_DECIMAL = "variable_decimal"  # object with members scale and value, which is as ``decimal_base64``
    DOCUMENT = "document"  # JSON string with a document in it, or the document itself
    LIST = "list"  # JSON list; how its items stand for values is in ``Encoded.items``


@dataclass(frozen=True, slots=True)
class Encoded:
    """Describe one column as a record carries it.

    :param name: member name in the image.
    :param encoding: how its tokens encode values.
    :param scale: fraction digits for ``decimal_base64``.
    :param charset: MySQL's name of the character set for ``charset_bytes``, None is UTF-8.
    :param zone: time zone (IANA name or offset such as ``+08:00``) between local time and instants, None is UTC: of the
        local time texts (``text``, ``iso_text``, ``charset_bytes``) of a TIMESTAMP column, and of the local time that a
        DATETIME or DATE column's epoch numbers were made from. Of a local time that the clocks showed twice the earlier
        instant is taken and counted as ``ambiguous_time``; one that they never showed fails.
    :param labels: members that the integers of ``enum_index`` and ``set_bitmask`` refer to, if the record states them;
        empty means the column's. For a record next to its schema change only they are certain to be right.
    :param items: of ``list`` the encoding and the type of its items.
    """

    name: str
    encoding: Encoding
    scale: int | None = None
    charset: str | None = None
    zone: str | None = None
    labels: tuple[str, ...] = ()
    items: tuple[Encoded, ColumnType] | None = None
