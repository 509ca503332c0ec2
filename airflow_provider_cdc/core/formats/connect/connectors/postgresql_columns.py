# SPDX-License-Identifier: Apache-2.0
"""Find types and encodings of the PostgreSQL connector's values: by the embedded schema, or by its handling modes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from airflow_provider_cdc.core.errors import DataError
from airflow_provider_cdc.core.formats.connect.debezium_columns import MODES, assumed_decimal
from airflow_provider_cdc.core.formats.connect.debezium_columns import OPTIONS as FAMILY_OPTIONS
from airflow_provider_cdc.core.formats.contract import Description
from airflow_provider_cdc.core.model.encoding import Encoded, Encoding
from airflow_provider_cdc.core.model.schema import Column, ColumnType, TableSchema
from airflow_provider_cdc.core.values.types import BINARIES, GEOMETRIES

INTERVAL = "interval.handling.mode"
_INTERVALS = ("string", "numeric")
_MODES = {name: MODES[name] for name in ("time.precision.mode", "decimal.handling.mode", "binary.handling.mode")}
_MODES = {**_MODES, "time.precision.mode": ("adaptive", _MODES["time.precision.mode"][1])}
OPTIONS: dict[str, str] = {
    **{name: FAMILY_OPTIONS[name] for name in _MODES},
    INTERVAL: "string | numeric: take intervals as a number of microseconds, which counts a month as 30.4375 days",
}

_SCALE_WRAP = 2048  # a negative scale is stored in eleven bits
_LONGEST_BITS = 64
_UNBOUNDED = (1 << 31) - 1  # ``length`` of a bit varying without one
_TEXT = ColumnType("longtext")
_DOCUMENT = ColumnType("json")
_PLAIN = {
    "int8": (ColumnType("smallint"), Encoding.NUMBER),
    "int16": (ColumnType("smallint"), Encoding.NUMBER),
    "int32": (ColumnType("int"), Encoding.NUMBER),
    "int64": (ColumnType("bigint"), Encoding.NUMBER),
    "float": (ColumnType("float"), Encoding.FLOAT),
    "float32": (ColumnType("float"), Encoding.FLOAT),
    "double": (ColumnType("double"), Encoding.FLOAT),
    "float64": (ColumnType("double"), Encoding.FLOAT),
    "boolean": (ColumnType("bit", 1), Encoding.BOOLEAN),
    "string": (_TEXT, Encoding.TEXT),
    "bytes": (ColumnType("longblob"), Encoding.BASE64),
    "map": (_DOCUMENT, Encoding.DOCUMENT),
}
_LOGICAL = {
    "io.debezium.time.Date": (ColumnType("date"), Encoding.EPOCH_DAYS),
    "org.apache.kafka.connect.data.Date": (ColumnType("date"), Encoding.EPOCH_DAYS),
    "io.debezium.time.Timestamp": (ColumnType("datetime", 3), Encoding.EPOCH_MILLIS),
    "org.apache.kafka.connect.data.Timestamp": (ColumnType("datetime", 3), Encoding.EPOCH_MILLIS),
    "io.debezium.time.MicroTimestamp": (ColumnType("datetime", 6), Encoding.EPOCH_MICROS),
    "io.debezium.time.NanoTimestamp": (ColumnType("datetime", 6), Encoding.EPOCH_NANOS),
    "io.debezium.time.Time": (ColumnType("time", 3), Encoding.TIME_MILLIS),
    "org.apache.kafka.connect.data.Time": (ColumnType("time", 3), Encoding.TIME_MILLIS),
    "io.debezium.time.MicroTime": (ColumnType("time", 6), Encoding.TIME_MICROS),
    "io.debezium.time.NanoTime": (ColumnType("time", 6), Encoding.TIME_NANOS),
    "io.debezium.time.ZonedTimestamp": (ColumnType("timestamp", 6), Encoding.INSTANT),
    "io.debezium.time.IsoDate": (ColumnType("date"), Encoding.ISO_TEXT),
    "io.debezium.time.IsoTimestamp": (ColumnType("datetime", 6), Encoding.ISO_TEXT),
    "io.debezium.time.IsoTime": (_TEXT, Encoding.TEXT),
    "io.debezium.data.Json": (_DOCUMENT, Encoding.TEXT),
    "io.debezium.data.VariableScaleDecimal": (_TEXT, Encoding.VARIABLE_DECIMAL),
    "io.debezium.time.MicroDuration": (ColumnType("bigint"), Encoding.NUMBER),
    "io.debezium.time.NanoDuration": (ColumnType("bigint"), Encoding.NUMBER),
}
_DECIMAL = "org.apache.kafka.connect.data.Decimal"
_BITS = "io.debezium.data.Bits"
_ENUM = "io.debezium.data.Enum"
_GEOMETRY = "io.debezium.data.geometry."
_DURATIONS = ("io.debezium.time.MicroDuration", "io.debezium.time.NanoDuration")


def option_problems(options: Mapping[str, str]) -> list[str]:
    """Return one sentence for each option whose value the connector does not know."""
    known = {**{name: values for name, (_, values) in _MODES.items()}, INTERVAL: _INTERVALS}
    return [
        f"source.options.{name}: {value!r} is not one of {', '.join(known[name])}"
        for name, value in options.items()
        if name in known and value not in known[name]
    ]


def modes_of(options: Mapping[str, str]) -> dict[str, str]:
    """Return the connector's handling modes; an interval as a number is only taken where that is stated."""
    defaults = {name: default for name, (default, _) in _MODES.items()}
    return {**defaults, INTERVAL: "string", **options}


def inferred_schema(description: Description) -> TableSchema | None:
    """Return a schema made from the Connect types of a record, None without types; without a key it has none.

    Whether a column may be NULL is looked up by the connector when it reads the log, and may be of another time.
    """
    if description.details is None:
        return None
    columns = [
        Column(number, name, _described(description.details[name])[0])
        for number, name in enumerate(description.names, 1)
    ]
    by_name = {column.name: column.id for column in columns}
    return TableSchema(tuple(columns), tuple(by_name[name] for name in description.key or () if name in by_name))


def described_encoding(name: str, column: ColumnType, detail: Mapping[str, Any], modes: Mapping[str, str]) -> Encoded:
    """Return the encoding that an embedded schema states for a column.

    :raises DataError: ``format.interval_inexact``.
    """
    if detail.get("name") in _DURATIONS and modes[INTERVAL] != "numeric":
        raise DataError(
            "format.interval_inexact",
            "an interval comes as a number of microseconds, which counts a month as 30.4375 days: it is another "
            "interval than the one at the source",
            where={"column": name},
            hint="set interval.handling.mode=string at the connector, or leave the column out "
            f"(tables.<name>.exclude_columns); source.options.{INTERVAL}: numeric takes the numbers",
        )
    encoded = replace(_described(detail)[1], name=name)
    kind = detail.get("type")
    if kind == "string" and not detail.get("name") and column.name in BINARIES:
        return Encoded(name, _binary(modes))
    return encoded


def _described(detail: Mapping[str, Any]) -> tuple[ColumnType, Encoded]:
    """Return type and encoding of a column, or of the items of an array."""
    logical, kind = detail.get("name") or "", str(detail.get("type", ""))
    parameters = detail.get("parameters") or {}
    if logical == _DECIMAL:
        return _decimal(parameters)
    if logical == _BITS:
        return _bits(int(parameters.get("length", _UNBOUNDED)))
    if logical.startswith(_GEOMETRY):
        return ColumnType("geometry"), Encoded("", Encoding.GEOMETRY)
    if logical in _LOGICAL:
        column, encoding = _LOGICAL[logical]
        return column, Encoded("", encoding)
    if logical == _ENUM:  # a label may have a comma in it: they are only compared with those of other rows
        return replace(_TEXT, labels=tuple(parameters.get("allowed", "").split(","))), Encoded("", Encoding.TEXT)
    if kind == "array":
        items_type, items = _described(detail.get("items") or {})
        return replace(_DOCUMENT, labels=items_type.labels), Encoded("", Encoding.LIST, items=(items, items_type))
    column, encoding = _PLAIN.get(kind, (_DOCUMENT, Encoding.DOCUMENT))
    return column, Encoded("", encoding)


def _decimal(parameters: Mapping[str, str]) -> tuple[ColumnType, Encoded]:
    """Return type and encoding of a numeric; one of a negative scale is an integer with more digits."""
    digits, scale = int(parameters.get("connect.decimal.precision", 38)), int(parameters.get("scale", 0))
    encoded = Encoded("", Encoding.DECIMAL_BASE64, scale)
    if scale > digits and scale > _SCALE_WRAP // 2:
        return ColumnType("decimal", digits + _SCALE_WRAP - scale, 0), encoded
    # a numeric may have more fraction digits than digits (PostgreSQL 15 and later)
    return ColumnType("decimal", max(digits, scale), max(scale, 0)), encoded


def _bits(length: int) -> tuple[ColumnType, Encoded]:
    """Return type and encoding of a bit string: a number, or the connector's bytes where that is too long for one."""
    if length <= _LONGEST_BITS:
        return ColumnType("bit", length), Encoded("", Encoding.BITS_LE)
    return ColumnType("longblob"), Encoded("", Encoding.BASE64)


def assumed_encoding(name: str, column: ColumnType, modes: Mapping[str, str]) -> Encoded:
    """Return the encoding of a column whose messages carry no schema, by the connector's handling modes."""
    kind = column.name
    if kind == "decimal":
        return assumed_decimal(name, column, modes)
    if kind in ("tinyint", "bit") and column.length in (1, None):
        return Encoded(name, Encoding.BOOLEAN)
    if kind in ("float", "double"):
        return Encoded(name, Encoding.FLOAT)
    if kind in ("tinyint", "smallint", "mediumint", "int", "bigint", "year"):
        return Encoded(name, Encoding.NUMBER)
    if kind == "bit":
        return Encoded(name, Encoding.BITS_LE)
    if kind in BINARIES:
        return Encoded(name, _binary(modes))
    if kind in GEOMETRIES:
        return Encoded(name, Encoding.GEOMETRY)
    if kind in ("date", "datetime", "time"):
        return Encoded(name, _temporal(column, modes["time.precision.mode"]))
    if kind == "json":
        return Encoded(name, Encoding.DOCUMENT)
    return Encoded(name, Encoding.INSTANT if kind == "timestamp" else Encoding.TEXT)


def _binary(modes: Mapping[str, str]) -> Encoding:
    kinds = {"base64": Encoding.BASE64, "base64-url-safe": Encoding.BASE64_URL, "hex": Encoding.HEX}
    return kinds.get(modes["binary.handling.mode"], Encoding.BASE64)


def _temporal(column: ColumnType, mode: str) -> Encoding:
    """Return the encoding of date, timestamp and time under a ``time.precision.mode``."""
    if mode == "isostring":
        return Encoding.ISO_TEXT
    if column.name == "date":
        return Encoding.EPOCH_DAYS
    in_millis = mode == "connect" or (mode.startswith("adaptive") and (column.length or 0) <= 3)
    if column.name == "datetime":
        if mode == "nanoseconds":
            return Encoding.EPOCH_NANOS
        return Encoding.EPOCH_MILLIS if in_millis else Encoding.EPOCH_MICROS
    if mode == "nanoseconds":
        return Encoding.TIME_NANOS
    in_millis &= mode != "adaptive_time_microseconds"
    return Encoding.TIME_MILLIS if in_millis else Encoding.TIME_MICROS
