# SPDX-License-Identifier: Apache-2.0
"""Undo Debezium's adjusting of column names to what Avro can spell (docs/wire/avro-registry.md 3).

``field.name.adjustment.mode`` writes other characters in another way. A name is only taken back where one column alone
can have been meant.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from string import ascii_letters, digits

_LETTERS = frozenset(ascii_letters)
_DIGITS = frozenset(digits)


def _units(name: str) -> list[str]:
    """Return a name's characters as Java has them, of 16 bits each."""
    encoded = name.encode("utf-16-be", "surrogatepass")
    return [chr(int.from_bytes(encoded[i : i + 2], "big")) for i in range(0, len(encoded), 2)]


def underscored(name: str) -> str:
    """Return a name as ``avro`` writes it."""
    known = _LETTERS | {"_"}
    return "".join(
        unit if unit in known or (number and unit in _DIGITS) else "_" for number, unit in enumerate(_units(name))
    )


def prefixed(name: str) -> str:
    """Return a name as ``sanitize.field.names`` of Debezium 1 writes it: a digit in front stays, behind a ``_``."""
    return ("_" + name[0] if name[0] in _DIGITS else underscored(name[0])) + underscored("_" + name[1:])[1:]


def _in_hex(number: int) -> str:
    return f"_u{'00' if number < 1 << 8 else ''}{number:x}"


def escaped(name: str) -> str:
    """Return a name as ``avro_unicode`` writes it."""
    return "".join(
        unit if unit in _LETTERS or (number and unit in _DIGITS) else _in_hex(ord(unit))
        for number, unit in enumerate(_units(name))
    )


ADJUSTMENTS: tuple[Callable[[str], str], ...] = (underscored, prefixed, escaped)


def can_spell(column: str) -> bool:
    """Return whether Avro allows a column's name; ``avro_unicode`` writes another one for some of these, too."""
    return bool(column) and underscored(column) == column


def is_adjusted(column: str, written: str) -> bool:
    """Return whether a column is written so by one of the modes; a transform that renames columns does otherwise."""
    return bool(column) and any(adjusted(column) == written for adjusted in ADJUSTMENTS)


def spellings(pattern: str) -> set[str]:
    """Return shell patterns of what is written for columns that one matches; it may have ``*``."""
    first, *others = pattern.split("*")
    return {
        "*".join([adjusted(first) if first else "", *(adjusted("x" + part)[1:] for part in others)])
        for adjusted in ADJUSTMENTS
    }


def columns_of(names: Sequence[str], columns: Collection[str], others: Collection[str] = ()) -> Mapping[str, str]:
    """Return which column each name of a row stands for, where it is not the name itself.

    It is empty where the row has the columns by their own names, and where no mode, or more than one, gives each
    column of the table a name of its own so that the row has them all, or none but them.

    :param columns: of the table.
    :param others: columns that the row may have, too.
    """
    if not names or set(columns) <= set(names):
        return {}
    answers: list[dict[str, str]] = []
    for adjusted in ADJUSTMENTS:
        known = [*columns, *others]
        written = {adjusted(column): column for column in known if column}
        taken_back = {name: written[name] for name in names if name in written}
        fits = set(columns) <= set(taken_back.values()) or len(taken_back) == len(names)
        if fits and len(written) == len(known) and taken_back not in answers:
            answers.append(taken_back)
    return {name: column for name, column in answers[0].items() if name != column} if len(answers) == 1 else {}
