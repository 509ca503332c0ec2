# SPDX-License-Identifier: Apache-2.0
"""List the functions of expressions: what they take, what they return, and the kernel that computes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.expressions import documents, kinds, moments, numbers, texts
from airflow_provider_cdc.core.expressions.rows import Kernel

_MOST_CHARACTERS = 10_000  # of a text that is padded


def _same(kind: pa.DataType, *others: Any) -> pa.DataType:
    return kind


@dataclass(frozen=True, slots=True)
class Parameter:
    """Describe an argument.

    :param what: a noun for messages.
    :param accepts: whether a type may be given.
    :param of_null: type of a NULL without one.
    :param converted: the type that the kernel gets.
    """

    what: str
    accepts: Callable[[pa.DataType], bool]
    of_null: pa.DataType
    converted: Callable[[pa.DataType], pa.DataType] = _same


@dataclass(frozen=True, slots=True)
class Constant:
    """Describe an argument that is written as a literal; the kernel gets its Python value.

    :param what: a noun for messages.
    :param kind: Python's type of the literal.
    :param accepts: whether a value may be given; it may also raise a ValueError that says why not.
    """

    what: str
    kind: type[str] | type[int]
    accepts: Callable[[Any], bool]


@dataclass(frozen=True, slots=True)
class Function:
    """Describe a function.

    :param result: type of the result, or a function of the types that the kernel gets and of the constants.
    :param kernel: None for those that ``binding`` builds like operators.
    :param optional: how many of the last parameters may be left out.
    :param repeated: whether the last parameter may be given any number of times.
    """

    name: str
    parameters: tuple[Parameter | Constant, ...]
    result: pa.DataType | Callable[..., pa.DataType]
    kernel: Kernel | None
    optional: int = 0
    repeated: bool = False


def _computed_in(kind: pa.DataType) -> pa.DataType:
    if kinds.is_whole(kind):
        return pa.int64()
    return pa.float64() if kinds.is_float(kind) else kind


def _is_unit(text: str) -> bool:
    return text.upper() in moments.UNITS


def _is_path(text: str) -> bool:
    return bool(documents.json_path(text)) or True


def _unit_type(unit: str, kind: pa.DataType) -> pa.DataType:
    return kinds.INSTANT if kind == kinds.INSTANT else kinds.TIMESTAMP


ANY = Parameter("a value", lambda kind: True, pa.null())
TEXT = Parameter("a text", kinds.is_text, pa.string())
PRINTED = Parameter("a value that has a text", kinds.is_castable, pa.string(), lambda kind: pa.string())
NUMBER = Parameter("a number", kinds.is_number, pa.int64(), _computed_in)
MOMENT = Parameter("a date or timestamp", kinds.is_moment, kinds.TIMESTAMP)
TIME = Parameter("a timestamp", kinds.is_time, kinds.TIMESTAMP)
POSITION = Constant("a position, which counts from 1, or from the end if it is negative", int, lambda value: value != 0)
LENGTH = Constant("a length of 0 or more", int, lambda value: value >= 0)
PADDED = Constant(f"a length of 0 to {_MOST_CHARACTERS}", int, lambda value: 0 <= value <= _MOST_CHARACTERS)
DIGITS = Constant("digits after the point, 0 or more", int, lambda value: value >= 0)
SEARCHED = Constant("a text that is not empty", str, bool)
REPLACEMENT = Constant("a text", str, lambda value: True)
UNIT = Constant(f"one of {', '.join(moments.UNITS)}", str, _is_unit)
PATH = Constant('a path of $ and then .name, ."name" or [number]', str, _is_path)

_ALL = (
    Function("ABS", (NUMBER,), _same, numbers.absolute),
    Function("CEIL", (NUMBER,), numbers.whole_type, numbers.ceiling),
    Function("COALESCE", (ANY,), _same, None, repeated=True),
    Function("CONCAT", (PRINTED,), pa.string(), texts.concat, repeated=True),
    Function("DATE", (ANY,), pa.date32(), None),
    Function("DATE_TRUNC", (UNIT, MOMENT), _unit_type, moments.truncated),
    Function("DAY", (MOMENT,), pa.int32(), moments.part(pc.day)),
    Function("FLOOR", (NUMBER,), numbers.whole_type, numbers.floor),
    Function("HOUR", (TIME,), pa.int32(), moments.part(pc.hour)),
    Function("JSON_VALUE", (TEXT, PATH), pa.string(), documents.json_value),
    Function("LEFT", (TEXT, LENGTH), pa.string(), texts.left),
    Function("LENGTH", (TEXT,), pa.int32(), pc.utf8_length),
    Function("LOWER", (TEXT,), pa.string(), pc.utf8_lower),
    Function("LPAD", (TEXT, PADDED, SEARCHED), pa.string(), texts.lpad, optional=1),
    Function("MOD", (ANY, ANY), _same, None),
    Function("MONTH", (MOMENT,), pa.int32(), moments.part(pc.month)),
    Function("NULLIF", (ANY, ANY), _same, None),
    Function("REPLACE", (TEXT, SEARCHED, REPLACEMENT), pa.string(), texts.replace),
    Function("RIGHT", (TEXT, LENGTH), pa.string(), texts.right),
    Function("ROUND", (NUMBER, DIGITS), numbers.rounded_type, numbers.rounded, optional=1),
    Function("SUBSTRING", (TEXT, POSITION, LENGTH), pa.string(), texts.substring, optional=1),
    Function("TRIM", (TEXT,), pa.string(), texts.trim),
    Function("UPPER", (TEXT,), pa.string(), pc.utf8_upper),
    Function("YEAR", (MOMENT,), pa.int32(), moments.part(pc.year)),
)
FUNCTIONS = {function.name: function for function in _ALL}
"""Functions by their names, in capitals."""
