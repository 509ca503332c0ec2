# SPDX-License-Identifier: Apache-2.0
"""Write values as Canal does, and choose the partition that it sends a row to (docs/wire/canal.md 4.4, 5.3, 10.4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from zoneinfo import ZoneInfo

from airflow_provider_cdc.core.model.schema import ColumnType, TableSchema
from tests.cross_format.events import Image, Row, Value

ZONE = "Asia/Shanghai"  # of Canal's JVM
DECIMAL_GROUP = 9  # digits that MySQL stores together
SQL_TYPES = {
    **{"tinyint": -6, "smallint": 5, "mediumint": 4, "int": 4, "bigint": -5, "float": 7, "double": 8, "decimal": 3},
    **{"bit": -7, "year": 12, "date": 91, "datetime": 93, "timestamp": 93, "time": 92, "enum": 4, "set": -7},
    **{"char": 1, "varchar": 12, "text": 2005, "binary": 2004, "varbinary": 2004, "blob": 2004, "json": 12},
}


def sql_type(kind: ColumnType, text: str | None) -> int:
    """Return the java.sql.Types number of a value (docs/wire/canal.md 4.4)."""
    if kind.name == "json" and text is None:
        return 1111
    wider = {"tinyint": (127, 5), "smallint": (32767, 4), "int": (2**31 - 1, -5), "bigint": (2**63 - 1, 3)}
    if kind.unsigned and text is not None and kind.name in wider and int(text) > wider[kind.name][0]:
        return wider[kind.name][1]
    return SQL_TYPES[kind.name]


def partition_of(what: Row, data: Mapping[str, str | None], partitions: int) -> int:
    """Return where partitionHash by key puts a row (docs/wire/canal.md 5.3)."""
    keys = [data.get(column.name) or "" for column in what.schema.key_columns]
    mixed = reduce(lambda x, key: x ^ java_hash(key), keys, java_hash(what.database))
    return abs(mixed) % partitions


def java_hash(text: str) -> int:
    """Return what Java's String.hashCode does."""
    units = text.encode("utf-16-be")
    number = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        number = (31 * number + (high << 8 | low)) & 0xFFFFFFFF
    return number - (1 << 32) if number >> 31 else number


def image_of(row: Image | None, schema: TableSchema) -> dict[str, str | None]:
    """Return the texts of the values that a row has."""
    assert row is not None
    return {column.name: _text(row[column.name], column.type) for column in schema.columns if column.name in row}


def _text(value: Value, kind: ColumnType) -> str | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        return (value.rstrip(b"\0") if kind.name == "binary" else value).decode("latin-1")
    if isinstance(value, Decimal):
        return _decimal(value, kind.scale or 0)
    if isinstance(value, float):
        return _java_number(value)
    if kind.name == "enum":
        return str(kind.labels.index(str(value)) + 1 if value else 0)
    if kind.name == "set":
        return str(sum(1 << kind.labels.index(label) for label in str(value).split(",") if label))
    if kind.name == "timestamp":
        return _in_zone(str(value))
    return str(value)


def _decimal(value: Decimal, scale: int) -> str:
    """Return plain digits without the last group of fraction digits if that is zero."""
    text = f"{value:.{scale}f}"
    last = scale % DECIMAL_GROUP
    if not last or text[-last:].strip("0"):
        return text
    return text[:-last] + ("0" if last == scale else "")


def _java_number(value: float) -> str:
    """Return what Java's toString of a number does."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    mantissa = "".join(map(str, digits[1:])) or "0"
    return f"{'-' if sign else ''}{digits[0]}.{mantissa}E{len(digits) - 1 + int(exponent)}"


def _in_zone(text: str) -> str:
    seconds, dot, fraction = text.partition(".")
    moment = datetime.fromisoformat(seconds).replace(tzinfo=UTC).astimezone(ZoneInfo(ZONE))
    return moment.strftime("%Y-%m-%d %H:%M:%S") + dot + fraction
