# SPDX-License-Identifier: Apache-2.0
"""Types of columns: which values they have, how Debezium writes these, and what the lake must have of them.

It shares no code with the product. Values of the model are Python's; times are microseconds or days since 1970.
"""

from __future__ import annotations

import base64
import json
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from tests.histories.kinds import WIDE, moment_text, time_text

PLACEHOLDER = "__debezium_unavailable_value"
LONG = 2_100  # characters of a value that the server stores outside of the row
_MICROS = 1_000_000
_DAY = 86_400 * _MICROS


@dataclass(frozen=True, eq=False)
class Kind:
    """One type of column.

    :param name: as ``format_type`` prints it.
    :param make: returns a random value.
    :param schema: Connect's schema, without ``optional``, ``default`` and ``field``.
    :param wire: returns a value as it stands in JSON with schemas.
    :param lake: type of the lake's column.
    :param stored: returns a value as :func:`tests.postgres_histories.comparison.stored_values` has it.
    :param mysql: its type in a stated CREATE TABLE.
    :param filler: what stands for it, as a value, where a NOT NULL column's value is not in the log.
    :param text: returns a value as the server prints it.
    :param bare: returns a value as it stands in JSON without schemas; None where that is ``wire``.
    :param long: returns a value that is stored outside of the row; None where it has none.
    :param unchanged: the placeholder in the shape of the type.
    :param constant: whether the log of DDL has the constant that stored rows got.
    :param typtype: as ``pg_type`` has it.
    """

    name: str
    make: Callable[[random.Random], Any]
    schema: dict[str, Any]
    wire: Callable[[Any], Any]
    lake: pa.DataType
    stored: Callable[[Any], Any]
    mysql: str
    filler: Any
    text: Callable[[Any], str] = str
    bare: Callable[[Any], Any] | None = None
    long: Callable[[random.Random], Any] | None = None
    unchanged: Any = PLACEHOLDER
    constant: bool = True
    typtype: str = "b"
    is_key: bool = field(default=False)

    def __repr__(self) -> str:
        """Return it as the code of a test."""
        return f"KINDS[{self.name!r}]"

    def wired(self, value: Any, *, embedded: bool) -> Any:
        """Return a value as it stands in a record."""
        if value is None:
            return None
        return self.bare(value) if self.bare is not None and not embedded else self.wire(value)

    def is_long(self, value: Any) -> bool:
        """Return whether the server stores a value outside of the row."""
        if self.long is None or value is None:
            return False
        return len(value if isinstance(value, str | bytes) else json.dumps(value)) >= LONG


def _same(value: Any) -> Any:
    return value


def _whole(bits: int) -> Callable[[random.Random], int]:
    top = (1 << (bits - 1)) - 1

    def make(rnd: random.Random) -> int:
        return rnd.choice((0, 1, -1, 7, top, -top - 1, rnd.randint(-top, top), rnd.randint(-99, 99)))

    return make


def _number(digits: int, scale: int) -> Callable[[random.Random], Decimal]:
    def make(rnd: random.Random) -> Decimal:
        most = 10**digits - 1
        unscaled = rnd.choice((0, 1, -1, most, -most, rnd.randint(-most, most), rnd.randint(-999, 999)))
        return Decimal(unscaled).scaleb(-scale, context=WIDE)

    return make


def _unscaled(value: Decimal, scale: int) -> str:
    number = int(value.scaleb(scale, context=WIDE))
    size = (number if number >= 0 else ~number).bit_length() // 8 + 1
    return base64.b64encode(number.to_bytes(size, "big", signed=True)).decode()


def _decimal(digits: int, scale: int) -> Kind:
    parameters = {"scale": str(scale), "connect.decimal.precision": str(digits)}
    logical = {"name": "org.apache.kafka.connect.data.Decimal", "version": 1, "parameters": parameters}
    return Kind(
        f"numeric({digits},{scale})",
        _number(digits, scale),
        {"type": "bytes", **logical},
        lambda value: _unscaled(value, scale),
        pa.decimal128(digits, scale),
        lambda value: str(value if value else abs(value)),
        f"DECIMAL({digits},{scale})",
        Decimal(0).scaleb(-scale),
        text=lambda value: f"{value:f}",
        bare=lambda value: f"{value:f}",
    )


def _any_number(rnd: random.Random) -> Decimal:
    """Return a number whose fraction has no zero at its end, as the connector would cut it."""
    scale = rnd.choice((0, 1, 5))
    number = Decimal(rnd.randint(-(10**12), 10**12) * 10 + rnd.randint(1, 9)).scaleb(-scale)
    return rnd.choice((Decimal(0), Decimal(-1), number))


def _variable(value: Decimal) -> dict[str, Any]:
    scale = max(0, -int(value.as_tuple().exponent))
    return {"scale": scale, "value": _unscaled(value, scale)}


def _float(rnd: random.Random) -> float:
    return rnd.choice((0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, rnd.randint(-9999, 9999) / 64))


def _float_wire(value: float) -> Any:
    return value if math.isfinite(value) else {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]


_WORDS = ("", "a", "x y", "é", "日本", "null", 'q"uote', "back\\slash", "{c}", "a,b", "tab\t", "0", "'s")


def _word(rnd: random.Random) -> str:
    return rnd.choice(_WORDS) if rnd.random() < 0.7 else f"{rnd.getrandbits(48):x}"


def _padded(rnd: random.Random) -> str:
    return _word(rnd)[:5].ljust(5)


def _long_text(rnd: random.Random) -> str:
    return f"{rnd.getrandbits(4 * LONG):0{LONG}x}é"


def _document(rnd: random.Random) -> str:
    return json.dumps(rnd.choice(({}, {"a": rnd.randint(0, 9)}, {"k": _word(rnd), "n": None}, [1, 2], "s", 7)))


def _long_document(rnd: random.Random) -> str:
    return json.dumps({"k": _long_text(rnd)}, ensure_ascii=False)


def _uuid(rnd: random.Random) -> str:
    digits = f"{rnd.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _moment(rnd: random.Random, step: int) -> int:
    base = 1_700_000_000 * _MICROS
    micros = rnd.choice((0, base, -1, base + rnd.randint(0, 10**14), -rnd.randint(0, 10**15)))
    return micros // step * step


def _moment_server(value: int, digits: int) -> str:
    return moment_text(value, digits, " ").rstrip("0").rstrip(".") if digits else moment_text(value, 0, " ")


def _time_server(value: int, digits: int) -> str:
    text = time_text(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _list_text(value: list[Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _temporal(type_: str, name: str) -> dict[str, Any]:
    return {"type": type_, "name": f"io.debezium.time.{name}", "version": 1}


def _data(name: str) -> dict[str, Any]:
    return {"type": "string", "name": f"io.debezium.data.{name}", "version": 1}


def _textual(name: str, make: Callable[[random.Random], str], schema: dict[str, Any], **more: Any) -> Kind:
    settings = {"filler": "", "mysql": "LONGTEXT", **more}
    return Kind(name, make, schema, _same, pa.string(), _same, **settings)


LABELS = ("sad", "it's ok", "très, bien")
_INTERVALS = ("P1Y2M3DT4H5M6S", "P0Y-1M2DT-3H0M0S", "P0Y0M0DT0H0M0S", "P0Y0M1DT0H0M0.5S")
_STRING, _BYTES = {"type": "string"}, {"type": "bytes"}


def _array(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": {**item, "optional": True}}


def _numbers() -> list[Kind]:
    money = {"name": "org.apache.kafka.connect.data.Decimal", "version": 1, "parameters": {"scale": "2"}}
    variable = [
        {"type": "int32", "optional": False, "field": "scale"},
        {"type": "bytes", "optional": False, "field": "value"},
    ]
    struct = {"type": "struct", "fields": variable, "name": "io.debezium.data.VariableScaleDecimal", "version": 1}
    bits = {"name": "io.debezium.data.Bits", "version": 1, "parameters": {"length": "9"}}
    return [
        Kind("smallint", _whole(16), {"type": "int16"}, _same, pa.int16(), _same, "SMALLINT", 0),
        Kind("integer", _whole(32), {"type": "int32"}, _same, pa.int32(), _same, "INT", 0, is_key=True),
        Kind("bigint", _whole(64), {"type": "int64"}, _same, pa.int64(), _same, "BIGINT", 0, is_key=True),
        Kind("real", _float, {"type": "float"}, _float_wire, pa.float32(), lambda v: str(np.float32(v)), "FLOAT", 0.0),
        Kind("double precision", _float, {"type": "double"}, _float_wire, pa.float64(), str, "DOUBLE", 0.0),
        _decimal(9, 2),
        _decimal(12, 4),
        _decimal(30, 0),
        Kind(
            "numeric", _any_number, {**struct, "doc": "Variable scaled decimal"}, _variable, pa.string(),
            lambda value: f"{value:f}", "LONGTEXT", Decimal(0), bare=lambda value: f"{value:f}",
            text=lambda value: f"{value:f}",
        ),
        Kind(
            "money", _number(9, 2), {"type": "bytes", **money}, lambda value: _unscaled(value, 2),
            pa.decimal128(38, 2), lambda value: str(value if value else abs(value)), "DECIMAL(38,2)", Decimal("0.00"),
            bare=lambda value: f"{value:f}", constant=False,
        ),
        Kind(
            "boolean", lambda rnd: rnd.random() < 0.5, {"type": "boolean"}, _same, pa.bool_(), _same, "BIT(1)", False,
            text=lambda value: "t" if value else "f",
        ),
        Kind(
            "bit(9)", lambda rnd: rnd.choice((0, 511, rnd.randrange(512))), {"type": "bytes", **bits},
            lambda value: _base64(value.to_bytes(2, "little")), pa.int64(), _same, "BIT(9)", 0,
            text=lambda value: f"{value:09b}",
        ),
    ]  # fmt: skip


def _texts() -> list[Kind]:
    enum = {**_data("Enum"), "parameters": {"allowed": ",".join(LABELS)}}
    return [
        _textual("text", _word, _STRING, long=_long_text, is_key=True),
        _textual("character varying(20)", _word, _STRING, is_key=True),
        _textual("character varying", _word, _STRING, long=_long_text),
        _textual("character(5)", _padded, _STRING),
        _textual("uuid", _uuid, _data("Uuid"), filler="00000000-0000-0000-0000-000000000000", is_key=True),
        _textual("json", _document, _data("Json"), mysql="JSON", long=_long_document, constant=False, filler="{}"),
        _textual("jsonb", _document, _data("Json"), mysql="JSON", long=_long_document, constant=False, filler="{}"),
        _textual("inet", lambda rnd: f"10.0.{rnd.randrange(256)}.0/24", _STRING, filler="0.0.0.0/0"),
        _textual("app.mood", lambda rnd: rnd.choice(LABELS), enum, typtype="e", filler=LABELS[0]),
        _textual(
            "interval", lambda rnd: rnd.choice(_INTERVALS), _temporal("string", "Interval"), constant=False,
            filler="P0Y0M0DT0H0M0S",
        ),
        Kind(
            "bytea", lambda rnd: rnd.choice((b"", b"\0", b"a\xff", rnd.randbytes(5))), _BYTES, _base64, pa.binary(),
            _same, "LONGBLOB", b"", constant=False, long=lambda rnd: rnd.randbytes(LONG),
            unchanged=_base64(PLACEHOLDER.encode()),
        ),
        Kind(
            "integer[]", lambda rnd: rnd.choice(([], [1, None, 3], [rnd.randint(-9, 9)])), _array({"type": "int32"}),
            _same, pa.string(), _list_text, "JSON", [], constant=False,
            long=lambda rnd: [rnd.randrange(1 << 30) for _ in range(500)], unchanged=list(PLACEHOLDER.encode()),
        ),
        Kind(
            "text[]", lambda rnd: rnd.choice(([], ["a", None], [_word(rnd), _word(rnd)])), _array(_STRING), _same,
            pa.string(), _list_text, "JSON", [], constant=False, long=lambda rnd: [_long_text(rnd), None],
            unchanged=[PLACEHOLDER],
        ),
    ]  # fmt: skip


def _times() -> list[Kind]:
    stamp, zoned = pa.timestamp("us"), "timestamp with time zone"
    return [
        Kind(
            "date", lambda rnd: rnd.choice((0, -1, 20_000, rnd.randint(-100_000, 100_000))), _temporal("int32", "Date"),
            _same, pa.date32(), _same, "DATE", 0, text=lambda value: str(date(1970, 1, 1) + timedelta(days=value)),
        ),
        Kind(
            "timestamp without time zone", lambda rnd: _moment(rnd, 1), _temporal("int64", "MicroTimestamp"), _same,
            stamp, _same, "DATETIME(6)", 0, text=lambda value: _moment_server(value, 6),
        ),
        Kind(
            "timestamp(3) without time zone", lambda rnd: _moment(rnd, 1000), _temporal("int64", "Timestamp"),
            lambda value: value // 1000, stamp, _same, "DATETIME(3)", 0, text=lambda value: _moment_server(value, 3),
        ),
        Kind(
            zoned, lambda rnd: _moment(rnd, 1), _temporal("string", "ZonedTimestamp"),
            lambda value: moment_text(value, 6, "T") + "Z", pa.timestamp("us", "UTC"), _same, "TIMESTAMP(6)", 0,
            text=lambda value: _moment_server(value, 6) + "+00",
        ),
        Kind(
            "time without time zone", lambda rnd: rnd.choice((0, _DAY - 1, rnd.randrange(_DAY))),
            _temporal("int64", "MicroTime"), _same, pa.string(), lambda value: time_text(value, 6), "TIME(6)", 0,
            text=lambda value: _time_server(value, 6),
        ),
        Kind(
            "time(3) without time zone", lambda rnd: rnd.randrange(_DAY) // 1000 * 1000, _temporal("int32", "Time"),
            lambda value: value // 1000, pa.string(), lambda value: time_text(value, 3), "TIME(3)", 0,
            text=lambda value: _time_server(value, 3),
        ),
    ]  # fmt: skip


KINDS = {kind.name: kind for kind in (*_numbers(), *_texts(), *_times())}
KEYS = tuple(kind for kind in KINDS.values() if kind.is_key)
