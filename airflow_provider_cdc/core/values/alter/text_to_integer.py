# SPDX-License-Identifier: Apache-2.0
"""Read the integer that a server stores when ALTER TABLE makes an integer column of a text column.

MySQL rounds the number that a text begins with, fraction and exponent included. MariaDB reads digits and stops at
anything else. Both were measured (``tests/unit/core/values/data``): MySQL 5.7.22 and 8.0.15, MariaDB 10.11.19 and
11.4.5.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_cdc.core.values.alter import from_numbers
from airflow_provider_cdc.core.values.alter.type_families import Step, UncertainConversion, bounds, convert_distinct
from airflow_provider_cdc.core.values.columnar.checked_casts import from_texts
from airflow_provider_cdc.core.values.fields import NUMBER_CLAMPED, NUMBER_PREFIX
from airflow_provider_cdc.core.values.types import MAX_DIGITS

_SURE_DIGITS = 18
"""Digits of a number with a fraction or an exponent: MySQL loses digits of longer ones."""
_PLAIN = rf"\A-?[0-9]{{1,{_SURE_DIGITS}}}\z"  # every server reads these alike
_MYSQL = re.compile(r"[ \t]*([+-]?)([0-9]*)(?:\.([0-9]*))?(?:[eE]([+-]?[0-9]+))?")
_MYSQL_MISREADS = re.compile(r"\.|[eE][+-]")  # behind a fraction, whose point it then overlooks: 1.2.3 is 12
_MARIADB = re.compile(r"[ \t\n\v\f\r]*([+-]?[0-9]+)")
_EXPONENTS = range(-300, 300)
_LONGEST = 80  # characters of a number; MySQL's own have 65 digits, and longer ones overflow differently
_GREATEST_SIGNED = 2**63 - 1
_WIDE = Context(prec=1000, rounding=ROUND_HALF_UP)


class _Read(NamedTuple):
    """Hold the integer that a server reads, and the kind of loss if the text is more or other than that."""

    number: int
    loss: str | None


def to_integer(values: pa.Array, step: Step) -> pa.Array:
    """Convert texts to integers and clamp them; raise where the server is not known and servers differ."""
    if pc.all(pc.match_substring_regex(values, _PLAIN)).as_py() is not False:
        return from_numbers.to_integer(from_texts(values, pa.decimal128(MAX_DIGITS, 0)), step)
    servers = _SERVERS.values() if step.server is None else (_SERVERS[step.server],)
    least, greatest = bounds(step.new)

    def convert(text: str) -> tuple[Decimal, str | None]:
        reads = [_clamped(read(text, step.new.unsigned), least, greatest) for read in servers]
        if len({read.number for read in reads}) > 1:
            raise UncertainConversion(
                "MySQL and MariaDB read different integers in a text; source.options.server states which one it is"
            )
        return Decimal(reads[0].number), reads[0].loss

    integers = convert_distinct(values, convert, step, pa.decimal128(MAX_DIGITS, 0))
    return from_numbers.to_integer(integers, step)


def _clamped(read: _Read, least: int, greatest: int) -> _Read:
    number = min(max(read.number, least), greatest)
    return read if number == read.number else _Read(number, NUMBER_CLAMPED)


def _mysql(text: str, unsigned: bool) -> _Read:
    match = _MYSQL.match(text)
    sign, whole, fraction, power = match.groups() if match else ("", "", None, None)
    if match is None or not (whole or fraction):
        return _Read(0, NUMBER_PREFIX)
    _demand_shortness(match)
    rest = text[match.end() :]
    exact = fraction is None and power is None
    if not exact and (len(whole + (fraction or "")) > _SURE_DIGITS or int(power or 0) not in _EXPONENTS):
        raise UncertainConversion("a text is a number of very many digits")
    if fraction and power is None and _MYSQL_MISREADS.match(rest):
        raise UncertainConversion("a text goes on behind a fraction as if that were another number")
    number = int(Decimal(f"{sign}{whole}.{fraction or 0}e{power or 0}").to_integral_value(context=_WIDE))
    if unsigned and number < -_GREATEST_SIGNED:
        raise UncertainConversion("a text is a negative number beyond every integer")
    return _Read(number, NUMBER_PREFIX if rest.strip(" \t") else None)


def _mariadb(text: str, unsigned: bool) -> _Read:
    match = _MARIADB.match(text)
    if match is None:
        return _Read(0, NUMBER_PREFIX)
    _demand_shortness(match)
    number = int(match[1])
    if number > _GREATEST_SIGNED:  # also for BIGINT UNSIGNED
        return _Read(_GREATEST_SIGNED, NUMBER_CLAMPED)
    return _Read(number, NUMBER_PREFIX if text[match.end() :].strip(" \t") else None)


def _demand_shortness(number: re.Match[str]) -> None:
    if len(number.group().strip()) > _LONGEST:
        raise UncertainConversion("a text is a number of very many digits")


_SERVERS: dict[str, Callable[[str, bool], _Read]] = {"mysql": _mysql, "mariadb": _mariadb}
