# SPDX-License-Identifier: Apache-2.0
"""Types that columns of random histories have, and random values of them."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from tests.histories.kinds import BITS, Kind

DATABASES = ("shop", "my-db")
# two of them share a topic, because characters a topic cannot have become _
TABLES = ("orders", "Order Items", "Order_Items", "t.1", "größe", "it`em")
COLUMNS = ("a", "b", "v", "Order", "select", "x y", 'q"c', "größe", "we`ird", "_cdc_delete", "before", "s.t")
TEXTS = (
    *("", "x", "NULL", "null", "a'b", 'a"b', "back\\slash", "tab\tnl\n", "nul\0in"),
    *("😀🏳️‍🌈", "0", " lead", "trail ", "ÅÄÖ", "日本語", "{}", "%s"),
)
JSONS = ("{}", "null", '{"a": 1.10, "b": "\\u00e9"}', "[1, 2, {}]", '"x"', "1e400")
LABELS = ("p", "q,r", "s't", "ü", "")
KEYS = (
    *(Kind(name) for name in ("int", "int", "bigint", "smallint")),
    Kind("int", unsigned=True),
    Kind("bigint", unsigned=True),
    Kind("varchar", 20),
    Kind("decimal", 10, 2),
    Kind("date"),
    Kind("datetime", 6),
    Kind("varchar", 8),
)
KINDS = (
    *KEYS,
    Kind("tinyint"),
    Kind("tinyint", 1),
    Kind("tinyint", unsigned=True),
    Kind("smallint", unsigned=True),
    Kind("mediumint"),
    Kind("mediumint", unsigned=True),
    Kind("decimal", 38, 10),
    Kind("decimal", 5, 0),
    Kind("varchar", 5000),
    Kind("double"),
    Kind("float"),
    Kind("datetime", 0),
    Kind("datetime", 3),
    Kind("timestamp", 0),
    Kind("timestamp", 6),
    Kind("time", 0),
    Kind("time", 6),
    Kind("enum", labels=LABELS),
    Kind("blob"),
    Kind("bit", 1),
    Kind("bit", 12),
    Kind("bit", 64),
    Kind("json"),
)


@dataclass(frozen=True)
class Palette:
    """List what tables are made of.

    :param keys: types of key columns.
    :param kinds: types of all columns.
    :param extra: name of a further column of most tables, which is in no key and never gets another name.
    :param server: whose conversions of hard texts the source does; empty where no text becomes a number.
    """

    keys: tuple[Kind, ...] = KEYS
    kinds: tuple[Kind, ...] = KINDS
    databases: tuple[str, ...] = DATABASES
    tables: tuple[str, ...] = TABLES
    columns: tuple[str, ...] = COLUMNS
    extra: str = ""
    server: str = ""


def wider(kind: Kind, rnd: random.Random) -> Kind | None:
    """Return a type that holds all values of ``kind`` and more."""
    if kind.name == "tinyint" and kind.length is None:
        return Kind(rnd.choice(("smallint", "int")), unsigned=kind.unsigned)
    if kind.name == "smallint":
        return Kind(rnd.choice(("int", "bigint")), unsigned=kind.unsigned)
    if kind.name == "int":
        return Kind("bigint", unsigned=kind.unsigned)
    if kind.name == "varchar":
        return Kind("varchar", (kind.length or 0) + rnd.choice((1, 10, 1000)))
    if kind.name == "decimal" and (kind.length or 0) < 30:
        more = rnd.randint(0, 4)
        return Kind("decimal", (kind.length or 0) + more + rnd.randint(0 if more else 1, 3), (kind.scale or 0) + more)
    return Kind("double") if kind.name == "float" else None


def other(kind: Kind, rnd: random.Random) -> Kind | None:
    """Return a type that values of ``kind`` are converted to, if they fit."""
    if kind.name in BITS and kind.length is None:
        integers = [Kind(name, unsigned=unsigned) for name in BITS for unsigned in (False, True)]
        return rnd.choice([*integers, Kind("varchar", rnd.choice((3, 20)))])
    if kind.name == "decimal":
        return Kind("varchar", 60)
    if kind.name == "varchar":
        return Kind("varchar", rnd.choice((1, 3, 8)))
    return None


def value_of(kind: Kind, rnd: random.Random, *, few: bool = False) -> Any:
    """Return a value that the type holds; ``few``: out of a handful, so that keys and rows meet again."""
    maker = _VALUES.get(kind.name, _integer)
    value = maker(kind, rnd, few)
    assert kind.fits(value), (kind, value)
    return kind.stored(value)


def _integer(kind: Kind, rnd: random.Random, few: bool) -> int:
    size = kind.length or 1 if kind.name == "bit" else BITS[kind.name]
    low, high = (0, 1 << size) if kind.unsigned or kind.name == "bit" else (-(1 << size - 1), 1 << size - 1)
    if few:
        return rnd.randint(max(low, -2), min(high - 1, 9))
    return rnd.choice((low, high - 1, high >> 1, rnd.randrange(low, high), rnd.randint(0, min(high - 1, 100))))


def _decimal(kind: Kind, rnd: random.Random, few: bool) -> Decimal:
    largest = 10 ** rnd.randint(1, kind.length or 10) - 1
    unscaled = rnd.randint(-3, 9) if few else rnd.randint(-largest, largest)
    return Decimal((int(unscaled < 0), tuple(map(int, str(abs(unscaled)))), -(kind.scale or 0)))


def _text(kind: Kind, rnd: random.Random, few: bool) -> str:
    if few:
        return rnd.choice("abcdef")
    if rnd.random() < 0.1 and (kind.length or 0) > 1000:
        return ("long😀" * 900)[: kind.length]
    return (rnd.choice(TEXTS) + rnd.choice(TEXTS))[: kind.length]


def _float(kind: Kind, rnd: random.Random, few: bool) -> float:
    value = rnd.choice((0.0, 1.5, -2.25, 0.1, 1e10, 123456.789, rnd.random(), -3.0e-7))
    return struct.unpack("f", struct.pack("f", value))[0] if kind.name == "float" else value


def _micros(kind: Kind, rnd: random.Random, few: bool) -> int:
    unit = 10 ** (6 - (kind.length or 0))
    if kind.name == "time":
        return rnd.randint(-838 * 3_600_000_000, 838 * 3_600_000_000) // unit * unit
    if few:
        return 1_600_000_000_000_000 + rnd.randint(0, 5) * unit
    # a DATETIME from the year 1019 to the year 8307
    # a TIMESTAMP from 1992: before that, some zones that tools write in had summer time, whose last hour is ambiguous
    low, high = (7 * 10**14, 2 * 10**15) if kind.name == "timestamp" else (-3 * 10**16, 2 * 10**17)
    return rnd.randint(low + unit, high) // unit * unit


_VALUES: dict[str, Callable[[Kind, random.Random, bool], Any]] = {
    "decimal": _decimal,
    "varchar": _text,
    "double": _float,
    "float": _float,
    "datetime": _micros,
    "timestamp": _micros,
    "time": _micros,
    "date": lambda kind, rnd, few: rnd.randint(18_000, 18_005) if few else rnd.randint(-300_000, 2_000_000),
    "enum": lambda kind, rnd, few: rnd.choice(kind.labels),
    "json": lambda kind, rnd, few: rnd.choice(JSONS),
    "blob": lambda kind, rnd, few: rnd.choice((b"", b"\0\xff", "é".encode(), rnd.randbytes(20))),
}
