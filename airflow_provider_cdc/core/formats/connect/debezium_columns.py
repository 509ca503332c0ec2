# SPDX-License-Identifier: Apache-2.0
"""Find the encodings of Debezium's values: by the embedded schema, or by the connector's handling modes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import ColumnType
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES

# option -> (default of the connector, values); names are those of the connector's own configuration.
# They matter where a message does not show them: without embedded schema.
MODES: dict[str, tuple[str, tuple[str, ...]]] = {
    "time.precision.mode": (
        "adaptive_time_microseconds",
        ("adaptive_time_microseconds", "adaptive", "connect", "isostring", "microseconds", "nanoseconds"),
    ),
    "decimal.handling.mode": ("precise", ("precise", "double", "string")),
    "bigint.unsigned.handling.mode": ("long", ("long", "precise")),
    "binary.handling.mode": ("bytes", ("bytes", "base64", "base64-url-safe", "hex")),
}
OPTIONS: dict[str, str] = {
    name: f"{' | '.join(values)} (default {default})" for name, (default, values) in MODES.items()
}

_LOGICAL: dict[str, Encoding] = {
    "io.debezium.time.Date": Encoding.EPOCH_DAYS,
    "org.apache.kafka.connect.data.Date": Encoding.EPOCH_DAYS,
    "io.debezium.time.Timestamp": Encoding.EPOCH_MILLIS,
    "org.apache.kafka.connect.data.Timestamp": Encoding.EPOCH_MILLIS,
    "io.debezium.time.MicroTimestamp": Encoding.EPOCH_MICROS,
    "io.debezium.time.NanoTimestamp": Encoding.EPOCH_NANOS,
    "io.debezium.time.Time": Encoding.TIME_MILLIS,
    "org.apache.kafka.connect.data.Time": Encoding.TIME_MILLIS,
    "io.debezium.time.MicroTime": Encoding.TIME_MICROS,
    "io.debezium.time.NanoTime": Encoding.TIME_NANOS,
    "io.debezium.time.ZonedTimestamp": Encoding.ZONED_TEXT,
    "io.debezium.time.IsoDate": Encoding.ISO_TEXT,
    "io.debezium.time.IsoTimestamp": Encoding.ISO_TEXT,
    "io.debezium.time.IsoTime": Encoding.ISO_TEXT,
    "io.debezium.time.Year": Encoding.NUMBER,
    "io.debezium.data.Bits": Encoding.BITS_LE,
    "org.apache.kafka.connect.data.Decimal": Encoding.DECIMAL_BASE64,
}
TIMEZONE = "timezone"
TIMEZONE_MEANING = "zone of TIMESTAMPs that a converter of your own writes as text without one: a name or an offset"
_NUMBER_TYPES = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "float", "double", "year"})
_BINARY_MODES = {
    "bytes": Encoding.BASE64,
    "base64": Encoding.BASE64,
    "base64-url-safe": Encoding.BASE64_URL,
    "hex": Encoding.HEX,
}


def option_problems(options: Mapping[str, str]) -> list[str]:
    """Return one sentence for each option whose value the connector does not know."""
    return [
        f"source.options.{name}: {value!r} is not one of {', '.join(MODES[name][1])}"
        for name, value in options.items()
        if name in MODES and value not in MODES[name][1]
    ]


def described_encoding(name: str, column: ColumnType, detail: Mapping[str, Any], modes: Mapping[str, str]) -> Encoded:
    """Return the encoding that an embedded schema states for a column."""
    logical, kind = detail.get("name") or "", detail.get("type")
    if logical in _LOGICAL:
        scale = (
            int((detail.get("parameters") or {}).get("scale", 0))
            if _LOGICAL[logical] is Encoding.DECIMAL_BASE64
            else None
        )
        return Encoded(name, _LOGICAL[logical], scale)
    if logical.startswith("io.debezium.data.geometry."):
        return Encoded(name, Encoding.GEOMETRY)
    if kind == "boolean":
        return Encoded(name, Encoding.BOOLEAN)
    if kind == "bytes":
        return Encoded(name, Encoding.BASE64)
    if kind == "string":
        # without a logical name only the source's type says what a text is
        if column.name in BINARIES:
            return Encoded(name, _stated_binary_text(name, modes))
        if column.name == "timestamp":
            return _instant(name, modes)
        return Encoded(name, Encoding.TEXT)
    if kind == "int64" and column.name == "bigint" and column.unsigned:
        return Encoded(name, Encoding.WRAPPED_UNSIGNED)
    return Encoded(name, Encoding.NUMBER)


def _instant(name: str, modes: Mapping[str, str]) -> Encoded:
    """Return the encoding of a TIMESTAMP's text, which has an offset or is of the stated zone."""
    return Encoded(name, Encoding.ZONED_TEXT, zone=modes.get(TIMEZONE))


def _stated_binary_text(name: str, modes: Mapping[str, str]) -> Encoding:
    """Return the encoding of bytes that the embedded schema says are a text.

    :raises DataError: ``format.option_contradicted``, in the mode that is stated they are none.
    """
    if modes["binary.handling.mode"] == "bytes":
        raise DataError(
            "format.option_contradicted",
            "the record has a binary column as text, which binary.handling.mode bytes never writes",
            where={"column": name},
            hint="state the connector's binary.handling.mode in source.options: base64, base64-url-safe or hex",
        )
    return _binary_text(modes)


def _binary_text(modes: Mapping[str, str]) -> Encoding:
    return _BINARY_MODES[modes["binary.handling.mode"]]


def assumed_decimal(name: str, column: ColumnType, modes: Mapping[str, str]) -> Encoded:
    """Return the encoding of a DECIMAL whose messages carry no schema."""
    mode = modes["decimal.handling.mode"]
    if mode == "precise":
        return Encoded(name, Encoding.DECIMAL_BASE64, column.scale or 0)
    return Encoded(name, Encoding.TEXT if mode == "string" else Encoding.NUMBER)


def assumed_encoding(name: str, column: ColumnType, modes: Mapping[str, str]) -> Encoded:
    """Return the encoding of a column whose messages carry no schema, by the connector's handling modes."""
    kind = column.name
    if kind == "decimal":
        return assumed_decimal(name, column, modes)
    if kind == "bigint" and column.unsigned:
        precise = modes["bigint.unsigned.handling.mode"] == "precise"
        return Encoded(name, Encoding.DECIMAL_BASE64, 0) if precise else Encoded(name, Encoding.WRAPPED_UNSIGNED)
    if kind in _NUMBER_TYPES:
        return Encoded(name, Encoding.NUMBER)
    if kind == "bit":
        return Encoded(name, Encoding.BOOLEAN if column.length == 1 else Encoding.BITS_LE)
    if kind in BINARIES:
        return Encoded(name, _binary_text(modes))
    if kind in GEOMETRIES:
        return Encoded(name, Encoding.GEOMETRY)
    if kind in ("date", "datetime", "time"):
        return Encoded(name, _temporal(column, modes["time.precision.mode"]))
    return _instant(name, modes) if kind == "timestamp" else Encoded(name, Encoding.TEXT)


def _temporal(column: ColumnType, mode: str) -> Encoding:
    """Return the encoding of DATE, DATETIME and TIME under a ``time.precision.mode``."""
    if mode == "isostring":
        return Encoding.ISO_TEXT
    if column.name == "date":
        return Encoding.EPOCH_DAYS
    digits = column.length or 0
    if column.name == "datetime":
        if mode == "connect":
            return Encoding.EPOCH_MILLIS
        if mode == "nanoseconds":
            return Encoding.EPOCH_NANOS
        return Encoding.EPOCH_MICROS if mode == "microseconds" or digits > 3 else Encoding.EPOCH_MILLIS
    if mode == "connect" or (mode == "adaptive" and digits <= 3):
        return Encoding.TIME_MILLIS
    return Encoding.TIME_NANOS if mode == "nanoseconds" else Encoding.TIME_MICROS
