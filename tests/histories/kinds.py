# SPDX-License-Identifier: Apache-2.0
"""Column types of the model and their values.

Values are plain: whole numbers, ``Decimal``, ``str``, ``bytes``, ``float``; date-times and times are microseconds
(local time of a DATETIME, UTC of a TIMESTAMP), dates are days since 1970.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any

BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
TEXTS = ("varchar", "enum", "json")
DATED = ("date", "datetime", "timestamp")
FRACTIONAL = ("datetime", "timestamp", "time")
EPOCH = datetime(1970, 1, 1)
_SECOND = 1_000_000
RANGES = {  # of MySQL: 1000-01-01 to 9999-12-31, 1970 to 2038-01-19 03:14:07, 838:59:59
    "date": (-354_285, 2_932_896),
    "datetime": (-354_285 * 86_400 * _SECOND, 2_932_897 * 86_400 * _SECOND - 1),
    "timestamp": (0, (1 << 31) * _SECOND - 1),
    "time": (-3_020_399 * _SECOND, 3_020_399 * _SECOND),
}
WIDE = Context(prec=80)  # Python's own would round


@dataclass(frozen=True)
class Kind:
    """A column's type.

    :param length: characters, digits, bits, or fraction digits of a temporal type.
    """

    name: str
    length: int | None = None
    scale: int | None = None
    unsigned: bool = False
    labels: tuple[str, ...] = ()

    def sql(self) -> str:
        """Return the type as SQL writes it."""
        if self.labels:
            return f"ENUM({','.join(text_literal(label) for label in self.labels)})"
        text = self.name.upper()
        if self.length is not None and not (self.name in FRACTIONAL and self.length == 0):
            text += f"({self.length}" + (f",{self.scale}" if self.scale is not None else "") + ")"
        return text + (" UNSIGNED" if self.unsigned else "")

    def implicit(self) -> Any:
        """Return what rows get in an added NOT NULL column without default."""
        if self.name == "varchar":
            return ""
        if self.name == "blob":
            return b""
        if self.name == "enum":
            return self.labels[0]
        if self.name == "decimal":
            return self.stored(Decimal(0))
        return 0.0 if self.name in ("float", "double") else 0

    def stored(self, value: Any) -> Any:
        """Return a value as the type keeps it: only a DECIMAL's scale is not in the value itself."""
        if self.name != "decimal" or type(value) is not Decimal:
            return value
        return value.quantize(Decimal(1).scaleb(-(self.scale or 0)), context=WIDE)

    def fits(self, value: Any) -> bool:
        """Return whether the source would store the value as it is."""
        if value is None:
            return True
        if self.name in BITS:
            low = 0 if self.unsigned else -(1 << BITS[self.name] - 1)
            return type(value) is int and low <= value < low + (1 << BITS[self.name])
        if self.name == "bit":
            return type(value) is int and 0 <= value < 1 << (self.length or 1)
        if self.name == "decimal":
            digits = 10 ** ((self.length or 10) - (self.scale or 0))
            return type(value) is Decimal and value.copy_abs() < digits and value == self.stored(value)
        if self.name == "float":
            return type(value) is float and struct.unpack("f", struct.pack("f", value))[0] == value
        if self.name == "varchar":
            return type(value) is str and len(value) <= (self.length or 0)
        if self.name == "enum":
            return value in self.labels
        if self.name in RANGES:
            low, high = RANGES[self.name]
            unit = 10 ** (6 - (self.length or 0)) if self.name in FRACTIONAL else 1
            return type(value) is int and low <= value <= high and value % unit == 0
        return type(value) is {"double": float, "json": str, "blob": bytes}[self.name]

    def literal(self, value: Any) -> str:
        """Return a value as SQL writes it."""
        if value is None:
            return "NULL"
        if self.name in TEXTS:
            return text_literal(value)
        if self.name == "blob":
            return f"x'{value.hex()}'"
        if self.name == "bit":
            return f"b'{value:b}'"
        if self.name == "date":
            return f"'{date(1970, 1, 1) + timedelta(days=value)}'"
        if self.name in ("datetime", "timestamp"):
            return f"'{moment_text(value, self.length or 0, ' ')}'"
        if self.name == "time":
            return f"'{time_text(value, self.length or 0)}'"
        return format(value, "f") if self.name == "decimal" else str(value)


def text_literal(text: str) -> str:
    """Return a string as SQL writes it."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''").replace("\0", "\\0").replace("\n", "\\n") + "'"


def moment_text(micros: int, digits: int, between: str) -> str:
    """Return a moment with a stated number of fraction digits."""
    moment = EPOCH + timedelta(microseconds=micros)
    text = moment.strftime(f"%Y-%m-%d{between}%H:%M:%S").rjust(19, "0")
    return text + (f".{moment.microsecond:06d}"[: digits + 1] if digits else "")


def time_text(micros: int, digits: int) -> str:
    """Return a duration as MySQL shows a TIME."""
    seconds, rest = divmod(abs(micros), 1_000_000)
    text = f"{'-' if micros < 0 else ''}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return text + (f".{rest:06d}"[: digits + 1] if digits else "")


def utc(micros: int) -> datetime:
    """Return a moment as Python knows it."""
    return EPOCH.replace(tzinfo=UTC) + timedelta(microseconds=micros)
