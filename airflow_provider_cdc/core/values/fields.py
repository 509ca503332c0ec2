# SPDX-License-Identifier: Apache-2.0
"""Describe a column to convert, the reasons why a value fails, and the kinds of loss that are counted."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import pyarrow as pa

from airflow_provider_cdc.core.model.encoding import Encoded
from airflow_provider_cdc.core.model.schema import ColumnType


@dataclass(frozen=True)
class Field:
    """Describe a column to read from row images.

    :param encoded: its member name and how the tool writes it.
    :param type: its type in the source.
    :param target: the Arrow type of the result.
    """

    encoded: Encoded
    type: ColumnType
    target: pa.DataType


class Reason(StrEnum):
    """Name why a value failed; the codes are stable, they appear in quarantine."""

    IMAGE = "image_invalid"  # the image is not a JSON object
    TOKEN = "token_unexpected"  # a JSON token of another type than the encoding has
    TEXT = "text_invalid"  # not UTF-8, or half a surrogate pair
    NUMBER = "number_invalid"
    RANGE = "out_of_range"
    FRACTION = "fraction_lost"  # digits that are not zero beyond the scale or the precision
    BASE64 = "base64_invalid"
    HEX = "hex_invalid"
    BYTE = "byte_invalid"  # a character above U+00FF, or a number below -128 or above 255
    GEOMETRY = "geometry_invalid"  # neither WKB nor MySQL's own form of it
    CHARSET = "charset_unknown"
    ZONE = "zone_invalid"  # not a time zone, or a local time that its clocks never show
    ZONE_UNKNOWN = "zone_unknown"  # a text of a TIMESTAMP without an offset, and no zone is stated
    LABELS = "labels_unknown"  # a number for an ENUM or SET whose labels are unknown
    DATE = "date_invalid"
    TIME = "time_invalid"
    LENGTH = "too_long"
    DIMENSIONS = "dimensions_lost"  # a list of nulls, as Debezium writes an array of two dimensions
    TARGET = "target_unsupported"  # this encoding has no meaning for the column's Arrow type


REMEDY = "correct the column's type or raise the limit"
"""What frees a table whose rows do not fit, for most reasons."""
REMEDIES: dict[str, str] = {
    Reason.ZONE_UNKNOWN: "state source.options.timezone, the zone in which the tool, or a converter in it, writes "
    "TIMESTAMP as text without an offset",
    Reason.DIMENSIONS: "Debezium writes an array of two dimensions as nulls: leave the column out "
    "(tables.<name>.exclude_columns), or let the table have arrays of one dimension only",
    "image_missing": "a table without key needs each row as it was before a change. Flattened rows "
    "(ExtractNewRecordState) never have it: give the table a primary key at the source and then take a new full "
    "snapshot, or take the transform away and read the new topics with another pipeline, or leave the table out "
    "(tables.exclude). Else let the source log whole rows (binlog_row_image=FULL, REPLICA IDENTITY FULL)",
    "column_absent": "if the tool leaves the column out (column.exclude.list, canal.instance.filter.field, "
    "column-selectors, the columns of a task), state tables.<name>.exclude_columns; else set binlog_row_image=FULL, "
    "which rules with columns.add or filter need",
}
"""What frees it for others."""


class ConversionError(Exception):
    """Signal that a value cannot be converted exactly."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.value)
        self.reason = reason


ZERO_DATE = "zero_date"  # lossy: 0000-00-00 became NULL
INVALID_DATE = "invalid_date"  # lossy: 2023-02-31 or 2023-05-00, which MySQL can store, became NULL
AMBIGUOUS_TIME = "ambiguous_time"  # a local time that a clock showed twice was taken as the earlier instant
FRACTION_CUT = "fraction_cut"  # lossy: digits of a second beyond microseconds, which were not zero, were cut
NOT_BOOLEAN = "tinyint_as_boolean"  # lossy: a TINYINT(1) beyond 0 and 1 became true
# lossy: conversions by a server without strict mode of stored values that did not fit the new type of their column
TEXT_CUT = "text_cut"  # a text or bytes were cut to the new length
NUMBER_CLAMPED = "number_clamped"  # a number became the nearest one of the new range, an invalid year became 0
NUMBER_PREFIX = "number_prefix"  # a text became the number that it begins with, or 0
CHARACTER_REPLACED = "character_replaced"  # a character that the new character set lacks became a question mark
LABEL_LOST = "label_lost"  # an ENUM became the empty text, or a SET lost members, that the new type lacks
NULL_REPLACED = "null_replaced"  # NULL became the implicit default of a column that is NOT NULL now
KEYLESS_SNAPSHOT_ROW = "keyless_snapshot_row"  # lossy: a table without key took no row of an ad hoc snapshot
UNREADABLE = "replacement_character"  # lossy: a text holds U+FFFD, which tools put where they could not read characters
