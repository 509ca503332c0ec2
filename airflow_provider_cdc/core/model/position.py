# SPDX-License-Identifier: Apache-2.0
"""Encode positions in the source's log as texts that compare like the positions.

A position is ``<generation>.<binlog file>.<byte offset>.<row>``, each number padded with zeros;
:mod:`core.model.position_columns` reads its parts a whole column at once.
"""

from __future__ import annotations

# Widths that hold every value MySQL and MariaDB can write: the file counter has at least six digits and no stated
# upper bound, ``pos`` is an unsigned 64-bit number, ``row`` counts rows of one event.
FILE_DIGITS = 10
POS_DIGITS = 20
ROW_DIGITS = 10
GENERATION_DIGITS = 4
WIDTHS = (FILE_DIGITS, POS_DIGITS, ROW_DIGITS)  # of what follows the generation
FIRST_GENERATION = "0" * GENERATION_DIGITS


def generation_of(position: str) -> int:
    """Return the generation of a position."""
    return int(position[:GENERATION_DIGITS])


def file_of(position: str) -> int:
    """Return the number of the binlog file of a position; 0 where it has none.

    Of a first number with more digits, the leading ones count: of a place in PostgreSQL's WAL each is 10 GB.
    """
    return int(position[GENERATION_DIGITS + 1 :][:FILE_DIGITS] or 0)


def first_of(position: str) -> str:
    """Return the first position with the same generation and first number; these stand in front, padded."""
    generation, first, *rest = position.split(".")
    return ".".join([generation, first, *("0" * len(part) for part in rest)])


def begins_event(position: str) -> bool:
    """Return whether the first two numbers of a position are the same place."""
    _, first, second, _ = position.split(".")
    return first == second


def is_before_log(position: str) -> bool:
    """Return whether a position stands before the source's log, as rows of a full load may: its first number is 0."""
    return not position[GENERATION_DIGITS + 1 :].partition(".")[0].strip("0")


def in_generation(position: str, generation: int) -> str:
    """Return the same position in another generation of the log."""
    return f"{generation:0{GENERATION_DIGITS}d}{position[GENERATION_DIGITS:]}"


def binlog_file_number(file: str) -> int:
    """Return the number at the end of a binlog file's name, so that 1000000 comes after 999999.

    :raises ValueError: the name does not end in a number, or in one that no position can hold.
    """
    head, dot, digits = file.rpartition(".")
    if not dot or not head or not digits.isascii() or not digits.isdigit():
        raise ValueError("binlog file name does not end in a number")
    if len(digits.lstrip("0")) > FILE_DIGITS:
        raise ValueError(f"binlog file name ends in a number of more than {FILE_DIGITS} digits")
    return int(digits)
